"""Tokens out of lines of JSON without a Python object for each.

Only what is plainly a record is read here: an object on one line whose values are strings,
numbers, names or lists of strings. Every other line is left to the parser of `streams.records`,
which knows all of JSON and says what is wrong.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from seqtools.ngram.compiled import kernel

Array: TypeAlias = np.ndarray[Any, Any]

_QUOTE, _BACKSLASH, _COMMA, _COLON, _RETURN, _NEWLINE = 34, 92, 44, 58, 13, 10
_OPEN, _CLOSE, _BEGIN, _END = 123, 125, 91, 93  # of an object, of a list
_ESCAPES = np.frombuffer(b"b\bf\fn\nr\rt\t", dtype=np.uint8)
_NAMES = np.frombuffer(b"false null  true  ", dtype=np.uint8)


@kernel
def pack_lines(
    data: Array, start: int, key: Array, refuse_space: int, out: Array, state: Array
) -> int:
    """Pack the tokens of lines, as `words.pack_tokens` does, up to the first that is not plain.

    Args:
        data: uint8, whole lines of UTF-8, the last one with its end.
        start: where to begin.
        key: uint8, the name of the field.
        refuse_space: tokens that are empty or hold ASCII white space are not plain.
        out: uint8 to write, as long as `data`.
        state: int64 (3,): bytes written, lines passed, records among them; added to.

    Returns:
        Where the line begins that is not plain; the length of the data if there is none.
    """
    filled = state[0]
    position = start
    while position < len(data):
        line = position
        while data[position] == 32 or data[position] == 9 or data[position] == _RETURN:
            position += 1
        if data[position] != _NEWLINE:
            position, written = _record(data, position, key, refuse_space, out, filled)
            if position < 0:
                state[0] = filled
                return line
            filled = written
            out[filled] = 0xFE
            filled += 1
            state[2] += 1
        state[1] += 1
        position += 1
    state[0] = filled
    return position


@kernel
def _record(
    data: Array, position: int, key: Array, refuse_space: int, out: Array, filled: int
) -> tuple[int, int]:
    """One record: where its line ends, and how much is written; -1 where it is not plain."""
    if data[position] != _OPEN:
        return -1, filled
    position += 1
    found = False
    while True:
        position = _spaces(data, position)
        begin = position + 1
        position = _string(data, position)
        if position < 0:
            return -1, filled
        if _has_escape(data, begin, position):  # it may be the name, spelled otherwise
            return -1, filled
        wanted = _equal(data, begin, position - 1, key)
        position = _spaces(data, position)
        if data[position] != _COLON:
            return -1, filled
        position = _spaces(data, position + 1)
        if wanted:
            if found:
                return -1, filled
            found = True
        if data[position] == _BEGIN:
            position, filled = _list(data, position, wanted, refuse_space, out, filled)
        elif wanted:
            return -1, filled
        elif data[position] == _QUOTE:
            position = _string(data, position)
        else:
            position = _scalar(data, position)
        if position < 0:
            return -1, filled
        position = _spaces(data, position)
        if data[position] == _CLOSE:
            break
        if data[position] != _COMMA:
            return -1, filled
        position += 1
    position = _spaces(data, position + 1)
    if data[position] == _RETURN:
        position += 1
    if data[position] != _NEWLINE or not found:
        return -1, filled
    return position, filled


@kernel
def _list(
    data: Array, position: int, wanted: bool, refuse_space: int, out: Array, filled: int  # noqa: FBT001
) -> tuple[int, int]:  # fmt: skip
    """A list of strings, copied if it is wanted."""
    position = _spaces(data, position + 1)
    if data[position] == _END:
        return position + 1, filled
    while True:
        if data[position] != _QUOTE:
            return -1, filled
        if wanted:
            begin = filled
            position, filled = _copied(data, position, refuse_space, out, filled)
            if position < 0 or (refuse_space and filled == begin):
                return -1, filled
            out[filled] = 0xFF
            filled += 1
        else:
            position = _string(data, position)
            if position < 0:
                return -1, filled
        position = _spaces(data, position)
        if data[position] == _END:
            return position + 1, filled
        if data[position] != _COMMA:
            return -1, filled
        position = _spaces(data, position + 1)


@kernel
def _spaces(data: Array, position: int) -> int:
    while data[position] == 32 or data[position] == 9:
        position += 1
    return position


@kernel
def _copied(
    data: Array, position: int, refuse_space: int, out: Array, filled: int
) -> tuple[int, int]:
    """A string without its quotes: where it ends, and how much is written; -1 if not plain."""
    position += 1
    while data[position] != _QUOTE:
        byte = data[position]
        if byte == _BACKSLASH:
            code, position = _escape(data, position)
            if code < 0 or (refuse_space and (code == 32 or 9 <= code <= 13)):
                return -1, filled
            filled = _put(code, out, filled)
            continue
        if byte < 32 or (refuse_space and byte == 32):
            return -1, filled
        out[filled] = byte
        filled += 1
        position += 1
    return position + 1, filled


@kernel
def _string(data: Array, position: int) -> int:
    """Where a string ends, -1 where there is no plain one."""
    if data[position] != _QUOTE:
        return -1
    position += 1
    while data[position] != _QUOTE:
        if data[position] < 32:
            return -1
        if data[position] == _BACKSLASH:
            code, position = _escape(data, position)
            if code < 0:
                return -1
        else:
            position += 1
    return position + 1


@kernel
def _escape(data: Array, position: int) -> tuple[int, int]:
    """The code point of an escape, and where it ends; -1 for a surrogate or what is no escape."""
    kind = data[position + 1]
    if kind in (_QUOTE, _BACKSLASH, 47):
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
def _put(code: int, out: Array, filled: int) -> int:
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
def _has_escape(data: Array, begin: int, end: int) -> bool:
    for index in range(begin, end):  # noqa: SIM110 numba is quicker so
        if data[index] == _BACKSLASH:
            return True
    return False


@kernel
def _equal(data: Array, begin: int, end: int, other: Array) -> bool:
    if end - begin != len(other):
        return False
    for index in range(len(other)):  # noqa: SIM110 numba is quicker so
        if data[begin + index] != other[index]:
            return False
    return True


@kernel
def _digits(data: Array, position: int) -> int:
    while 48 <= data[position] <= 57:
        position += 1
    return position


@kernel
def _scalar(data: Array, position: int) -> int:
    """Where a number, true, false or null ends; -1 where there is none, or one that may overflow.

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
