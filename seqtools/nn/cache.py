"""Keys and values of what a decoder was fed, as a value that grows by one input a step.

For searches: no gradient flows through it.

Shapes: B rows, H heads, D size of a head, C columns. Column c holds the input at position c of its
row; rows may have been fed different numbers of inputs.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

_ROOM = 16  # columns to spare in tensors that grow by themselves


@dataclass(frozen=True)
class Cache:
    """Of one layer: `keys` and `values` (B, H, capacity, D), of which `columns` are in use.

    Appending writes where nobody has done so yet, behind the inputs of each row, so these stay as
    they were; where somebody has, it copies. So a cache is a value, and a search that only goes
    ahead copies nothing. What stands in a column that a row has not come to means nothing.

    Attributes:
        keys: keys, rotated where the position method does that.
        values: values.
        columns: how many columns are in use, at least as many as the longest row has inputs.
        taken: how many columns of these tensors have been written, shared by all upon them.
    """

    keys: Tensor
    values: Tensor
    columns: int
    taken: list[int] = field(default_factory=list)

    @classmethod
    def of(cls, keys: Tensor, values: Tensor) -> Cache:
        """Hold the (B, H, C, D) of inputs that were read at once."""
        columns = keys.shape[2]
        grown = [_grown(part, columns, None) for part in (keys, values)]
        return cls(grown[0], grown[1], columns, [columns])

    def select(self, rows: Tensor) -> Cache:
        """Give the cache whose row i is row `rows[i]` of this one; `rows` (N,)."""
        # A beam selects after every step: room for the next one alone leaves no gaps, and products
        # over rows without gaps need no copy.
        grown = [_grown(part, self.columns, rows, room=1) for part in (self.keys, self.values)]
        return Cache(grown[0], grown[1], self.columns, [self.columns])

    def append(self, keys: Tensor, values: Tensor, places: Tensor | None) -> Cache:
        """Add one input a row, (B, H, 1, D); this makes one more column, whatever the places.

        Args:
            keys: its keys.
            values: its values.
            places: the column of each row, (B,), none behind the columns in use by more than that
                one; None puts them all there.
        """
        keys, values, column = keys.detach(), values.detach(), self.columns
        old_keys, old_values, taken = self.keys, self.values, self.taken
        if column == old_keys.shape[2] or taken[0] != column:
            old_keys, old_values = (_grown(part, column, None) for part in (old_keys, old_values))
            taken = [column]
        rows = torch.arange(len(keys), device=keys.device)
        for part, new in ((old_keys, keys), (old_values, values)):
            if places is None:
                part[:, :, column] = new[:, :, 0]
            else:
                part[:, :, column] = 0  # shorter rows have nothing there yet: no NaN
                part[rows, :, places] = new[:, :, 0]
        taken[0] = column + 1
        return Cache(old_keys, old_values, column + 1, taken)

    @property
    def used(self) -> tuple[Tensor, Tensor]:
        """Keys and values of the columns in use, (B, H, C, D)."""
        return self.keys[:, :, : self.columns], self.values[:, :, : self.columns]


def _grown(part: Tensor, columns: int, rows: Tensor | None, *, room: int = _ROOM) -> Tensor:
    """Copy the first columns of `part`, of all rows or those given, with room behind them."""
    kept = part.detach()[:, :, :columns]
    count = len(part) if rows is None else len(rows)
    grown = part.new_empty(count, part.shape[1], columns + room, part.shape[3])
    if rows is None:
        grown[:, :, :columns] = kept
    elif columns:
        torch.index_select(kept, 0, rows, out=grown[:, :, :columns])
    return grown
