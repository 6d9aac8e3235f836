import pytest

from seqtools.errors import ConfigError, RecordError
from seqtools.text.convert import Columns, decode, read_text, write_row, write_text


@pytest.mark.parametrize("text", ["", " a\tb ", "a\rb", "a\u2028b\x85\x1c\x0b", "𠮷\x00"])
def test_text_there_and_back(text: str) -> None:
    assert read_text(text.encode(), "src") == {"src": text}
    assert write_text({"src": text}, "src") == text.encode()


def test_text_that_no_line_holds() -> None:
    with pytest.raises(RecordError, match='"text" has a newline'):
        write_text({"text": "a\nb"})
    with pytest.raises(RecordError, match='"text" must be a string, got number'):
        write_text({"text": 1})


def test_bytes_that_are_no_text() -> None:
    with pytest.raises(RecordError, match="not UTF-8: byte 0xe9 at byte 4 of the line"):
        decode(b"caf\xe9 noir")
    with pytest.raises(RecordError, match="not UTF-8: byte 0xed"):
        decode(b"\xed\xa0\x80")  # half of a surrogate pair


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
    ],
)
def test_columns_that_cannot_be_told(names, wanted, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        Columns(names, wanted)


def test_fields_become_columns() -> None:
    assert write_row({"b": "y", "a": "x", "id": 1}, ["a", "b"]) == b"x\ty"
    for bad, reason in (("x\ty", "a tab"), ("x\ny", "a newline"), (1, "must be a string")):
        with pytest.raises(RecordError, match=reason):
            write_row({"a": bad}, ["a"])
    with pytest.raises(RecordError, match='"a" is missing'):
        write_row({}, ["a"])


@pytest.mark.parametrize(
    "write", [lambda: write_text({"text": "a\r"}), lambda: write_row({"a": "x", "b": "a\r"}, "ab")]
)
def test_a_return_that_reading_would_drop_is_refused(write):
    with pytest.raises(RecordError, match="ends with a return"):
        write()
    assert write_text({"text": "a\rb"}) == b"a\rb"
