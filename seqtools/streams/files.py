"""Files as blocks of raw lines, and outputs that appear whole or not at all.

Lines end at the byte `\\n` and nowhere else. Reading goes straight to the descriptor, so that a
reader can ask, before it waits, whether anything is there (`Block.pause`): commands write out what
they have before they wait for more.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import itertools
import os
import re
import select
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from seqtools.errors import ConfigError, FormatError
from seqtools.streams.compression import packer, unpacker

STDIN = "-"
# By these names a file behind the descriptor would be opened anew and written from its start.
_STANDARD = {"-": 1, "/dev/stdout": 1, "/dev/stderr": 2}
BLOCK_SIZE = 1 << 18
_READ_SIZE = 1 << 18
_READ_COMPRESSED = 1 << 16
_WRITE_SIZE = 1 << 18
_BOM = b"\xef\xbb\xbf"
_BLANK_BYTES = b" \t\r"


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


@dataclass(frozen=True, slots=True)
class Block:
    """Whole raw lines that belong together.

    Attributes:
        source: name of the file, as messages show it.
        data: the lines with their ends; only the last of a file may lack its `\\n`.
        line: physical number of the first line, from 1.
        record: number of the first record.
        pause: reading on would wait, so everything so far is to be written out first.
        keep_blank: each line is a record (plain text); else the blank ones are skipped.
    """

    source: str
    data: bytes
    line: int
    record: int
    pause: bool
    keep_blank: bool

    def lines(self, shard: Shard, first_record: int) -> Iterator[Line]:
        """The records of this block that belong to the shard, as raw lines."""
        for line, number, raw in self.raw_lines(shard, first_record):
            yield Line(Place(self.source, line, number), raw)

    def raw_lines(self, shard: Shard, first_record: int) -> Iterator[tuple[int, int, bytes]]:
        """The same as plain tuples, where each counts: physical line, number of the record, raw."""
        if self.keep_blank and shard.count == 1:
            return zip(itertools.count(self.line), itertools.count(self.record), self._split())
        return self._choose(shard, first_record)

    def _choose(self, shard: Shard, first_record: int) -> Iterator[tuple[int, int, bytes]]:
        number = self.record
        for line, raw in enumerate(self._split(), self.line):
            if not self.keep_blank and not raw.strip(_BLANK_BYTES):
                continue
            if (number - first_record) % shard.count == shard.index - 1:
                yield line, number, raw
            number += 1

    def _split(self) -> list[bytes]:
        raws = self.data.split(b"\n")
        if not raws[-1]:
            raws.pop()
        return raws

    def count_records(self) -> int:
        """How many records the block holds, shards aside."""
        if self.keep_blank:
            return _count_lines(self.data)
        return sum(bool(raw.strip(_BLANK_BYTES)) for raw in self._split())

    def count_lines(self) -> int:
        """How many physical lines the block holds."""
        return self.data.count(b"\n")


def _count_lines(data: bytes) -> int:
    return data.count(b"\n") + (data[-1:] not in (b"", b"\n"))


def _has_no_blank(data: bytes) -> bool:
    """Whether each line begins with a brace; to look at each line is slow."""
    return data.count(b"\n{") + data.startswith(b"{") == _count_lines(data)


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
            raise ConfigError(f"{path}: {_reason(error)}") from None
        if stat.S_ISDIR(mode):
            raise ConfigError(f"{path}: is a directory")


def read_blocks(
    paths: Iterable[str],
    *,
    first_record: int = 1,
    keep_blank: bool = False,
    meter: Meter | None = None,
    block_size: int = BLOCK_SIZE,
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
        for data, pause in _read_file(path, name, meter, block_size):
            block = Block(name, data, line, record, pause, keep_blank or _has_no_blank(data))
            yield block
            line += block.count_lines()
            record += block.count_records()


def _read_file(
    path: str, name: str, meter: Meter | None, block_size: int
) -> Iterator[tuple[bytes, bool]]:
    """Whole lines of one file, in pieces, each with whether the next read would wait."""
    whole: list[bytes] = []  # ends with a newline
    tail: list[bytes] = []  # the beginning of a line
    held = 0
    try:
        for chunk in _drop_mark(_read_chunks(path, name, meter)):
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
    if path != STDIN and not _is_regular(path):
        yield None  # opening a FIFO waits for its writer
    descriptor = _open_input(path, name)
    try:
        unpack = unpacker(path, name)
        size = _READ_SIZE if unpack is None else _READ_COMPRESSED
        waits = _poller(descriptor)
        while True:
            if waits():
                yield None
            chunk = _read(descriptor, size, name)
            if not chunk:
                break
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


def _drop_mark(chunks: Iterator[bytes | None]) -> Iterator[bytes | None]:
    """The chunks without a byte-order mark at the start, which may arrive in pieces."""
    start = b""
    for chunk in chunks:
        if chunk is None:
            yield None
            continue
        start += chunk
        if len(start) >= len(_BOM) or not _BOM.startswith(start):
            yield start.removeprefix(_BOM)
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
        raise ConfigError(f"{name}: {_reason(error)}") from None


def _is_regular(path: str) -> bool:
    return stat.S_ISREG(os.stat(native(path)).st_mode)


def _read(descriptor: int, size: int, name: str) -> bytes:
    while True:
        try:
            return os.read(descriptor, size)
        except BlockingIOError:  # whoever gave us the descriptor made it so
            select.select([descriptor], [], [])
        except OSError as error:
            raise FormatError(f"{name}: {_reason(error)}") from None


def _poller(descriptor: int) -> Callable[[], bool]:
    """A function that tells whether reading would wait; a regular file never does."""
    try:
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            return lambda: False
    except OSError as error:
        raise FormatError(f"<stdin>: {_reason(error)}") from None
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


def _reason(error: OSError) -> str:
    return os.strerror(error.errno) if error.errno else str(error)


# Outputs


class ClosedReader(Exception):
    """Whoever read our standard output has gone; not an error."""


class OutputError(FormatError):
    """Writing failed: no space, no permission, a broken target."""


class Output:
    """A target for bytes: a descriptor, or a file that is put in place by `commit`."""

    def __init__(self, name: str, descriptor: int) -> None:
        self.name = name
        self._descriptor = descriptor
        self._parts: list[bytes] = []
        self._held = 0
        self._packer = packer(name)

    def write(self, data: bytes) -> None:
        """Take the bytes; they reach the descriptor when enough are together."""
        self._parts.append(data)
        self._held += len(data)
        if self._held >= _WRITE_SIZE:
            self._drain()

    def flush(self) -> None:
        """Let readers see what was written; a regular file need not be seen before `commit`."""
        self._drain()

    def commit(self) -> None:
        """Finish: the target now is what was written."""
        self._finish()
        self._close()

    def discard(self) -> None:
        """Forget what was written, as far as it has not left."""
        self._parts, self._held = [], 0

    def _finish(self) -> None:
        self._drain()
        if self._packer is not None:
            self._send(self._packer.flush())
            self._packer = None

    def _close(self) -> None:
        if self._descriptor > 2:
            os.close(self._descriptor)
            self._descriptor = -1

    def _drain(self) -> None:
        if not self._held:
            return
        data = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        self._parts, self._held = [], 0
        self._send(data if self._packer is None else self._packer.compress(data))

    def _send(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(self._descriptor, view) :]
            except BlockingIOError:
                select.select([], [self._descriptor], [])
            except OSError as error:
                if error.errno == errno.EPIPE and self._descriptor == 1:
                    raise ClosedReader from None
                raise OutputError(f"{self.name}: {_reason(error)}") from None


class FileOutput(Output):
    """A regular file, written beside its target and renamed by `commit`.

    A symbolic link is followed; the mode of an existing target is kept.

    Raises:
        ConfigError: the folder cannot be written.
    """

    def __init__(self, path: str) -> None:
        self._target = os.path.realpath(native(path))
        try:
            if not os.path.basename(path):
                raise FileNotFoundError(errno.ENOENT, "")
            _remove_stale(self._target)
            self._temporary, descriptor = _create_beside(self._target)
        except OSError as error:
            raise ConfigError(f"{path}: cannot be written: {_reason(error)}") from None
        super().__init__(path, descriptor)

    def flush(self) -> None:
        """Nothing: nobody reads the file before it is in place."""

    def commit(self) -> None:
        """Put the file in place.

        Raises:
            OutputError: that failed; the target is as it was.
        """
        try:
            self._finish()
            os.fsync(self._descriptor)
            self._close()
            os.replace(self._temporary, self._target)
        except OSError as error:
            self.discard()
            raise OutputError(f"{self.name}: {_reason(error)}") from None
        except BaseException:
            self.discard()
            raise

    def discard(self) -> None:
        """Leave the target as it was."""
        super().discard()
        self._close()
        with contextlib.suppress(OSError):
            os.unlink(self._temporary)


def is_regular_target(path: str) -> bool:
    """Whether the path is, or would become, a regular file."""
    if path in _STANDARD:
        return False
    try:
        return _is_regular(path)
    except OSError:
        return True


def open_output(path: str) -> Output:
    """The target of `-o`; `-` is standard output.

    A regular or new file appears at `commit`, whole; a FIFO or device is written straight through.

    Raises:
        ConfigError: it cannot be written.
    """
    if path in _STANDARD:
        return Output("<stdout>" if path == STDIN else path, _STANDARD[path])
    if is_regular_target(path):
        return FileOutput(path)
    try:
        return Output(path, os.open(native(path), os.O_WRONLY))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written: {_reason(error)}") from None


def replace_file(path: str, data: bytes) -> None:
    """Put `data` at the path in one step: readers see the old file or the new one.

    Raises:
        ConfigError: the folder cannot be written.
        OutputError: writing failed; the old file is as it was.
    """
    output = open_output(path)
    try:
        output.write(data)
    except BaseException:
        output.discard()
        raise
    output.commit()


def _create_beside(target: bytes) -> tuple[bytes, int]:
    """A new temporary file in the target's folder, with the target's mode, locked while we live."""
    try:
        mode = stat.S_IMODE(os.stat(target).st_mode)
    except FileNotFoundError:
        mode = None
    while True:
        path = b"%s.%d.%s.tmp" % (_stem(target), os.getpid(), os.urandom(4).hex().encode())
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        descriptor = os.open(path, flags, 0o666 if mode is None else 0o600)
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.fstat(descriptor).st_nlink:
            break
        os.close(descriptor)  # taken for a stale one before it was locked
    if mode is not None:
        os.fchmod(descriptor, mode)
    return path, descriptor


def _remove_stale(target: bytes) -> None:
    """Remove temporary files that a killed run left beside the target."""
    folder, stem = os.path.split(_stem(target))
    pattern = re.compile(rb"%s\.\d+\.[0-9a-f]{8}\.tmp" % re.escape(stem))
    with contextlib.suppress(OSError):
        for entry in os.listdir(folder):
            if pattern.fullmatch(entry):
                _remove_unlocked(os.path.join(folder, entry))


def _remove_unlocked(path: bytes) -> None:
    with contextlib.suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.unlink(path)
        finally:
            os.close(descriptor)


def _stem(target: bytes) -> bytes:
    """How the names of temporary files begin; a file's name has at most 255 bytes."""
    folder, name = os.path.split(target)
    return os.path.join(folder, b"." + name[:200])


__all__ = [
    "BLOCK_SIZE",
    "STDIN",
    "WHOLE",
    "Block",
    "ClosedReader",
    "FileOutput",
    "Line",
    "Meter",
    "Output",
    "OutputError",
    "Place",
    "Shard",
    "check_inputs",
    "chomp",
    "is_regular_target",
    "native",
    "open_output",
    "read_blocks",
    "replace_file",
]
