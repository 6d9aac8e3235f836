"""Tables and histograms of statistics, on stderr."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from seqtools.cli._progress import on_terminal

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

# What moves the cursor, turns the direction or is not seen.
_CONTROL = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]"
)
_BARS = 60  # columns


class Percent(float):
    """A share, drawn as a percentage."""


@dataclass(frozen=True)
class Table:
    """A table; a number stands to the right in its column, a string to the left.

    Attributes:
        title: what is told.
        columns: headings.
        rows: a cell for each column; None is empty.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str | float | None]]


@dataclass(frozen=True)
class Histogram:
    """Bars, one below the other.

    Attributes:
        title: what is told.
        bars: what a bar is of, and its number (not negative).
    """

    title: str
    bars: Sequence[tuple[str, float]]


Drawing = Table | Histogram


def will_draw(*, always: bool, quiet: bool) -> bool:
    """Whether to draw: where stderr is a terminal, or `always`."""
    return always or (on_terminal() and not quiet)


def draw(drawings: Iterable[Drawing], left: int = 0) -> None:
    """Draw tables and histograms, and say how many records are left out."""
    drawings = [*drawings]
    if not drawings:
        return
    import contextlib
    import os
    import sys

    from rich.console import Console

    terminal = on_terminal()
    # Where it is no terminal nothing but text is written, whatever FORCE_COLOR says.
    width = None if terminal or "COLUMNS" in os.environ else 100
    console = Console(file=sys.stderr, force_terminal=terminal, width=width, highlight=False)
    with contextlib.suppress(OSError):  # nobody may be looking
        for drawing in drawings:
            if isinstance(drawing, Table):
                _draw_table(console, drawing)
            else:
                _draw_histogram(console, drawing)
        if left:
            console.print(f"and {left:,} more")


def _draw_table(console: Console, drawing: Table) -> None:
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    if not drawing.rows:
        _print(console, Text(f"{_plain(drawing.title)}: none"))
        return
    table = RichTable(
        title=Text(_plain(drawing.title)),
        title_justify="left",
        box=box.SIMPLE,
        show_header=any(drawing.columns),
    )
    for number, heading in enumerate(drawing.columns):
        numeric = all(not isinstance(row[number], str) for row in drawing.rows)
        table.add_column(
            Text(_plain(heading)), justify="right" if numeric else "left", no_wrap=numeric
        )
    for row in drawing.rows:
        table.add_row(*(Text(_plain(cell)) for cell in row))
    _print(console, table)


def _draw_histogram(console: Console, drawing: Histogram) -> None:
    from rich.bar import Bar
    from rich.table import Table as RichTable
    from rich.text import Text

    most = max((number for _, number in drawing.bars), default=0) or 1
    grid = RichTable.grid(padding=(0, 1))
    grid.title, grid.title_justify = Text(_plain(drawing.title)), "left"
    grid.add_column(justify="right", no_wrap=True)
    grid.add_column(justify="right", no_wrap=True)
    grid.add_column()
    for label, number in drawing.bars:
        grid.add_row(Text(_plain(label)), Text(_plain(number)), Bar(most, 0, number, width=_BARS))
    _print(console, grid)


def _print(console: Console, drawing: RenderableType) -> None:
    """Print without blanks at the ends of lines, and one empty line after it."""
    with console.capture() as capture:
        console.print(drawing)
    lines = [line.rstrip() for line in capture.get().strip("\n").split("\n")]
    print("\n".join(lines).rstrip(), end="\n\n", file=console.file)


def _plain(cell: str | float | None) -> str:
    """A cell as text: whole numbers with separators, others with four digits, shares as percent."""
    if cell is None:
        return ""
    if isinstance(cell, str):
        return _CONTROL.sub(lambda found: repr(found[0])[1:-1], cell)
    if isinstance(cell, int):
        return f"{cell:,}"
    if isinstance(cell, Percent):
        return _percentage(cell)
    return f"{cell:,.1f}" if abs(cell) >= 1000 else f"{cell:.4g}"


def _percentage(share: float) -> str:
    """Two decimals, or as many as two digits of a small share need."""
    percent = 100 * share
    if not percent or percent >= 0.1:
        return f"{percent:.2f} %"
    return f"{percent:.{min(12, 1 - math.floor(math.log10(percent)))}f} %"
