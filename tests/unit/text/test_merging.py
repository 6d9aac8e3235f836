import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqtools.errors import ConfigError, FormatError
from seqtools.text.merging import Merger
from seqtools.text.vocab import Vocabulary

TOKENS = st.text("ab<s>", max_size=3) | st.sampled_from(["<s>", "<unused0>", "中", "é"])


def merged(*vocabularies: Vocabulary, specials=None, **settings) -> Vocabulary:
    merger = Merger(specials)
    for vocabulary in vocabularies:
        merger.add(vocabulary)
    return merger.result(**settings)


def entries(vocabulary: Vocabulary) -> list[dict]:
    return list(vocabulary.entries())


@given(
    st.lists(st.lists(TOKENS), min_size=1, max_size=5),
    st.integers(1, 3), st.integers(1, 4), st.sampled_from([None, 1, 3]),
)  # fmt: skip
def test_parts_merged_are_the_whole(parts, min_count, multiple, max_size) -> None:
    """However the parts were filled up themselves."""
    settings = {"min_count": min_count, "multiple": multiple, "max_size": max_size}
    built = [Vocabulary.build(Counter(part), multiple=8) for part in parts]
    whole = Vocabulary.build(Counter(token for part in parts for token in part), **settings)
    assert entries(merged(*built, **settings)) == entries(whole)


def test_the_order_of_the_files_is_of_no_matter() -> None:
    parts = [Vocabulary.build(Counter(text)) for text in ("abca", "cab", "éZ", "")]
    first = entries(merged(*parts))
    for seed in range(5):
        random.Random(seed).shuffle(parts)
        assert entries(merged(*parts)) == first


def test_specials_must_agree_or_be_named() -> None:
    plain = Vocabulary.build({"a": 2, "<s>": 3}, specials=())
    usual = Vocabulary.build({"a": 1})
    with pytest.raises(FormatError, match="its specials are none, and not <pad> <unk> <s> </s>"):
        merged(usual, plain)
    both = merged(usual, plain, specials=["pad", "bos"])
    assert entries(both) == [
        {"id": 0, "token": "<pad>", "special": "pad"},
        {"id": 1, "token": "<s>", "special": "bos"},
        {"id": 2, "token": "a", "count": 3},
    ]
    with pytest.raises(ConfigError, match="unknown special 'ukn'"):
        Merger(["ukn"])


def test_specials_keep_their_spelling() -> None:
    other = Vocabulary(["[PAD]", "a"], {"pad": 0}, [0, 1])
    assert merged(other, other).tokens == ["[PAD]", "a"]
    with pytest.raises(FormatError, match=r"its specials are <pad>, and not \[PAD\]"):
        merged(other, Vocabulary.build({}, specials=["pad"]))


def test_without_counts_tokens_keep_the_order_in_which_they_are_met() -> None:
    first, second = (Vocabulary.of_pieces(pieces) for pieces in (["▁b", "a"], ["c", "a", "▁a"]))
    both = merged(first, second, multiple=5)
    assert both.tokens[4:] == ["▁b", "a", "c", "▁a", "<unused0>", "<unused1>"]
    assert both.counts is None
    assert merged(first, second, max_size=3).tokens[4:] == ["▁b", "a", "c"]
    with pytest.raises(ConfigError, match="needs counts"):
        merged(first, second, min_count=2)


def test_counts_are_there_or_not() -> None:
    pieces, counted = Vocabulary.of_pieces(["a"]), Vocabulary.build({"a": 1})
    empty = Vocabulary.build({})
    with pytest.raises(FormatError, match="it has counts, which those before it lack"):
        merged(pieces, counted)
    with pytest.raises(FormatError, match="it has no counts, which those before it have"):
        merged(counted, pieces)
    assert merged(empty, pieces) == pieces
    assert merged(pieces, empty) == pieces


def test_a_token_of_that_spelling_is_no_padding() -> None:
    padded = Vocabulary.build({}, multiple=6)
    assert padded.tokens[4:] == ["<unused0>", "<unused1>"]
    both = merged(padded, Vocabulary.build({"<unused0>": 2}), multiple=6)
    assert entries(both)[4:] == [
        {"id": 4, "token": "<unused0>", "count": 2},
        {"id": 5, "token": "<unused1>", "special": "unused1"},
    ]


def test_nothing_merged_is_nothing() -> None:
    assert entries(merged()) == []
