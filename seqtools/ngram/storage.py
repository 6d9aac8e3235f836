"""Long arrays that grow at the end, in memory as long as there is room, on disk beyond.

Whoever computes on them goes through them in blocks, so that it does not matter where they are.
"""

from __future__ import annotations

import errno
import math
import mmap
import operator
import os
import re
import tempfile
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any, TypeAlias

import numpy as np

from seqtools.errors import ConfigError, SeqtoolsError

Array: TypeAlias = np.ndarray[Any, Any]

BLOCK = 1 << 20  # rows that are worked on at a time
_LARGE = 1 << 22  # bytes from which on an array is worth pages of its own
_UNITS = {"B": 0, "K": 1, "M": 2, "G": 3, "T": 4}


def roomy(shape: int | tuple[int, ...], dtype: Any) -> Array:
    """`numpy.empty` in large pages, which are several times faster to touch for the first time.

    Pages that are never touched cost nothing.

    Raises:
        MemoryError: as there.
    """
    kind = np.dtype(dtype)
    size = int(np.prod(shape)) * kind.itemsize
    if size < _LARGE:
        return np.empty(shape, dtype=kind)
    try:
        pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError:
        raise MemoryError(f"no {size} bytes of memory") from None
    if hasattr(mmap, "MADV_HUGEPAGE"):
        pages.madvise(mmap.MADV_HUGEPAGE)
    array: Array = np.frombuffer(pages, dtype=np.uint8)[:size].view(kind).reshape(shape)
    return array


def temporary_folder() -> str:
    """The system's folder for temporary files.

    Raises:
        ConfigError: none can be written.
    """
    try:
        return tempfile.gettempdir()
    except OSError:
        raise ConfigError("no folder for temporary files can be written (-T names one)") from None


@dataclass
class _Buffer:
    """Memory that goes from one column to the next: what was touched once is quick to use again."""

    data: Array  # uint8
    touched: int = 0


class Store:
    """Columns that share a limit of memory; past it, they move into temporary files.

    The files have no name, so nothing is left of them whatever happens.

    Args:
        memory: bytes that the columns may hold in memory, together with what is borrowed.
        folder: for temporary files; None for the system's.

    Attributes:
        standard: bytes of address space that each column gets at least, so that the memory of one
            fits another.

    Raises:
        ConfigError: the folder cannot be written.
    """

    def __init__(self, memory: int, folder: str | None = None) -> None:
        self.memory = memory
        self.folder = temporary_folder() if folder is None else folder
        self.standard = 0
        self.held = 0  # bytes that were touched, of all buffers
        self._idle: list[_Buffer] = []
        self._lent: dict[int, _Buffer] = {}
        self._columns: list[Column] = []
        try:
            self._open().close()
        except OSError as error:
            text = os.strerror(error.errno or 0)
            raise ConfigError(f"{self.folder}: no temporary files there: {text}") from None

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for column in self._columns:
            column.free()

    def column(self, dtype: Any, capacity: int | None = None) -> Column:
        """An empty column that will hold at most `capacity` values in memory, if that is known."""
        kind = np.dtype(dtype)
        if capacity is None:  # in memory, there cannot be more
            capacity = min(self.memory, _machine_memory()) // kind.itemsize
        column = Column(self, kind, capacity)
        self._columns.append(column)
        return column

    def borrow(self, shape: int | tuple[int, ...], dtype: Any) -> Array:
        """An array to work in; columns make room for it, so no view of one may be in use.

        It is had whatever the limit says; see `give_back`.
        """
        kind = np.dtype(dtype)
        size = int(np.prod(shape)) * kind.itemsize
        buffer = self._lend(size)
        while not self._touch(buffer, size):
            largest = max(self._columns, key=lambda column: column.in_memory, default=None)
            if largest is None or not largest.in_memory:
                self.held += size - buffer.touched
                buffer.touched = size
                break
            largest.spill()
        array: Array = buffer.data[:size].view(kind).reshape(shape)
        self._lent[array.__array_interface__["data"][0]] = buffer
        return array

    def give_back(self, *arrays: Array) -> None:
        """Arrays that were borrowed, and are not used any more."""
        for array in arrays:
            self._take_back(self._lent.pop(array.__array_interface__["data"][0]))

    def free_disk(self) -> int:
        """Bytes that can still be written to the folder of temporary files."""
        status = os.statvfs(self.folder)
        return status.f_bavail * status.f_frsize

    def check_disk(self, needed: int) -> None:
        """See that so many bytes can still be written.

        Raises:
            SeqtoolsError: they cannot.
        """
        free = self.free_disk()
        if needed > free:
            raise SeqtoolsError(
                f"{self.folder}: {needed >> 20} MiB are needed for temporary files,"
                f" {free >> 20} are free (-T names another folder, -S more memory)"
            )

    def _open(self) -> Any:
        return tempfile.TemporaryFile(dir=self.folder, buffering=0)

    def _lend(self, size: int) -> _Buffer:
        """Memory of at least `size` bytes."""
        # Not one of which most would lie idle as long as it is lent.
        fitting = [
            buffer
            for buffer in self._idle
            if len(buffer.data) >= size and buffer.touched <= 2 * size
        ]
        if not fitting:
            return _Buffer(roomy(max(size, self.standard), np.uint8))
        enough = [buffer for buffer in fitting if buffer.touched >= size]
        by_touched = operator.attrgetter("touched")
        best = min(enough, key=by_touched) if enough else max(fitting, key=by_touched)
        self._idle = [buffer for buffer in self._idle if buffer is not best]
        return best

    def _take_back(self, buffer: _Buffer) -> None:
        self._idle.append(buffer)

    def _drop(self, buffer: _Buffer) -> None:
        self.held -= buffer.touched

    def _touch(self, buffer: _Buffer, size: int) -> bool:
        """Whether there is memory for so many bytes of the buffer."""
        more = size - buffer.touched
        if more <= 0:
            return True
        if self.held + more > self.memory:
            for idle in self._idle:
                self._drop(idle)
            self._idle = []
        if self.held + more > self.memory:
            return False
        self.held += more
        buffer.touched = size
        return True


class Column:
    """One array; `column[a:b]` gives values as a numpy array, which is not to be changed."""

    def __init__(self, store: Store, dtype: np.dtype[Any], capacity: int) -> None:
        self.dtype = dtype
        self._store = store
        self._length = 0
        self._buffer: _Buffer | None = store._lend(capacity * dtype.itemsize)
        self._array: Array = self._view(capacity)
        self._file: Any = None

    def __len__(self) -> int:
        return self._length

    @property
    def on_disk(self) -> bool:
        """Whether the values are in a temporary file."""
        return self._file is not None

    @property
    def in_memory(self) -> int:
        """Bytes of memory that are taken."""
        return 0 if self._buffer is None or not self._length else self._buffer.touched

    def append(self, values: Array) -> None:
        """Add values at the end.

        Raises:
            SeqtoolsError: no room on the disk.
        """
        end = self._length + len(values)
        if self._buffer is not None:
            size = end * self.dtype.itemsize
            if end > len(self._array) or not self._store._touch(self._buffer, size):
                self.spill()
        if self._buffer is not None:
            self._array[self._length : end] = values
        else:
            self._write(np.ascontiguousarray(values, dtype=self.dtype), self._length)
        self._length = end

    def __getitem__(self, rows: slice) -> Array:
        start, end, _ = rows.indices(self._length)
        if self._file is None:
            return self._array[start:end]
        values = np.empty(max(0, end - start), dtype=self.dtype)
        view, position = values.view(np.uint8).data, start * self.dtype.itemsize
        while view:
            count = os.preadv(self._file.fileno(), [view], position)
            if not count:
                raise SeqtoolsError(f"{self._store.folder}: a temporary file is cut short")
            view, position = view[count:], position + count
        return values

    def blocks(self, size: int = BLOCK) -> Iterator[Array]:
        """The values, `size` at a time."""
        for start in range(0, len(self), size):
            yield self[start : start + size]

    def replace(self, table: Array) -> None:
        """Put table[value] in the place of each value."""
        for start in range(0, len(self), BLOCK):
            values = table[self[start : start + BLOCK]].astype(self.dtype, copy=False)
            if self._file is None:
                self._array[start : start + len(values)] = values
            else:
                self._write(values, start)

    def free(self) -> None:
        """Forget the values."""
        if self._buffer is not None:
            self._store._take_back(self._buffer)
        if self._file is not None:
            self._file.close()
        self._buffer, self._file, self._length = None, None, 0
        self._array = np.empty(0, dtype=self.dtype)

    def _view(self, capacity: int) -> Array:
        assert self._buffer is not None
        return self._buffer.data[: capacity * self.dtype.itemsize].view(self.dtype)

    def spill(self) -> None:
        """Move into a temporary file."""
        held, buffer = self._array, self._buffer
        assert buffer is not None
        try:
            self._file = self._store._open()
        except OSError as error:
            raise self._explain(error) from None
        weakref.finalize(self, self._file.close)  # where nobody frees the column
        for start in range(0, self._length, BLOCK):
            self._write(held[start : min(start + BLOCK, self._length)], start)
        self._store._drop(buffer)
        self._buffer, self._array = None, np.empty(0, dtype=self.dtype)

    def _write(self, values: Array, start: int) -> None:
        view, position = values.view(np.uint8).data, start * self.dtype.itemsize
        while view:
            try:
                count = os.pwrite(self._file.fileno(), view, position)
            except OSError as error:
                raise self._explain(error) from None
            view, position = view[count:], position + count

    def _explain(self, error: OSError) -> SeqtoolsError:
        text = os.strerror(error.errno or 0)
        hint = " (-T names another folder)" if error.errno == errno.ENOSPC else ""
        return SeqtoolsError(f"{self._store.folder}: temporary file: {text}{hint}")


def parse_memory(text: str) -> int:
    """`4G`, `500M`, `50%` of the machine's memory, or a plain number of bytes.

    Units are powers of 1024, in upper or lower case. What the machine has is what the process may
    have, where a control group says less.

    Raises:
        ConfigError: it is something else.
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([bkmgt%]?)(?:i?b)?", text.strip(), re.IGNORECASE)
    if found is not None:
        unit = found[2].upper() or "B"
        one = _machine_memory() / 100 if unit == "%" else 1024 ** _UNITS[unit]
        if 0 < (size := float(found[1]) * one) < math.inf:
            return int(size)
    raise ConfigError(f"{text!r} is no size of memory, such as 4G, 500M or 50%")


def _machine_memory() -> int:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        with open("/sys/fs/cgroup/memory.max") as handle:
            limit = handle.read().strip()
    except OSError:
        return memory
    return min(memory, int(limit)) if limit.isdigit() else memory
