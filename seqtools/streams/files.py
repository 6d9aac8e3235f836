"""Files as blocks of raw lines, and outputs that appear whole or not at all.

Lines end at the byte `\\n` and nowhere else. Reading goes straight to the descriptor, so that a
reader can ask, before it waits, whether anything is there (`Block.pause`): commands write out what
they have before they wait for more.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import re
import select
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from seqtools.errors import ConfigError, FormatError

STDIN = "-"
BLOCK_SIZE = 1 << 20
_READ_SIZE = 1 << 18
_READ_COMPRESSED = 1 << 16
_WRITE_SIZE = 1 << 18
_BOM = b"\xef\xbb\xbf"
_BLANK_BYTES = b" \t\r"
_BLANK = re.compile(rb"(?m)^[ \t\r]*$")
_BLANK_STARTS = (b"\n\n", b"\n ", b"\n\t", b"\n\r")


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
        keep_blank: blank lines are records (plain text) instead of being skipped.
    """

    source: str
    data: bytes
    line: int
    record: int
    pause: bool
    keep_blank: bool

    def lines(self, shard: Shard, first_record: int) -> Iterator[Line]:
        """The records of this block that belong to the shard, as raw lines."""
        number = self.record
        raws = self.data.split(b"\n")
        if not raws[-1]:
            raws.pop()
        for line, raw in enumerate(raws, self.line):
            if not self.keep_blank and not raw.strip(_BLANK_BYTES):
                continue
            if shard.count == 1 or (number - first_record) % shard.count == shard.index - 1:
                yield Line(Place(self.source, line, number), raw)
            number += 1

    def count_records(self) -> int:
        """How many records the block holds, shards aside."""
        lines = self.data.count(b"\n")
        open_end = bool(self.data) and not self.data.endswith(b"\n")
        if self.keep_blank:
            return lines + open_end
        return lines + open_end - self._count_blank(open_end=open_end)

    def _count_blank(self, *, open_end: bool) -> int:
        # The pattern is slow, a blank line rare: first see whether one can be there at all.
        data = self.data
        if data[:1] not in (b"\n", b" ", b"\t", b"\r") and not any(
            start in data for start in _BLANK_STARTS
        ):
            return 0
        return len(_BLANK.findall(data)) - (not open_end)

    def count_lines(self) -> int:
        """How many physical lines the block holds."""
        return self.data.count(b"\n")


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
            block = Block(name, data, line, record, pause, keep_blank)
            yield block
            line += block.count_lines()
            record += block.count_records()


def _read_file(
    path: str, name: str, meter: Meter | None, block_size: int
) -> Iterator[tuple[bytes, bool]]:
    """Whole lines of one file, in pieces, each with whether the next read would wait."""
    descriptor = _open_input(path, name)
    try:
        unpack = _unpacker(path, name)
        size = _READ_SIZE if unpack is None else _READ_COMPRESSED
        waits = _poller(descriptor)
        whole: list[bytes] = []  # ends with a newline
        tail: list[bytes] = []  # the beginning of a line
        held, at_start = 0, True
        while True:
            if waits():
                yield b"".join(whole), True
                whole, held = [], 0
            chunk = _read(descriptor, size, name)
            if not chunk:
                break
            if meter is not None:
                meter.done += len(chunk)
            if unpack is not None:
                chunk = unpack.feed(chunk)
            if at_start and (chunk or tail):
                # A mark of three bytes may arrive in pieces.
                chunk = b"".join([*tail, chunk])
                tail = []
                if len(chunk) < 3 and _BOM.startswith(chunk):
                    tail = [chunk]
                    continue
                chunk = chunk.removeprefix(_BOM)
                at_start = False
            end = chunk.rfind(b"\n") + 1
            if end:
                whole += tail
                whole.append(chunk[:end])
                held += sum(map(len, tail)) + end
                tail = [chunk[end:]] if end < len(chunk) else []
            else:
                tail.append(chunk)
            if held >= block_size:
                yield b"".join(whole), False
                whole, held = [], 0
        if unpack is not None:
            unpack.finish()
        rest = b"".join(whole + tail)
        if at_start:
            rest = rest.removeprefix(_BOM)
        if rest:
            yield rest, False
    finally:
        if descriptor != 0:
            os.close(descriptor)


def native(path: str) -> bytes:
    """The path as the system's bytes, whatever the locale says."""
    return path.encode("utf-8", "surrogateescape")


def _open_input(path: str, name: str) -> int:
    if path == STDIN:
        return 0
    check_inputs([path])
    try:
        return os.open(native(path), os.O_RDONLY)
    except OSError as error:
        raise ConfigError(f"{name}: {_reason(error)}") from None


def _read(descriptor: int, size: int, name: str) -> bytes:
    try:
        return os.read(descriptor, size)
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


# Compression, by the ending of the name.


class _Codec(Protocol):
    eof: bool
    unused_data: bytes

    def decompress(self, data: bytes, /) -> bytes: ...


class _Unpacker:
    """Decompresses piece by piece, through all members of a file."""

    def __init__(self, make: Callable[[], _Codec], name: str) -> None:
        self._make = make
        self._name = name
        self._codec: _Codec | None = None
        self._any = False

    def feed(self, data: bytes) -> bytes:
        parts = []
        while data:
            if self._codec is None:
                if self._any and not data.strip(b"\0"):
                    break  # zeros after the last member are padding
                self._codec = self._make()
                self._any = True
            try:
                parts.append(self._codec.decompress(data))
            except Exception as error:  # each library has its own class
                raise FormatError(f"{self._name}: damaged compressed file ({error})") from None
            if not self._codec.eof:
                break
            data = self._codec.unused_data
            self._codec = None
        return b"".join(parts)

    def finish(self) -> None:
        if self._codec is not None:
            raise FormatError(f"{self._name}: compressed file ends too early")


def _unpacker(path: str, name: str) -> _Unpacker | None:
    make: Callable[[], Any] | None = None
    if path.endswith(".gz"):
        import zlib

        make = functools.partial(zlib.decompressobj, 31)
    elif path.endswith(".bz2"):
        import bz2

        make = bz2.BZ2Decompressor
    elif path.endswith(".xz"):
        import lzma

        make = lzma.LZMADecompressor
    elif path.endswith(".zst"):
        import zstandard

        make = zstandard.ZstdDecompressor().decompressobj
    return None if make is None else _Unpacker(make, name)


class _Packer(Protocol):
    def compress(self, data: bytes, /) -> bytes: ...

    def flush(self) -> bytes: ...


def _packer(path: str) -> _Packer | None:
    packer: _Packer | None = None
    if path.endswith(".gz"):
        import zlib

        # raw zlib with a gzip header: no name and no time in it
        packer = zlib.compressobj(6, zlib.DEFLATED, 31)
    elif path.endswith(".bz2"):
        import bz2

        packer = bz2.BZ2Compressor()
    elif path.endswith(".xz"):
        import lzma

        packer = lzma.LZMACompressor()
    elif path.endswith(".zst"):
        import zstandard

        packer = zstandard.ZstdCompressor().compressobj()
    return packer


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
        self._packer = _packer(name)

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
        self._drain()
        if self._packer is not None:
            self._send(self._packer.flush())
            self._packer = None

    def discard(self) -> None:
        """Forget what was written, as far as it has not left."""
        self._parts, self._held = [], 0

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
    """A regular file, written beside its target and renamed by `commit`."""

    def __init__(self, path: str) -> None:
        target = os.path.realpath(native(path))
        self._target = target
        _remove_stale(target)
        self._temporary = _beside(target)
        try:
            mode = _mode(target)
            descriptor = os.open(self._temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        except OSError as error:
            raise ConfigError(f"{path}: cannot be written: {_reason(error)}") from None
        _lock(descriptor)
        if mode is not None:
            os.fchmod(descriptor, mode)
        super().__init__(path, descriptor)

    def flush(self) -> None:
        """Nothing: nobody reads the file before it is in place."""

    def commit(self) -> None:
        """Put the file in place."""
        super().commit()
        try:
            os.fsync(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = -1
            os.replace(self._temporary, self._target)
        except OSError as error:
            self.discard()
            raise OutputError(f"{self.name}: {_reason(error)}") from None

    def discard(self) -> None:
        """Leave the target as it was."""
        super().discard()
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
        with contextlib.suppress(OSError):
            os.unlink(self._temporary)


def is_regular_target(path: str) -> bool:
    """Whether the path is, or would become, a regular file."""
    try:
        return stat.S_ISREG(os.stat(native(path)).st_mode)
    except OSError:
        return True


def open_output(path: str | None) -> Output:
    """The target of `-o`, or standard output where there is none.

    A regular or new file appears at `commit`, whole; a FIFO or device is written straight through.

    Raises:
        ConfigError: it cannot be written.
    """
    if path is None or path == STDIN:
        return Output("<stdout>", 1)
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
        output.commit()
    except BaseException:
        output.discard()
        raise


def _mode(target: bytes) -> int | None:
    try:
        return stat.S_IMODE(os.stat(target).st_mode)
    except FileNotFoundError:
        return None


def _beside(target: bytes) -> bytes:
    folder, name = os.path.split(target)
    return os.path.join(
        folder, b".%s.%d.%s.tmp" % (name, os.getpid(), os.urandom(4).hex().encode())
    )


def _lock(descriptor: int) -> bool:
    """Hold the temporary file for as long as we live; false where somebody else does."""
    if sys.platform == "win32":
        return True
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _remove_stale(target: bytes) -> None:
    """Remove temporary files that a killed run left beside the target."""
    folder, name = os.path.split(target)
    pattern = re.compile(rb"\.%s\.\d+\.[0-9a-f]{8}\.tmp" % re.escape(name))
    with contextlib.suppress(OSError):
        for entry in os.listdir(folder):
            if pattern.fullmatch(entry) is None:
                continue
            path = os.path.join(folder, entry)
            with contextlib.suppress(OSError):
                descriptor = os.open(path, os.O_RDONLY)
                try:
                    if _lock(descriptor):
                        os.unlink(path)
                finally:
                    os.close(descriptor)


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
