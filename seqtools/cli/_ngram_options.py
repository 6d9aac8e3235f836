"""Options that several kinds of seq-ngram share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from seqtools.cli import _run
from seqtools.cli._options import Streams

F = TypeVar("F", bound=Callable[..., Any])

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


def tell_of_compiling(streams: Streams) -> None:
    """Say so on stderr when functions have to be compiled, which takes seconds; not if quiet."""
    from seqtools.ngram.compiled import on_compile

    if not streams.quiet:
        on_compile(lambda: _run.message(f"{_run.program()}: compiling, this once"))
