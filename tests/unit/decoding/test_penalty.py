import doctest
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqtools.decoding import penalty as module
from seqtools.decoding.penalty import Bound, Penalty


def test_docstring_examples():
    assert doctest.testmod(module).failed == 0


@pytest.mark.parametrize(("alpha", "score"), [(0, -6.0), (1, -1.5), (2, -0.375), (-1, -24.0)])
def test_a_power_of_the_length(alpha, score):
    assert Penalty(alpha).score(-6.0, 4) == score


@pytest.mark.parametrize(("alpha", "score"), [(0, -6.0), (1, -4.0), (2, -6 / 2.25), (-1, -9.0)])
def test_the_form_of_gnmt(alpha, score):
    assert Penalty(alpha, "gnmt").score(-6.0, 4) == pytest.approx(score)


@given(
    total=st.floats(-50, 0),
    gains=st.lists(st.floats(-20, 0), max_size=6),
    step=st.integers(1, 9),
    room=st.integers(0, 7),
    min_length=st.integers(0, 18),
    alpha=st.floats(-3, 3),
    form=st.sampled_from(module.FORMS),
    covered=st.floats(-5, 0),
)
def test_no_way_on_scores_above_the_bound(
    total, gains, step, room, min_length, alpha, form, covered
):
    penalty = Penalty(alpha, form)
    limit = step + room
    bound = Bound(penalty, np.array([99, limit]), min_length)
    [best] = bound.best(np.array([total]), step, np.array([1]))
    for further in range(1, room + 1):
        length = step + further
        if length < min(min_length, limit):
            continue
        assert penalty.score(total + sum(gains[:further]), length) + covered <= best
    if room:
        lengths = range(max(step + 1, min(min_length, limit)), limit + 1)
        assert best == max(penalty.score(total, length) for length in lengths)


def test_nothing_has_no_hope():
    bound = Bound(Penalty(0.5), np.array([9]))
    assert bound.best(np.array([-math.inf]), 3, np.array([0])).tolist() == [-math.inf]


@pytest.mark.parametrize(
    "options",
    [
        {"form": "wu"},
        {"length": math.nan},
        {"length": math.inf},
        {"coverage": -0.1},
        {"coverage": math.nan},
    ],
)
def test_nonsense_is_refused(options):
    with pytest.raises(ValueError, match="must be"):
        Penalty(**options)
