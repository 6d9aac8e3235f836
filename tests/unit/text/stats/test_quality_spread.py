import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqtools.text.stats.quality_spread import Spread


def fill(values, *, examples=2, fence=3.0, logarithmic=False):
    spread = Spread(examples, fence, logarithmic=logarithmic)
    for number, value in values:
        spread.add(value, number, lambda number: {"record": number}, number)
    return spread


def test_fences_by_hand():
    values = [*enumerate([10, 20, 30, 40, 50, 60, 70, 80])]
    assert fill(values).fences() == (20 - 3 * 40, 60 + 3 * 40)
    low, high = fill(values, fence=1.5, logarithmic=True).fences()
    distance = 1.5 * (math.log(60.5) - math.log(19.5))
    assert math.log(low) == pytest.approx(math.log(20) - distance)
    assert math.log(high) == pytest.approx(math.log(60) + distance)
    same = fill([(number, 8) for number in range(9)], logarithmic=True)
    assert same.fences() == pytest.approx((8 / (8.5 / 7.5) ** 3, 8 * (8.5 / 7.5) ** 3))
    assert fill([]).fences() is None
    assert fill([]).outside(-1, None) == (0, [])


@given(
    values=st.lists(st.integers(-9, 9), max_size=25),
    examples=st.integers(0, 4),
    bound=st.floats(-10, 10),
)
def test_outside_is_what_sorting_finds(values, examples, bound):
    spread = fill(enumerate(values), examples=examples)
    for sign in (-1, 1):
        out = sorted(
            (-sign * value, number)
            for number, value in enumerate(values)
            if sign * value > sign * bound
        )
        shown = [{"record": number} for _, number in out[:examples]]
        assert spread.outside(sign, bound) == (len(out), shown)


def test_the_same_value_and_number_twice_is_no_trouble():
    merged = fill([(1, 5)])
    for _ in range(3):
        merged.merge(fill([(1, 5)]).dump())
    assert merged.outside(1, 4) == (4, [{"record": 1}] * 2)


@given(values=st.lists(st.integers(0, 9), max_size=25), seed=st.integers(0, 99))
def test_parts_in_any_order_give_the_whole(values, seed):
    numbered = [*enumerate(values)]
    whole, merged = fill(numbered), Spread(2, 3.0, logarithmic=False)
    parts = [numbered[start::3] for start in range(3)]
    random.Random(seed).shuffle(parts)
    for part in parts:
        merged.merge(fill(part).dump())
    assert merged.dump() == whole.dump()
