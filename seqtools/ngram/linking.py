"""N-grams in any order to the levels of a model: sorted, and each with its suffix.

As long as not all orders are known, n-grams are rows of ids. Then each order is linked to the one
below, both in suffix order, in one pass; a suffix that is missing there is put in.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from seqtools.ngram.compiled import frozen, kernel
from seqtools.ngram.lookup import walk
from seqtools.ngram.model import Level
from seqtools.ngram.sorting import Layout, Sorting, sort_occurrences
from seqtools.ngram.storage import roomy

Array: TypeAlias = np.ndarray[Any, Any]

_NOTHING = np.empty(0, dtype=np.uint32)


@dataclass
class Grams:
    """The n-grams of one order.

    Attributes:
        ids: uint32 (n, order), the words as they stand in the text; in the end only the first.
        probs, backoffs: float32 (n,), log10; there are no backoffs at the highest order.
        begins: uint32 (n + 1,), as in `Level`, where that is known.
        added: the ids of those that are not in the file.
    """

    ids: Array
    probs: Array
    backoffs: Array
    begins: Array = field(default_factory=_NOTHING.copy)
    added: Array = field(default_factory=_NOTHING.copy)

    def take(self, rows: Array) -> Grams:
        """Rows in another order."""
        backoffs = self.backoffs[rows] if len(self.backoffs) else self.backoffs
        return Grams(self.ids[rows], self.probs[rows], backoffs)

    def is_sorted(self) -> bool:
        """Whether they are in suffix order, and all different."""
        return _is_sorted(self.ids)

    def sort(self, vocabulary: int) -> int | None:
        """Put them in suffix order, or, where two are equal, tell the row of the second one.

        Args:
            vocabulary: ids are below it.
        """
        size, order = self.ids.shape
        layout = Layout.plan(order, vocabulary, size)
        rounds = len(layout.fields)
        keys = roomy((rounds, size), np.uint64)
        _pack(self.ids, layout.bits, np.array(layout.fields), keys)
        room = Sorting.allocate(roomy, rounds, size)
        done = sort_occurrences(keys, room, layout)
        twice = np.flatnonzero(done.common[1:] == order)
        if len(twice):
            return int(done.rows[twice + 1].min())
        rows = done.rows
        del keys, room, done
        chosen = self.take(rows)
        self.ids, self.probs, self.backoffs = chosen.ids, chosen.probs, chosen.backoffs
        return None


def link_all(grams: list[Grams]) -> list[Level]:
    """Levels of n-grams, each of which has its suffix."""
    for upper, lower in zip(grams[:0:-1], grams[-2::-1], strict=True):
        _link_to(upper, lower)
    levels: list[Level] = []
    for index, each in enumerate(grams):
        each.ids = each.ids[:, :1].copy()
        if len(each.added):
            _back_off(grams[: index + 1])
        arrays = each.ids[:, 0], each.begins, each.probs, each.backoffs
        for array in arrays:
            array.flags.writeable = False
        levels.append(Level(*arrays))
    return levels


def _link_to(upper: Grams, lower: Grams) -> None:
    """Find where the extensions of each n-gram begin; suffixes that are missing are put in."""
    lower.begins = roomy(len(lower.probs) + 1, np.uint32)
    missing = _link(upper.ids, lower.ids, lower.begins, _NOTHING.copy(), _NOTHING.copy())
    if missing:
        rows, places = np.empty((2, missing), dtype=np.uint32)
        _link(upper.ids, lower.ids, lower.begins, rows, places)
        lower.added = upper.ids[rows, 1:]
        before = places.astype(np.int64)
        lower.ids = np.insert(lower.ids, before, lower.added, axis=0)
        lower.probs = np.insert(lower.probs, before, np.float32(np.nan))
        lower.backoffs = np.insert(lower.backoffs, before, np.float32(0))
        _link_to(upper, lower)


def _back_off(grams: list[Grams]) -> None:
    """Give the n-grams that were put into the highest order the probability of backing off."""
    *_, below, here = grams
    rows = np.flatnonzero(np.isnan(here.probs))
    suffixes = np.searchsorted(below.begins, rows, side="right") - 1
    contexts = _find_rows(grams[:-1], here.added[:, :-1])
    weights = np.where(contexts < 0, 0, below.backoffs[contexts])
    here.probs[rows] = below.probs[suffixes] + weights


def _find_rows(grams: list[Grams], ids: Array) -> Array:
    """The rows of n-grams (m, order), -1 where there is none."""
    rows = ids[:, -1].astype(np.int64)
    for back, (lower, upper) in enumerate(itertools.pairwise(grams), 2):
        lefts = ids[:, -back].astype(np.int64)
        walk(frozen(upper.ids[:, 0]), frozen(lower.begins), lefts, rows)
    return rows


@kernel
def _pack(ids: Array, bits: int, fields: Array, keys: Array) -> None:
    """Pack the words of n-grams, from the last to the first, as `Layout` says."""
    for row in range(len(ids)):
        column = ids.shape[1] - 1
        for each in range(len(fields)):
            key = np.uint64(0)
            for _ in range(fields[each]):
                key = (key << np.uint64(bits)) | np.uint64(ids[row, column])
                column -= 1
            keys[each, row] = key


@kernel
def _compare(some: Array, one: int, others: Array, other: int, columns: int) -> int:
    """Which of two n-grams is first in suffix order by its last words: -1, or 1, or 0."""
    for back in range(1, columns + 1):
        left, right = some[one, some.shape[1] - back], others[other, others.shape[1] - back]
        if left != right:
            return -1 if left < right else 1
    return 0


@kernel
def _is_sorted(ids: Array) -> bool:
    """Whether each n-gram is beyond the one before it in suffix order."""
    for row in range(1, len(ids)):  # noqa: SIM110
        if _compare(ids, row - 1, ids, row, ids.shape[1]) >= 0:
            return False
    return True


@kernel
def _link(ids: Array, lower: Array, begins: Array, rows: Array, places: Array) -> int:
    """Find the suffixes of n-grams among those of the order below, both in suffix order.

    Args:
        ids: uint32 (n, order).
        lower: uint32 (m, order - 1).
        begins: uint32 (m + 1,) to write: where the n-grams with each suffix begin.
        rows: uint32 to write, as far as there is room: an n-gram for each suffix that is missing.
        places: uint32 to write: before which row of `lower` it would stand.

    Returns:
        How many suffixes are missing.
    """
    columns = lower.shape[1]
    below, missing, last = 0, 0, -1
    begins[0] = 0
    for row in range(len(ids)):
        order = 1
        while below < len(lower):
            order = _compare(lower, below, ids, row, columns)
            if order >= 0:
                break
            below += 1
            begins[below] = row
            order = 1
        if order and (last < 0 or _compare(ids, last, ids, row, columns)):
            if missing < len(rows):
                rows[missing], places[missing] = row, below
            missing += 1
            last = row
    begins[below + 1 :] = len(ids)
    return missing
