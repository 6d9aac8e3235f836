"""Long arrays that grow at the end, in memory as long as there is room, on disk beyond.

Whoever computes on them goes through them in blocks, so that it does not matter where they are.
"""

from __future__ import annotations

import errno
import os
import re
import tempfile
from collections.abc import Iterator
from types import TracebackType
from typing import Any, TypeAlias

import numpy as np

from seqtools.errors import ConfigError, SeqtoolsError

Array: TypeAlias = np.ndarray[Any, Any]

BLOCK = 1 << 20  # rows that are worked on at a time
_UNITS = {"B": 0, "K": 1, "M": 2, "G": 3, "T": 4}


class Store:
    """Columns that share a limit of memory; past it, they move into temporary files.

    The files have no name, so nothing is left of them whatever happens.

    Args:
        memory: bytes that the columns may hold in memory.
        folder: for temporary files; None for the system's.

    Raises:
        ConfigError: the folder cannot be written.
    """

    def __init__(self, memory: int, folder: str | None = None) -> None:
        self.memory = memory
        self.folder = tempfile.gettempdir() if folder is None else folder
        self.held = 0
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

    def column(self, dtype: Any, capacity: int) -> Column:
        """An empty column that will hold at most `capacity` values."""
        column = Column(self, np.dtype(dtype), capacity)
        self._columns.append(column)
        return column

    def free_disk(self) -> int:
        """Bytes that can still be written to the folder of temporary files."""
        status = os.statvfs(self.folder)
        return status.f_bavail * status.f_frsize

    def _open(self) -> Any:
        return tempfile.TemporaryFile(dir=self.folder, buffering=0)


class Column:
    """One array; `column[a:b]` gives values as a numpy array, which is not to be changed."""

    def __init__(self, store: Store, dtype: np.dtype[Any], capacity: int) -> None:
        self.dtype = dtype
        self._store = store
        self._length = 0
        # Pages that are never touched cost nothing.
        self._array: Array | None = np.empty(capacity, dtype=dtype)
        self._file: Any = None

    def __len__(self) -> int:
        return self._length

    @property
    def on_disk(self) -> bool:
        """Whether the values are in a temporary file."""
        return self._file is not None

    def append(self, values: Array) -> None:
        """Add values at the end.

        Raises:
            SeqtoolsError: no room on the disk.
        """
        size = len(values) * self.dtype.itemsize
        if self._array is not None and self._store.held + size > self._store.memory:
            self._spill()
        if self._array is not None:
            self._store.held += size
            self._array[self._length : self._length + len(values)] = values
        else:
            self._write(np.ascontiguousarray(values, dtype=self.dtype), self._length)
        self._length += len(values)

    def __getitem__(self, rows: slice) -> Array:
        start, end, _ = rows.indices(self._length)
        if self._array is not None:
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

    def free(self) -> None:
        """Forget the values."""
        if self._array is not None:
            self._store.held -= self._length * self.dtype.itemsize
        elif self._file is not None:
            self._file.close()
        self._array, self._file, self._length = np.empty(0, dtype=self.dtype), None, 0

    def _spill(self) -> None:
        held, self._array = self._array, None
        assert held is not None
        try:
            self._file = self._store._open()
        except OSError as error:
            raise self._explain(error) from None
        for start in range(0, self._length, BLOCK):
            self._write(held[start : min(start + BLOCK, self._length)], start)
        self._store.held -= self._length * self.dtype.itemsize

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
    if found is None or not float(found[1]):
        raise ConfigError(f"{text!r} is no size of memory, such as 4G, 500M or 50%")
    if found[2] == "%":
        return int(float(found[1]) / 100 * _machine_memory())
    return int(float(found[1]) * 1024 ** _UNITS[found[2].upper() or "B"])


def _machine_memory() -> int:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        with open("/sys/fs/cgroup/memory.max") as handle:
            limit = handle.read().strip()
    except OSError:
        return memory
    return min(memory, int(limit)) if limit.isdigit() else memory
