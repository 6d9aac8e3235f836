"""The lines of ARPA's n-grams as numbers and ids, by a compiled function."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from seqtools.ngram.compiled import kernel
from seqtools.ngram.words import find_word, hash_word

Array: TypeAlias = np.ndarray[Any, Any]

# Why parsing stopped: the block or the room ended, a blank line or a heading, and mistakes: no
# number, a probability above 1, too few words, an unknown one, too many, no weight.
END, OTHER, NUMBER, POSITIVE, FEW, UNKNOWN, MANY, BACKOFF = range(8)

_INFINITY = np.frombuffer(b"infinity", dtype=np.uint8)


@kernel
def parse(
    raw: Array, start: int, order: int, highest: bool, utf8: Array, offsets: Array,  # noqa: FBT001
    table: Array, present: Array, ids: Array, probs: Array, backoffs: Array, spans: Array, row: int,
) -> tuple[int, int, int]:  # fmt: skip
    """Parse lines until the block or the room ends, or one is not as it should be.

    Args:
        raw: uint8, whole lines.
        start: where to begin.
        order: words of a line.
        highest: there are no backoff weights.
        utf8, offsets, table: the words; not used at order 1.
        present: bool (3,), which specials there are.
        ids: uint32 (n, order) to write; not at order 1.
        probs: float32 (n,) to write.
        backoffs: float32 (n,) to write; not at the highest order.
        spans: int64 (n, 2) to write at order 1: where each word begins and ends.
        row: the first to write.

    Returns:
        The position of the next line, the row for it, and why it ended.
    """
    position = start
    while row < len(probs) and position < len(raw):
        at = _skip_space(raw, position)
        if raw[at] == 10 or raw[at] == 92:  # a blank line, a heading
            return position, row, OTHER
        at, value = _parse_number(raw, at)
        if np.isnan(value):
            return position, row, NUMBER
        if value > 1e-3:
            return position, row, POSITIVE
        probs[row] = min(value, 0.0) if value > -99.0 else -np.inf
        for column in range(order):
            begin = _skip_space(raw, at)
            at = begin
            while not _is_space(raw[at]) and raw[at] != 10:
                at += 1
            if at == begin:
                return position, row, FEW
            if order == 1:
                spans[row, 0], spans[row, 1] = begin, at
            else:
                word = find_word(raw, begin, at, hash_word(raw, begin, at), utf8, offsets, table)
                if word < 0 or (word < len(present) and not present[word]):
                    return position, row, UNKNOWN
                ids[row, column] = word
        at = _skip_space(raw, at)
        value = 0.0
        if raw[at] != 10:
            if highest:
                return position, row, MANY
            at, value = _parse_number(raw, at)
            if np.isnan(value) or value > 99.0:
                return position, row, BACKOFF
            at = _skip_space(raw, at)
            if raw[at] != 10:
                return position, row, MANY
        if not highest:
            backoffs[row] = value if value > -99.0 else -np.inf
        row += 1
        position = at + 1
    return position, row, END


@kernel
def _is_space(byte: int) -> bool:
    return byte == 32 or byte == 9 or 11 <= byte <= 13


@kernel
def _skip_space(raw: Array, at: int) -> int:
    while _is_space(raw[at]):
        at += 1
    return at


@kernel
def _parse_number(raw: Array, at: int) -> tuple[int, float]:
    """A number, and where it ends; NaN where there is none that white space follows."""
    negative = raw[at] == 45
    if negative or raw[at] == 43:
        at += 1
    value, digits, scale, point = 0.0, 0, 0, 0
    while 48 <= raw[at] <= 57 or (raw[at] == 46 and not point):
        if raw[at] == 46:
            point = 1
        else:
            digits += 1
            if value < 1e17:
                value = value * 10.0 + (raw[at] - 48)
                scale -= point
            else:  # a float holds no more
                scale += 1 - point
        at += 1
    if digits and raw[at] | 32 == 101:
        at += 1
        shrinks = raw[at] == 45
        if shrinks or raw[at] == 43:
            at += 1
        exponent, digits = 0, 0
        while 48 <= raw[at] <= 57:
            exponent = min(exponent * 10 + (raw[at] - 48), 1000)
            digits += 1
            at += 1
        scale += -exponent if shrinks else exponent
    if not (digits or point):
        for letter in _INFINITY:
            if raw[at] | 32 != letter:
                break
            digits += 1
            at += 1
        value = np.inf if digits in (3, 8) else np.nan
    if not (digits and (_is_space(raw[at]) or raw[at] == 10)):
        return at, np.nan
    if scale < 0:
        value /= 10.0**-scale
    elif scale and value:
        value *= 10.0**scale
    return at, -value if negative else value
