"""Sorted tables of counts added up, in constant memory.

Each table is read block by block. Lines as `seq-ngram count` writes them are compared as they are,
without a Python object for any; a block with a line that is written in another way (another tool's
spaces or order of keys) is written anew before.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

from seqtools.errors import InputError, RecordError, SeqtoolsError
from seqtools.ngram.compiled import kernel
from seqtools.ngram.putting import put_bytes, put_whole
from seqtools.ngram.storage import temporary_folder
from seqtools.ngram.words import is_utf8
from seqtools.streams.files import WHOLE, Block, Place, chomp, read_blocks, reason
from seqtools.streams.records import Record, dumps, get, get_tokens, loads, name_of

Array: TypeAlias = np.ndarray[Any, Any]

TOGETHER = 64  # tables that are merged at a time
_BLOCK = 1 << 18  # bytes
_QUOTE, _BACKSLASH, _COMMA, _BRACKET = b'"\\,]'
_HEAD, _TAIL, _END = (
    np.frombuffer(part, dtype=np.uint8) for part in (b'{"ngram":[', b'],"count":', b"}\n")
)
# What JSON has a short form for, and the letter of it.
_ESCAPES = np.frombuffer(b'\b\t\n\f\r"\\', dtype=np.uint8)
_ESCAPED = np.frombuffer(b'btnfr"\\', dtype=np.uint8)
_MOST = 10**15  # so that nine thousand of them fit into 64 bits
_FINE, _ODD, _UNSORTED = range(3)  # what `_check` finds
_DONE, _FULL = -1, -2  # why `_add_up` stops


def merge(
    paths: Sequence[str], *, min_count: int = 1, folder: str | None = None
) -> Iterator[bytes]:
    """Add up tables of counts.

    Args:
        paths: files of lines `{"ngram":["a","b"],"count":2}`, sorted by tokens, by code point; any
            number of them. The same n-gram may stand in a file several times.
        min_count: leave out n-grams that occur less often in all files together.
        folder: for temporary files, where there are many files; None for the system's.

    Yields:
        Pieces of whole lines; an empty one before it would wait for input.

    Raises:
        InputError: a line is no count, or not in its place.
        ConfigError: a file cannot be opened.
        FormatError: a compressed file is damaged.
        SeqtoolsError: no room for temporary files.
    """
    tables = [_read(path) for path in paths]
    while len(tables) > TOGETHER:
        few = min(TOGETHER, len(tables) - TOGETHER + 1)  # as many as bring the number down to that
        tables = [*tables[few:], _put_by(tables[:few], folder)]
    yield from _Merger(tables).run(min_count)


def read_count(record: Record) -> tuple[list[str], int]:
    """The n-gram and the count of a record.

    Raises:
        RecordError: it has none.
    """
    tokens = get_tokens(record, "ngram")
    if not tokens:
        raise RecordError('"ngram" must be a list of strings, got an empty one')
    count = get(record, "count")
    if type(count) is not int:
        shown = count if type(count) is float else name_of(count)
        raise RecordError(f'"count" must be a whole number, got {shown}')
    if count < 0:
        raise RecordError(f'"count" must be at least 0, got {count}')
    if count >= _MOST:
        raise RecordError(f'"count" must be below {_MOST}, got {count}')
    return tokens, count


# Blocks of lines and whether reading on would wait.
_Blocks: TypeAlias = Iterator[tuple[bytes, bool]]


def _read(path: str) -> _Blocks:
    """A table, in blocks of lines as they are written here, in order."""
    last = b""
    for block in read_blocks([path], block_size=_BLOCK):
        data, places = block.data, None
        if data and not data.endswith(b"\n"):
            data += b"\n"
        if not is_utf8(data):
            data, places = _rewrite(block)
        found, position = _check(_array(last), _array(data))
        if found == _ODD and places is None:
            data, places = _rewrite(block)
            found, position = _check(_array(last), _array(data))
        if found != _FINE:
            number = data.count(b"\n", 0, position)
            place = (
                Place(block.source, block.line + number, 0) if places is None else places[number]
            )
            raise InputError(
                place.source, place.line, "not sorted: the n-gram belongs before the one above"
            )
        if data:
            last = data[data.rfind(b"\n", 0, -1) + 1 :]
        yield data, block.pause


def _rewrite(block: Block) -> tuple[bytes, list[Place]]:
    """The lines of a block as they are written here, and where they stand.

    Raises:
        InputError: a line is no count.
    """
    lines, places = [], []
    for place, raw in block.lines(WHOLE, 1):
        try:
            tokens, count = read_count(loads(chomp(raw)))
        except RecordError as error:
            raise InputError(place.source, place.line, str(error)) from None
        lines.append(b'{"ngram":%s,"count":%d}\n' % (dumps(tokens), count))
        places.append(place)
    return b"".join(lines), places


def _put_by(tables: list[_Blocks], folder: str | None) -> _Blocks:
    """Tables merged into a temporary file, read from there."""
    place = temporary_folder() if folder is None else folder
    try:
        with tempfile.TemporaryFile(dir=place) as file:
            for piece in _Merger(tables).run(0):
                file.write(piece)
            file.seek(0)
            rest = b""
            while piece := rest + file.read(_BLOCK):
                end = piece.rfind(b"\n") + 1
                rest = piece[end:]
                yield piece[:end], False
    except OSError as error:
        raise SeqtoolsError(f"{place}: temporary file: {reason(error)}") from None


def _array(data: bytes) -> Array:
    return np.frombuffer(data, dtype=np.uint8)


class _Merger:
    """One merge of a few tables."""

    def __init__(self, tables: list[_Blocks]) -> None:
        self._tables = tables
        self._blocks = np.zeros((len(tables), _BLOCK), dtype=np.uint8)
        self._cursors = np.zeros(len(tables), dtype=np.int64)
        self._ends = np.zeros(len(tables), dtype=np.int64)
        self._waits = [False] * len(tables)
        self._out = np.zeros(4 * _BLOCK, dtype=np.uint8)
        self._state = np.zeros(3, dtype=np.int64)

    def run(self, least: int) -> Iterator[bytes]:
        """The sums, in pieces of whole lines; an empty one before a table would have to wait."""
        heap = list(range(len(self._tables)))
        empty = list(heap)
        while True:
            for number in empty:
                while self._cursors[number] == self._ends[number]:
                    if self._waits[number]:
                        yield self._take()
                        yield b""
                    if not self._read_more(number):
                        heap.remove(number)
                        break
            why = _add_up(
                self._blocks, self._cursors, self._ends, np.array(heap, dtype=np.int64), least,
                self._state, self._out,
            )  # fmt: skip
            empty = [why] if why >= 0 else []
            if why == _FULL and not self._state[0]:
                self._out = np.concatenate([self._out, np.zeros_like(self._out)])
            elif why < 0:
                yield self._take()
            if why == _DONE:
                return

    def _take(self) -> bytes:
        """The whole lines; what follows moves to the front."""
        size, begun = int(self._state[0]), int(self._state[1])
        lines = self._out[:size].tobytes()
        self._out[:begun] = self._out[size : size + begun].copy()
        self._state[0] = 0
        return lines

    def _read_more(self, number: int) -> bool:
        """Take the next block of a table, which may be empty; whether there was one."""
        data, self._waits[number] = next(self._tables[number], (None, False))
        if data is None:
            return False
        if len(data) > self._blocks.shape[1]:
            blocks = np.zeros((len(self._tables), 2 * len(data)), dtype=np.uint8)
            blocks[:, : self._blocks.shape[1]] = self._blocks
            self._blocks = blocks
        self._blocks[number, : len(data)] = _array(data)
        self._cursors[number], self._ends[number] = 0, len(data)
        return True


@kernel
def _character(data: Array, at: int) -> tuple[int, int]:
    """One character (or byte of it) of a JSON string plus 1, 0 at the end; and its length."""
    byte = int(data[at])
    if byte == _QUOTE:
        return 0, 1
    if byte != _BACKSLASH:
        return byte + 1, 1
    byte = int(data[at + 1])
    if byte == 0x75:  # u00XY
        low = int(data[at + 5])
        return 16 * (int(data[at + 4]) - 48) + (low - 48 if low < 58 else low - 87) + 1, 6
    for each in range(len(_ESCAPED)):
        if byte == _ESCAPED[each]:
            return int(_ESCAPES[each]) + 1, 2
    return byte + 1, 2


@kernel
def _compare(one: Array, here: int, other: Array, there: int) -> int:
    """-1, 0 or 1, as the n-gram of one line comes before, with or after that of another."""
    here += len(_HEAD) + 1
    there += len(_HEAD) + 1
    while True:
        if one[here] == other[there] and one[here] != _QUOTE and one[here] != _BACKSLASH:
            here += 1
            there += 1
            continue
        mine, length = _character(one, here)
        theirs, other_length = _character(other, there)
        if mine != theirs:
            return -1 if mine < theirs else 1
        here += length
        there += other_length
        if mine == 0:
            if one[here] != other[there]:
                return -1 if one[here] == _BRACKET else 1
            if one[here] == _BRACKET:
                return 0
            here += 2
            there += 2


@kernel
def _skip(data: Array, at: int, wanted: Array) -> int:
    """The place after `wanted`, which must stand at `at`; -1 where it does not."""
    if at < 0 or at + len(wanted) > len(data):
        return -1
    for each in range(len(wanted)):
        if data[at + each] != wanted[each]:
            return -1
    return at + len(wanted)


@kernel
def _skip_string(data: Array, at: int) -> int:
    """The place after a string that begins at `at` and is written as we do; -1 if it is not."""
    if data[at] != _QUOTE:
        return -1
    at += 1
    while data[at] != _QUOTE:
        if data[at] < 32:  # the end of the line, too
            return -1
        if data[at] == _BACKSLASH:
            code, length = 0, 2
            if data[at + 1] == 0x75:
                if at + 6 > len(data) or data[at + 2] != 48 or data[at + 3] != 48:
                    return -1
                if not 48 <= data[at + 4] <= 49:
                    return -1
                low = data[at + 5]
                if not (48 <= low <= 57 or 97 <= low <= 102):
                    return -1
                code, length = _character(data, at)
                code -= 1
            known = False
            for each in range(len(_ESCAPED)):
                if length == 2:
                    known |= data[at + 1] == _ESCAPED[each]
                else:
                    known |= code == _ESCAPES[each]
            if known != (length == 2):  # what has a short form is written so, the rest is not
                return -1
            at += length - 1
        at += 1
    return at + 1


@kernel
def _check(before: Array, data: Array) -> tuple[int, int]:
    """See that lines are written as we do, and sorted.

    Args:
        before: the line before them, or nothing.
        data: whole lines.

    Returns:
        `_FINE`, `_ODD` or `_UNSORTED`, and the beginning of the line that is so.
    """
    start, last = 0, -1
    while start < len(data):
        at = _skip(data, start, _HEAD)
        while at >= 0:
            at = _skip_string(data, at)
            if at < 0 or data[at] == _BRACKET:
                break
            at = at + 1 if data[at] == _COMMA else -1
        at = _skip(data, at, _TAIL)
        if at < 0:
            return _ODD, start
        first = at
        while 48 <= data[at] <= 57:
            at += 1
        if not 1 <= at - first <= 15 or (data[first] == 48 and at - first > 1):
            return _ODD, start
        at = _skip(data, at, _END)
        if at < 0:
            return _ODD, start
        if last >= 0:
            if _compare(data, last, data, start) > 0:
                return _UNSORTED, start
        elif len(before) and _compare(before, 0, data, start) > 0:
            return _UNSORTED, start
        last = start
        start = at
    return _FINE, start


@kernel
def _sift(blocks: Array, cursors: Array, heap: Array, size: int, place: int) -> None:
    """Let the table at a place of the heap sink to where its line belongs."""
    table = heap[place]
    while 2 * place + 1 < size:
        child = 2 * place + 1
        if child + 1 < size:
            left, right = heap[child], heap[child + 1]
            if _compare(blocks[right], cursors[right], blocks[left], cursors[left]) < 0:
                child += 1
        below = heap[child]
        if _compare(blocks[below], cursors[below], blocks[table], cursors[table]) >= 0:
            break
        heap[place] = below
        place = child
    heap[place] = table


@kernel
def _finish(out: Array, state: Array, least: int) -> None:
    """Write the count of the line begun, or drop the line."""
    if state[1] and state[2] >= least:
        at = put_bytes(_TAIL, 0, len(_TAIL), out, state[0] + state[1] - 1)
        at = put_whole(state[2], out, at)
        state[0] = put_bytes(_END, 0, len(_END), out, at)
    state[1] = state[2] = 0


@kernel
def _add_up(
    blocks: Array, cursors: Array, ends: Array, heap: Array, least: int, state: Array, out: Array
) -> int:
    """Merge until a table is used up or `out` is full.

    Args:
        blocks: uint8 (tables, size), whole lines of each table.
        cursors, ends: int64 (tables,), where each goes on and ends; the first is moved.
        heap: int64 (n,), the tables that have lines.
        least: counts that are smaller are left out.
        state: int64 (3,), bytes of whole lines in `out`, bytes of the line begun after them up
            to its `]`, and its count.
        out: uint8 to write.

    Returns:
        The table that is used up, or `_FULL`, or `_DONE`.
    """
    size = len(heap)
    for place in range(size // 2 - 1, -1, -1):
        _sift(blocks, cursors, heap, size, place)
    while size:
        table = heap[0]
        data, start = blocks[table], cursors[table]
        if not state[1] or _compare(out, state[0], data, start) != 0:
            _finish(out, state, least)
        at = start
        while data[at] != 10:
            at += 1
        after = at + 1
        at -= 2  # the last digit
        count, digit = np.int64(0), np.int64(1)
        while data[at] != 58:
            count += digit * (np.int64(data[at]) - 48)
            digit *= 10
            at -= 1
        if not state[1]:
            length = at - start - (len(_TAIL) - 2)
            if state[0] + length + 40 > len(out):
                return _FULL
            put_bytes(data, start, start + length, out, state[0])
            state[1] = length
        state[2] += count
        cursors[table] = after
        if after == ends[table]:
            return int(table)
        _sift(blocks, cursors, heap, size, 0)
    _finish(out, state, least)
    return _DONE
