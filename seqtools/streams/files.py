"""Files as blocks of raw lines.

Lines end at the byte `\\n` and nowhere else. Reading goes straight to the descriptor, so that a
reader can ask, before it waits, whether anything is there (`Block.pause`): commands write out what
they have before they wait for more.
"""

from __future__ import annotations

import functools
import itertools
import operator
import os
import select
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

from seqtools.errors import ConfigError, FormatError
from seqtools.streams.compression import refuse_packed, unpacker
from seqtools.streams.encodings import UTF_8, Encoding

STDIN = "-"
BLOCK_SIZE = 1 << 18
_READ_SIZE = 1 << 18
_READ_COMPRESSED = 1 << 16
_BLANK_BYTES = b" \t\r"
_FIRST = operator.itemgetter(0)
_BRACE = {ord("{")}


class Place(NamedTuple):
    """Where a line stands: file, physical line from 1, and number of the record."""

    source: str
    line: int
    number: int


class Line(NamedTuple):
    """A raw line, as it stands before its `\\n`, and its place."""

    place: Place
    raw: bytes


@dataclass(frozen=True, slots=True)
class Shard:
    """Every `count`-th record, beginning with the `index`-th (from 1)."""

    index: int = 1
    count: int = 1


WHOLE = Shard()


@dataclass(frozen=True)
class Block:
    """Whole raw lines that belong together.

    Attributes:
        source: name of the file, as messages show it.
        data: the lines with their ends; only the last of a file may lack its `\\n`.
        line: physical number of the first line, from 1.
        record: number of the first record.
        pause: reading on would wait, so everything so far is to be written out first.
        keep_blank: each line is a record (plain text); else the blank ones are skipped.
        parse: what reads the lines, where that depends on the file.
    """

    source: str
    data: bytes
    line: int
    record: int
    pause: bool
    keep_blank: bool
    parse: Callable[[bytes], Any] | None = None

    def __getstate__(self) -> dict[str, Any]:
        """What a worker is sent: the lines once."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    @functools.cached_property
    def raws(self) -> list[bytes]:
        """The lines without their ends."""
        raws = self.data.split(b"\n")
        if not raws[-1]:
            raws.pop()
        return raws

    def lines(self, shard: Shard, first_record: int) -> Iterator[Line]:
        """The records of this block that belong to the shard, as raw lines."""
        for line, number, raw in self.raw_lines(shard, first_record):
            yield Line(Place(self.source, line, number), raw)

    def raw_lines(self, shard: Shard, first_record: int) -> Iterator[tuple[int, int, bytes]]:
        """The same as plain tuples, where each counts: physical line, number of the record, raw."""
        if shard.count == 1 and self.every_line:
            return zip(itertools.count(self.line), itertools.count(self.record), self.raws)
        return self._choose(shard, first_record)

    def has_returns(self) -> bool:
        """Whether a line may end with the `\\r` of a file from Windows."""
        return b"\r" in self.data

    def behead(self) -> tuple[bytes, Block] | None:
        """The first line and the block without it, or None where there is none."""
        if not self.data:
            return None
        first, _, rest = self.data.partition(b"\n")
        return first, replace(self, data=rest, line=self.line + 1)

    def _choose(self, shard: Shard, first_record: int) -> Iterator[tuple[int, int, bytes]]:
        number = self.record
        for line, raw in enumerate(self.raws, self.line):
            if not self.keep_blank and not raw.strip(_BLANK_BYTES):
                continue
            if (number - first_record) % shard.count == shard.index - 1:
                yield line, number, raw
            number += 1

    @functools.cached_property
    def every_line(self) -> bool:
        """Whether each line is seen to be a record."""
        if self.keep_blank:
            return True
        try:  # One that begins with a brace is not blank, and to look at more of it is slow.
            return _BRACE.issuperset(map(_FIRST, self.raws))
        except IndexError:  # there is an empty one
            return False

    @functools.cached_property
    def size(self) -> tuple[int, int]:
        """How many lines the block holds, and how many records, shards aside."""
        if self.keep_blank:
            lines = self.data.count(b"\n") + (self.data[-1:] not in (b"", b"\n"))
            return lines, lines
        if self.every_line:
            return len(self.raws), len(self.raws)
        return len(self.raws), sum(bool(raw.strip(_BLANK_BYTES)) for raw in self.raws)

    def tell_size(self, lines: int, records: int) -> None:
        """Set `size` by who has read the lines in a way of its own."""
        self.__dict__["size"] = lines, records


def chomp(raw: bytes) -> bytes:
    """The line without the `\\r` of a file from Windows."""
    return raw[:-1] if raw.endswith(b"\r") else raw


class Meter:
    """How many bytes have been read from the files, for a progress bar."""

    def __init__(self, paths: Iterable[str]) -> None:
        self.done = 0
        self.total: int | None = _total_size(paths)


def check_inputs(paths: Iterable[str]) -> None:
    """See that every named file is there and may be read, before any work.

    Raises:
        ConfigError: one cannot be opened.
    """
    for path in paths:
        if path == STDIN:
            continue
        try:
            mode = os.stat(native(path)).st_mode
            if stat.S_ISREG(mode):
                os.close(os.open(native(path), os.O_RDONLY))
        except OSError as error:
            raise ConfigError(f"{path}: {reason(error)}") from None
        if stat.S_ISDIR(mode):
            raise ConfigError(f"{path}: is a directory")


def read_blocks(
    paths: Iterable[str],
    *,
    first_record: int = 1,
    keep_blank: bool = False,
    meter: Meter | None = None,
    block_size: int = BLOCK_SIZE,
    encoding: Encoding = UTF_8,
) -> Iterator[Block]:
    """Read the files one after the other as blocks of about `block_size` bytes.

    A block with `pause` set may be smaller, or empty: nothing more can be read without waiting.

    Raises:
        ConfigError: a file cannot be opened.
        FormatError: a compressed file is damaged, or reading fails half way.
    """
    record = first_record
    for path in paths:
        name = "<stdin>" if path == STDIN else path
        line = 1
        for data, pause in _read_file(path, name, meter, block_size, encoding):
            block = Block(name, data, line, record, pause, keep_blank)
            yield block
            # Only now: whoever read the lines has done most of the work.
            lines, records = block.size
            line += lines
            record += records


def _read_file(
    path: str, name: str, meter: Meter | None, block_size: int, encoding: Encoding
) -> Iterator[tuple[bytes, bool]]:
    """Whole lines of one file, in pieces, each with whether the next read would wait."""
    whole: list[bytes] = []  # ends with a newline
    tail: list[bytes] = []  # the beginning of a line
    held = 0
    try:
        chunks = encoding.recode(_read_chunks(path, name, meter), name)
        for chunk in _drop_mark(chunks, encoding.mark):
            if chunk is None:
                yield b"".join(whole), True
                whole, held = [], 0
                continue
            end = chunk.rfind(b"\n") + 1
            if not end:
                tail.append(chunk)
                continue
            whole += [*tail, chunk[:end]]
            held += sum(map(len, tail)) + end
            tail = [chunk[end:]] if end < len(chunk) else []
            if held >= block_size:
                yield b"".join(whole), False
                whole, held = [], 0
    except FormatError:
        if whole:  # the lines before the damage
            yield b"".join(whole), False
        raise
    if whole or tail:
        yield b"".join(whole + tail), False


def _read_chunks(path: str, name: str, meter: Meter | None) -> Iterator[bytes | None]:
    """The content of one file, and a None wherever the next step would wait."""
    check_inputs([path])
    if path != STDIN and not is_regular(path):
        yield None  # opening a FIFO waits for its writer
    descriptor = _open_input(path, name)
    try:
        unpack = unpacker(path, name)
        size = _READ_SIZE if unpack is None else _READ_COMPRESSED
        waits = _poller(descriptor)
        begun = False
        while True:
            if waits():
                yield None
            chunk = _read(descriptor, size, name)
            if not chunk:
                break
            if unpack is None and not begun:
                refuse_packed(chunk, name)
            begun = True
            if meter is not None:
                meter.done += len(chunk)
            if unpack is None:
                yield chunk
            else:
                yield from unpack.feed(chunk)
        if unpack is not None:
            unpack.finish()
    finally:
        if descriptor != 0:
            os.close(descriptor)


def _drop_mark(chunks: Iterator[bytes | None], mark: bytes) -> Iterator[bytes | None]:
    """The chunks without a byte-order mark at the start, which may arrive in pieces."""
    start = b""
    for chunk in chunks:
        if chunk is None:
            yield None
            continue
        start += chunk
        if len(start) >= len(mark) or not mark.startswith(start):
            yield start.removeprefix(mark)
            break
    else:
        if start:
            yield start
    yield from chunks


def native(path: str) -> bytes:
    """The path as the system's bytes, whatever the locale says."""
    return path.encode("utf-8", "surrogateescape")


def _open_input(path: str, name: str) -> int:
    if path == STDIN:
        return 0
    try:
        return os.open(native(path), os.O_RDONLY)
    except OSError as error:
        raise ConfigError(f"{name}: {reason(error)}") from None


def is_regular(path: str) -> bool:
    """Whether the path leads to a regular file; OSError where it leads nowhere."""
    return stat.S_ISREG(os.stat(native(path)).st_mode)


def _read(descriptor: int, size: int, name: str) -> bytes:
    while True:
        try:
            return os.read(descriptor, size)
        except BlockingIOError:  # whoever gave us the descriptor made it so
            select.select([descriptor], [], [])
        except OSError as error:
            raise FormatError(f"{name}: {reason(error)}") from None


def _poller(descriptor: int) -> Callable[[], bool]:
    """A function that tells whether reading would wait; a regular file never does."""
    try:
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            return lambda: False
    except OSError as error:
        raise FormatError(f"<stdin>: {reason(error)}") from None
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return lambda: not poll.poll(0)


def _total_size(paths: Iterable[str]) -> int | None:
    total = 0
    for path in paths:
        try:
            status = os.fstat(0) if path == STDIN else os.stat(native(path))
        except OSError:
            return None
        if not stat.S_ISREG(status.st_mode):
            return None
        total += status.st_size
    return total


def reason(error: OSError) -> str:
    """What the system says went wrong."""
    return os.strerror(error.errno) if error.errno else str(error)
