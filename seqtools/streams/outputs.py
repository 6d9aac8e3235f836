"""Outputs: a descriptor, or a file that appears whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import select
import stat

from seqtools.errors import ConfigError, FormatError
from seqtools.streams.compression import packer
from seqtools.streams.files import STDIN, is_regular, native, reason

# By these names a file behind the descriptor would be opened anew and written from its start.
_STANDARD = {STDIN: 1, "/dev/stdout": 1, "/dev/stderr": 2}
_WRITE_SIZE = 1 << 18


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
                raise OutputError(f"{self.name}: {reason(error)}") from None


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
            raise ConfigError(f"{path}: cannot be written: {reason(error)}") from None
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
            raise OutputError(f"{self.name}: {reason(error)}") from None
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
        return is_regular(path)
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
        raise ConfigError(f"{path}: cannot be written: {reason(error)}") from None


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
