from collections import Counter
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from seqtools.batching.sampling import (
    chunks,
    cut_by_size,
    generator,
    order_by_length,
    random_offset,
    random_windows,
    sequential_windows,
)

POSITIONS = st.integers(0, 60)
STEPS = st.integers(1, 8)
ROWS = st.integers(1, 7)
SEEDS = st.integers(-5, 2**70)


def covered(windows):
    """How often each position is predicted."""
    return Counter(
        start + i
        for starts, lengths, _ in windows
        for start, length in zip(starts.tolist(), lengths.tolist(), strict=True)
        for i in range(length)
    )


@given(POSITIONS, ROWS, STEPS, st.integers(0, 7))
def test_sequential_windows_take_every_position_once(positions, rows, steps, offset):
    batches = list(sequential_windows(positions, rows, steps, offset))
    assert covered(batches) == Counter(range(offset, positions))
    for starts, lengths, _ in batches:
        assert len(starts) == min(rows, positions - offset)
        assert lengths.min() >= 1
        assert lengths.max() <= max(steps, 2)
        assert lengths.max() <= steps or steps == 1


@given(POSITIONS, ROWS, STEPS, st.integers(0, 7))
def test_rows_of_sequential_windows_go_on_where_the_batch_before_ended(
    positions, rows, steps, offset
):
    batches = list(sequential_windows(positions, rows, steps, offset))
    assert [carry for _, _, carry in batches] == [i > 0 for i in range(len(batches))]
    for (starts, lengths, _), (following, _, _) in pairwise(batches):
        assert (starts + lengths).tolist() == following.tolist()


@given(POSITIONS, ROWS, STEPS)
def test_drop_last_leaves_whole_windows_in_all_rows(positions, rows, steps):
    batches = list(sequential_windows(positions, rows, steps, drop_last=True))
    rows = min(rows, positions)
    assert len(batches) == (positions // rows // steps if rows else 0)
    assert all((lengths == steps).all() and len(lengths) == rows for _, lengths, _ in batches)


@given(POSITIONS, STEPS, st.integers(0, 7), st.none() | SEEDS)
def test_random_windows_start_once_at_every_multiple_of_the_steps(positions, steps, offset, seed):
    rng = None if seed is None else generator(seed, 1)
    starts, lengths, carry = random_windows(positions, steps, offset, rng)
    assert not carry
    whole = range(offset, positions - steps + 1, steps)
    if whole:
        assert Counter(starts.tolist()) == Counter(whole)
        assert set(lengths.tolist()) == {steps}
        assert rng is not None or starts.tolist() == list(whole)
    else:  # one short window takes what there is
        assert covered([(starts, lengths, carry)]) == Counter(range(offset, positions))


@given(POSITIONS, STEPS, SEEDS)
def test_a_random_offset_leaves_room_for_a_whole_window(positions, steps, seed):
    offset = random_offset(positions, steps, generator(seed, 1))
    assert 0 <= offset < steps
    assert offset + steps <= positions or offset == 0


def test_all_offsets_are_drawn():
    assert {random_offset(100, 5, generator(0, e)) for e in range(1, 100)} == set(range(5))


@given(POSITIONS, STEPS, ROWS, st.booleans())
def test_chunks_have_all_windows_in_order(positions, steps, rows, drop_last):
    windows = random_windows(positions, steps, 0, None)
    batches = list(chunks(windows, rows, drop_last=drop_last))
    count = len(windows.starts)
    kept = count - count % rows if drop_last else count
    assert [s for batch in batches for s in batch.starts.tolist()] == windows.starts[:kept].tolist()
    assert all(len(batch.starts) == rows for batch in batches[:-1])
    assert all(len(batch.starts) == len(batch.lengths) <= rows for batch in batches)


def brute_force_cuts(widths, order, size, budget):
    """Fill each batch as long as the next record fits, by the definition."""
    batches = []
    for record in order:
        last = batches[-1] if batches else None
        if last is not None:
            rows = [*last, record]
            area = len(rows) * max(widths[r] for r in rows)
            if (size is None or len(rows) <= size) and (budget is None or area <= budget):
                last.append(record)
                continue
        batches.append([record])
    return batches


@given(
    st.lists(st.integers(1, 12), max_size=20),
    st.none() | st.integers(1, 6),
    st.none() | st.integers(1, 40),
    st.randoms(use_true_random=False),
)
def test_cuts_are_as_large_as_the_limits_allow(widths, size, budget, random):
    order = list(range(len(widths)))
    random.shuffle(order)
    order = np.array(order, dtype=np.int64)
    found = cut_by_size(np.array(widths, dtype=np.int64), order, size, budget)
    assert [cut.tolist() for cut in found] == brute_force_cuts(widths, order.tolist(), size, budget)
    for cut in found:
        assert size is None or len(cut) <= size
        assert budget is None or len(cut) == 1 or len(cut) * max(widths[r] for r in cut) <= budget


@given(st.lists(st.tuples(st.integers(1, 3), st.integers(1, 3)), min_size=1, max_size=12), SEEDS)
def test_order_by_length_sorts_and_leaves_equal_ones_as_they_stand(pairs, seed):
    first, second = (np.array(key) for key in zip(*pairs, strict=True))
    records = generator(seed, 1).permutation(len(pairs))
    found = order_by_length([first, second], records).tolist()
    assert found == sorted(records.tolist(), key=lambda r: pairs[r])


def test_choices_depend_on_seed_and_epoch_alone():
    draws = {
        (seed, epoch): tuple(generator(seed, epoch).permutation(50).tolist())
        for seed in (-1, 0, 1, 2**64 - 1)
        for epoch in (1, 2)
    }
    assert len(set(draws.values())) == len(draws)
    assert tuple(generator(0, 1).permutation(50).tolist()) == draws[0, 1]
