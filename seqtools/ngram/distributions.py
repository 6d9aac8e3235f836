"""The probabilities of all words after some histories.

Most words were never seen after a history, and all of those have the probability of the unigram
times the weights of the contexts. Only the n-grams that were seen are looked up: those of order 2
by an index from their first word, the longer ones from these by walking to the left.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from seqtools.errors import FormatError
from seqtools.ngram.compiled import kernel
from seqtools.ngram.lookup import ADD, STEP_BACK, Rule, Table, find_child, tables, walk
from seqtools.ngram.words import BOS, UNK

if TYPE_CHECKING:
    from seqtools.ngram.model import Model

Array: TypeAlias = np.ndarray[Any, Any]

_LN10 = float(np.log(10))


class Distributions:
    """What may follow a history; made once for a model, which takes a second for a large one.

    Args:
        model: the n-grams.
    """

    def __init__(self, model: Model) -> None:
        self._rule = Rule.of(model)
        self._tables = tables(model)
        self._order = len(self._tables)
        self._unigrams = self._tables[0].log10probs.astype(np.float64)
        self._unigrams[BOS] = -np.inf  # it is given, never predicted
        self._starts = self._seconds = self._lasts = np.empty(0, dtype=np.int64)
        if self._order > 1:
            self._make_index(self._tables[0], self._tables[1])

    def __call__(self, histories: Array) -> Array:
        """The natural logarithm of P(w | history) for all words w.

        Args:
            histories: integers (B, N - 1), the latest word last, -1 at the left where there are
                fewer; what stands before `<s>` does not count and must not be there.

        Returns:
            float32 (B, V); -inf for `<s>`.
        """
        count, width = histories.shape
        if width != self._order - 1:
            raise ValueError(f"histories of {width} words, for a model of order {self._order}")
        lefts = np.ascontiguousarray(histories[:, ::-1].T, dtype=np.int64)  # latest first
        added, whole = self._weigh(lefts)
        out = np.empty((count, len(self._unigrams)), dtype=np.float32)
        for row in range(count):
            if whole[row]:
                out[row] = added[0, row] * _LN10
            else:
                out[row] = (self._unigrams + added[0, row]) * _LN10
            if width and lefts[0, row] >= 0:
                self._follow(lefts[:, row], added[:, row], out[row])
        out[:, BOS] = -np.inf
        if not self._rule.has_unk:
            out[:, UNK] = -np.inf
        return out

    def _make_index(self, first: Table, second: Table) -> None:
        """The n-grams of order 2 by their first word.

        Raises:
            FormatError: there are no such words.
        """
        size, begins = len(second.words), first.begins
        # A file is opened without a look at these; the index would be written beyond its end.
        sound = begins[0] == 0 and begins[-1] == size and not (begins[1:] < begins[:-1]).any()
        if not sound or (size and second.words.max() >= len(first.words)):
            raise FormatError("the model is damaged: its n-grams of order 2 are none")
        self._starts = np.zeros(len(first.words) + 1, dtype=np.int64)
        self._seconds, self._lasts = np.empty((2, size), dtype=np.int64)
        _index(second.words, first.begins, self._starts, self._seconds, self._lasts)

    def _weigh(self, lefts: Array) -> tuple[Array, Array]:
        """What contexts do to the n-grams that were seen after shorter ones only.

        Args:
            lefts: int64 (N - 1, B).

        Returns:
            float64 (N, B), what is to be added to the log10 of the probability of n-grams of each
            order, NaN where these count for nothing; and bool (B,): it is not added to anything,
            but all that there is.
        """
        rule, (width, count) = self._rule, lefts.shape
        added = np.zeros((width + 1, count))
        whole = np.zeros(count, dtype=np.bool_)
        rows = lefts[0].copy() if width else np.empty(0, dtype=np.int64)
        for length in range(1, width + 1):
            if length > 1:
                above = self._tables[length - 1]
                walk(above.words, self._tables[length - 2].begins, lefts[length - 1], rows)
            there = lefts[length - 1] >= 0  # the history is that long
            own = np.zeros(count)
            known = rows >= 0
            if rule.family == STEP_BACK:
                own[:] = rule.log10
            else:
                own[known] = self._tables[length - 1].log10backoffs[rows[known]]
            if rule.family == ADD:
                own[own == 0] = rule.log10  # not a context
                added[0, there] = own[there]
                added[1:length, there] = np.nan
                whole |= there
            else:
                added[:length, there] += own[there]
        return added, whole

    def _follow(self, lefts: Array, added: Array, out: Array) -> None:
        """Put in what was seen after a history."""
        first, end = self._starts[lefts[0]], self._starts[lefts[0] + 1]
        rows, lasts = self._seconds[first:end].copy(), self._lasts[first:end].copy()
        for order, (below, here) in enumerate(itertools.pairwise(self._tables), 2):
            if order > 2:
                if lefts[order - 2] < 0 or not len(rows):
                    return
                count = _narrow(here.words, below.begins, lefts[order - 2], rows, lasts)
                rows, lasts = rows[:count], lasts[:count]
            if not np.isnan(added[order - 1]):
                found = here.log10probs[rows].astype(np.float64) + added[order - 1]
                out[lasts] = found * _LN10


@kernel
def _index(words: Array, begins: Array, starts: Array, rows: Array, lasts: Array) -> None:
    """Sort the n-grams of order 2 by their first word.

    Args:
        words, begins: of the levels 2 and 1.
        starts: int64 (V + 1,) of zeros to write: where those of each first word begin.
        rows, lasts: int64 (n,) to write: the n-grams, and their last words.
    """
    for word in words:
        starts[np.int64(word) + 1] += 1
    for word in range(len(starts) - 1):
        starts[word + 1] += starts[word]
    for last in range(len(begins) - 1):
        for row in range(np.int64(begins[last]), np.int64(begins[last + 1])):
            place = starts[words[row]]
            rows[place] = row
            lasts[place] = last
            starts[words[row]] = place + 1
    for word in range(len(starts) - 1, 0, -1):
        starts[word] = starts[word - 1]
    starts[0] = 0


@kernel
def _narrow(words: Array, begins: Array, left: int, rows: Array, lasts: Array) -> int:
    """Extend n-grams by one word, and keep those that are there; how many they are."""
    count = 0
    for each in range(len(rows)):
        found = find_child(words, begins, rows[each], left)
        if found >= 0:
            rows[count] = found
            lasts[count] = lasts[each]
            count += 1
    return count
