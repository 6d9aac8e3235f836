"""Which tokens of an `mlm` are hidden and by what, and which texts make a pair: on arrays alone.

A share of the tokens is chosen; of these 80 % become `<mask>`, 10 % any token, and 10 % stay as
they are (Devlin et al. 2019, section 3.1). What random numbers are for is told by `_CHOICE` and
those beside it; each record has its own.
"""

from __future__ import annotations

import numpy as np

from seqtools.batching.draws import Counts, Draws, Flags, Keys, choose, round_at_random, uniforms
from seqtools.batching.padding import Ids, Sizes

MASKED, RANDOM = 0.8, 0.1  # of the chosen tokens
_CHOICE, _COUNT, _KIND, _TOKEN, _FOLLOWS, _OTHER = range(6)


def shorten(first: Sizes, second: Sizes, room: int) -> tuple[Sizes, Sizes]:
    """Lengths of pairs cut to `room` together: the longer text gives way, until both are equal."""
    shortened = np.minimum(first, np.maximum(room - second, room - room // 2))
    return shortened, np.minimum(second, room - shortened)


def partners(records: Sizes, count: int, streams: Keys) -> tuple[Sizes, Sizes]:
    """Give each record a second one: half the time the next one, half any but that and itself.

    The last of all has no next one; where there is none but the next one, it is that.

    Args:
        records: (rows,) numbers from 0.
        count: of all records, at least 2.
        streams: (rows,) random streams of the records.

    Returns:
        The other records (rows,), and 1 where it is the next one, else 0 (rows,).
    """
    has_next = records + 1 < count
    candidates = count - 1 - has_next
    follows = has_next & ((uniforms(streams, _FOLLOWS, 1)[:, 0] < 0.5) | (candidates == 0))
    other = (uniforms(streams, _OTHER, 1)[:, 0] * candidates).astype(np.int64)
    other += (other >= records) * (1 + has_next)
    return np.where(follows, records + 1, other), follows.astype(np.int64)


def choose_words(maskable: Flags, words: Counts, rate: float, streams: Keys) -> Flags:
    """Choose a share of the words of each row, whole.

    Of n words rate * n are chosen, rounded up or down at random so that it is `rate` on average.

    Args:
        maskable: (rows, width) the tokens that may be chosen.
        words: (rows, width) which word each belongs to, ascending from left to right.
        rate: share.
        streams: (rows,) random streams of the records.

    Returns:
        (rows, width), True for the chosen tokens: all maskable ones of the chosen words.
    """
    width = maskable.shape[1]
    latest = np.maximum.accumulate(np.where(maskable, words, -1), axis=1)
    heads = maskable.copy()  # the first maskable token of each word stands for it
    heads[:, 1:] &= words[:, 1:] > latest[:, :-1]
    counts = round_at_random(heads.sum(axis=1) * rate, uniforms(streams, _COUNT, 1)[:, 0])
    chosen_heads = choose(uniforms(streams, _CHOICE, width), heads, counts)
    head = np.maximum.accumulate(np.where(heads, np.arange(width), 0), axis=1)
    return maskable & np.take_along_axis(chosen_heads, head, axis=1)


def hide(ids: Ids, chosen: Flags, mask: int, ordinary: Counts, streams: Keys) -> Ids:
    """Put the mask, or any of the `ordinary` ids, in place of most chosen ones; (rows, width)."""
    width = ids.shape[1]
    kind: Draws = np.where(chosen, uniforms(streams, _KIND, width), 1.0)
    tokens = (uniforms(streams, _TOKEN, width) * len(ordinary)).astype(np.int64)
    hidden = np.where(kind < MASKED, np.int32(mask), ids)
    at_random = (kind >= MASKED) & (kind < MASKED + RANDOM)
    hidden[at_random] = ordinary[tokens[at_random]]
    return hidden
