import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqtools.errors import ConfigError, RecordError
from seqtools.text.convert.columns import plain_layout
from seqtools.text.convert.conll import Conll, Sentences
from seqtools.text.tags import Retag, Scheme

TAGGED = Conll(plain_layout(["tokens", "tags"]))
IOB2 = Retag(Scheme("iob2"), Scheme("iob2"))


def cut(data: bytes, *, last: bool = True) -> list[tuple[int, bytes]]:
    return [tuple(group) for group in Sentences().cut(data, last=last)[0]]


def test_sentences_stand_between_blank_lines() -> None:
    data = b"\n \t\r\na\nb\n\n\n  \nc\r\n\r\nd"
    assert cut(data) == [(2, b"a\nb\n"), (7, b"c\r\n"), (9, b"d\n")]
    assert cut(data, last=False) == [(2, b"a\nb\n"), (7, b"c\r\n")]
    assert Sentences().cut(data, last=False)[1] == len(data) - 1
    assert cut(b"") == cut(b"\n\n") == []


def test_the_start_of_a_document_goes_with_its_first_sentence() -> None:
    data = b"-DOCSTART- O\n\na O\n\nb O\n\n-DOCSTART- O\n\n-DOCSTART- O\n\nc O\n\n-DOCSTART- O\n\n"
    start = b"-DOCSTART- O\n\n"
    assert cut(data) == [(0, start + b"a O\n"), (4, b"b O\n"), (8, start + b"c O\n")]
    assert cut(start, last=False) == []
    assert Sentences().cut(start, last=False)[1] == 0
    assert Sentences().cut(2 * start, last=False) == ([], len(start))  # the first is let go of


LINES = st.lists(
    st.sampled_from([b"a", b"b\r", b"", b" ", b"\r", b"-DOCSTART- O", b"c d"]), max_size=12
)


@given(LINES, st.booleans(), st.data())
def test_sentences_may_be_cut_anywhere_between_lines(lines, newline: bool, data) -> None:
    text = b"\n".join(lines) + b"\n" * newline
    lines = text.split(b"\n")
    at = data.draw(st.integers(0, len(lines) - 1))
    first = b"".join(line + b"\n" for line in lines[:at])
    found, end = Sentences().cut(first, last=False)
    rest, _ = Sentences().cut(text[end:], last=True)
    above = text.count(b"\n", 0, end)
    moved = [(above + group.above, group.raw) for group in rest]
    assert [*map(tuple, found), *moved] == cut(text)


@given(LINES, LINES)
def test_what_closes_a_sentence_is_seen(before, after) -> None:
    first = b"a\n" + b"".join(line + b"\n" for line in before)
    more = b"".join(line + b"\n" for line in after)
    _, end = Sentences().cut(first, last=False)
    held = first[end:]
    if held and Sentences().closing.search(more) is None:
        assert Sentences().cut(held + more, last=False) == ([], 0)


def test_tabs_or_blanks() -> None:
    assert TAGGED.read(b"a  O\nb O \n") == {"tokens": ["a", "b"], "tags": ["O", "O"]}
    assert TAGGED.read(b" \tO\na b\tO\r\n") == {"tokens": [" ", "a b"], "tags": ["O", "O"]}
    assert TAGGED.read("\u3000 O\n".encode())["tokens"] == ["\u3000"]
    blank = Conll(TAGGED.layout, separator=" ")
    assert blank.read(b"a\tb O\n")["tokens"] == ["a\tb"]


def test_columns_by_number() -> None:
    conll = Conll(plain_layout(["tags=-1", "tokens=1"]))
    assert conll.read(b"a DT O\nb NN O\n") == {"tags": ["O", "O"], "tokens": ["a", "b"]}
    with pytest.raises(RecordError, match="3 columns expected, got 2") as caught:
        conll.read(b"a DT O\nb NN\n")
    assert caught.value.line == 1
    with pytest.raises(RecordError, match="2 columns or more expected, got 1"):
        Conll(plain_layout(["tokens=2"])).read(b"a\n")


def test_comments_and_the_start_of_a_document() -> None:
    raw = b"-DOCSTART- O\n\n# id = 7\n# note = x = y\n# note = z\n# O\nb O\n"
    record = {"docstart": "-DOCSTART- O", "id": "7", "note": "x = y\nz"}
    record |= {"tokens": ["#", "b"], "tags": ["O", "O"]}
    assert TAGGED.read(raw) == record
    conll = Conll(TAGGED.layout, separator=" ", comments=("id", "note", "absent"))
    assert conll.write(record) + "\n" == raw.decode() + "\n"
    assert TAGGED.write(record) == "-DOCSTART- O\n\n#\tO\nb\tO\n"


@pytest.mark.parametrize(
    ("raw", "line", "reason"),
    [
        (b"a O\nb\n", 1, "2 columns expected, got 1"),
        (b"-DOCSTART- O\n\na O\nb x O\n", 3, "2 columns expected, got 3"),
        (b"a O\n# b = c\n", 1, "2 columns expected, got 4"),
        (b"a\tO\n\tO\n", 1, "column 1 is empty"),
        (b"a O\nb \xff\n", 1, "not UTF-8: byte 0xff at byte 3 of the line"),
        (b"# a = b\n", 0, "comments without a sentence"),
        (b"# tags = b\na O\n", 0, "a comment and a column are both called 'tags'"),
        (b"# ranges = b\na O\n", 0, "a comment cannot be called 'ranges'"),
    ],
)
def test_bad_sentences_and_their_lines(raw: bytes, line: int, reason: str) -> None:
    with pytest.raises(RecordError, match=reason) as caught:
        TAGGED.read(raw)
    assert caught.value.line == line


def test_tags_are_changed_and_bad_ones_have_a_line() -> None:
    conll = Conll(TAGGED.layout, change_tags=Retag(Scheme("iob1"), Scheme("bmes")))
    assert conll.read(b"a I-X\nb B-X\nc O\n")["tags"] == ["S-X", "S-X", "O"]
    assert conll.write({"tokens": ["a"], "tags": ["I-X"]}) == "a\tS-X\n"
    with pytest.raises(RecordError, match="\"tags\": tag 3, 'B-X' after 'O'") as caught:
        conll.read(b"# id = 1\na I-X\nb O\nc B-X\n")
    assert caught.value.line == 3
    with pytest.raises(RecordError, match="\"tags\": tag 1, 'Q' is no tag of iob1") as caught:
        conll.write({"tokens": ["a"], "tags": ["Q"]})
    assert caught.value.line == 0


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ({"tokens": ["a"]}, '"tags" is missing'),
        ({"tokens": ["a"], "tags": "O"}, '"tags" must be a list of strings, got string'),
        ({"tokens": ["a"], "tags": []}, '"tags" has length 0, but "tokens" 1'),
        ({"tokens": [], "tags": []}, '"tokens" is empty, and a sentence needs a line'),
        ({"tokens": [""], "tags": ["O"]}, '"tokens" has an empty string'),
        ({"tokens": ["a\tb"], "tags": ["O"]}, "\"tokens\" has 'a\\\\tb', a column cannot"),
        ({"tokens": ["a\n"], "tags": ["O"]}, "a column cannot hold it"),
        ({"tokens": ["a"], "tags": ["O\r"]}, "a column cannot hold it"),
        ({"tokens": ["-DOCSTART-"], "tags": ["O"]}, "would be read as no token"),
        ({"tokens": [" "], "tags": [" "]}, "nothing but blanks would end the sentence"),
        ({"tokens": ["a"], "tags": ["O"], "docstart": "x"}, '"docstart" must be a line'),
        ({"tokens": ["a"], "tags": ["O"], "id": 7}, '"id" must be a string, got number'),
        ({"tokens": ["a"], "tags": ["O"], "id": "a\r"}, "'# id = a.*' would not be read as"),
        ({"tokens": ["a"], "tags": ["O"], "id": "a\tb"}, "'# id = a.*' would not be read as"),
        ({"tokens": ["a"], "tags": ["O"], "id": True}, "'# id' would not be read as"),
        ({"tokens": ["a"], "tags": ["O"], "docstart": "-DOCSTART-\r"}, "must be a line that"),
    ],
)
def test_records_that_are_no_sentence(record, reason: str) -> None:
    with pytest.raises(RecordError, match=reason):
        Conll(TAGGED.layout, comments=("id",)).write(record)


def test_blanks_between_columns_leave_none_within() -> None:
    blank = Conll(TAGGED.layout, separator=" ")
    assert blank.write({"tokens": ["a"], "tags": ["O"]}) == "a O\n"
    single = Conll(plain_layout(["tokens"]))  # a tab between columns, but there is none
    for token, conll in itertools.product(("a b", "a\tb"), (blank, single)):
        with pytest.raises(RecordError, match="a column cannot hold it"):
            conll.write({"tokens": [token], "tags": ["O"]})
    with pytest.raises(RecordError, match="would be read as no token"):
        Conll(plain_layout(["a", "b", "c", "d"]), separator=" ").write(
            {"a": ["#"], "b": ["x"], "c": ["="], "d": ["y"]}
        )


def test_columns_that_are_nothing_are_underscores() -> None:
    conll = Conll(plain_layout(["tokens", "_", "tags"]))
    assert conll.write({"tokens": ["a", "b"], "tags": ["O", "P"]}) == "a\t_\tO\nb\t_\tP\n"


TOKENS = st.lists(st.text(st.sampled_from("ab# =\u3000𠮷-\r"), max_size=4), min_size=1, max_size=4)


@given(TOKENS, TOKENS, st.sampled_from(["\t", " ", None]), st.booleans())
def test_what_is_written_is_read(tokens, tags, separator: str | None, tagged: bool) -> None:
    size = min(len(tokens), len(tags))
    record = {"tokens": tokens[:size], "tags": tags[:size]}
    conll = Conll(TAGGED.layout, separator=separator)
    if not tagged:
        del record["tags"]
        conll = Conll(plain_layout(["tokens"]), separator=separator)
    try:
        text = conll.write(record) + "\n"
    except RecordError:
        return
    ((above, raw),) = cut(text.encode())
    assert above == 0
    assert conll.read(raw) == record


def test_fields_that_are_not_there() -> None:
    with pytest.raises(ConfigError, match="no column becomes the field 'ner': tokens, tags"):
        Conll(TAGGED.layout, change_tags=IOB2, tag_fields=("ner",))
    with pytest.raises(ConfigError, match="the field 'tags' is no comment"):
        Conll(TAGGED.layout, comments=("tags",))
