import math

import pytest

from seqtools.errors import ConfigError
from seqtools.training.schedules import Schedule, cosine, inverse_sqrt, linear, ramp, staircase


def test_ramp_reaches_one_at_the_last_warmup_step():
    assert [ramp(step, 4) for step in range(1, 7)] == [0.25, 0.5, 0.75, 1.0, 1.0, 1.0]
    assert ramp(1, 0) == 1.0


def test_staircase():
    values = [staircase(step, size=3, gamma=0.1) for step in range(1, 8)]
    assert values == pytest.approx([1, 1, 1, 0.1, 0.1, 0.1, 0.01])


def test_staircase_counts_from_the_end_of_warmup():
    values = [staircase(step, size=2, gamma=0.5, warmup=2) for step in range(1, 7)]
    assert values == [1, 1, 1, 1, 0.5, 0.5]


@pytest.mark.parametrize(
    ("progress", "factor"), [(0, 1), (1 / 3, 0.75), (0.5, 0.5), (1, 0), (1.7, 0), (-0.2, 1)]
)
def test_cosine(progress, factor):
    assert cosine(progress) == pytest.approx(factor, abs=1e-12)


@pytest.mark.parametrize(
    ("progress", "factor"), [(0, 1), (0.25, 0.75), (1, 0), (1.7, 0), (-0.2, 1)]
)
def test_linear(progress, factor):
    assert linear(progress) == factor


def test_linear_over_steps_starts_after_warmup_and_never_wastes_a_step():
    schedule = Schedule("linear", warmup=2, steps=6)
    factors = [schedule.factor(step) for step in range(1, 8)]
    assert factors == pytest.approx([0.5, 1, 1, 0.75, 0.5, 0.25, 0])


def test_linear_takes_whichever_end_is_nearer():
    schedule = Schedule("linear", steps=4, seconds=10.0)
    assert schedule.factor(3, 0.0) == schedule.factor(2, 5.0) == 0.5


def test_inverse_sqrt():
    assert [inverse_sqrt(step, warmup=4) for step in (1, 4, 16, 64)] == [1, 1, 0.5, 0.25]
    assert inverse_sqrt(9) == pytest.approx(1 / 3)


def test_an_unknown_kind_is_refused():
    with pytest.raises(ConfigError, match="unknown schedule 'cosin': did you mean cosine"):
        Schedule("cosin")


def test_constant_with_warmup():
    schedule = Schedule("constant", warmup=2)
    assert [schedule.factor(step) for step in (1, 2, 3, 1000)] == [0.5, 1, 1, 1]


def test_cosine_over_steps_starts_after_warmup_and_never_wastes_a_step():
    schedule = Schedule("cosine", warmup=2, steps=6)
    factors = [schedule.factor(step) for step in range(1, 7)]
    expected = [0.5, 1.0] + [0.5 * (1 + math.cos(math.pi * k / 4)) for k in range(4)]
    assert factors == pytest.approx(expected)
    assert factors[-1] > 0
    assert schedule.factor(7) == pytest.approx(0)


def test_cosine_over_time_ignores_steps():
    schedule = Schedule("cosine", seconds=10.0)
    assert schedule.factor(12345, 5.0) == pytest.approx(0.5)
    assert schedule.factor(1, 10.0) == pytest.approx(0)


def test_cosine_takes_whichever_end_is_nearer():
    schedule = Schedule("cosine", steps=4, seconds=10.0)
    assert schedule.factor(3, 0.0) == pytest.approx(0.5)
    assert schedule.factor(2, 5.0) == pytest.approx(0.5)


def test_warmup_longer_than_the_run_is_no_error():
    schedule = Schedule("cosine", warmup=10, steps=5)
    assert schedule.factor(5) == pytest.approx(0.5)


def test_inverse_sqrt_is_the_noam_schedule_with_its_peak_at_one():
    warmup = 8
    schedule = Schedule("inverse-sqrt", warmup=warmup)
    for step in (1, 5, 8, 9, 100):
        noam = min(step**-0.5, step * warmup**-1.5) * warmup**0.5
        assert schedule.factor(step) == pytest.approx(noam)
