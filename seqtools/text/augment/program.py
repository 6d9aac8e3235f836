"""A program from outside, as a filter: lines go in at one end while others come out at the other.

One thread feeds it, another reads what it writes, so that neither side waits for the other in a
circle, however much the program holds back.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Generator, Iterator
from types import TracebackType

from seqtools.errors import SeqtoolsError

_READ_SIZE = 1 << 18
_PATIENCE = 2.0  # seconds that a program has to end when it is told to
_STEP = 0.01  # seconds between two looks whether it has
_NONE = 0  # a signal that only asks whether there is anybody


class Program:
    """A shell command with a pipe at each end, as a context manager; its stderr is ours.

    It is a process group of its own, of which nothing is left when the context is left on an error.

    Args:
        command: for `/bin/sh -c`.
    """

    def __init__(self, command: str) -> None:
        self._command = command
        self._process = subprocess.Popen(
            command,
            shell=True,
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            process_group=0,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin, self._stdout = self._process.stdin, self._process.stdout
        self._feeder: threading.Thread | None = None
        self._error: BaseException | None = None

    def __enter__(self) -> Program:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            self._end()
        self._stdout.close()
        if self._feeder is None:
            self._stdin.close()

    def feed(self, parts: Generator[bytes, None, None]) -> None:
        """Begin to write the parts, in a thread, and close the program's stdin after the last.

        Where the program takes no more before, the generator is closed.
        """
        self._feeder = threading.Thread(target=self._feed, args=(parts,), daemon=True)
        self._feeder.start()

    def _feed(self, parts: Generator[bytes, None, None]) -> None:
        try:
            for part in parts:
                view = memoryview(part)
                while view:
                    try:
                        view = view[os.write(self._stdin.fileno(), view) :]
                    except BrokenPipeError:
                        return  # it takes no more; whether it may shows in what it has given back
        except BaseException as error:
            self._error = error
        finally:
            parts.close()
            self._stdin.close()

    def lines(self, idle: Callable[[], None]) -> Iterator[bytes]:
        """The lines that the program writes, without their ends, until it writes no more.

        Args:
            idle: is called before each wait.

        Raises:
            SeqtoolsError: it ended with a status that is not 0.
            BaseException: what `parts` raised, after the lines of the parts before.
        """
        begun: list[bytes] = []
        poll = select.poll()
        poll.register(self._stdout, select.POLLIN)
        while True:
            if not poll.poll(0):
                idle()
            chunk = os.read(self._stdout.fileno(), _READ_SIZE)
            if not chunk:
                break
            first, *others = chunk.split(b"\n")
            begun.append(first)
            if others:
                yield b"".join(begun)
                yield from others[:-1]
                begun = [others[-1]]
        last = b"".join(begun)
        if last:
            yield last
        status = self._process.wait()
        self._raise()
        if status:
            raise SeqtoolsError(f"{_ending(status)}: {self._command}")

    def join(self) -> None:
        """Wait until all parts are written, or one cannot be as the program has ended.

        Raises:
            BaseException: what `parts` raised.
        """
        if self._feeder is not None:
            self._feeder.join()
        self._raise()

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error

    def _end(self) -> None:
        """Have no process left; what it has not written yet is lost."""
        deadline = time.monotonic() + _PATIENCE
        left = self._process.returncode is None and self._signal(signal.SIGTERM)
        try:
            while left and time.monotonic() < deadline:
                time.sleep(_STEP)
                self._process.poll()
                left = self._signal(_NONE)  # the shell may be gone before what it has started
        finally:
            if left:
                self._signal(signal.SIGKILL)
            self._process.wait()

    def _signal(self, number: int) -> bool:
        """Whether there was a process of the group to send it to."""
        try:
            os.killpg(self._process.pid, number)
        except ProcessLookupError:
            return False
        return True


def _ending(status: int) -> str:
    if status < 0:
        return f"the command was ended by {signal.Signals(-status).name}"
    return f"the command failed with status {status}"
