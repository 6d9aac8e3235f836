"""Models as lines of JSON, an n-gram a line, for other programs to look into."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias, cast

import numpy as np

from seqtools.ngram.arpa import has_unk
from seqtools.ngram.model import Level, Model
from seqtools.streams.records import dumps

Array: TypeAlias = np.ndarray[Any, Any]

_ROWS = 1 << 14  # n-grams that are listed at a time


def list_ngrams(model: Model) -> Iterator[bytes]:
    """All n-grams, those of the lowest order first, within an order in suffix order.

    A line has `ngram`, the words; `logprob` and, below the highest order, `backoff`, both natural
    logarithms with the digits of a float32, or "-inf". `<unk>` is left out where there is none.

    Args:
        model: whose arrays are in memory or mapped.
    """
    quoted = [dumps(word.decode()) for word in model.words.strings()]
    levels = model.levels
    for index, level in enumerate(levels):
        first = 0 if index or has_unk(levels) else 1
        for start in range(first, len(level), _ROWS):
            rows = np.arange(start, min(start + _ROWS, len(level)))
            columns = [
                _texts(levels, index, rows, quoted),
                _numbers(level.log10probs[start : start + _ROWS]),
            ]
            line = b'{"ngram":[%b],"logprob":%b}\n'
            if index < len(levels) - 1:
                columns.append(_numbers(level.log10backoffs[start : start + _ROWS]))
                line = b'{"ngram":[%b],"logprob":%b,"backoff":%b}\n'
            yield b"".join([line % values for values in zip(*columns, strict=True)])


def _texts(
    levels: Sequence[Level], index: int, rows: Array, quoted: Sequence[bytes]
) -> list[bytes]:
    """The words of rows of one level, as they stand in a list in JSON; `rows` rise."""
    if index == 0:
        return [quoted[row] for row in rows.tolist()]
    lefts = cast(Array, levels[index].words)[rows].tolist()
    below = np.searchsorted(cast(Array, levels[index - 1].begins), rows, side="right") - 1
    different, which = np.unique(below, return_inverse=True)
    suffixes = _texts(levels, index - 1, different, quoted)
    return [
        quoted[left] + b"," + suffixes[number]
        for left, number in zip(lefts, which.tolist(), strict=True)
    ]


def _numbers(log10s: Array) -> list[bytes]:
    """Natural logarithms as JSON."""
    if not len(log10s):
        return []
    values = (log10s * np.log(10) + 0.0).astype(np.float32)  # in float64; and no minus 0
    finite = np.isfinite(values)
    numbers = dumps(np.where(finite, values, np.float32(0)))[1:-1].split(b",")
    for place in np.flatnonzero(~finite).tolist():
        numbers[place] = b'"-inf"'
    return numbers
