"""Scores of text: against the formulas in exact fractions, and the sums that come of them."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seqtools.ngram.estimate import train
from seqtools.ngram.scoring import LN10, Scorer, Scores, add_up, summarise
from tests.oracles.ngram import BOS, EOS, UNK, Gram, Reference
from tests.unit.ngram import corpora
from tests.unit.ngram.corpora import K1
from tests.unit.ngram.models import language_model, opened
from tests.unit.ngram.tables import rows
from tests.unit.ngram.test_estimate import FALLBACK, Case, smoothing

# Words of the corpora, others, and those that spell what they are not.
TEXTS = st.lists(
    st.lists(st.sampled_from(["a", "b", "c", "1", "2", "zz", "", *(BOS, EOS, UNK)]), max_size=8),
    max_size=5,
)


def score(
    model: Any, records: Sequence[Sequence[str]], *, eos: bool = True, bos: bool = True
) -> Scores:
    return Scorer(model, eos=eos, bos=bos).score(*model.words.encode_tokens(records))


def targets(record: Sequence[str], known: set[str], *, eos: bool, bos: bool) -> list[Gram]:
    """Each target with all that stands before it, unknown words as `<unk>`."""
    words = [*[BOS] * bos, *(word if word in known else UNK for word in record), *[EOS] * eos]
    return [tuple(words[: place + 1]) for place in range(bos, len(words))]


@settings(max_examples=200)
@given(corpora.cases(), TEXTS, st.booleans(), st.booleans())
def test_every_target_has_the_probability_of_the_reference(
    case: Case, texts: list[list[str]], eos: bool, bos: bool
) -> None:
    records, order, options = case
    texts = [*texts, *records[:5]]
    reference = Reference(records, order, fallback=FALLBACK, **options)
    shorter = [reference]  # what counts with less context than that; add-k knows whole ones alone
    if options["method"] == "add-k":
        shorter = [Reference(records, length, **options) for length in range(1, order)] + shorter
    prune = options.get("prune", (0,))
    model = opened(train(records, order, smoothing(options), prune=prune).model)
    found = score(model, texts, eos=eos, bos=bos)
    kept = set(itertools.chain.from_iterable(rows(model)))
    known = {*reference.vocabulary} - {EOS}
    start = 0
    for number, (text, end) in enumerate(zip(texts, found.ends.tolist(), strict=True)):
        expected = targets(text, known, eos=eos, bos=bos)
        assert len(expected) == end - start
        for place, (*history, word) in enumerate(expected, start):
            value = 10.0 ** float(found.log10probs[place])
            if word in reference.vocabulary:
                asked = reference if history[:1] == [BOS] else shorter[: len(history) + 1][-1]
                exact = float(asked.probability(word, history[max(0, len(history) + 1 - order) :]))
            else:
                exact = 0.0  # there is no <unk>
            assert value == pytest.approx(exact, rel=1e-5, abs=1e-12)
            longest = [*history, word][-order:]
            while tuple(longest) not in kept:
                del longest[0]
            assert found.matched[place] == len(longest)
            assert bool(found.oov[place]) == (word == UNK)
        logs = found.log10probs[start:end].astype(np.float64)
        oov = found.oov[start:end]
        assert found.sums[number] == pytest.approx(logs.sum(), rel=1e-6, abs=1e-6)
        assert found.known_sums[number] == pytest.approx(logs[~oov].sum(), rel=1e-6, abs=1e-6)
        assert found.oov_sums[number] == pytest.approx(logs[oov].sum(), rel=1e-6, abs=1e-6)
        assert found.n_oov[number] == oov.sum()
        start = end
    assert len(found.log10probs) == start


def test_records_do_not_know_of_each_other() -> None:
    model = language_model(K1, 3)
    texts = [["a", "b"], [], ["b"], ["zz", "a", "b", "a"], []]
    together = score(model, texts)
    alone = [score(model, [text]) for text in texts]
    assert together.log10probs.tolist() == [
        value for each in alone for value in each.log10probs.tolist()
    ]
    assert together.sums.tolist() == [each.sums[0] for each in alone]


def test_what_may_follow_and_what_does_have_the_same_probability() -> None:
    model = language_model(K1, 3)
    found = score(model, [["a", "b", "zz", "b"]])
    ids = [1, model.words.find(b"a"), model.words.find(b"b"), 0, model.words.find(b"b"), 2]
    for place in range(1, len(ids)):
        history = [-1, -1, *ids[:place]][-2:]
        next_words = model.distributions(np.array([history]))[0]
        expected = float(found.log10probs[place - 1]) * LN10
        assert next_words[ids[place]] == pytest.approx(expected, abs=1e-6)


def test_nothing_to_score() -> None:
    model = language_model(K1, 2)
    for eos in (True, False):
        found = score(model, [], eos=eos)
        assert len(found.log10probs) == len(found.sums) == len(found.ends) == 0
    found = score(model, [[], []], eos=False)
    assert found.ends.tolist() == [0, 0]
    assert found.sums.tolist() == [0, 0]


def test_unk_that_is_a_word_is_no_unknown_one() -> None:
    model = opened(
        train([["<unk>", "a"], ["<unk>"]], 2, smoothing({"method": "mle"}), unk_as_word=True).model
    )
    found = score(model, [["<unk>", "zz"]])
    assert found.oov.tolist() == [False, True, False]
    assert found.log10probs[0] == 0  # each record begins with it


def add(counts: Counter[str], logs: Sequence[float], oov: Sequence[bool], sign: int = 1) -> None:
    """Count one record with these values."""
    unknown = np.array(oov, dtype=bool)
    values = np.array(logs)
    sums = [np.array([np.where(chosen, values, 0).sum()]) for chosen in (~unknown, unknown)]
    matched = np.ones(len(logs), dtype=np.uint8)
    ends, n_oov = np.array([len(logs)]), np.array([unknown.sum()])
    add_up(counts, Scores(values.astype(np.float32), matched, unknown, ends, *sums, n_oov), sign)


def test_the_summary() -> None:
    counts: Counter[str] = Counter()
    add(counts, [-1.0, -2.0], [False, True])
    add(counts, [-3.0], [False])
    found = summarise(counts, eos=True)
    assert (found["records"], found["n_tokens"], found["n_oov"], found["eos"]) == (2, 3, 1, True)
    assert found["logprob"] == pytest.approx(-6 * LN10)
    assert found["perplexity"] == pytest.approx(100)
    assert found["bits"] == pytest.approx(2 * math.log2(10))
    assert found["logprob_without_oov"] == pytest.approx(-4 * LN10)
    assert found["perplexity_without_oov"] == pytest.approx(100)
    add(counts, [-5.0, -math.inf], [True, False])
    add(counts, [-5.0, -math.inf], [True, False], sign=-1)
    assert summarise(counts, eos=True) == found


def test_a_probability_of_0_makes_the_perplexity_infinite() -> None:
    counts: Counter[str] = Counter()
    add(counts, [-1.0, -math.inf], [False, True])
    found = summarise(counts, eos=False)
    assert (found["logprob"], found["perplexity"], found["bits"]) == ("-inf", "inf", "inf")
    assert found["perplexity_without_oov"] == pytest.approx(10)
    add(counts, [-math.inf], [False])
    assert summarise(counts, eos=False)["perplexity_without_oov"] == "inf"


def test_no_tokens_have_no_perplexity() -> None:
    found = summarise(Counter(), eos=True)
    assert (found["logprob"], found["perplexity"], found["bits"]) == (0, "nan", "nan")
    counts: Counter[str] = Counter()
    add(counts, [-1.0], [True])
    found = summarise(counts, eos=True)
    assert found["perplexity"] == pytest.approx(10)
    assert found["perplexity_without_oov"] == "nan"


def test_what_was_added_can_be_taken_away() -> None:
    counts: Counter[str] = Counter()
    add(counts, [-1.5, -2.25], [False, True])
    expected = summarise(counts, eos=True)
    for logs in ([-3.1, -4.7], [-math.inf, -1.0], [-1.0, -math.inf]):
        add(counts, logs, [False, True])
        assert summarise(counts, eos=True) != expected
        add(counts, logs, [False, True], -1)
        assert summarise(counts, eos=True) == expected


@pytest.mark.parametrize("record", range(5))
def test_one_record_of_several(record: int) -> None:
    model = language_model(K1, 3)
    texts = [["a", "b"], [], ["b"], ["zz", "a", "b", "a"], []]
    one, alone = score(model, texts).one(record), score(model, [texts[record]])
    for name in (
        "log10probs",
        "matched",
        "oov",
        "ends",
        "known_sums",
        "oov_sums",
        "n_oov",
        "n_tokens",
    ):
        assert getattr(one, name).tolist() == getattr(alone, name).tolist()


@given(st.lists(st.floats(-1e4, 0), min_size=1, max_size=30), st.randoms())
def test_the_sums_are_the_same_in_any_order_and_any_parts(logs: list[float], random: Any) -> None:
    def summed(logs: Sequence[float], cut: int) -> dict[str, Any]:
        parts = Counter[str](), Counter[str]()
        for place, log in enumerate(logs):
            add(parts[place < cut], [log], [False])
        parts[0].update(parts[1])
        return summarise(parts[0], eos=True)

    expected = summed(logs, 0)
    assert expected["logprob"] == pytest.approx(math.fsum(logs) * LN10, abs=1e-9)
    random.shuffle(logs)
    assert summed(logs, random.randrange(len(logs))) == expected
