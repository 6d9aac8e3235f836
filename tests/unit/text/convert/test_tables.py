import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqtools.errors import ConfigError, RecordError
from seqtools.streams.files import chomp
from seqtools.text.convert.tables import Columns, Csv, Tabs


def test_columns_become_fields() -> None:
    assert Columns(["a", "b"]).read("x\t语".encode()) == {"a": "x", "b": "语"}
    assert Columns(["a", "b"]).read(b"\t") == {"a": "", "b": ""}
    assert Columns(["a", "b", "c"], ["c", "a"]).read(b"x\ty\tz") == {"c": "z", "a": "x"}


def test_an_empty_line_is_no_row_but_of_one_column() -> None:
    assert Columns(["a", "b"]).read(b"") == {}
    assert Columns(["a"]).read(b"") == {"a": ""}


@pytest.mark.parametrize(
    ("names", "line", "reason"),
    [
        (["a", "b"], b"x", "2 columns expected, got 1"),
        (["a"], b"x\ty", "1 column expected, got 2"),
        (["a", "b"], b"x\t\xff", "not UTF-8"),
    ],
)
def test_lines_that_are_no_row(names: list[str], line: bytes, reason: str) -> None:
    with pytest.raises(RecordError, match=reason):
        Columns(names).read(line)


@pytest.mark.parametrize(
    ("names", "wanted", "reason"),
    [
        (["a", "b"], ["q"], "no column is called 'q': a, b"),
        (["a", "a"], ["a"], "more than one column is called 'a'"),
        (["a", "a"], None, "more than one column is called 'a'"),
        (["a", ""], None, "column 2 has no name"),
        (["a", "b"], [], "no column is wanted"),
    ],
)
def test_columns_that_cannot_be_told(names, wanted, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        Columns(names, wanted)


def test_fields_between_tabs() -> None:
    write = Tabs().write
    assert write({"b": "y", "a": "x", "id": 1}, ["a", "b"]) == "x\ty"
    for bad, reason in (("x\ty", "a tab"), ("x\ny", "a newline"), (1, "must be a string")):
        with pytest.raises(RecordError, match=reason):
            write({"a": bad}, ["a"])
    with pytest.raises(RecordError, match='"a" is missing'):
        write({}, ["a"])
    with pytest.raises(RecordError, match="ends with a return"):
        write({"a": "x", "b": "a\r"}, ["a", "b"])


FIELDS = st.text(st.sampled_from('ab,;"\n\r\t \ufeff𠮷'), max_size=6)
TABLES = st.integers(1, 4).flatmap(
    lambda size: st.lists(st.lists(FIELDS, min_size=size, max_size=size), max_size=6)
)


def cut(table: Csv, data: bytes) -> list[bytes]:
    groups, end = table.cut(data, last=True)
    assert end == len(data)
    return [group.raw for group in groups]


@given(TABLES, st.sampled_from(",;\t"))
def test_csv_is_what_the_csv_module_reads(rows, delimiter: str) -> None:
    table = Csv(delimiter)
    names = [str(column) for column in range(len(rows[0]) if rows else 0)]
    text = "".join(table.write(dict(zip(names, row, strict=True)), names) + "\n" for row in rows)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    assert list(reader) == rows
    assert [table.split(raw.decode()) for raw in cut(table, text.encode())] == rows


@given(TABLES, st.sampled_from(",;\t"), st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_csv_is_what_the_csv_module_writes(rows, delimiter: str, end: str, full: bool) -> None:
    file = io.StringIO(newline="")
    # The module leaves a return without marks, where the line end has none.
    marks = full or any("\r" in field for row in rows for field in row)
    quoting = csv.QUOTE_ALL if marks else csv.QUOTE_MINIMAL
    csv.writer(file, delimiter=delimiter, lineterminator=end, quoting=quoting).writerows(rows)
    table = Csv(delimiter)
    columns = Columns([str(column) for column in range(len(rows[0]) if rows else 0)], None, table)
    found = [columns.read(chomp(raw)) for raw in cut(table, file.getvalue().encode())]
    assert [list(record.values()) for record in found] == rows


@given(TABLES, st.data())
def test_csv_may_be_cut_anywhere_between_lines(rows, data) -> None:
    table = Csv()
    names = [str(column) for column in range(len(rows[0]) if rows else 0)]
    text = "".join(table.write(dict(zip(names, row, strict=True)), names) + "\n" for row in rows)
    lines = text.encode().split(b"\n")
    at = data.draw(st.integers(0, len(lines) - 1))
    first = b"".join(line + b"\n" for line in lines[:at])
    groups, end = table.cut(first, last=False)
    rest, _ = table.cut(text.encode()[end:], last=True)
    assert [group.raw for group in [*groups, *rest]] == cut(table, text.encode())


LINES = st.lists(st.text(st.sampled_from('a,"')), max_size=6).map(
    lambda lines: "".join(line + "\n" for line in lines).encode()
)


@given(LINES, LINES)
def test_what_closes_a_row_is_seen(first: bytes, more: bytes) -> None:
    table = Csv()
    held = first[table.cut(first, last=False)[1] :]
    if held and table.closing.search(more) is None:
        assert table.cut(held + more, last=False) == ([], 0)


def test_a_doubled_mark_closes_nothing() -> None:
    assert Csv.closing.search(b'a,"",b""""\n') is None
    assert Csv.closing.search(b'a,"""\n')


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ('x,a"b', "column 2 has a quotation mark, but does not begin with one"),
        ('"a"b,x', "column 1 goes on after its closing quotation mark"),
        ('x, "a"', "column 2 has a quotation mark, but"),
        ('x,y,"a', "column 3 has a quotation mark that is never closed"),
        ('"a,b",c\rd', "column 2 has a return outside quotation marks"),
        ('""",x', "column 1 has a quotation mark that is never closed"),
    ],
)
def test_quotation_marks_where_none_can_be(row: str, reason: str) -> None:
    with pytest.raises(RecordError, match=reason):
        Csv().split(row)


def test_a_bad_mark_spoils_its_line_alone() -> None:
    rows = cut(Csv(), b'a"b,c\n"d"e\n"f\ng",h\ni,"j\nk\n')
    assert rows == [b'a"b,c', b'"d"e', b'"f\ng",h', b'i,"j\nk']


def test_marks_around_every_field() -> None:
    assert Csv(quote_all=True).write({"a": "", "b": 'x"'}, ["b", "a"]) == '"x""",""'


@pytest.mark.parametrize("delimiter", ["", ",,", '"', "\n", "，"])
def test_what_is_no_delimiter(delimiter: str) -> None:
    with pytest.raises(ConfigError, match="a delimiter is one character"):
        Csv(delimiter)
