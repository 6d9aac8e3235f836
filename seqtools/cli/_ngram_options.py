"""Options that several kinds of seq-ngram share."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import click

from seqtools.cli import _run
from seqtools.cli._options import Streams
from seqtools.streams.files import STDIN
from seqtools.streams.outputs import Output, open_output

F = TypeVar("F", bound=Callable[..., Any])


def _only_one(context: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> str:
    """The value of an option that would silently be the last one given."""
    if len(value) != 1:
        raise click.UsageError(
            f"{parameter.opts[0]} is given {len(value)} times, and only one counts."
        )
    return value[0]


model_option = click.option(
    "--model", required=True, multiple=True, callback=_only_one, metavar="FILE",
    help="Model: ARPA, or what seq-ngram train made.",
)  # fmt: skip
field_option = click.option(
    "--field", default="tokens", show_default=True, help="Field with the tokens."
)
text_option = click.option(
    "--text", is_flag=True, help="Read plain lines; words are separated by white space."
)
_MEMORY = (
    click.option(
        "-S", "--memory", default="50%", show_default=True, metavar="SIZE",
        help="Memory to work in (4G, 500M, 50%); what does not fit goes into temporary files.",
    ),
    click.option("-T", "--temp-dir", metavar="FOLDER", help="Where temporary files go."),
)  # fmt: skip


def memory_options(function: F) -> F:
    """Give a command `--memory` and `--temp-dir`."""
    for option in reversed(_MEMORY):
        function = option(function)
    return function


def describe_output(command: click.Command, text: str) -> None:
    """Say in the help what `-o` of this command is for, where stdout is not meant to be used."""
    for option in command.params:
        if isinstance(option, click.Option) and option.name == "output_file":
            option.help = text


def refuse_same_output(streams: Streams, option: str, path: str | None) -> None:
    """See that the file of an option is none that the command writes anyway."""
    if path is not None and path in (streams.output or STDIN, streams.rejects):
        raise click.UsageError(f"{option} goes to the same place as other output.")


@contextlib.contextmanager
def side_output(path: str | None) -> Iterator[Output | None]:
    """A file beside the output, which appears whole, and only where all goes well."""
    if path is None:
        yield None
        return
    output = open_output(path)
    try:
        yield output
    except BaseException:
        output.discard()
        raise
    output.commit()


def tell_of_compiling(streams: Streams) -> None:
    """Say so on stderr when functions have to be compiled, which takes seconds; not if quiet."""
    from seqtools.ngram.compiled import on_compile

    def tell() -> None:
        _run.message(f"{_run.program()}: compiling, this once")

    on_compile(None if streams.quiet else tell)


def warn_of_markers(count: int) -> None:
    """Say on stderr that text has what looks like a marker, which it is not taken for."""
    _run.warn(f"{count} tokens are spelled <s> or </s> and count as unknown")
