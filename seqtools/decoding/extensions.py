"""What the hypotheses of a beam can be extended by, and in which order that is taken.

All arrays here have the records first, then the groups of a record's beam.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from seqtools.decoding.hypothesis import Array
from seqtools.errors import RecordError

_BLOCK = 64  # columns; a few vector registers


class Extensions(NamedTuple):
    """Extensions of hypotheses along the last axis; where the sum is -inf, the place is empty."""

    sums: Array
    rows: Array  # which row of the step they extend
    tokens: Array
    logprobs: Array  # the model's own

    def at(self, places: Array) -> Extensions:
        """Those at the given places of the last axis."""
        return Extensions(*(np.take_along_axis(column, places, axis=-1) for column in self))

    def of(self, group: int) -> Extensions:
        """Those of a group of each record, (records, n)."""
        return Extensions(*(column[:, group] for column in self))

    def take(self, records: Array) -> Extensions:
        """Those of the given records, without last places that are empty for all of them."""
        width = int(np.isfinite(self.sums[records]).sum(axis=-1).max())
        return Extensions(*(column[records, ..., :width] for column in self))


def grouped(groups: Sequence[Extensions]) -> Extensions:
    """Groups of extensions (records, n) as one, (records, groups, n)."""
    return Extensions(*(np.stack(columns, axis=1) for columns in zip(*groups, strict=True)))


def extend(sums: Array, own: Tensor, ranked: Tensor, count: int, excluded: list[int]) -> Extensions:
    """The `count` best extensions of each row, or fewer where there are fewer.

    Args:
        sums: (records, groups, w) of the hypotheses that are extended; one a row.
        own: the model's log-probabilities (rows, V).
        ranked: what ranks (rows, V).
        count: how many.
        excluded: ids that are left out.

    Returns:
        (records, groups, w * count): hypothesis by hypothesis, the best of each first, of equals
        the lowest id.

    Raises:
        RecordError: the model gives NaN or infinity.
    """
    values, tokens = top(ranked, count + len(excluded))
    live = np.isfinite(sums).reshape(-1)
    if not (values < np.inf)[live].all():
        raise RecordError("the model gives NaN or infinity as a log-probability")
    if excluded:
        left_out = (tokens[:, :, None] == np.array(excluded)).any(axis=2)
        values = np.where(left_out, -np.inf, values)
    logprobs = values if own is ranked else _at(own, tokens)
    shape = (*sums.shape[:2], -1)
    totals = np.where(live, sums.reshape(-1), -np.inf)[:, None] + values
    rows = np.repeat(np.arange(len(values)), values.shape[1])
    columns = (totals, rows, tokens, logprobs)
    return Extensions(*(column.reshape(shape) for column in columns))


def add_forced(
    found: Extensions, own: Tensor, ranked: Tensor, before: Array, forced: Array, missing: Array
) -> tuple[Extensions, Array]:
    """Put every forced token that a hypothesis misses among its extensions.

    Args:
        found: what `extend` gave, (records, groups, n).
        own: the model's log-probabilities (rows, V).
        ranked: what ranks (rows, V).
        before: (rows,) sums of the hypotheses.
        forced: (F,) ids.
        missing: (rows, F), how often each must still come.

    Returns:
        The extensions, and which bank each is in: the higher, the less is missing.
    """
    shape = (*found.sums.shape[:2], -1)
    rows = np.repeat(np.arange(len(missing)), len(forced))
    tokens = np.tile(forced, len(missing))
    values = ranked[:, forced].cpu().numpy().reshape(-1)
    totals = before[rows] + np.where(missing.reshape(-1) > 0, values, -np.inf)
    logprobs = own[:, forced].cpu().numpy().reshape(-1)
    twice = (missing[found.rows] > 0) & (found.tokens[..., None] == forced)
    others = found._replace(sums=np.where(twice.any(axis=-1), -np.inf, found.sums))
    columns = zip(others, (totals, rows, tokens, logprobs), strict=True)
    both = Extensions(*(np.concatenate([old, new.reshape(shape)], axis=-1) for old, new in columns))
    banks = -missing.sum(axis=1)[both.rows]
    banks[..., found.sums.shape[2] :] += 1
    order = np.lexsort((both.tokens, -both.sums, both.rows), axis=-1)
    return both.at(order), np.take_along_axis(banks, order, axis=-1)


def in_order(found: Extensions, keys: Array, count: int) -> Extensions:
    """The `count` with the highest keys, (records, n); of equals, the first."""
    return found.at(np.argsort(-keys, axis=1, kind="stable")[:, :count])


def dealt(found: Extensions, keys: Array, count: int, banks: Array) -> Extensions:
    """The first `count` that are dealt in rounds, one for each bank, the highest bank first.

    Within a bank (all arrays are (records, n)) the highest key goes first.
    """
    order = np.argsort(-keys, axis=1, kind="stable")
    bank = np.take_along_axis(banks, order, axis=1)
    rounds = np.zeros_like(bank)
    for number in np.unique(bank):
        rounds[bank == number] = (bank == number).cumsum(axis=1)[bank == number]
    empty = np.take_along_axis(keys, order, axis=1) == -np.inf
    again = np.lexsort((-bank, rounds, empty), axis=1)
    return found.at(np.take_along_axis(order, again, axis=1)[:, :count])


def top(logprobs: Tensor, count: int) -> tuple[Array, Array]:
    """The `count` highest values of each row (rows, V) in order, of equals the lowest id first.

    Any of equals may be found, so one more is asked for: where it equals the last one wanted, the
    row is sorted whole.

    Returns:
        Values, float32, and ids, int64, both (rows, min(count, V)). A NaN is among the values.
    """
    count = min(count, logprobs.shape[1])
    values, ids = _highest(logprobs, min(count + 1, logprobs.shape[1]))
    if values.shape[1] > count:
        last = values[:, count - 1]
        unclear = (last == values[:, count]) & (last > -torch.inf)
        if bool(unclear.any()):
            ordered, places = logprobs[unclear].sort(dim=1, descending=True, stable=True)
            values[unclear], ids[unclear] = ordered[:, : count + 1], places[:, : count + 1]
    best, tokens = values[:, :count].cpu().numpy(), ids[:, :count].cpu().numpy()
    if not (best[:, 1:] == best[:, :-1]).any():
        return best, tokens
    order = np.lexsort((tokens, -best), axis=1)
    return np.take_along_axis(best, order, axis=1), np.take_along_axis(tokens, order, axis=1)


def _highest(table: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The `count` highest values of each row (rows, V) in order, and where they are.

    They are in the `count` blocks of columns with the highest maxima, for each of these holds one
    value that no other block exceeds: much less to sort than whole rows.
    """
    size = table.shape[1]
    blocks = size // _BLOCK
    if blocks < 4 * count:
        return torch.topk(table, count, dim=1)
    whole = blocks * _BLOCK
    maxima = table[:, :whole].view(-1, blocks, _BLOCK).amax(dim=2)
    firsts = maxima.topk(count, dim=1, sorted=False).indices * _BLOCK
    steps = torch.arange(_BLOCK, device=table.device)
    ids = (firsts[:, :, None] + steps).flatten(1)
    if whole < size:
        rest = torch.arange(whole, size, device=table.device)
        ids = torch.cat([ids, rest.expand(len(ids), -1)], dim=1)
    values, places = table.gather(1, ids).topk(count, dim=1)
    return values, ids.gather(1, places)


def _at(table: Tensor, ids: Array) -> Array:
    """The entries of (rows, V) at ids (rows, n)."""
    picked: Array = table.gather(1, torch.from_numpy(ids).to(table.device)).cpu().numpy()
    return picked
