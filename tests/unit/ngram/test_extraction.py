"""N-grams of one record, against the places they begin at."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqtools.errors import RecordError
from seqtools.ngram.extraction import BOS, EOS, ngrams, refuse_markers


def test_order_of_appearance():
    assert ngrams(["a", "b", "c"], [1, 2]) == [["a"], ["b"], ["c"], ["a", "b"], ["b", "c"]]
    assert ngrams(["a", "b", "c"], [2, 1]) == [["a", "b"], ["b", "c"], ["a"], ["b"], ["c"]]


def test_markers():
    assert ngrams(["a", "b", "a"], [2], "one") == [
        ["<s>", "a"], ["a", "b"], ["b", "a"], ["a", "</s>"],
    ]  # fmt: skip
    assert ngrams(["a", "b", "a"], [3], "one") == [
        ["<s>", "a", "b"], ["a", "b", "a"], ["b", "a", "</s>"],
    ]  # fmt: skip
    assert ngrams(["a"], [1, 3], "full") == [
        ["a"], ["<s>", "<s>", "a"], ["<s>", "a", "</s>"], ["a", "</s>", "</s>"],
    ]  # fmt: skip
    assert ngrams([], [1, 2, 3], "one") == [["<s>"], ["</s>"], ["<s>", "</s>"]]
    assert ngrams([], [1, 2], "full") == [["<s>", "</s>"]]
    assert ngrams([], [1, 2], "none") == []


@given(st.lists(st.sampled_from("ab"), max_size=8), st.integers(1, 6))
def test_how_many_there_are(tokens, order):
    size = len(tokens)
    assert len(ngrams(tokens, [order])) == max(0, size - order + 1)
    assert len(ngrams(tokens, [order], "one")) == max(0, size + 2 - order + 1)
    full = ngrams(tokens, [order], "full")
    assert len(full) == size + order - 1
    for place in range(order):  # every token stands once at each place of an n-gram
        assert [gram[place] for gram in full if gram[place] not in (BOS, EOS)] == tokens


def test_a_token_that_is_spelled_like_a_marker():
    refuse_markers(["a", "<S>", "<unk>"], "the line")
    with pytest.raises(RecordError, match=r'^"tokens" has a token spelled </s>, like a marker'):
        refuse_markers(["a", "</s>"], '"tokens"')
