"""From click to the exit status: where errors become text and signals are answered.

Exit status: 0 done; 1 bad data or a failed run; 2 usage; 3 done, but records were rejected. A
reader that closes our standard output ends the command quietly with 0.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import NoReturn

import click

from seqtools import __version__
from seqtools.errors import ConfigError, SeqtoolsError
from seqtools.streams.outputs import ClosedReader, Output

stdout = Output("<stdout>", 1)
"""The one buffered writer on descriptor 1."""

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
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
    text = _CONTROL.sub(lambda found: repr(found[0])[1:-1], text)
    if _above_bar:
        _above_bar[-1](text)
    else:
        _write_error(f"{text}\n")


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
    if sys.getfilesystemencoding() != "utf-8":  # names and options are UTF-8 whatever the locale
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])
    sys.exit(_run(cli))


def _run(cli: click.Command) -> int:
    _fill_descriptors()
    sys.stdout = io.TextIOWrapper(_Stdout(), "utf-8", "surrogateescape", write_through=True)
    # Freed once, so much is kept by glibc's malloc from then on, instead of being given back and
    # fetched anew with every block: half the time of a filter.
    with contextlib.suppress(MemoryError):
        bytes(1 << 24)
    try:
        _handle_signals(signal.SIG_DFL, _terminate)
        sys.unraisablehook = _insist
        status = _guard(cli)
        stdout.flush()
        _handle_signals(_terminate, signal.SIG_DFL)
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


def _guard(cli: click.Command) -> int:
    """The exit status of the command, errors told on stderr."""
    try:
        result = cli.main(sys.argv[1:], prog_name=program(), standalone_mode=False)
    except ClosedReader:
        raise
    except click.UsageError as error:
        stdout.flush()
        text = io.StringIO()
        error.show(text)
        _write_error(text.getvalue())
        return error.exit_code
    except Exception as error:
        stdout.flush()  # what was written before a bad record belongs to the output
        if "--debug" in sys.argv:
            import traceback

            _write_error("".join(traceback.format_exception(error)))
        return _fail(*_explain(error))
    return result if isinstance(result, int) else 0


def _explain(error: Exception) -> tuple[str, int]:
    """Message and exit status."""
    if isinstance(error, SeqtoolsError):
        return str(error), 2 if isinstance(error, ConfigError) else 1
    if isinstance(error, click.ClickException):
        return error.format_message(), error.exit_code
    if isinstance(error, MemoryError):
        return "out of memory", 1
    return f"internal error: {type(error).__name__}: {error} (--debug shows where)", 1


def _fail(text: str, status: int) -> int:
    print_above(None)
    message(f"{program()}: {text}")
    return status


def _write_error(text: str) -> None:
    with contextlib.suppress(OSError):  # nobody may be listening
        os.write(2, text.encode("utf-8", "surrogateescape"))


def _handle_signals(
    old: signal.Handlers | Callable[..., None], new: signal.Handlers | Callable[..., None]
) -> None:
    """Change the handlers that are `old`, or Python's own; what is ignored (nohup) stays so."""
    for number in _ENDING:
        if signal.getsignal(number) in (old, signal.default_int_handler):
            signal.signal(number, new)


def _terminate(number: int, frame: FrameType | None) -> None:
    raise Terminated(number)


def _insist(lost: sys.UnraisableHookArgs) -> None:
    """Repeat a signal whose exception was raised where none can pass, as in a callback from C."""
    error = lost.exc_value
    if not isinstance(error, (Terminated, KeyboardInterrupt)):
        sys.__unraisablehook__(lost)
        return
    import threading

    number = error.number if isinstance(error, Terminated) else signal.SIGINT
    again = threading.Timer(0.02, os.kill, (os.getpid(), number))
    again.daemon = True
    again.start()


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


def _fill_descriptors() -> None:
    """Where 0, 1 or 2 is closed, keep its place, so that no file we open becomes it by chance."""
    for number, flags in ((0, os.O_WRONLY), (1, os.O_RDONLY), (2, os.O_RDONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, flags)  # using it is an error, as it was


def show_version(context: click.Context, parameter: click.Parameter, value: bool) -> None:  # noqa: FBT001
    """Print the version and end, for `--version`."""
    if value and not context.resilient_parsing:
        click.echo(f"{program()} (seqtools) {__version__}")
        context.exit()
