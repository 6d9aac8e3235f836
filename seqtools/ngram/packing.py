"""Tokens out of lines of JSON without a Python object for each."""

from __future__ import annotations

import numpy as np

from seqtools.ngram.compiled import kernel
from seqtools.ngram.jsonlines import (
    BACKSLASH,
    BEGIN,
    COMMA,
    END,
    NEWLINE,
    QUOTE,
    RETURN,
    Array,
    Walker,
    end_record,
    escape,
    find_field,
    plain_bytes,
    put,
    spaces,
    word_at,
)


class Packer(Walker):
    """Tokens as `words.pack_tokens` has them.

    Args:
        field: name of the list of tokens.
        refuse_space: tokens that are empty or hold ASCII white space are not plain.
    """

    def __init__(self, field: str, *, refuse_space: bool = False) -> None:
        super().__init__(field)
        self._refuse_space = int(refuse_space)
        self._out = np.empty(0, dtype=np.uint8)
        self._filled = 0

    def begin(self, text: bytes) -> None:
        """Take a block of whole lines of UTF-8, the last one with its end."""
        super().begin(text)
        if len(self._out) < len(text):
            self._out = np.empty(len(text), dtype=np.uint8)
        self._filled = 0

    def walk(self, position: int) -> int:
        """Pack lines; where one begins that is not plain, or the end."""
        position, self._filled = _pack_lines(
            self._data, self._words, position, self._size, self._key, self._refuse_space,
            self._out, self._filled, self._passed,
        )  # fmt: skip
        return position

    def take(self) -> bytes:
        """What was packed since this was last asked."""
        packed = self._out[: self._filled].tobytes()
        self._filled = 0
        return packed


@kernel
def _pack_lines(
    data: Array, words: Array, start: int, end: int, key: Array, refuse_space: int,
    out: Array, filled: int, passed: Array,
) -> tuple[int, int]:  # fmt: skip
    """Where the first line begins that is not plain, or the end; and how much is written."""
    position = start
    while position < end:
        line = position
        while data[position] == 32 or data[position] == 9 or data[position] == RETURN:
            position += 1
        if data[position] != NEWLINE:
            position, written = _record(data, words, position, key, refuse_space, out, filled)
            if position < 0:
                return line, filled
            filled = written
            out[filled] = 0xFE
            filled += 1
            passed[1] += 1
        passed[0] += 1
        position += 1
    return position, filled


@kernel
def _record(
    data: Array, words: Array, position: int, key: Array, refuse_space: int, out: Array, filled: int
) -> tuple[int, int]:
    """One record: where its line ends, and how much is written; -1 where it is not plain."""
    position = find_field(data, words, position, key)
    if position < 0:
        return -1, filled
    position, filled = _list(data, words, position, refuse_space, out, filled)
    if position < 0:
        return -1, filled
    return end_record(data, words, position, key), filled


@kernel
def _list(
    data: Array, words: Array, position: int, refuse_space: int, out: Array, filled: int
) -> tuple[int, int]:
    """A list of strings, copied."""
    if data[position] != BEGIN:
        return -1, filled
    position = spaces(data, position + 1)
    if data[position] == END:
        return position + 1, filled
    # One loop, mostly without calls: passing the arrays on takes longer than what is done.
    while True:
        if data[position] != QUOTE:
            return -1, filled
        position += 1
        start = filled
        while True:
            count = plain_bytes(word_at(words, position))
            for index in range(count):
                out[filled + index] = data[position + index]
            filled += count
            position += count
            if count == 8:
                continue
            if data[position] == QUOTE:
                break
            if data[position] != BACKSLASH:
                return -1, filled
            code, position = escape(data, position)
            if code < 0:
                return -1, filled
            filled = put(code, out, filled)
        if refuse_space and (filled == start or _has_space(out, start, filled)):
            return -1, filled
        out[filled] = 0xFF
        filled += 1
        position += 1
        if data[position] != COMMA and data[position] != END:
            position = spaces(data, position)
        if data[position] == END:
            return position + 1, filled
        if data[position] != COMMA:
            return -1, filled
        position += 1
        if data[position] != QUOTE:
            position = spaces(data, position)


@kernel
def _has_space(out: Array, start: int, end: int) -> bool:
    for index in range(start, end):  # noqa: SIM110 numba is quicker so
        if out[index] == 32 or 9 <= out[index] <= 13:
            return True
    return False
