"""From click to the exit status: where errors become text and signals are answered.

Exit status: 0 done; 1 bad data or a failed run; 2 usage; 3 done, but records were rejected. A
reader that closes our standard output ends the command quietly with 0.
"""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import NoReturn

import click

from seqtools import __version__
from seqtools.errors import ConfigError, SeqtoolsError
from seqtools.streams.files import ClosedReader, Output

stdout = Output("<stdout>", 1)
"""The one buffered writer on descriptor 1."""

_ENDING = (signal.SIGTERM, signal.SIGHUP)
_above_bar: list[Callable[[str], None]] = []


class Terminated(BaseException):
    """A signal asked us to end."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class _Stdout(io.RawIOBase):
    """What click prints (help, version) goes through the same writer as the data."""

    def writable(self) -> bool:
        return True

    def write(self, data: bytes, /) -> int:  # type: ignore[override]
        stdout.write(bytes(data))
        return len(data)


def program() -> str:
    """Name of the running command, as messages begin with it."""
    return os.path.basename(sys.argv[0]).removesuffix(".py")


def message(text: str) -> None:
    """One line on stderr, in UTF-8 whatever the locale, above a progress bar where there is one."""
    text = text.replace("\n", " ").replace("\r", " ")
    if _above_bar:
        _above_bar[-1](text)
        return
    with contextlib.suppress(OSError):  # nobody may be listening
        os.write(2, f"{text}\n".encode("utf-8", "surrogateescape"))


def warn(text: str) -> None:
    """A warning on stderr."""
    message(f"{program()}: warning: {text}")


def print_above(write: Callable[[str], None] | None) -> None:
    """Send messages through `write` while a bar is shown; None ends that."""
    if write is None:
        _above_bar.clear()
    else:
        _above_bar.append(write)


def main(cli: click.Command) -> NoReturn:
    """Run a command with the arguments of the process, and exit."""
    sys.exit(_run(cli))


def _run(cli: click.Command) -> int:
    for number in _ENDING:
        signal.signal(number, _terminate)
    sys.stdout = io.TextIOWrapper(_Stdout(), "utf-8", "surrogateescape", write_through=True)
    sys.set_int_max_str_digits(0)  # integers of any size keep their digits
    # Options are UTF-8 whatever the locale says.
    arguments = [
        os.fsencode(argument).decode("utf-8", "surrogateescape") for argument in sys.argv[1:]
    ]
    debug = "--debug" in arguments
    try:
        status = _guard(cli, arguments, debug=debug)
        stdout.flush()
    except ClosedReader:
        _forget_stdout()
        return 0
    except SeqtoolsError as error:  # the last flush found no room
        _forget_stdout()
        return _fail(str(error), 1)
    except KeyboardInterrupt:
        _die(signal.SIGINT)
    except Terminated as end:
        _die(end.number)
    return status


def _guard(cli: click.Command, arguments: list[str], *, debug: bool) -> int:
    """The exit status of the command, errors told on stderr."""
    try:
        result = cli.main(arguments, prog_name=program(), standalone_mode=False)
    except click.UsageError as error:
        stdout.flush()
        error.show()
        return error.exit_code
    except click.exceptions.Abort:
        raise KeyboardInterrupt from None
    except (SeqtoolsError, click.ClickException) as error:
        # What was written before a bad record belongs to the output.
        stdout.flush()
        if debug:
            raise
        text = error.format_message() if isinstance(error, click.ClickException) else str(error)
        return _fail(text, 2 if isinstance(error, ConfigError) else 1)
    except (MemoryError, RecursionError) as error:
        if debug:
            raise
        return _fail(f"{type(error).__name__}: the input is too large for this machine", 1)
    except Exception as error:
        if debug or isinstance(error, ClosedReader):
            raise
        return _fail(f"internal error: {type(error).__name__}: {error} (--debug shows where)", 1)
    return result if isinstance(result, int) else 0


def _fail(text: str, status: int) -> int:
    print_above(None)
    message(f"{program()}: {text}")
    return status


def _terminate(number: int, frame: FrameType | None) -> None:
    raise Terminated(number)


def _die(number: int) -> NoReturn:
    """End by the same signal, so that the shell sees it."""
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    os._exit(128 + number)  # the signal was blocked


def _forget_stdout() -> None:
    stdout.discard()
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.close(null)


def show_version(context: click.Context, parameter: click.Parameter, value: bool) -> None:  # noqa: FBT001
    """Print the version and end, for `--version`."""
    if value and not context.resilient_parsing:
        click.echo(f"{program()} (seqtools) {__version__}")
        context.exit()
