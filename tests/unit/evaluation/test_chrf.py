"""chrF taken in segment by segment, against sacrebleu's corpus score and a count by hand."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics.chrf import CHRF

from seqtools.evaluation.chrf import Chrf

TEXTS = st.text("abA 中文.", max_size=12)


@settings(max_examples=60, deadline=None)
@given(
    pairs=st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=8),
    lowercase=st.booleans(),
    word_order=st.integers(0, 2),
)
def test_equals_the_corpus_score(
    pairs: list[tuple[str, str]], lowercase: bool, word_order: int
) -> None:
    chrf = Chrf(word_order=word_order, lowercase=lowercase)
    for hypothesis, reference in pairs:
        chrf.add(hypothesis, [reference])
    theirs = CHRF(word_order=word_order, lowercase=lowercase)
    hypotheses, references = (list(column) for column in zip(*pairs, strict=True))
    expected = theirs.corpus_score(hypotheses, [references])
    result = chrf.result()
    assert result["score"] == expected.score
    assert result["signature"] == str(theirs.get_signature())
    assert result["records"] == len(pairs)


def test_by_hand() -> None:
    chrf = Chrf()
    chrf.add("ab", ["ac"])
    # unigrams: 1 of 2 on both sides; bigrams: 0 of 1; there are no longer ones, so two orders count
    assert chrf.result()["score"] == pytest.approx(25)


def test_the_best_reference_counts() -> None:
    chrf = Chrf()
    chrf.add("abc", ["xyz", "abc"])
    assert chrf.result()["score"] == pytest.approx(100)
