"""What all tokenizers owe."""

import functools

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seqtools.errors import ConfigError, RecordError
from seqtools.lazy import lookup
from seqtools.streams.records import dumps, loads
from seqtools.text.normalize import Normalizer
from seqtools.text.tokenizers import TOKENIZERS, JsonTokenizer, locate
from seqtools.text.tokenizers.records import join_fields, split_fields

TEXTS = [
    "",
    " ",
    "a",
    "𠮷",
    "\u00a0\u3000\u2028\x1c\x85",
    "\ufeffx",
    "a\x00b",
    "Don't panic: it's 3.14, isn't it?  (No.)\n",
    "我爱北京 and 天安门。\tOK",
    "cafe\u0301 हिन्दी में ไทยแลนด์",
    "👨\u200d👩\u200d👧 👍🏽 🇨🇳🇺🇸 3\ufe0f\u20e3",
    "--...!!!???",
    "a b " * 2000,
]

OF_TEXT = [name for name in TOKENIZERS if name != "byte"]  # whose tokens are parts of the text


@functools.cache
def make(name: str, *, keep_space: bool = False):
    return lookup(TOKENIZERS, name, "tokenizer")(keep_space=keep_space)


def without_space(text: str) -> str:
    return "".join(text.split())


@pytest.mark.parametrize("name", OF_TEXT)
@pytest.mark.parametrize("text", TEXTS)
def test_nothing_but_white_space_is_lost(name: str, text: str) -> None:
    tokenizer = make(name)
    tokens, spans = tokenizer.spans(text)
    assert tokens == tokenizer.tokenize(text)
    assert "".join(tokens) == without_space(text)
    assert not any(token.isspace() or not token for token in tokens)
    assert [text[start:end] for start, end in spans] == tokens


@pytest.mark.parametrize("name", OF_TEXT)
@pytest.mark.parametrize("text", TEXTS)
def test_with_white_space_the_tokens_are_the_text(name: str, text: str) -> None:
    tokenizer = make(name, keep_space=True)
    tokens, spans = tokenizer.spans(text)
    assert "".join(tokens) == text == tokenizer.join(tokens)
    assert "" not in tokens
    assert [text[start:end] for start, end in spans] == tokens


# Characters that mean something to one of the tokenizers, among any others.
MIXED = st.text(
    st.one_of(
        st.sampled_from("ab1_.,:'’&@- \n\x1c\u00a0\u0301\u200d\ufe0f👍🏽🇨中々ไก่हि\ufeff"),
        st.characters(),
    )
)


@pytest.mark.parametrize("name", OF_TEXT)
@given(text=MIXED)
@settings(deadline=None)  # the first call loads a dictionary
def test_any_text(name: str, text: str) -> None:
    tokens, spans = make(name).spans(text)
    assert "".join(tokens) == without_space(text)
    assert [text[start:end] for start, end in spans] == tokens
    kept = make(name, keep_space=True)
    assert "".join(kept.tokenize(text)) == text


# Lines as they are, in which the quick ways hold, and such as none of them can take.
LINES = st.text(st.sampled_from('ab, ."\\é中\u3000\u00a0\x1c\t\u200b'), max_size=12)


@pytest.mark.parametrize("keep_space", [False, True])
@pytest.mark.parametrize("name", ["whitespace", "word", "char"])
@given(text=LINES | MIXED)
def test_tokens_as_json_are_the_tokens(name: str, text: str, *, keep_space: bool) -> None:
    tokenizer = make(name, keep_space=keep_space)
    assert isinstance(tokenizer, JsonTokenizer)
    try:
        wanted = orjson.dumps(tokenizer.tokenize(text))
    except orjson.JSONEncodeError:  # a surrogate alone, which no record can hold
        return
    made = tokenizer.to_json(text)
    assert (made.encode() if isinstance(made, str) else made) == wanted


@pytest.mark.parametrize("name", ["whitespace", "word", "char"])
def test_texts_of_any_length_are_written_alike(name: str) -> None:
    tokenizer = make(name)
    split = split_fields(["text"], tokenizer, Normalizer())
    for length in range(200):
        text = ('a "b, ' * 40)[:length]
        assert split({"text": text}, 1) == (
            dumps({"text": text, "tokens": tokenizer.tokenize(text)}) + b"\n"
        )


def test_an_integer_that_takes_a_slower_writer_leaves_the_tokens() -> None:
    split = split_fields(["src", "tgt"], make("word"), Normalizer())
    record = split({"src": "a b", "tgt": "", "n": 2**64}, 1)
    assert dumps(record) == (
        b'{"src":"a b","tgt":"","n":18446744073709551616,"src_tokens":["a","b"],"tgt_tokens":[]}'
    )


@pytest.mark.parametrize("number", [b"5", b"9" * 30, b"9" * 5000])
def test_what_is_no_text_is_said_beside_long_integers(number: bytes) -> None:
    record = loads(b'{"text":"a b","tokens":%b}' % number)
    for fields in (["text", "tokens"], ["tokens", "text"], ["tokens"]):
        split = split_fields(fields, make("word"), Normalizer())
        got = "list" if fields[0] == "text" else "number"
        with pytest.raises(RecordError, match=f'"tokens" must be a string, got {got}'):
            split(dict(record), 1)
    with pytest.raises(RecordError, match='"src" is missing'):
        split_fields(["src", "text"], make("word"), Normalizer())(dict(record), 1)


def test_unknown_names_are_answered_with_near_ones() -> None:
    with pytest.raises(ConfigError, match="unknown tokenizer 'wrod': did you mean word"):
        lookup(TOKENIZERS, "wrod", "tokenizer")


def test_locate_takes_tokens_in_order() -> None:
    assert locate("a  b a", ["a", "b", "a"]) == [(0, 1), (3, 4), (5, 6)]


def test_whitespace_is_what_unicode_calls_so() -> None:
    split = make("whitespace").tokenize
    assert split("a\u00a0b\u2028c\x85d\x1fe\u200bf\ufeffg") == [
        "a",
        "b",
        "c",
        "d",
        "e\u200bf\ufeffg",
    ]
    assert make("whitespace", keep_space=True).tokenize("a  b\n") == ["a", "  ", "b", "\n"]
    assert make("whitespace").join(["a", "b"]) == "a b"


def test_char_means_code_points() -> None:
    kept = make("char", keep_space=True)
    # Of the texts cafe+acute noir, a Hindi, a Thai, a family and ok, a tone, two flags.
    texts = ["cafe\u0301 noir", "हिन्दी में", "ไทยแลนด์", "👨\u200d👩\u200d👧 ok", "👍🏽", "🇨🇳🇺🇸"]
    assert [len(kept.tokenize(text)) for text in texts] == [10, 10, 8, 8, 2, 4]
    assert make("char").tokenize("a \u3000𠮷") == ["a", "𠮷"]
    for separator in "\u2028\u2029\x85\x1c\x0b\x0c":
        assert kept.tokenize(f"a{separator}b") == ["a", separator, "b"]


def test_fields_get_names_of_their_own() -> None:
    split = split_fields(["text", "src"], make("char"), Normalizer())
    assert split({"id": 7, "src": "xy", "text": "ab", "more": None}, 1) == (
        b'{"id":7,"src":"xy","text":"ab","more":null,"tokens":["a","b"],"src_tokens":["x","y"]}\n'
    )
    joined = join_fields(["src"], make("char"))({"src_tokens": ["x", "y"]}, 1)
    assert joined == {"src_tokens": ["x", "y"], "src": "xy"}


def test_offsets_lead_into_the_field_as_it_stands() -> None:
    split = split_fields(["text"], make("word"), Normalizer("nfkc", lowercase=True), offsets=True)
    record = split({"text": "İn  ﬁne, Cafe\u0301!"}, 1)
    assert record["tokens"] == ["i̇n", "fine", ",", "café", "!"]
    places = [record["text"][start:end] for start, end in record["offsets"]]
    assert places == ["İn", "ﬁne", ",", "Cafe\u0301", "!"]


def test_what_would_not_come_back_is_a_bad_record_where_that_is_asked_for() -> None:
    kept = split_fields(["src"], make("word", keep_space=True), Normalizer("nfc"), lossless=True)
    assert kept({"src": " a"}, 1) == {"src": " a", "src_tokens": [" ", "a"]}
    with pytest.raises(RecordError, match='"src" would not come back'):
        kept({"src": "e\u0301"}, 1)  # its normal form is one character
    dropped = split_fields(["src"], make("char"), Normalizer(), lossless=True)
    with pytest.raises(RecordError, match='"src" would not come back'):
        dropped({"src": " a"}, 1)


def test_a_tagger_takes_the_tokenizers_place() -> None:
    split = split_fields(
        ["src"], make("word"), Normalizer(), offsets=True, tag=lambda text: (["a", "b"], ["x", "y"])
    )
    assert split({"src": "a b"}, 1) == {
        "src": "a b",
        "src_tokens": ["a", "b"],
        "src_pos": ["x", "y"],
        "src_offsets": [(0, 1), (2, 3)],
    }
