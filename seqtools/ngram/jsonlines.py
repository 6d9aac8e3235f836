"""Records on lines of JSON, walked through by compiled code.

Only what is plainly a record is known here: an object whose values are strings, numbers, names or
lists of strings. Every other line is left to the parser of `streams.records`, which knows all of
JSON and says what is wrong. The functions give -1 where what they look at is not plain.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, TypeAlias

import numpy as np

from seqtools.ngram.compiled import inlined, kernel

Array: TypeAlias = np.ndarray[Any, Any]

QUOTE, BACKSLASH, COMMA, COLON, RETURN, NEWLINE = 34, 92, 44, 58, 13, 10
BEGIN, END = 91, 93  # of a list
_OPEN, _CLOSE = 123, 125  # of an object
_ESCAPES = np.frombuffer(b"b\bf\fn\nr\rt\t", dtype=np.uint8)
_NAMES = np.frombuffer(b"false null  true  ", dtype=np.uint8)

# Eight bytes at once, as one number; after Hacker's Delight, 6-1, and Mycroft's test for a zero.
_ONES = np.uint64(0x0101010101010101)
_HIGH = np.uint64(0x8080808080808080)
_QUOTES = np.uint64(0x2222222222222222)
_BACKSLASHES = np.uint64(0x5C5C5C5C5C5C5C5C)
_SPACES = np.uint64(0x2020202020202020)
_SEVEN, _EIGHT, _LAST = np.uint64(7), np.uint64(8), np.uint64(56)
_ONE, _SHIFT = np.uint64(1), np.uint64(63)


class Walker(ABC):
    """What takes a field out of lines, many at a time.

    Args:
        field: its name.
    """

    def __init__(self, field: str) -> None:
        # A name that is no Unicode, as a shell may give it, is in no record.
        self._key = np.frombuffer(field.encode("utf-8", "surrogateescape"), dtype=np.uint8)
        self._data = np.empty(0, dtype=np.uint8)
        self._words = self._data.view(np.uint64)  # the same memory, eight bytes a word
        self._size = 0
        self._passed = np.zeros(2, dtype=np.int64)

    @property
    def lines(self) -> int:
        """Lines of the block that were passed."""
        return int(self._passed[0])

    @property
    def records(self) -> int:
        """Records among them."""
        return int(self._passed[1])

    def begin(self, text: bytes) -> None:
        """Take a block of whole lines of UTF-8, the last one with its end."""
        self._size = len(text)
        room = 8 * (len(text) // 4 + 8)  # as much again to write to, and some
        if len(self._data) < room:
            self._data = np.empty(room, dtype=np.uint8)
            self._words = self._data.view(np.uint64)
        self._data[: len(text)] = np.frombuffer(text, dtype=np.uint8)
        self._data[len(text) : len(text) + 16] = NEWLINE
        self._passed[:] = 0

    @abstractmethod
    def walk(self, position: int) -> int:
        """Go on from the beginning of a line; where one begins that is not plain, or the end."""

    def step_over(self, *, record: bool) -> None:
        """Take note of a line that was read otherwise."""
        self._passed += 1, record


@inlined
def word_at(words: Array, position: int) -> Any:
    """The eight bytes from a position on, the first of them lowest."""
    place, shift = position >> 3, np.uint64(position & 7) * _EIGHT
    return words[place] >> shift | words[place + 1] << (_SHIFT - shift) << _ONE


@inlined
def plain_bytes(word: Any) -> int:
    """How many of eight bytes stand before the first that ends a plain run within a string."""
    quotes, backslashes = word ^ _QUOTES, word ^ _BACKSLASHES
    found = (quotes - _ONES) & ~quotes | (backslashes - _ONES) & ~backslashes
    found = (found | (word - _SPACES) & ~word) & _HIGH
    lowest = found & (~found + _ONE)
    below = (lowest >> _SEVEN) - _ONE  # all bits of the bytes before it; all where there is none
    return int(((below & _ONES) * _ONES) >> _LAST)


@kernel
def find_field(data: Array, words: Array, position: int, key: Array) -> int:
    """Where the value of a field begins, in a record that begins here."""
    if data[position] != _OPEN:
        return -1
    position += 1
    while True:
        position, wanted = _name(data, words, position, key)
        if position < 0 or wanted:
            return position
        position = _value(data, words, position)
        if position < 0:
            return -1
        position = spaces(data, position)
        if data[position] != COMMA:
            return -1
        position += 1


@kernel
def end_record(data: Array, words: Array, position: int, key: Array) -> int:
    """Where the line ends of a record, of which the value of a field ends here."""
    while True:
        position = spaces(data, position)
        if data[position] == _CLOSE:
            break
        if data[position] != COMMA:
            return -1
        position, again = _name(data, words, position + 1, key)
        if position < 0 or again:
            return -1
        position = _value(data, words, position)
        if position < 0:
            return -1
    position = spaces(data, position + 1)
    if data[position] == RETURN:
        position += 1
    return position if data[position] == NEWLINE else -1


@kernel
def _name(data: Array, words: Array, position: int, key: Array) -> tuple[int, bool]:
    """The name of a field: where its value begins, and whether it is `key`."""
    begin = spaces(data, position) + 1
    end = _string(data, words, begin - 1)
    if end < 0:
        return -1, False
    same = end - 1 - begin == len(key)
    for index in range(begin, end - 1):
        if data[index] == BACKSLASH:  # it may be the name, spelled otherwise
            return -1, False
        same = same and data[index] == key[index - begin]
    position = spaces(data, end)
    if data[position] != COLON:
        return -1, False
    return spaces(data, position + 1), same


@kernel
def _value(data: Array, words: Array, position: int) -> int:
    """Where a value ends."""
    if data[position] == QUOTE:
        return _string(data, words, position)
    if data[position] != BEGIN:
        return _scalar(data, position)
    position = spaces(data, position + 1)
    if data[position] == END:
        return position + 1
    while True:
        position = _string(data, words, position)
        if position < 0:
            return -1
        position = spaces(data, position)
        if data[position] == END:
            return position + 1
        if data[position] != COMMA:
            return -1
        position = spaces(data, position + 1)


@inlined
def spaces(data: Array, position: int) -> int:
    """Where blanks and tabs end."""
    while data[position] == 32 or data[position] == 9:
        position += 1
    return position


@kernel
def _string(data: Array, words: Array, position: int) -> int:
    """Where a string ends."""
    if data[position] != QUOTE:
        return -1
    position += 1
    while True:
        count = plain_bytes(word_at(words, position))
        position += count
        if count == 8:
            continue
        if data[position] == QUOTE:
            return position + 1
        if data[position] != BACKSLASH:
            return -1
        code, position = escape(data, position)
        if code < 0:
            return -1


@kernel
def escape(data: Array, position: int) -> tuple[int, int]:
    """The code point of an escape, and where it ends; -1 for a surrogate or what is no escape."""
    kind = data[position + 1]
    if kind in (QUOTE, BACKSLASH, 47):
        return int(kind), position + 2
    for index in range(0, len(_ESCAPES), 2):
        if kind == _ESCAPES[index]:
            return int(_ESCAPES[index + 1]), position + 2
    if kind != 117:  # u
        return -1, position
    code = 0
    for index in range(position + 2, position + 6):
        digit = int(data[index])
        if 48 <= digit <= 57:
            digit -= 48
        elif 97 <= digit | 32 <= 102:
            digit = (digit | 32) - 87
        else:  # a line's end at the latest
            return -1, position
        code = code * 16 + digit
    return (-1 if 0xD800 <= code < 0xE000 else code), position + 6


@kernel
def put(code: int, out: Array, filled: int) -> int:
    """Write a code point of the basic plane in UTF-8, which is shorter than its escape."""
    if code < 0x80:
        out[filled] = code
        return filled + 1
    if code < 0x800:
        out[filled] = 0xC0 | code >> 6
        out[filled + 1] = 0x80 | code & 63
        return filled + 2
    out[filled] = 0xE0 | code >> 12
    out[filled + 1] = 0x80 | code >> 6 & 63
    out[filled + 2] = 0x80 | code & 63
    return filled + 3


@kernel
def _digits(data: Array, position: int) -> int:
    while 48 <= data[position] <= 57:
        position += 1
    return position


@kernel
def _scalar(data: Array, position: int) -> int:
    """Where a number, true, false or null ends; -1 also for one that may overflow.

    A double holds any number of up to 200 digits before the point and an exponent of two.
    """
    for start, size in ((0, 5), (6, 4), (12, 4)):
        if data[position] == _NAMES[start]:
            for index in range(1, size):
                if data[position + index] != _NAMES[start + index]:  # a line's end at the latest
                    return -1
            return position + size
    if data[position] == 45:  # minus
        position += 1
    begin = position
    position = _digits(data, position)
    if position == begin or (data[begin] == 48 and position > begin + 1):
        return -1
    if position > begin + 200:
        return -1
    if data[position] == 46:  # point
        begin = position + 1
        position = _digits(data, begin)
        if position == begin:
            return -1
    if data[position] == 101 or data[position] == 69:  # e
        position += 1
        if data[position] == 43 or data[position] == 45:
            position += 1
        begin = position
        position = _digits(data, begin)
        if position == begin or position > begin + 2:
            return -1
    return position
