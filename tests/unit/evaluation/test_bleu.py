"""BLEU taken in segment by segment, against sacrebleu's corpus score and the paper's example."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU

from seqtools.evaluation.bleu import Bleu

WORDS = st.lists(st.sampled_from(["the", "The", "cat", "sat", "on", ",", "mat."]), max_size=9)
TEXTS = WORDS.map(" ".join)


@settings(max_examples=60, deadline=None)
@given(
    pairs=st.lists(st.tuples(TEXTS, TEXTS, TEXTS), min_size=1, max_size=8),
    lowercase=st.booleans(),
    tokenize=st.sampled_from(["13a", "zh", "char", "none"]),
)
def test_equals_the_corpus_score(
    pairs: list[tuple[str, str, str]], lowercase: bool, tokenize: str
) -> None:
    bleu = Bleu(tokenize=tokenize, lowercase=lowercase)
    for hypothesis, *references in pairs:
        bleu.add(hypothesis, references)
    theirs = BLEU(tokenize=tokenize, lowercase=lowercase)
    hypotheses, first, second = (list(column) for column in zip(*pairs, strict=True))
    expected = theirs.corpus_score(hypotheses, [first, second])
    result = bleu.result()
    assert result["score"] == expected.score
    assert result["precisions"] == expected.precisions
    assert result["brevity_penalty"] == expected.bp
    assert result["hypothesis_length"] == expected.sys_len
    assert result["reference_length"] == expected.ref_len
    assert result["signature"] == str(theirs.get_signature())
    assert result["records"] == len(pairs)


def test_clipped_precision_of_the_paper() -> None:
    # Papineni et al. 2002, section 2.1, example 2: two of seven
    bleu = Bleu(tokenize="none")
    bleu.add("the the the the the the the", ["the cat is on the mat", "there is a cat on the mat"])
    assert bleu.result()["precisions"][0] == pytest.approx(100 * 2 / 7)


def test_brevity_penalty_is_of_the_corpus() -> None:
    bleu = Bleu()
    bleu.add("a b c d", ["a b c d e f"])
    bleu.add("a b c d", ["a b c d"])
    # all n-grams match, 8 tokens against 10
    assert bleu.result()["score"] == pytest.approx(100 * math.exp(1 - 10 / 8))


def test_references_may_vary_in_number() -> None:
    bleu = Bleu()
    bleu.add("a", ["a"])
    bleu.add("a", ["b", "a"])
    assert "nrefs:var" in bleu.result()["signature"]


def test_empty_texts_count() -> None:
    bleu = Bleu()
    bleu.add("", ["a b"])
    bleu.add("", [""])
    assert bleu.result()["score"] == 0
    assert bleu.result()["records"] == 2


def test_tokenized_output_is_noticed() -> None:
    bleu, plain = Bleu(), Bleu(tokenize="none")
    for _ in range(99):
        bleu.add("a cat .", ["a cat."])
    assert bleu.advice() is None
    for metric in (bleu, *[plain] * 100):
        metric.add("a cat .", ["a cat."])
    assert "100 hypotheses" in (bleu.advice() or "")
    assert plain.advice() is None
