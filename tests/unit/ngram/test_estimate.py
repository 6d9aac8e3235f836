"""Estimation against a reference in exact fractions, and in itself: sums, orders, memory."""

from __future__ import annotations

import dataclasses
import hashlib
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seqtools.errors import ConfigError, SeqtoolsError
from seqtools.ngram import counts, estimate, storage
from seqtools.ngram.estimate import Estimate, train
from seqtools.ngram.smoothing import Smoothing
from seqtools.ngram.sorting import HIGHEST
from tests.golden.ngram.corpora import zipf
from tests.oracles.ngram import BOS, EOS, UNK, Reference, fit_weights, likelihood
from tests.oracles.ngram import grams as windows
from tests.unit.ngram.corpora import K1, METHODS, cases, contexts, corpora
from tests.unit.ngram.tables import Table, rows, whole

FALLBACK = (Fraction(1, 2), Fraction(1), Fraction(3, 2))
SUMMING = tuple(method for method in METHODS if method != "stupid-backoff")

Case = tuple[list[list[str]], int, dict[str, Any]]


def smoothing(options: dict[str, Any]) -> Smoothing:
    """The settings of the reference as those of the library."""
    given = {key: value for key, value in options.items() if key != "prune"}
    for key in ("discount", "add"):
        if given.get(key) is not None:
            given[key] = float(given[key])
    if "weights" in given:
        given["weights"] = tuple(tuple(map(float, row)) for row in given["weights"])
    return Smoothing(**given, fallback=tuple(map(float, FALLBACK)))


def trained(case: Case, **more: Any) -> Estimate:
    records, order, options = case
    prune = options.get("prune", (0,))
    return train(records, order, smoothing(options), prune=prune, exact=True, **more)


def exactly(found: Any, expected: Sequence[Fraction]) -> None:
    """Each value within 1e-12 of its size."""
    np.testing.assert_allclose(found, [float(value) for value in expected], rtol=1e-12, atol=1e-15)


@settings(max_examples=300)
@given(cases())
def test_every_value_is_that_of_the_reference(case: Case) -> None:
    records, order, options = case
    model = Reference(records, order, fallback=FALLBACK, **options)
    found = trained(case)
    assert found.fallbacks == model.fallbacks
    for row, expected in zip(found.discounts, model.discounts[1:], strict=True):
        exactly(row, expected)
    names = rows(found.model)
    assert set(names[0]) == {(word,) for word in model.vocabulary} | {(BOS,), (UNK,)}
    for length, grams in enumerate(names[1:], 2):
        assert set(grams) == model.kept[length]
        assert len(grams) == len(model.kept[length])
    for length, grams in enumerate(names, 1):
        values = found.probabilities[length - 1]
        assert values.dtype == np.float64
        predicted = [place for place, gram in enumerate(grams) if gram[-1] in model.vocabulary]
        if model.method == "add-k" and length < order:  # whole contexts alone
            predicted = [place for place in predicted if grams[place][0] == BOS]
        exactly(
            values[predicted],
            [model.probability(grams[place][-1], grams[place][:-1]) for place in predicted],
        )
        assert found.counts[length - 1].tolist() == [model.counts[length][gram] for gram in grams]
        if length < order:
            exactly(found.backoffs[length - 1], [model.backoff(gram) for gram in grams])


@settings(max_examples=200)
@given(cases(SUMMING))
def test_sums_to_one_in_every_context(case: Case) -> None:
    records, order, options = case
    model = Reference(records, order, fallback=FALLBACK, **options)
    table = Table(trained(case))
    if model.method == "add-k" and order > 1:
        return  # no back-off model; its values are those of the reference, which sum to one
    for context in contexts(model):
        found = [table.probability(word, context) for word in table.words()]
        assert sum(found) == pytest.approx(1, abs=1e-9)
        assert 0 <= min(found) <= max(found) <= 1 + 1e-12


@settings(max_examples=50)
@given(cases())
def test_the_model_holds_logarithms_that_are_never_positive(case: Case) -> None:
    found = trained(case)
    for level, probabilities in zip(found.model.levels, found.probabilities, strict=True):
        values = whole(level.log10probs)
        assert values.dtype == np.float32
        assert not np.isnan(values).any()
        assert (values <= 0).all()
        np.testing.assert_allclose(10.0 ** values.astype(float), probabilities, rtol=1e-6)
    for level, backoffs in zip(found.model.levels, found.backoffs, strict=False):
        np.testing.assert_allclose(
            10.0 ** whole(level.log10backoffs).astype(float), backoffs, rtol=1e-6
        )
    assert len(found.model.levels[-1].begins) == len(found.model.levels[-1].log10backoffs) == 0


@settings(max_examples=50)
@given(cases())
def test_rows_are_in_suffix_order(case: Case) -> None:
    found = trained(case).model
    ids = {word.decode(): number for number, word in enumerate(found.words.strings())}
    for grams in rows(found):
        backwards = [[ids[word] for word in reversed(gram)] for gram in grams]
        assert backwards == sorted(backwards)


@settings(max_examples=50)
@given(cases(), st.randoms(use_true_random=False))
def test_the_order_of_the_records_does_not_matter(case: Case, random: Any) -> None:
    records, order, options = case
    shuffled = random.sample(records, len(records))
    assert content(trained((shuffled, order, options))) == content(trained(case))


def content(found: Estimate) -> dict[str, str]:
    """Everything that would be written, as a checksum each."""
    parts = {"words": b"\n".join(found.model.words.strings())}
    for order, level in enumerate(found.model.levels, 1):
        for field in dataclasses.fields(level):
            parts[f"{field.name} {order}"] = whole(getattr(level, field.name)).tobytes()
    return {name: hashlib.sha256(data).hexdigest() for name, data in parts.items()}


@pytest.mark.parametrize("prune", [(0,), (0, 0, 1, 1, 2)])
@pytest.mark.parametrize("method", METHODS)
def test_neither_memory_nor_parts_change_a_byte(
    method: str, prune: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    if method == "add-k":
        prune = (0,)
    weights = ((0.5,) * 16,) * 6 if method == "jelinek-mercer" else None
    how = Smoothing(method, weights=weights, fallback=(0.5, 1.0, 1.5))
    partition, parts = counts._partition, []

    def counted(*arguments: Any) -> Any:
        found = partition(*arguments)
        parts.append(len(found))
        return found

    monkeypatch.setattr(counts, "_partition", counted)
    expected = train(zipf(), 6, how, prune=prune)
    small = train(zipf(), 6, how, prune=prune, memory=1 << 14)
    assert parts[0] == 1 < parts[1]
    assert not any(level.words.on_disk for level in expected.model.levels)
    assert any(level.words.on_disk for level in small.model.levels)
    assert content(small) == content(expected)
    # The same with many blocks, and many goes over the contexts.
    for module in (counts, estimate, storage):
        monkeypatch.setattr(module, "BLOCK", 700)
    monkeypatch.setattr(storage.Column.blocks, "__defaults__", (700,))
    for memory in (1 << 14, 1 << 28):
        assert content(train(zipf(), 6, how, prune=prune, memory=memory)) == content(expected)


@pytest.mark.parametrize("memory", [1 << 14, 1 << 28])
def test_ngrams_too_long_for_one_key_of_the_sort(memory: int) -> None:
    found = train(zipf(), 12, Smoothing("mle"), exact=True, memory=memory)
    words = len(found.model.words)
    assert words**12 > 2 ** (2 * 64)
    for length, (names, numbers) in enumerate(zip(rows(found.model), found.counts, strict=True), 1):
        chosen = {gram: number for gram, number in zip(names, numbers, strict=True) if number}
        assert chosen == Counter(windows(zipf(), length))


def test_the_highest_order_and_none_beyond() -> None:
    text = ["a"] * 150
    found = train([text], HIGHEST, Smoothing("witten-bell"))
    # Those of `a` alone, with <s> before it, and with </s> after it, as often as they fit.
    assert [len(level) for level in found.model.levels] == [4] + [3] * (HIGHEST - 1)
    for order in (0, HIGHEST + 1):
        with pytest.raises(ConfigError, match=f"^the order must be from 1 to 99, got {order}"):
            train([text], order, Smoothing("witten-bell"))


@settings(max_examples=30)
@given(corpora(), st.integers(1, 4), st.sampled_from(METHODS))
def test_words_from_a_vocabulary(records: list[list[str]], order: int, method: str) -> None:
    known = ["a", "c", "z"]
    options: dict[str, Any] = {"method": method}
    if method == "jelinek-mercer":
        options["weights"] = [[Fraction(1, 2)] * 16] * order
    model = Reference(records, order, fallback=FALLBACK, vocabulary=known, **options)
    found = trained((records, order, options), vocabulary=known)
    names = rows(found.model)
    assert set(names[0]) == {("a",), ("c",), ("z",), (UNK,), (BOS,), (EOS,)}
    for length, grams in enumerate(names, 1):
        if method == "add-k" and length < order:
            continue
        chosen = [place for place, gram in enumerate(grams) if gram[-1] != BOS]
        exactly(
            found.probabilities[length - 1][chosen],
            [model.probability(grams[place][-1], grams[place][:-1]) for place in chosen],
        )
        if length < order:
            exactly(found.backoffs[length - 1], [model.backoff(gram) for gram in grams])


@settings(max_examples=30)
@given(corpora(), st.integers(1, 3))
def test_a_spelled_unk_is_the_unknown_word_or_a_word(records: list[list[str]], order: int) -> None:
    spelled = [[UNK if word == "a" else word for word in record] for record in records]
    options = {"method": "modified-kneser-ney"}
    model = Reference(spelled, order, fallback=FALLBACK, **options)
    table = Table(trained((spelled, order, options)))
    for context in contexts(model):
        for word in model.vocabulary:
            expected = float(model.probability(word, context))
            assert table.probability(word, context) == pytest.approx(expected, rel=1e-12)
    # As a word of its own it is like any other, only that its name is there twice.
    as_word = trained((spelled, order, options), unk_as_word=True)
    plain = trained((records, order, options))
    assert as_word.model.words.unk_as_word
    assert as_word.discounts == plain.discounts
    for here, there in zip(as_word.probabilities, plain.probabilities, strict=True):
        assert sorted(here.tolist()) == sorted(there.tolist())


def test_textbook_kneser_ney() -> None:
    table = Table(train(K1, 2, Smoothing("kneser-ney", discount=0.75, unk=False), exact=True))
    found = {word: table.probability(word, ["a"]) for word in ("b", EOS, "a", "c")}
    expected = {"b": 0.453125, EOS: 0.2734375, "a": 0.140625, "c": 0.1328125}
    assert found == pytest.approx(expected, rel=1e-12)


HELDOUT = [["a", "b"], ["a", "c", "z"], [], ["b", "a", "b"], ["z", "a"]]


@pytest.mark.parametrize("order", [1, 2, 3])
def test_weights_on_heldout_text_are_as_likely_as_those_of_plain_maximisation(order: int) -> None:
    records = [*K1, ["c", "a", "b", "a"], ["b", "b"], []]
    found = train(records, order, Smoothing("jelinek-mercer"), heldout=HELDOUT, exact=True)
    weights = [list(map(Fraction, row)) for row in found.model.metadata["weights"]]
    model = Reference(records, order, "jelinek-mercer", weights=weights)
    for length, grams in enumerate(rows(found.model), 1):
        chosen = [place for place, gram in enumerate(grams) if gram[-1] != BOS]
        exactly(
            found.probabilities[length - 1][chosen],
            [model.probability(grams[place][-1], grams[place][:-1]) for place in chosen],
        )
    plain = [list(map(Fraction, row)) for row in fit_weights(records, order, HELDOUT, 3000)]
    best = likelihood(Reference(records, order, "jelinek-mercer", weights=plain), HELDOUT)
    assert likelihood(model, HELDOUT) == pytest.approx(best, rel=1e-5)


def test_one_weight_is_where_the_likelihood_is_highest() -> None:
    records = [["a", "a", "a", "b"], ["a", "a"]]  # 8 words: a 5, b 1, </s> 2; V is 4
    heldout = [["a", "b", "z"], ["z", "a"]]
    found = train(records, 1, Smoothing("jelinek-mercer"), heldout=heldout)
    weight = found.model.metadata["weights"][0][3]  # a total of 8 is 2 ** 3
    shares = np.array([5, 1, 0, 2, 0, 5, 2]) / 8
    tried = np.linspace(0, 1, 100_001)[1:-1]
    sums = sum(np.log(tried * share + (1 - tried) / 4) for share in shares)
    assert weight == pytest.approx(tried[np.argmax(sums)], abs=5e-3)


def test_discounts_that_cannot_be_estimated_are_named() -> None:
    with pytest.raises(SeqtoolsError, match=r"^order 1: .* count of 2, .*4, 0, 0, 0"):
        train([["a", "b", "c"]], 3, Smoothing())
    found = train([["a", "b", "c"]], 3, Smoothing(fallback=(0.5, 1.0, 1.5)))
    assert found.fallbacks == [1, 2, 3]
    assert found.discounts == [[0.5, 1.0, 1.5]] * 3


def test_a_fallback_is_for_those_orders_alone_where_it_is_needed() -> None:
    found = train(K1, 3, Smoothing(fallback=(0.25, 0.5, 0.75)))
    assert found.fallbacks == [2, 3]
    assert found.discounts == [pytest.approx([0.2, 1.7, 3.0]), [0.25, 0.5, 0.75], [0.25, 0.5, 0.75]]
    assert found.model.metadata["fallbacks"] == [2, 3]


def test_a_negative_discount_is_named() -> None:
    # Different words to the left of one word each: 1 for 12 words, 2 for two, 3 for four.
    records = [[word] for word in "abcdefghijkl"]
    records += [[first, second] for first in "ab" for second in "mn"]
    records += [[first, second] for first in "abc" for second in "wxyz"]
    with pytest.raises(SeqtoolsError, match=r"order 1: the discount of count 2 would be -2\.5"):
        train(records, 2, Smoothing())


def test_no_records() -> None:
    with pytest.raises(SeqtoolsError, match="no records"):
        train([], 2, Smoothing())


def test_jelinek_mercer_needs_other_text() -> None:
    with pytest.raises(ConfigError, match="held-out"):
        train(K1, 2, Smoothing("jelinek-mercer"))
    with pytest.raises(SeqtoolsError, match="no held-out records"):
        train(K1, 2, Smoothing("jelinek-mercer"), heldout=[])
