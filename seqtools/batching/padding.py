"""Sequences of different lengths as one rectangle.

Sequences live back to back in one flat array; a row is a place and a length in it. Which positions
of a rectangle are real follows from the lengths and the side alone, never from the padding id: any
id may also stand in the data.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int32]
Sizes = NDArray[np.int64]


def gather(
    flat: Ids, starts: Sizes, lengths: Sizes, width: int, fill: int, *, left: bool = False
) -> Ids:
    """Cut rows out of `flat` and pad them with `fill`.

    Args:
        flat: (N,) all sequences.
        starts: (rows,) where each row begins in `flat`.
        lengths: (rows,) how many ids it takes, at most `width`.
        width: columns of the result.
        fill: id of the padding positions.
        left: pad before the ids instead of behind them.

    Returns:
        (rows, width), C-contiguous.
    """
    columns = np.arange(width)[None, :]
    if left:
        columns = columns - (width - lengths)[:, None]  # (rows, width), negative where padding is
    real = (columns >= 0) & (columns < lengths[:, None])
    ids = flat.take(starts[:, None] + columns, mode="clip")  # padding may lie outside of `flat`
    ids[~real] = fill
    return ids


def pad_right(rows: NDArray[np.int32], lengths: NDArray[np.integer]) -> Ids:
    """Move the ids of left-padded `rows` (rows, width) to the front; the padding ends up behind."""
    width = rows.shape[1]
    columns = np.arange(width)[None, :] + (width - lengths)[:, None]
    return np.take_along_axis(rows, columns % width, axis=1)


def pad_left(rows: NDArray[np.int32], lengths: NDArray[np.integer]) -> Ids:
    """Move the ids of right-padded `rows` (rows, width) to the end; the padding ends up before."""
    width = rows.shape[1]
    columns = np.arange(width)[None, :] - (width - lengths)[:, None]
    return np.take_along_axis(rows, columns % width, axis=1)
