"""seq-attnviz: pictures of attention."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from seqtools.cli import _run
from seqtools.cli._io import Session
from seqtools.cli._options import (
    POSITIVE,
    Streams,
    WholeNumber,
    collect,
    example,
    group,
    stream_options,
)
from seqtools.streams.files import STDIN

if TYPE_CHECKING:
    from seqtools.streams.records import Record
    from seqtools.viz.heatmap import Attention, Heatmap
    from seqtools.viz.terminal import Colour

F = TypeVar("F", bound=Callable[..., Any])
Picture = TypeVar("Picture", bound="Attention | Heatmap")

_RECORD = (
    """echo '{"attention":{"rows":["5","</s>"],"columns":["the","fifth"],' \\""",
    """    '"cross":[[[[0.1,0.9],[0.8,0.2]]]]}}' \\""",
)
_OPTIONS = (
    click.option(
        "--which",
        type=click.Choice(["cross", "encoder", "decoder"]),
        help="Kind of attention.  [default: the first of these that is there]",
    ),
    click.option("--layer", type=POSITIVE, help="Number of the layer, from 1."),
    click.option("--head", type=POSITIVE, help="Number of the head, from 1."),
    click.option("--mean", is_flag=True, help="Mean over what --layer and --head leave open."),
    click.option(
        "--rank",
        type=POSITIVE,
        default=1,
        show_default=True,
        help="Which hypothesis: 1 is the best.",
    ),
    click.option("--limit", type=POSITIVE, help="Draw so many records, and end."),
)


@dataclass(frozen=True, slots=True)
class Choice:
    """Which matrices of which records are drawn."""

    which: str | None
    layer: int | None
    head: int | None
    mean: bool
    rank: int
    limit: int | None


def picture_options(function: F) -> F:
    """Give a kind its streams, and what is to be drawn as its argument `choice`."""
    return collect(Choice, "choice", _OPTIONS)(stream_options()(function))


@group(
    "attnviz",
    "Draw the attention of records decoded with --attention: one heat map a record, with the tokens"
    " that attend at the left and those attended to on top.",
)
def cli() -> None:
    """The kinds are below."""


@cli.command(epilog=example(*_RECORD, "  | seq-attnviz terminal --numbers"))
@click.option("--numbers", is_flag=True, help="Write weights into the cells, in percent.")
@click.option(
    "--width", type=WholeNumber(30), help="Cells in a line.  [default: the terminal's, or 80]"
)
@picture_options
def terminal(streams: Streams, choice: Choice, width: int | None, *, numbers: bool) -> None:
    """Draw with colours on a terminal, with shades elsewhere.

    Without --layer and --head it is the last layer and the mean of its heads. Colours need a
    terminal that has them, and no NO_COLOR. Long labels are cut; columns that do not fit go on
    below.
    """
    import shutil

    from seqtools.viz.heatmap import visible_line
    from seqtools.viz.terminal import draw

    colour = _colour(streams)
    width = width or shutil.get_terminal_size((80, 24)).columns

    def check(record: Record) -> tuple[str, Heatmap]:
        return _name(record), _attention(record, choice).pick(
            choice.layer, choice.head, mean=choice.mean
        )

    with Session(streams) as session:
        for number, (name, heatmap) in _pictures(session, check, choice.limit):
            shown = f" ({visible_line(name)})" if name else ""
            title = f"record {number}{shown}: {heatmap.caption}"
            titled = dataclasses.replace(heatmap, caption=title)
            lines = draw(titled, width=width, colour=colour, numbers=numbers)
            session.output.write("".join(f"{line}\n" for line in [*lines, ""]).encode())


@cli.command(epilog=example(*_RECORD, "  | seq-attnviz html > attention.html"))
@click.option("--title", default="Attention", show_default=True, help="Title of the page.")
@picture_options
def html(streams: Streams, choice: Choice, title: str) -> None:
    """Write one page for all records, which needs no network.

    Without --layer, --head and --mean it holds them all, to choose from. Weights are rounded to
    four decimals.
    """
    from seqtools.viz import html as page

    whole = choice.layer is None and choice.head is None and not choice.mean

    def check(record: Record) -> tuple[str, Attention | Heatmap]:
        attention = _attention(record, choice)
        if whole:
            return _name(record), attention
        return _name(record), attention.pick(choice.layer, choice.head, mean=choice.mean)

    with Session(streams) as session:
        session.output.write(page.start(title).encode())
        for number, (name, picture) in _pictures(session, check, choice.limit):
            session.output.write(page.entry(number, picture, name=name).encode())
        session.output.write(page.end().encode())


def _attention(record: Record, choice: Choice) -> Attention:
    from seqtools.viz.heatmap import read_attention

    return read_attention(record, kind=choice.which, hypothesis=choice.rank)


def _name(record: Record) -> str:
    """The record's id, or nothing."""
    return str(record["id"]) if type(record.get("id")) in (str, int) else ""


def _pictures(
    session: Session, check: Callable[[Record], tuple[str, Picture]], limit: int | None
) -> Iterator[tuple[int, tuple[str, Picture]]]:
    """What is to be drawn, each with its record's number; doubtful weights are warned about."""
    from seqtools.viz.heatmap import doubt

    for drawn, (place, (name, picture)) in enumerate(session.read(check), 1):
        if warning := doubt(picture):
            _run.warn(f"{place.source}:{place.line}: record {place.number}: {warning}")
        yield place.number, (name, picture)
        if drawn == limit:
            return


def _colour(streams: Streams) -> Colour | None:
    """How many colours the output can show: none but on a terminal that has them."""
    term = os.environ.get("TERM", "dumb")
    on_terminal = streams.output in (None, STDIN) and os.isatty(1)
    if not on_terminal or os.environ.get("NO_COLOR") or term == "dumb":
        return None
    if os.environ.get("COLORTERM") in ("truecolor", "24bit") or term.endswith("direct"):
        return "truecolor"
    return "256" if "256" in term else None


def main() -> None:
    """Run from the shell."""
    _run.main(cli)
