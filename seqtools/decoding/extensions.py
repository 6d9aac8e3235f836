"""What the hypotheses of a beam can be extended by, and in which order that is taken.

All arrays here have the records first, then the groups of a record's beam.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from seqtools.decoding.hypothesis import Array
from seqtools.errors import RecordError


class Extensions(NamedTuple):
    """Extensions of hypotheses along the last axis; where the sum is -inf, the place is empty."""

    sums: Array
    rows: Array  # which row of the step they extend
    tokens: Array
    logprobs: Array  # the model's own
    met: Array  # forced tokens that they hold, less all of them

    def at(self, places: Array) -> Extensions:
        """Those at the given places of the last axis."""
        return Extensions(*(np.take_along_axis(column, places, axis=-1) for column in self))

    def of(self, group: int) -> Extensions:
        """Those of a group of each record."""
        return Extensions(*(column[:, group] for column in self))

    def take(self, records: Array) -> Extensions:
        """Those of the given records, without last places that are empty for all of them."""
        width = int(np.isfinite(self.sums[records]).sum(axis=-1).max())
        return Extensions(*(column[records, ..., :width] for column in self))


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
        the lowest id; `met` is 0.

    Raises:
        RecordError: the model gives NaN or infinity.
    """
    values, tokens = top(ranked, count + len(excluded))
    live = np.isfinite(sums).reshape(-1)
    if not (values < np.inf)[live].all():
        raise RecordError("the model gives NaN or infinity as a log-probability")
    if excluded:
        values = np.where(np.isin(tokens, excluded), -np.inf, values)
    logprobs = values if own is ranked else _at(own, tokens)
    shape = (*sums.shape[:2], -1)
    totals = np.where(live, sums.reshape(-1), -np.inf)[:, None] + values
    rows = np.repeat(np.arange(len(values)), values.shape[1])
    columns = (totals, rows, tokens, logprobs, np.zeros_like(tokens))
    return Extensions(*(column.reshape(shape) for column in columns))


def add_forced(
    found: Extensions, sums: Array, own: Tensor, ranked: Tensor, forced: Array, missing: Array
) -> Extensions:
    """Put every forced token that a hypothesis misses among its extensions, and count them.

    Args:
        found: what `extend` gave.
        sums: (records, groups, w) of the hypotheses.
        own: the model's log-probabilities (rows, V).
        ranked: what ranks (rows, V).
        forced: (F,) ids.
        missing: (rows, F), how often each must still come.
    """
    shape = (*found.sums.shape[:2], -1)
    rows = np.repeat(np.arange(len(missing)), len(forced))
    tokens = np.tile(forced, len(missing))
    wanted = missing.reshape(-1) > 0
    values = ranked[:, forced].cpu().numpy().reshape(-1)
    totals = sums.reshape(-1)[rows] + np.where(wanted, values, -np.inf)
    logprobs = own[:, forced].cpu().numpy().reshape(-1)
    still = missing.sum(axis=1)
    more = (totals, rows, tokens, logprobs, 1 - still[rows])
    met = -still[found.rows]
    twice = (missing[found.rows] > 0) & (found.tokens[..., None] == forced)
    others = found._replace(sums=np.where(twice.any(axis=-1), -np.inf, found.sums), met=met)
    both = Extensions(
        *(
            np.concatenate([column, added.reshape(shape)], axis=-1)
            for column, added in zip(others, more, strict=True)
        )
    )
    order = np.lexsort((both.tokens, -both.sums, both.rows), axis=-1)
    return both.at(order)


def in_order(found: Extensions, keys: Array, count: int) -> Extensions:
    """The `count` with the highest keys, (records, n); of equals, the first."""
    return found.at(np.argsort(-keys, axis=1, kind="stable")[:, :count])


def dealt(found: Extensions, keys: Array, count: int) -> Extensions:
    """The first `count` that are dealt in rounds, one for each bank, the fullest bank first.

    A bank holds the extensions with equally many of the forced tokens, the highest key first.
    """
    order = np.argsort(-keys, axis=1, kind="stable")
    met = np.take_along_axis(found.met, order, axis=1)
    rounds = np.zeros_like(met)
    for bank in np.unique(met):
        rounds[met == bank] = (met == bank).cumsum(axis=1)[met == bank]
    empty = np.take_along_axis(keys, order, axis=1) == -np.inf
    again = np.lexsort((-met, rounds, empty), axis=1)
    return found.at(np.take_along_axis(order, again, axis=1)[:, :count])


def top(logprobs: Tensor, count: int) -> tuple[Array, Array]:
    """The `count` highest values of each row (rows, V) in order, of equals the lowest id first.

    torch.topk takes any of equals, so one more is asked for: where it equals the last one wanted,
    the row is sorted whole.

    Returns:
        Values, float32, and ids, int64, both (rows, min(count, V)). A NaN is among the values.
    """
    count = min(count, logprobs.shape[1])
    values, ids = logprobs.topk(min(count + 1, logprobs.shape[1]), dim=1)
    if values.shape[1] > count:
        last = values[:, count - 1]
        unclear = (last == values[:, count]) & (last > -torch.inf)
        if bool(unclear.any()):
            ordered, places = logprobs[unclear].sort(dim=1, descending=True, stable=True)
            values[unclear], ids[unclear] = ordered[:, : count + 1], places[:, : count + 1]
    best, tokens = values[:, :count].cpu().numpy(), ids[:, :count].cpu().numpy()
    order = np.lexsort((tokens, -best), axis=1)
    return np.take_along_axis(best, order, axis=1), np.take_along_axis(tokens, order, axis=1)


def _at(table: Tensor, ids: Array) -> Array:
    """The entries of (rows, V) at ids (rows, n)."""
    picked: Array = table.gather(1, torch.from_numpy(ids).to(table.device)).cpu().numpy()
    return picked
