"""Settings of smoothing methods, and discounts from counts of counts."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqtools.errors import ConfigError, SeqtoolsError
from seqtools.ngram.smoothing import Smoothing


def of(*counts: int) -> np.ndarray:
    """How many n-grams have a count of 1, 2, 3, 4."""
    return np.array([0, *counts])


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"method": "good-turing"}, "unknown smoothing 'good-turing': one of mle, add-k"),
        ({"discount": 0.5}, "modified-kneser-ney has no single discount"),
        ({"method": "witten-bell", "discount": 0.5}, "witten-bell has no single discount"),
        ({"method": "absolute", "discount": 0.0}, "between 0 and 1, got 0"),
        ({"method": "kneser-ney", "discount": 1.0}, "between 0 and 1, got 1"),
        ({"method": "kneser-ney", "discount": float("nan")}, "between 0 and 1, got nan"),
        ({"fallback": (1.5, 1.0, 1.5)}, "discount of count 1 must be from 0 to 1, got 1.5"),
        ({"fallback": (0.5, -1.0, 1.5)}, "discount of count 2 must be from 0 to 2, got -1"),
        ({"fallback": (0.5, 1.0, 3.5)}, "discount of count 3 must be from 0 to 3, got 3.5"),
        ({"method": "add-k", "add": 0.0}, "must add more than 0, got 0"),
        ({"method": "add-k", "add": -1.0}, "must add more than 0, got -1"),
        ({"interpolate_unigrams": False, "unk": False}, "<unk>"),
    ],
)
def test_settings_that_do_not_go_together(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(reason)):
        Smoothing(**options)


def test_three_discounts_of_a_known_corpus() -> None:
    # K1 at order 2: five bigrams occur once, two twice, one three times.
    found, fallback = Smoothing().discounts(2, of(5, 2, 1, 0))
    assert found.tolist() == pytest.approx([5 / 9, 7 / 6, 3], rel=1e-15)
    assert not fallback


@given(st.lists(st.integers(0, 1000), min_size=4, max_size=4))
def test_three_discounts_are_those_of_the_formula_or_an_error(counts: list[int]) -> None:
    n = [0, *counts]
    expected = None
    if all(counts[:3]):
        y = Fraction(n[1], n[1] + 2 * n[2])
        expected = [j - (j + 1) * y * Fraction(n[j + 1], n[j]) for j in (1, 2, 3)]
    if expected is None or min(expected) < 0:
        with pytest.raises(SeqtoolsError, match=r"order 3: .*--discount-fallback"):
            Smoothing().discounts(3, of(*counts))
        found, fallback = Smoothing(fallback=(0.25, 0.5, 0.75)).discounts(3, of(*counts))
        assert (found.tolist(), fallback) == ([0.25, 0.5, 0.75], True)
    else:
        found, fallback = Smoothing(fallback=(0.25, 0.5, 0.75)).discounts(3, of(*counts))
        assert not fallback
        np.testing.assert_allclose(found, [float(value) for value in expected], rtol=1e-15)


def test_a_discount_of_exactly_nothing_is_one() -> None:
    # 2 - 3 * 4/10 * 5/3 is 0, and a little less in floating-point numbers.
    found, fallback = Smoothing().discounts(1, of(4, 3, 5, 3))
    assert not fallback
    assert found.tolist() == pytest.approx([0.4, 0, 2.04])


@pytest.mark.parametrize(
    ("counts", "reason"),
    [
        ((4, 0, 2, 1), "count of 2, so the discount is undefined"),
        ((0, 3, 2, 1), "count of 1, so the discount is undefined"),
        ((4, 3, 0, 1), "count of 3, so the discount is undefined"),
        ((7, 1, 2, 1), "the discount of count 2 would be -2.66667"),
        ((1, 1, 1, 9), "the discount of count 3 would be -9"),
    ],
)
def test_an_undefined_discount_is_explained(counts: tuple[int, ...], reason: str) -> None:
    numbers = ", ".join(map(str, counts))
    with pytest.raises(SeqtoolsError) as raised:
        Smoothing().discounts(2, of(*counts))
    message = str(raised.value)
    assert message.startswith("order 2: ")
    assert reason in message
    assert numbers in message
    assert "--discount-fallback" in message


@pytest.mark.parametrize("method", ["absolute", "kneser-ney"])
def test_one_discount(method: str) -> None:
    found, fallback = Smoothing(method).discounts(2, of(5, 2, 1, 0))
    assert (found.tolist(), fallback) == ([5 / 9] * 3, False)
    assert Smoothing(method).discounts(2, of(5, 0, 0, 0))[0].tolist() == [1.0] * 3
    fixed = Smoothing(method, discount=0.75)
    assert fixed.discounts(2, of(0, 0, 0, 0))[0].tolist() == [0.75] * 3
    with pytest.raises(SeqtoolsError, match=r"^order 1: .* count of 1,"):
        Smoothing(method).discounts(1, of(0, 2, 1, 0))
    found, fallback = Smoothing(method, fallback=(0.5, 1, 1.5)).discounts(1, of(0, 2, 1, 0))
    assert (found.tolist(), fallback) == ([0.5] * 3, True)


@pytest.mark.parametrize("method", ["mle", "add-k", "witten-bell", "stupid-backoff"])
def test_methods_without_discounts_need_no_counts(method: str) -> None:
    found, fallback = Smoothing(method).discounts(1, of(0, 0, 0, 0))
    assert (found.tolist(), fallback) == ([0.0] * 3, False)
