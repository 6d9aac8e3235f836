"""Which places of a corpus go into which batch: index arithmetic only, no ids and no records.

Random choices depend on a seed and the epoch alone. They are drawn from numpy's legacy generator,
whose sequences are frozen, so the same seed gives the same batches under every version of numpy.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int64]


class Windows(NamedTuple):
    """Rows of one batch over a stream of ids: `starts` (rows,), `lengths` (rows,)."""

    starts: Indices
    lengths: Indices
    carry: bool


def generator(seed: int, epoch: int) -> np.random.RandomState:
    """Give the source of all random choices of one epoch; `seed` may be any integer."""
    entropy = [seed % 2**64, int(seed < 0), epoch]
    return np.random.RandomState(np.random.MT19937(np.random.SeedSequence(entropy)))


def random_offset(positions: int, steps: int, rng: np.random.RandomState) -> int:
    """Draw where the first window starts, from 0 to `steps` - 1, so that one whole window fits."""
    return int(rng.randint(0, max(1, min(steps, positions - steps + 1))))


def random_windows(
    positions: int, steps: int, offset: int, rng: np.random.RandomState | None
) -> Windows:
    """Cut `positions` predictions, from `offset` on, into whole windows of `steps`, shuffled.

    What no whole window covers, fewer than `steps` positions at either end, is left out; only
    where not even one window fits, a single shorter one takes what there is.
    """
    count, rest = divmod(max(0, positions - offset), steps)
    if count == 0:
        return Windows(np.full(min(rest, 1), offset), np.full(min(rest, 1), rest), carry=False)
    order = np.arange(count) if rng is None else rng.permutation(count)
    return Windows(offset + steps * order, np.full(count, steps), carry=False)


def chunks(windows: Windows, rows: int, *, drop_last: bool = False) -> Iterator[Windows]:
    """Give batches of `rows` windows; the last may have fewer, unless it is dropped."""
    count = len(windows.starts)
    for first in range(0, count - count % rows if drop_last else count, rows):
        part = slice(first, first + rows)
        yield Windows(windows.starts[part], windows.lengths[part], carry=False)


def sequential_windows(
    positions: int, rows: int, steps: int, offset: int = 0, *, drop_last: bool = False
) -> Iterator[Windows]:
    """Cut `positions` predictions into `rows` stretches and read them side by side, left to right.

    Row r of a batch continues row r of the batch before, and every position from `offset` on comes
    up once. Where the stretches cannot be equally long, the first ones have one position more. All
    batches have all rows, none of them empty: so that this holds in the last one too, the window
    before it may be one step shorter (with `steps` 1, the last one longer). With fewer positions
    than `rows` there are fewer rows.

    Args:
        drop_last: leave out everything that does not fill whole windows in all rows.
    """
    positions = max(0, positions - offset)
    rows = min(rows, positions)
    if rows == 0:
        return
    short, longer = divmod(positions, rows)
    sizes = short + (np.arange(rows) < longer)
    begins = offset + np.concatenate(([0], np.cumsum(sizes)[:-1]))
    for first, last in _window_bounds(short, steps, uneven=longer > 0 and not drop_last):
        if drop_last and last - first < steps:
            return
        lengths = np.minimum(sizes, last) - first
        yield Windows(begins + first, lengths, carry=first > 0)


def _window_bounds(short: int, steps: int, *, uneven: bool) -> Iterator[tuple[int, int]]:
    """Column ranges over stretches of `short` columns, or one more in some if `uneven`."""
    end = short + uneven
    first = 0
    while first < end:
        last = min(first + steps, end)
        if uneven and last == short:  # the next window would be the odd column alone
            last = short - 1 if short - 1 > first else end
        yield first, last
        first = last


def order_by_length(keys: list[Indices], records: Indices) -> Indices:
    """Sort `records` by their first key, then the second, ...; equal ones keep their order."""
    return records[np.lexsort([key[records] for key in reversed(keys)])]


def cut_by_size(
    widths: Indices, order: Indices, batch_size: int | None, batch_tokens: int | None
) -> list[Indices]:
    """Cut `order` into batches as large as both limits allow.

    Args:
        widths: (records,) columns that each record needs.
        order: records, as indices into `widths`.
        batch_size: rows at most.
        batch_tokens: rows x widest at most; a record that is above it by itself goes alone.
    """
    size = batch_size or len(order)
    budget = batch_tokens or len(order) * int(widths.max(initial=0))
    cuts = []
    first, widest = 0, 0
    for place, width in enumerate(widths[order].tolist()):
        rows = place - first + 1
        widest = max(widest, width)
        if rows > 1 and (rows > size or rows * widest > budget):
            cuts.append(place)
            first, widest = place, width
    return np.split(order, cuts) if len(order) else []
