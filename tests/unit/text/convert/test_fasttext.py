import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqtools.errors import ConfigError, RecordError
from seqtools.text.convert.fasttext import Labelled

ONE, MANY = Labelled(), Labelled(multi=True, label_field="labels")


@pytest.mark.parametrize(
    ("line", "label", "text"),
    [
        ("__label__a b c", "a", "b c"),
        ("__label__a  b ", "a", " b "),
        ("__label__a\tb", "a", "b"),
        ("__label__a", "a", ""),
        ("__label__天气 今天", "天气", "今天"),
        ("b __label__a c", "a", "b c"),
        ("b c __label__a", "a", "b c"),
        ("__label__a x__label__b", "a", "x__label__b"),
        ("__label__a\u00a0b c", "a\u00a0b", "c"),
    ],
)
def test_a_label_wherever_it_stands(line: str, label: str, text: str) -> None:
    assert ONE.read(line.encode()) == {"label": label, "text": text}


def test_several_labels() -> None:
    assert MANY.read(b"__label__a __label__b c") == {"labels": ["a", "b"], "text": "c"}
    assert MANY.read(b"c __label__a d __label__b") == {"labels": ["a", "b"], "text": "c d"}
    assert MANY.read(b"c d") == {"labels": [], "text": "c d"}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"a b", "one label expected, got no label"),
        (b"__label__a __label__b c", "one label expected, got 2 labels"),
        (b"__label__ c", "a label is nothing but __label__"),
        (b"__label__a \xff", "not UTF-8"),
    ],
)
def test_lines_that_are_not_labelled(line: bytes, reason: str) -> None:
    with pytest.raises(RecordError, match=reason):
        ONE.read(line)


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ({"label": "a b", "text": "c"}, "has white space: 'a b'"),
        ({"label": "", "text": "c"}, "is empty: ''"),
        ({"label": 1, "text": "c"}, "must be a string, got number"),
        ({"label": "a", "text": "c\nd"}, "has a newline"),
        ({"label": "a", "text": "c __label__d"}, "has a word that begins with __label__"),
        ({"label": "a", "text": "c\r"}, "ends with a return"),
        ({"label": "a"}, '"text" is missing'),
    ],
)
def test_records_that_no_line_holds(record, reason: str) -> None:
    with pytest.raises(RecordError, match=reason):
        ONE.write(record)


def test_nothing_is_no_line() -> None:
    with pytest.raises(RecordError, match="neither label nor text"):
        MANY.write({"labels": [], "text": " "})


WORDS = st.text(st.sampled_from("ab_ \t𠮷"), max_size=5)


@given(st.lists(WORDS, max_size=3), WORDS)
def test_what_is_written_is_read(labels: list[str], text: str) -> None:
    prefixed = Labelled("__", multi=True, label_field="labels")
    try:
        line = prefixed.write({"labels": labels, "text": text})
    except RecordError:
        return
    assert prefixed.read(line.encode()) == {"labels": labels, "text": text}


@pytest.mark.parametrize(
    "make",
    [lambda: Labelled(""), lambda: Labelled("a b"), lambda: Labelled(label_field="text")],
)
def test_prefixes_and_fields_that_cannot_be(make) -> None:
    with pytest.raises(ConfigError):
        make()
