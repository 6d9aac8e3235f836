"""Looking up words after histories: what scoring and the distribution of the next word share."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from seqtools.ngram.compiled import frozen, kernel

if TYPE_CHECKING:
    from seqtools.artifact import Long
    from seqtools.ngram.model import Model

Array: TypeAlias = np.ndarray[Any, Any]

# What an n-gram that is not there means.
BACK_OFF, STEP_BACK, ADD = range(3)


@dataclass(frozen=True)
class Rule:
    """How a model gives a probability to an n-gram that it does not have.

    Attributes:
        family: `BACK_OFF`: the context's weight times P of the next shorter n-gram, where a context
            that is not there has the weight 1. `STEP_BACK` (stupid backoff): the same with one
            weight for all. `ADD` (add-k): only the longest n-grams count, a context's "weight" is P
            of each word that was not seen after it, and after contexts that are not there all words
            have the same.
        log10: of what is the same for all contexts: that weight, or that P.
        has_unk: unknown words have a probability.
    """

    family: int
    log10: float
    has_unk: bool

    @classmethod
    def of(cls, model: Model) -> Rule:
        """The rule that a model's metadata tells."""
        has_unk = bool(model.metadata.get("has_unk", True))
        if model.metadata.get("additive") is not None:
            possible = len(model.words) - (1 if has_unk else 2)  # all but <s>, which is given
            return cls(ADD, -math.log10(possible), has_unk)
        weight = float(model.metadata.get("unseen_backoff") or 0.0)
        return cls(STEP_BACK if weight else BACK_OFF, weight, has_unk)


@dataclass(frozen=True)
class Table:
    """A level in memory; arrays as compiled functions take them, read-only."""

    words: Array
    begins: Array
    log10probs: Array
    log10backoffs: Array


def tables(model: Model) -> list[Table]:
    """The levels of a model."""
    return [
        Table(
            _whole(level.words),
            _whole(level.begins),
            _whole(level.log10probs),
            _whole(level.log10backoffs),
        )
        for level in model.levels
    ]


def _whole(column: Long) -> Array:
    return frozen(np.ascontiguousarray(column[0 : len(column)]))


@kernel
def find_child(words: Array, begins: Array, row: int, left: int) -> int:
    """The n-gram that extends another to the left by a word.

    Args:
        words: uint32, leftmost words of the longer n-grams.
        begins: uint32, where in them the extensions of each shorter one begin.
        row: of the shorter n-gram.
        left: the word.

    Returns:
        The row of the longer one, or -1.
    """
    low: Any = np.int64(begins[row])
    # No two have the same word, so a word is at most as many rows on as its id says. That the end
    # is within the array, whatever a damaged file says, keeps us from reading beyond it.
    count: Any = min(min(np.int64(begins[row + 1]), len(words)) - low, left + 1)
    if count <= 0:
        return -1
    while count > 1:
        half = count >> 1
        low += half if words[low + half] <= left else 0
        count -= half
    return int(low) if words[low] == left else -1


@kernel
def walk(words: Array, begins: Array, lefts: Array, rows: Array) -> None:
    """Extend n-grams by a word to the left.

    Args:
        words, begins: as in `find_child`.
        lefts: int64 (n,), the words; -1 for none.
        rows: int64 (n,) to change: the n-grams, -1 for none; then the longer ones, or -1.
    """
    for each in range(len(rows)):
        if rows[each] >= 0:
            there = lefts[each] >= 0
            rows[each] = find_child(words, begins, rows[each], lefts[each]) if there else -1
