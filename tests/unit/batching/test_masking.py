from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqtools.batching.draws import epoch_keys, key_of
from seqtools.batching.masking import choose_words, hide, partners, shorten
from tests.unit.batching.test_draws import check_chi_square

ROWS, WIDTH = 4000, 20
STREAMS = epoch_keys(np.array([key_of(i) for i in range(ROWS)], np.uint64), 0, 1)
ALONE = np.tile(np.arange(WIDTH), (ROWS, 1))  # each token a word


def test_of_twenty_tokens_three_are_chosen_wherever_they_stand():
    chosen = choose_words(np.ones((ROWS, WIDTH), np.bool_), ALONE, 0.15, STREAMS)
    assert set(chosen.sum(axis=1).tolist()) == {3}
    check_chi_square(chosen.sum(axis=0), np.full(WIDTH, ROWS * 0.15))


@pytest.mark.parametrize(("length", "fewer"), [(10, 1), (7, 1), (3, 0)])
def test_a_share_that_is_no_whole_number_is_rounded_at_random(length, fewer):
    maskable = np.ones((ROWS, length), np.bool_)
    counts = choose_words(maskable, ALONE[:, :length], 0.15, STREAMS).sum(axis=1)
    assert set(counts.tolist()) == {fewer, fewer + 1}
    more = 0.15 * length - fewer
    check_chi_square(np.bincount(counts)[fewer:], ROWS * np.array([1 - more, more]))


def test_what_is_not_maskable_is_never_chosen_nor_counted():
    maskable = np.tile(np.arange(WIDTH) % 2 == 0, (ROWS, 1))
    chosen = choose_words(maskable, ALONE, 0.3, STREAMS)
    assert not (chosen & ~maskable).any()
    assert set(chosen.sum(axis=1).tolist()) == {3}
    assert not choose_words(np.zeros_like(maskable), ALONE, 1.0, STREAMS).any()
    assert np.array_equal(choose_words(maskable, ALONE, 1.0, STREAMS), maskable)


@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=6),
    st.sampled_from([0.15, 0.5, 1.0]),
    st.data(),
)
def test_words_are_chosen_whole(sizes, rate, data):
    words = np.repeat(np.arange(len(sizes)), sizes)[None, :]
    maskable = np.array([[data.draw(st.booleans()) for _ in words[0]]])
    row = data.draw(st.integers(0, ROWS - 1))
    chosen = choose_words(maskable, words, rate, STREAMS[row : row + 1])
    count = 0
    for word in range(len(sizes)):
        own = maskable[words == word]
        assert set(chosen[words == word][own].tolist()) <= {True} or not chosen[words == word].any()
        count += chosen[words == word].any()
    having = len({int(w) for w, m in zip(words[0], maskable[0], strict=True) if m})
    assert abs(count - rate * having) < 1
    assert not (chosen & ~maskable).any()


def test_long_words_are_chosen_as_often_as_short_ones():
    words = np.tile(np.repeat(np.arange(10), [1, 4] * 5)[:20], (ROWS, 1))
    chosen = choose_words(np.ones_like(words, np.bool_), words, 0.2, STREAMS)
    firsts = np.flatnonzero(np.diff(words[0], prepend=-1))
    check_chi_square(chosen[:, firsts].sum(axis=0), np.full(len(firsts), ROWS * 0.2))


def test_eight_tenths_are_masked_and_one_tenth_is_any_token():
    ordinary = np.arange(3, 13)
    ids = np.full((ROWS, WIDTH), 99, np.int32)
    chosen = np.tile(np.arange(WIDTH) < 5, (ROWS, 1))
    hidden = hide(ids, chosen, 2, ordinary, STREAMS)
    assert (hidden[~chosen] == 99).all()
    found, total = Counter(hidden[chosen].tolist()), ROWS * 5
    kept, masked = found[99], found[2]
    check_chi_square(
        np.array([masked, total - masked - kept, kept]), total * np.array([0.8, 0.1, 0.1])
    )
    drawn = [found[token] for token in ordinary.tolist()]
    assert sum(drawn) == total - masked - kept
    check_chi_square(np.array(drawn), np.full(10, sum(drawn) / 10))


# Pairs


@given(st.integers(2, 6), st.integers(0, 99))
def test_a_partner_is_the_next_one_or_neither_that_nor_the_record_itself(count, seed):
    records = np.arange(count)
    streams = epoch_keys(STREAMS[:count], seed, 1)
    others, follows = partners(records, count, streams)
    for record, other, flag in zip(range(count), others.tolist(), follows.tolist(), strict=True):
        assert 0 <= other < count
        assert other != record
        assert flag == (other == record + 1)


def test_half_of_the_partners_are_the_next_one_and_the_rest_any():
    count = 5
    records = np.full(ROWS, 1)
    others, follows = partners(records, count, STREAMS)
    check_chi_square(np.bincount(follows), np.full(2, ROWS / 2))
    found = np.bincount(others[follows == 0], minlength=count)
    assert found[[1, 2]].tolist() == [0, 0]
    check_chi_square(found[[0, 3, 4]], np.full(3, (follows == 0).sum() / 3))
    others, follows = partners(np.full(ROWS, 4), count, STREAMS)  # the last one
    assert not follows.any()
    check_chi_square(np.bincount(others), np.full(4, ROWS / 4))


@given(st.integers(0, 9), st.integers(0, 9), st.integers(0, 12))
def test_the_longer_text_of_a_pair_gives_way(first, second, room):
    a, b = first, second
    while a + b > room:  # as Devlin et al. do it, token by token
        if a > b:
            a -= 1
        else:
            b -= 1
    found = shorten(np.array([first]), np.array([second]), room)
    assert [int(size[0]) for size in found] == [a, b]
