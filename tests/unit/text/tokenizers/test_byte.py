"""Bytes as tokens."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqtools.errors import RecordError
from seqtools.text.normalize import Normalizer
from seqtools.text.tokenizers.byte import ByteTokenizer
from seqtools.text.tokenizers.records import join_fields, split_fields

BYTES = ByteTokenizer()
# The Unicode Standard, table 3-4: 41, D0 B0, E4 BA 8C, F0 90 8C 82 are the UTF-8 of these.
STANDARD = "\u0041\u0430\u4e8c\U00010302"


def test_the_examples_of_the_standard() -> None:
    written = ["41", "D0", "B0", "E4", "BA", "8C", "F0", "90", "8C", "82"]
    tokens, spans = BYTES.spans(STANDARD)
    assert tokens == BYTES.tokenize(STANDARD) == [f"<0x{byte}>" for byte in written]
    places = [0, 1, 1, 2, 2, 2, 3, 3, 3, 3, 4]  # where bytes begin and end
    assert spans == list(itertools.pairwise(places))
    assert BYTES.join(tokens) == STANDARD


@given(text=st.text())
def test_any_text_comes_back(text: str) -> None:
    tokens, spans = BYTES.spans(text)
    assert bytes(int(token[3:5], 16) for token in tokens) == text.encode()
    assert BYTES.join(tokens) == text
    for number, char in enumerate(text):
        size = len(char.encode())
        assert spans[:size] == [*[(number, number)] * (size - 1), (number, number + 1)]
        spans = spans[size:]
    assert spans == []


@pytest.mark.parametrize(
    ("tokens", "reason"),
    [
        (["<0x41>", "x"], "token 2 is no byte such as <0xE4>: 'x'"),
        (["<0xe4>"], "token 1 is no byte such as <0xE4>: '<0xe4>'"),
        (["<0x0A>", "<0xE4>", "<0x41>"], "the bytes are not UTF-8 from token 2 on"),
        (["<0xED>", "<0xA0>", "<0x80>"], "the bytes are not UTF-8 from token 1 on"),  # U+D800
        (["<0xC0>", "<0x80>"], "the bytes are not UTF-8 from token 1 on"),  # an overlong U+0000
    ],
)
def test_what_is_no_text(tokens: list[str], reason: str) -> None:
    with pytest.raises(RecordError) as caught:
        BYTES.join(tokens)
    assert str(caught.value) == reason
    with pytest.raises(RecordError) as caught:
        join_fields(["src"], BYTES)({"src_tokens": tokens}, 1)
    assert str(caught.value) == f'"src_tokens": {reason}'


def test_offsets_of_bytes_lead_into_the_field_as_it_stands() -> None:
    split = split_fields(["text"], BYTES, Normalizer("nfkc", lowercase=True), offsets=True)
    record = split({"text": "ﬁe\u0301"}, 1)  # f and i from one character, é from two
    assert record["tokens"] == ["<0x66>", "<0x69>", "<0xC3>", "<0xA9>"]
    assert record["offsets"] == [(0, 1), (0, 1), (1, 1), (1, 3)]
