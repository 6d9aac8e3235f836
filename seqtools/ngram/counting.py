"""How often each token is in records, on bytes: no Python object for each token.

A token is found by a hash of its bytes, eight at a time; of most tokens the first eight are all.
The table (open addressing, a power of two of slots, at most half full) holds, in one 64-bit number,
32 bits of the hash and the token's number plus one; 0 is an empty slot.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable

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
from seqtools.ngram.words import rehash

_MIX = np.uint64(0x9E3779B97F4A7C15)  # 2**64 over the golden ratio
_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
_ONE = np.uint64(1)
# Which of eight bytes the first 0 to 8 are.
_MASKS = np.array([(1 << 8 * count) - 1 for count in range(9)], dtype=np.uint64)
_NOT_PLAIN, _FULL = -1, -2


class TokenCounter(Walker):
    """Counts of tokens.

    Args:
        field: name of the list of tokens.
        label: a string instead of the list is one token.
    """

    def __init__(self, field: str, *, label: bool = False) -> None:
        super().__init__(field)
        self._label = int(label)
        self._firsts = np.zeros(1 << 14, dtype=np.uint64)  # the first eight bytes of each token
        self._ends = np.zeros(1 << 14, dtype=np.int64)  # where each ends in `_utf8`
        self._counts = np.zeros(1 << 14, dtype=np.int64)
        self._utf8 = np.zeros(1 << 18, dtype=np.uint8)
        self._table = np.zeros(1 << 15, dtype=np.uint64)
        self._known = np.zeros(1, dtype=np.int64)
        self._ids = np.zeros(0, dtype=np.int32)
        self._others: Counter[str] = Counter()

    def walk(self, position: int) -> int:
        """Count the tokens of lines; where one begins that is not plain, or the end."""
        if len(self._ids) < self._size:
            self._ids = np.empty(self._size, dtype=np.int32)
        while True:
            position, full = _count_lines(
                self._data, self._words, position, self._size, self._key, self._label, self._ids,
                self._firsts, self._ends, self._counts, self._utf8, self._table, self._known,
                self._passed,
            )  # fmt: skip
            if not full:
                return position
            self._grow()

    def add(self, tokens: Iterable[str]) -> None:
        """Count tokens that were read otherwise."""
        self._others.update(tokens)

    def counts(self) -> Counter[str]:
        """How often each token was seen."""
        known = int(self._known[0])
        ends = self._ends[:known].tolist()
        data = self._utf8[: ends[-1] if ends else 0].tobytes()
        words = (data[start:end].decode() for start, end in itertools.pairwise([0, *ends]))
        pairs = zip(words, self._counts[:known].tolist(), strict=True)
        # Of a record that turned out to be a bad one tokens are known that were never counted.
        self._others.update({word: count for word, count in pairs if count})
        return self._others

    def _grow(self) -> None:
        """Make room for twice as much."""
        self._firsts, self._ends, self._counts, self._utf8 = (
            np.concatenate([each, np.zeros_like(each)])
            for each in (self._firsts, self._ends, self._counts, self._utf8)
        )
        table = np.zeros(2 * len(self._table), dtype=np.uint64)
        rehash(self._table, table)
        self._table = table


@kernel
def _count_lines(
    data: Array, words: Array, start: int, end: int, key: Array, label: int, ids: Array,
    firsts: Array, ends: Array, counts: Array, utf8: Array, table: Array, known: Array,
    passed: Array,
) -> tuple[int, bool]:  # fmt: skip
    """Where the first line begins that is not counted, or the end; and whether it lacks room."""
    position = start
    while position < end:
        line = position
        while data[position] == 32 or data[position] == 9 or data[position] == RETURN:
            position += 1
        if data[position] != NEWLINE:
            count = 0
            position = find_field(data, words, position, key)
            if position >= 0:
                position, count = _find_tokens(
                    data, words, position, label, end + 16, ids, firsts, ends, utf8, table, known
                )
            if position >= 0:
                position = end_record(data, words, position, key)
            if position < 0:
                return line, position == _FULL
            for index in range(count):  # only now: a bad record counts for nothing
                counts[ids[index]] += 1
            passed[1] += 1
        passed[0] += 1
        position += 1
    return position, False


@kernel
def _find_tokens(
    data: Array, words: Array, position: int, label: int, spare: int, ids: Array,
    firsts: Array, ends: Array, utf8: Array, table: Array, known: Array,
) -> tuple[int, int]:  # fmt: skip
    """The numbers of a list of strings or of one string: where it ends, and how many.

    New ones are added; escapes are undone from `spare` on.
    """
    count = 0
    single = label != 0 and data[position] == QUOTE
    if not single:
        if data[position] != BEGIN:
            return _NOT_PLAIN, count
        position = spaces(data, position + 1)
        if data[position] == END:
            return position + 1, count
    mask = np.uint64(len(table) - 1)
    room = min(len(table) // 2, len(firsts))
    total = known[0]
    used = ends[total - 1] if total else 0
    # One loop without calls: passing the arrays on takes longer than all that is done with them.
    while True:
        if data[position] != QUOTE:
            return _NOT_PLAIN, count
        position += 1
        begin = position
        step = 8
        while step == 8:
            step = plain_bytes(word_at(words, position))
            position += step
        end = position
        if data[position] == BACKSLASH:
            position, end = _unescaped(data, begin, spare)
            begin = spare
            if position < 0:
                return _NOT_PLAIN, count
        elif data[position] != QUOTE:
            return _NOT_PLAIN, count
        position += 1

        length = end - begin
        first = word_at(words, begin) & _MASKS[min(length, 8)]
        value = (first ^ np.uint64(length)) * _MIX
        place = begin + 8
        while place < end:
            rest = word_at(words, place) & _MASKS[min(end - place, 8)]
            value = (value ^ value >> _HALF ^ rest) * _MIX
            place += 8
        tag = (value ^ value >> _HALF) * _MIX >> _HALF
        slot = tag & mask
        found = np.int64(-1)
        while table[slot] != 0:
            entry = table[slot]
            if entry >> _HALF == tag:
                other = np.int64(entry & _LOW) - 1
                start = ends[other - 1] if other else 0
                if firsts[other] == first and ends[other] - start == length:
                    index = 8
                    while index < length and utf8[start + index] == data[begin + index]:
                        index += 1
                    if index >= length:
                        found = other
                        break
            slot = (slot + _ONE) & mask
        if found < 0:
            if total >= room or used + length > len(utf8):
                return _FULL, count
            for index in range(length):
                utf8[used + index] = data[begin + index]
            used += length
            firsts[total] = first
            ends[total] = used
            table[slot] = (tag << _HALF) | np.uint64(total + 1)
            found = total
            total += 1
            known[0] = total

        ids[count] = found
        count += 1
        if single:
            return position, count
        if data[position] != COMMA and data[position] != END:
            position = spaces(data, position)
        if data[position] == END:
            return position + 1, count
        if data[position] != COMMA:
            return _NOT_PLAIN, count
        position += 1
        if data[position] != QUOTE:
            position = spaces(data, position)


@kernel
def _unescaped(data: Array, position: int, filled: int) -> tuple[int, int]:
    """Write a string as text elsewhere: its last quote, where the text ends; -1 if not plain."""
    while data[position] != QUOTE:
        if data[position] == BACKSLASH:
            code, position = escape(data, position)
            if code < 0:
                return -1, filled
            filled = put(code, data, filled)
            continue
        if data[position] < 32:
            return -1, filled
        data[filled] = data[position]
        filled += 1
        position += 1
    return position, filled
