"""What a check of a model looks at, and what it finds in one that is wrong."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from seqtools.ngram.checking import check, draw_contexts, ngram
from seqtools.ngram.estimate import train
from seqtools.ngram.model import Model
from seqtools.ngram.words import BOS, EOS
from tests.unit.ngram import corpora
from tests.unit.ngram.corpora import K1
from tests.unit.ngram.models import language_model, opened
from tests.unit.ngram.tables import rows
from tests.unit.ngram.test_estimate import SUMMING, Case, smoothing


def some(order: int = 3) -> Model:
    """A model of many n-grams."""
    source = random.Random(1)
    words = [f"w{number}" for number in range(30)]
    records = [[words[int(30 * source.random() ** 2)] for _ in range(9)] for _ in range(80)]
    return language_model(records, order)


@settings(max_examples=50)
@given(corpora.cases(SUMMING))
def test_every_model_that_is_estimated_passes(case: Case) -> None:
    records, order, options = case
    made = train(records, order, smoothing(options), prune=options.get("prune", (0,)))
    found = check(opened(made.model), 50)
    assert found.deviation < 1e-6
    assert found.probabilities_above_1 == 0


def test_scores_of_stupid_backoff_do_not_sum_to_1() -> None:
    assert check(language_model(K1, 3, "stupid-backoff"), 10).deviation > 0.01


def test_the_ngram_of_a_row() -> None:
    model = some(4)
    names = model.words.strings()
    for order, expected in enumerate(rows(model), 1):
        found = [ngram(model, order, row) for row in range(len(expected))]
        assert [tuple(names[i].decode() for i in ids) for ids in found] == expected


@pytest.mark.parametrize("order", [2, 3, 4])
def test_contexts_are_of_every_order_and_unseen_ones_too(order: int) -> None:
    model = some(order)
    known = [
        {ngram(model, length, row) for row in range(len(model.levels[length - 1]))}
        for length in range(1, order)
    ]
    found = draw_contexts(model, 12 * order, seed=0)
    assert found[:2] == [(), (BOS,)]
    assert len(set(found)) == len(found)
    assert 12 * (order - 1) < len(found) <= 12 * order + 2
    assert not any(context[-1:] == (EOS,) for context in found)
    for length in range(1, order):
        drawn = [context for context in found if len(context) == length]
        assert len(known[length - 1].intersection(drawn)) >= 12
        if order > 2 and length == order - 1:
            assert set(drawn) - known[length - 1]
    assert draw_contexts(model, 12 * order, seed=0) == found
    assert draw_contexts(model, 12 * order, seed=1) != found


def test_a_small_model_has_no_more_contexts_than_there_are() -> None:
    model = language_model(K1, 2)  # <unk>, <s>, a, b and c have words after them, or could
    assert set(draw_contexts(model, 1000, seed=0)) == {(), (0,), (1,), (3,), (4,), (5,)}
    assert draw_contexts(language_model(K1, 1), 1000, seed=0) == [()]
    added = draw_contexts(language_model(K1, 3, "add-k"), 1000, seed=0)
    assert added[0] == (BOS,)
    assert {len(context) for context in added[1:]} == {2}


def spoilt(model: Model, change: Callable[[int, Any], None], level: int, name: str) -> Model:
    """The model with another value in the last row of `level`."""
    values = np.array(getattr(model.levels[level], name))
    change(len(values) - 1, values)
    setattr(model.levels[level], name, values)
    return model


@pytest.mark.parametrize("order", [1, 2, 3])
def test_a_probability_that_is_too_high_is_found_with_its_context(order: int) -> None:
    model = language_model(K1, order)
    before = float(model.levels[-1].log10probs[-1])

    def change(row: int, values: Any) -> None:
        values[row] += 0.1

    *context, _ = ngram(model, order, len(model.levels[-1]) - 1)
    found = check(spoilt(model, change, order - 1, "log10probs"), 1000)
    assert found.worst == tuple(context)
    assert found.deviation == pytest.approx(10**before * (10**0.1 - 1), rel=1e-4)
    assert found.deviation == found.total - 1
    assert (found.probabilities_above_1, found.backoffs_above_1) == (0, 0)


def test_values_above_1_are_counted_and_what_is_no_number_is_found() -> None:
    def set_to(value: float) -> Callable[[int, Any], None]:
        def change(row: int, values: Any) -> None:
            values[row] = value

        return change

    model = spoilt(language_model(K1, 3), set_to(0.5), 2, "log10probs")
    model = spoilt(model, set_to(0.25), 1, "log10backoffs")
    found = check(spoilt(model, set_to(0.5), 0, "log10backoffs"), 1000)
    assert (found.probabilities_above_1, found.backoffs_above_1) == (1, 2)
    odd = spoilt(language_model(K1, 3), set_to(math.nan), 0, "log10probs")
    assert check(odd, 10).deviation == math.inf
