import math
from collections import Counter
from itertools import combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from seqtools.batching.draws import bits, choose, epoch_keys, key_of, round_at_random, uniforms

KEYS = np.array([key_of(name) for name in range(2000)], np.uint64)


def test_the_numbers_are_those_of_splitmix64():
    # The first ones for the seed 1234567, as published for the reference implementation in C.
    assert bits(np.array([1234567], np.uint64), 0, 5).tolist() == [
        [
            6457827717110365317,
            3203168211198807973,
            9817491932198370423,
            4593380528125082431,
            16408922859458223821,
        ]
    ]


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=5), st.integers(0, 9))
def test_numbers_do_not_depend_on_how_many_or_whose_are_drawn(keys, purpose):
    streams = np.array(keys, np.uint64)
    drawn = uniforms(streams, purpose, 7)
    assert np.array_equal(drawn[:, :3], uniforms(streams, purpose, 3))
    for row, key in enumerate(keys):
        assert np.array_equal(
            drawn[row : row + 1], uniforms(np.array([key], np.uint64), purpose, 7)
        )
    assert (drawn >= 0).all()
    assert (drawn < 1).all()


def test_seeds_epochs_purposes_and_records_have_numbers_of_their_own():
    drawn = {
        (seed, epoch, purpose): uniforms(epoch_keys(KEYS[:50], seed, epoch), purpose, 20)
        for seed in (-1, 0, 1, 2**64 - 1)
        for epoch in (1, 2)
        for purpose in (0, 1)
    }
    numbers = [number for matrix in drawn.values() for number in matrix.ravel().tolist()]
    assert len(set(numbers)) == len(numbers) == 16 * 1000


def test_names_have_keys_of_their_own():
    names = [1, "1", "a", "𠮷", 2**80, -1, ""]
    assert len({key_of(name) for name in names}) == len(names)
    assert key_of("a") == key_of("a")


def test_the_numbers_are_uniform_and_independent():
    drawn = uniforms(epoch_keys(KEYS, 0, 1), 3, 10)
    observed = np.histogram(drawn, bins=64, range=(0, 1))[0]
    check_chi_square(observed, np.full(64, drawn.size / 64))
    pairs, _, _ = np.histogram2d(drawn[:, 0], drawn[:, 1], bins=8, range=[(0, 1), (0, 1)])
    check_chi_square(pairs.ravel(), np.full(64, len(drawn) / 64))


def check_chi_square(observed, expected):
    """Pearson's statistic lies within five standard deviations of its mean."""
    statistic = ((observed - expected) ** 2 / expected).sum()
    freedom = len(observed) - 1
    assert abs(statistic - freedom) < 5 * math.sqrt(2 * freedom)


def test_rounding_keeps_the_mean():
    draws = (np.arange(1000) + 0.5) / 1000
    for value in (0.0, 0.25, 2.75, 3.0):
        rounded = round_at_random(np.full(1000, value), draws)
        assert set(rounded.tolist()) <= {math.floor(value), math.ceil(value)}
        assert rounded.mean() == value


@given(st.data(), st.integers(1, 5), st.integers(1, 8))
def test_so_many_are_chosen_and_only_what_is_allowed(data, rows, width):
    row = st.lists(st.booleans(), min_size=width, max_size=width)
    allowed = np.array(data.draw(st.lists(row, min_size=rows, max_size=rows)), np.bool_)
    counts = np.array([data.draw(st.integers(0, int(n))) for n in allowed.sum(axis=1)])
    draws = uniforms(KEYS[:rows], data.draw(st.integers(0, 99)), width)
    chosen = choose(draws, allowed, counts)
    assert chosen.sum(axis=1).tolist() == counts.tolist()
    assert not (chosen & ~allowed).any()


def test_every_set_is_chosen_equally_often():
    allowed = np.tile([True, False, True, True, True], (len(KEYS), 1))
    chosen = choose(uniforms(KEYS, 5, 5), allowed, np.full(len(KEYS), 2))
    found = Counter(tuple(np.flatnonzero(row).tolist()) for row in chosen)
    sets = list(combinations((0, 2, 3, 4), 2))
    assert set(found) == set(sets)
    check_chi_square(np.array([found[s] for s in sets]), np.full(6, len(KEYS) / 6))
