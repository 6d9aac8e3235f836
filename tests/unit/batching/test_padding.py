import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from seqtools.batching.padding import gather, pad_left, pad_right

LISTS = st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=5), min_size=1, max_size=6)


def place(rows):
    """The rows back to back, with their starts and lengths."""
    lengths = np.array([len(row) for row in rows])
    flat = np.array([i for row in rows for i in row], dtype=np.int32)
    return flat, np.cumsum(lengths) - lengths, lengths


@given(LISTS, st.integers(0, 3), st.integers(0, 9), st.booleans())
def test_rows_stand_where_a_loop_would_put_them(rows, more, fill, left):
    width = max(map(len, rows)) + more
    expected = [
        [fill] * (width - len(row)) + row if left else row + [fill] * (width - len(row))
        for row in rows
    ]
    found = gather(*place(rows), width, fill, left=left)
    assert found.tolist() == expected
    assert found.dtype == np.int32
    assert found.flags.c_contiguous


@given(LISTS, st.integers(0, 3), st.integers(0, 9))
def test_padding_can_be_moved_to_the_other_side(rows, more, fill):
    width = max(map(len, rows)) + more
    flat, starts, lengths = place(rows)
    left = gather(flat, starts, lengths, width, fill, left=True)
    right = gather(flat, starts, lengths, width, fill)
    assert pad_right(left, lengths).tolist() == right.tolist()
    assert pad_left(right, lengths).tolist() == left.tolist()


def test_an_id_equal_to_the_padding_is_kept():
    flat = np.array([0, 4, 0, 5], dtype=np.int32)
    starts, lengths = np.array([0, 3]), np.array([3, 1])
    assert gather(flat, starts, lengths, 3, 0).tolist() == [[0, 4, 0], [5, 0, 0]]
    assert gather(flat, starts, lengths, 3, 0, left=True).tolist() == [[0, 4, 0], [0, 0, 5]]
