import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from seqtools.decoding.extensions import top


@settings(max_examples=100, deadline=None)
@given(
    rows=st.lists(
        st.lists(st.sampled_from([-3.0, -2.0, -1.0, -math.inf]), min_size=6, max_size=6),
        min_size=1,
        max_size=5,
    ).filter(lambda rows: all(max(row) > -math.inf for row in rows)),
    count=st.integers(1, 8),
)
def test_top_takes_the_lowest_ids_of_equals(rows, count):
    values, ids = top(torch.tensor(rows), count)
    for row, found, places in zip(rows, values.tolist(), ids.tolist(), strict=True):
        order = sorted(range(6), key=lambda place: (-row[place], place))[:count]
        assert found == [row[place] for place in order]
        finite = [place for place in order if row[place] > -math.inf]
        assert places[: len(finite)] == finite


def test_top_leaves_the_model_as_it_is():
    table = torch.zeros(2, 5)
    top(table, 2)
    assert np.array_equal(table, torch.zeros(2, 5))
    assert top(table, 2)[1].tolist() == [[0, 1], [0, 1]]
    assert top(torch.zeros(1, 1), 3)[1].tolist() == [[0]]


@settings(max_examples=60, deadline=None)
@given(
    width=st.integers(500, 900),
    levels=st.sampled_from([3, 50, 10**6]),
    count=st.integers(1, 4),
    seed=st.integers(0, 10**6),
)
def test_top_of_wide_rows_takes_the_lowest_ids_of_equals(width, levels, count, seed):
    generator = torch.Generator().manual_seed(seed)
    table = torch.randint(levels, (3, width), generator=generator).float()
    table[1, torch.randperm(width, generator=generator)[: width - 2]] = -math.inf
    table[2] = table[2].sort(descending=bool(seed % 2)).values
    values, ids = top(table, count)
    for row, found, places in zip(table.tolist(), values.tolist(), ids.tolist(), strict=True):
        order = sorted(range(width), key=lambda place: (-row[place], place))[:count]
        assert found == [row[place] for place in order]
        finite = [place for place in order if row[place] > -math.inf]
        assert places[: len(finite)] == finite


def test_top_of_a_view():
    table = torch.randn(1500, 3)
    values, ids = top(table.T, 3)
    assert values.tolist() == table.T.topk(3).values.tolist()
    assert ids.tolist() == table.T.topk(3).indices.tolist()
    values, ids = top(table[:, 0].expand(2, -1), 3)
    assert ids[0].tolist() == ids[1].tolist() == table[:, 0].topk(3).indices.tolist()


@pytest.mark.parametrize("width", [5, 700])
def test_top_shows_what_is_no_number(width):
    table = torch.zeros(2, width)
    table[1, width - 1] = math.nan
    assert np.isnan(top(table, 2)[0]).any(axis=1).tolist() == [False, True]
