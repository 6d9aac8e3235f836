"""The reference in exact fractions, itself against published and worked values."""

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings

from tests.oracles.ngram import BOS, EOS, UNK, Reference, Undefined, bucket, events, grams
from tests.unit.ngram.corpora import K1, METHODS, cases, contexts

half = Fraction(1, 2)
FALLBACK = (half, Fraction(1), 3 * half)


def log10(value: Fraction) -> float:
    return math.log10(value)


def test_ngrams_stay_within_records() -> None:
    assert grams([["a", "b", "a"], []], 2) == [
        (BOS, "a"), ("a", "b"), ("b", "a"), ("a", EOS), (BOS, EOS),
    ]  # fmt: skip
    assert grams([["a", "b", "a"], []], 3) == [(BOS, "a", "b"), ("a", "b", "a"), ("b", "a", EOS)]
    assert grams([["a"], []], 1) == [("a",), (EOS,), (EOS,)]
    assert events([["a", "b"], []], 2) == [(BOS, "a"), ("a", "b"), ("b", EOS), (BOS, EOS)]


@pytest.mark.parametrize(
    ("gram", "expected"),
    [
        ("<s> a", -0.744727), ("<s> b", -0.535941), ("a b", -0.489930), ("a c", -0.581676),
        ("a </s>", -0.688099), ("b </s>", -0.428874), ("b a", -0.577742), ("c </s>", -0.270745),
        ("a", -0.693575), ("b", -0.693575), ("c", -0.576754), ("</s>", -0.782516),
        ("<unk>", -0.782516),
    ],
)  # fmt: skip
def test_modified_kneser_ney_gives_the_numbers_of_lmplz(gram: str, expected: float) -> None:
    model = Reference(K1, 2, "modified-kneser-ney")
    *history, word = gram.split()
    assert log10(model.probability(word, history)) == pytest.approx(expected, abs=1e-6)


def test_modified_kneser_ney_gives_the_discounts_and_backoffs_of_lmplz() -> None:
    model = Reference(K1, 2, "modified-kneser-ney")
    assert model.discounts[1] == (Fraction(1, 5), Fraction(17, 10), 3)
    assert model.discounts[2] == (Fraction(5, 9), Fraction(7, 6), 3)
    found = {word: log10(model.backoff((word,))) for word in (BOS, "a", "b", "c")}
    expected = {BOS: -0.051153, "a": -0.244549, "b": -0.241032, "c": -0.255273}
    assert found == pytest.approx(expected, abs=1e-6)


def test_kneser_ney_gives_the_numbers_of_textbooks() -> None:
    model = Reference(K1, 2, "kneser-ney", discount=Fraction(3, 4), unk=False)
    found = {word: float(model.probability(word, ["a"])) for word in model.vocabulary}
    assert found == {"b": 0.453125, EOS: 0.2734375, "a": 0.140625, "c": 0.1328125}


def test_relative_frequencies() -> None:
    model = Reference(K1, 2, "mle")
    sentence = [((BOS,), "a"), (("a",), "b"), (("b",), EOS)]
    found = math.prod(model.probability(word, history) for history, word in sentence)
    assert found == Fraction(1, 4)
    assert model.probability("c", [BOS]) == 0
    assert model.probability("a", ["z"]) == Fraction(1, 3)


@pytest.mark.parametrize(("unk", "expected"), [(True, Fraction(1, 243)), (False, Fraction(1, 160))])
def test_add_one(unk: bool, expected: Fraction) -> None:
    model = Reference(K1, 2, "add-k", unk=unk)
    sentence = [((BOS,), "c"), (("c",), "a"), (("a",), EOS)]
    assert math.prod(model.probability(word, history) for history, word in sentence) == expected
    assert model.probability("a", ["z"]) == Fraction(1, 4 + unk)


def test_stupid_backoff() -> None:
    model = Reference([["a", "b", "c"], ["b", "d"]], 3, "stupid-backoff")
    assert model.probability("c", ["a", "b"]) == 1
    assert model.probability("d", ["a", "b"]) == Fraction(4, 10) * half
    assert model.probability("a", ["a", "b"]) == Fraction(4, 10) ** 2 * Fraction(1, 7)
    assert model.probability("a", ["z", "z"]) == Fraction(4, 10) ** 2 * Fraction(1, 7)
    assert model.probability(UNK, []) == 0


def test_witten_bell_by_hand() -> None:
    # After a: b twice, c, </s>; three different. Of 12 words four are different, and V is 5.
    model = Reference(K1, 2, "witten-bell")
    unigram = (Fraction(3) + 4 * Fraction(1, 5)) / 16
    assert model.probability("b", []) == unigram
    assert model.probability("b", ["a"]) == (2 + 3 * unigram) / (4 + 3)
    assert model.backoff(["a"]) == Fraction(3, 7)


def test_absolute_discounting_by_hand() -> None:
    # Bigrams: <s> a 3, <s> b 1, a b 2, a c 1, a </s> 1, b a 1, b </s> 2, c </s> 1.
    model = Reference(K1, 2, "absolute")
    discount = Fraction(5, 5 + 2 * 2)
    assert model.discounts[2] == (discount,) * 3
    unigram = (3 - model.discounts[1][0]) / 12 + model.discounts[1][0] * 4 / 12 / 5
    assert model.probability("b", ["a"]) == (2 - discount + 3 * discount * unigram) / 4


def test_jelinek_mercer_by_hand() -> None:
    weights = [[half] * 16, [Fraction(number, 16) for number in range(16)]]
    model = Reference(K1, 2, "jelinek-mercer", weights=weights)
    unigram = half * Fraction(3, 12) + half * Fraction(1, 5)
    assert model.probability("b", ["a"]) == Fraction(2, 16) * half + Fraction(14, 16) * unigram
    assert [bucket(count) for count in (1, 2, 3, 4, 7, 8, 1 << 15, 1 << 40)] == [
        0, 1, 1, 2, 2, 3, 15, 15,
    ]  # fmt: skip


def test_without_interpolation_of_unigrams_the_unknown_word_has_the_rest() -> None:
    model = Reference(K1, 2, "modified-kneser-ney", interpolate_unigrams=False)
    # Adjusted counts: a 2, b 2, c 1, </s> 3; discounts 0.2, 1.7, 3.
    assert model.probability("c", []) == Fraction(8, 10) / 8
    assert model.probability(EOS, []) == 0
    assert model.probability(UNK, []) == (Fraction(2, 10) + 2 * Fraction(17, 10) + 3) / 8


def test_undefined_discounts_and_their_fallback() -> None:
    with pytest.raises(Undefined) as raised:
        Reference([["a", "b", "c"]], 2, "modified-kneser-ney")
    assert raised.value.order == 1
    model = Reference([["a", "b", "c"]], 2, "modified-kneser-ney", fallback=FALLBACK)
    assert model.fallbacks == [1, 2]
    assert model.probability("b", ["a"]) == half + half * model.probability("b", [])


def test_what_is_pruned_gives_all_it_had_to_the_shorter_context() -> None:
    model = Reference(K1, 2, "modified-kneser-ney", prune=(0, 1))
    kept = model.discounts[2][1]
    assert model.backoff(["a"]) == (kept + 1 + 1) / 4
    assert model.probability("c", ["a"]) == model.backoff(["a"]) * model.probability("c", [])
    assert model.backoff(["c"]) == 1


@settings(max_examples=60)
@given(cases(tuple(method for method in METHODS if method != "stupid-backoff")))
def test_sums_to_exactly_one(case: tuple[list[list[str]], int, dict]) -> None:
    records, order, options = case
    model = Reference(records, order, fallback=FALLBACK, **options)
    for context in contexts(model):
        found = [model.probability(word, context) for word in model.vocabulary]
        assert sum(found) == 1
        assert 0 <= min(found) <= max(found) <= 1
