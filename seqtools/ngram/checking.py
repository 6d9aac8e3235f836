"""Whether the probabilities of a model sum to 1, in contexts it has seen and in others."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from seqtools.ngram.words import BOS, EOS, UNK

if TYPE_CHECKING:
    from seqtools.artifact import Long
    from seqtools.ngram.model import Model

Array: TypeAlias = np.ndarray[Any, Any]

_ROWS = 1 << 22  # probabilities looked at together
_ALIKE = 1e-12  # of deviations no further apart the first one counts: it is rounding that differs


@dataclass(frozen=True)
class Check:
    """What was found.

    Attributes:
        contexts: how many were looked at.
        deviation: the largest distance of a sum from 1; infinite where one is no number.
        total: that sum.
        worst: its context, ids.
        probabilities_above_1: n-grams whose probability is more than 1, in the whole model.
        backoffs_above_1: n-grams whose weight is more than 1; some methods make such.
    """

    contexts: int
    deviation: float
    total: float
    worst: tuple[int, ...]
    probabilities_above_1: int
    backoffs_above_1: int


def check(model: Model, count: int, *, seed: int = 0) -> Check:
    """Sum up the probabilities of all words, `<s>` but not `</s>` left out, after some contexts.

    Args:
        model: the n-grams.
        count: how many contexts are drawn; see `draw_contexts`.
        seed: of the draw.
    """
    contexts = draw_contexts(model, count, seed)
    largest, sum_there, worst = -1.0, 1.0, contexts[0]
    step = max(1, _ROWS // len(model.words))
    for start in range(0, len(contexts), step):
        some = contexts[start : start + step]
        for context, total in zip(some, _sums(model, some), strict=True):
            deviation = abs(total - 1) if math.isfinite(total) else math.inf
            if deviation > largest + _ALIKE:
                largest, sum_there, worst = deviation, total, context
    return Check(
        len(contexts),
        largest,
        sum_there,
        worst,
        sum(_positive(level.log10probs) for level in model.levels),
        sum(_positive(level.log10backoffs) for level in model.levels),
    )


def _sums(model: Model, contexts: Sequence[tuple[int, ...]]) -> Iterator[float]:
    width = model.order - 1
    histories = np.full((len(contexts), width), -1, dtype=np.int64)
    for row, context in enumerate(contexts):
        histories[row, width - len(context) :] = context
    for logprobs in model.distributions(histories):
        # Exactly rounded, so that it is the same sum on every machine.
        yield math.fsum(np.exp(logprobs.astype(np.float64)).tolist())


def _positive(column: Long) -> int:
    return int(np.count_nonzero(_whole(column) > 0))


def _whole(column: Long) -> Array:
    return np.asarray(column[0 : len(column)])


def draw_contexts(model: Model, count: int, seed: int) -> list[tuple[int, ...]]:
    """Contexts to look at: none at all and `<s>`, and drawn ones, each once.

    Those drawn are n-grams of every order but the highest, and as many words at random, which will
    rarely have been seen together: a share of `count` for each order and for those. A model may
    have fewer n-grams than that. Adding to counts is defined for whole contexts alone: there is no
    empty one then, and those drawn are all of the greatest length.
    """
    source = random.Random(seed)
    longest = model.order - 1
    if longest == 0:
        return [()]
    whole = model.metadata.get("additive") is not None
    found = dict.fromkeys([(BOS,)] if whole else [(), (BOS,)])
    orders = [longest] if whole else range(1, model.order)
    share = -(-count // (len(orders) + 1))
    for order in orders:
        found.update(dict.fromkeys(_draw_rows(model, order, share, source)))
    words = [UNK, *range(EOS + 1, len(model.words))]
    for _ in range(share):
        found[tuple(source.choices(words, k=longest))] = None
    return [*found]


def _draw_rows(
    model: Model, order: int, count: int, source: random.Random
) -> Iterator[tuple[int, ...]]:
    """Some n-grams of an order, but for those that end with `</s>`: nothing follows it."""
    start, end = EOS, EOS + 1
    for level in model.levels[: order - 1]:
        begins = _whole(level.begins)
        start, end = int(begins[start]), int(begins[end])
    others = len(model.levels[order - 1]) - (end - start)
    for drawn in source.sample(range(others), min(count, others)):
        yield ngram(model, order, drawn if drawn < start else drawn + end - start)


def ngram(model: Model, order: int, row: int) -> tuple[int, ...]:
    """The ids of the n-gram that is a row of the level of its order."""
    ids = []
    for number in range(order - 1, 0, -1):
        ids.append(int(_whole(model.levels[number].words)[row]))
        begins = _whole(model.levels[number - 1].begins)
        row = int(np.searchsorted(begins, np.uint32(row), side="right")) - 1
    return (*ids, row)
