"""The table of a model's parameters that `seq-train` shows on stderr before it begins."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import NamedTuple

from seqtools.cli import _run
from seqtools.cli._progress import on_terminal

_IN_LAYER = re.compile(r"(.*?)\.(\d+)\.(.*)")  # a stack, a layer of it, a part of that


class Row(NamedTuple):
    """One line: a parameter, or `times` alike ones in layers that follow one another."""

    name: str
    shape: tuple[int, ...]
    times: int = 1

    @property
    def number(self) -> str:
        """How many numbers they are, as it is shown."""
        size = f"{prod(self.shape):,}"
        return size if self.times == 1 else f"{self.times} x {size}"


def table_rows(parameters: Iterable[tuple[str, tuple[int, ...]]]) -> list[Row]:
    """Give the lines for parameters, names and shapes, layers that are alike as one.

    >>> table_rows([("layers.0.bias", (2,)), ("layers.1.bias", (2,))])
    [Row(name='layers.0-1.bias', shape=(2,), times=2)]
    """
    layers: list[_Layers] = []
    for name, shape in parameters:
        found = _IN_LAYER.fullmatch(name)
        stack, number, part = found.groups() if found else (name, "", "")
        if not (found and layers and (layers[-1].stack, layers[-1].numbers) == (stack, [number])):
            layers.append(_Layers(stack, [number]))
        layers[-1].parts.append((part, shape))
    merged = layers[:1]
    for layer in layers[1:]:
        if (layer.stack, layer.parts) == (merged[-1].stack, merged[-1].parts):
            merged[-1].numbers += layer.numbers
        else:
            merged.append(layer)
    return [row for layer in merged for row in layer.rows()]


def show_table(title: str, parameters: Sequence[tuple[str, tuple[int, ...]]]) -> None:
    """Write names, shapes and numbers of parameters to stderr, and how many there are."""
    rows = table_rows(parameters)
    total = f"{sum(row.times * prod(row.shape) for row in rows):,}"
    cells = [(row.name, " x ".join(map(str, row.shape)), row.number) for row in rows]
    if not on_terminal():
        cells.append(("total", "", total))
        widths = [max(len(row[i]) for row in cells) for i in range(3)]
        _run.message(title)
        for name, shape, count in cells:
            _run.message(f"  {name:{widths[0]}}  {shape:>{widths[1]}}  {count:>{widths[2]}}")
        return
    import sys

    from rich.console import Console
    from rich.table import Table

    table = Table("parameters", title=title, show_footer=True)
    for heading, footer in (("shape", ""), ("number", total)):
        table.add_column(heading, footer=footer, justify="right")
    for row in cells:
        table.add_row(*row)
    Console(file=sys.stderr).print(table)


@dataclass
class _Layers:
    """Layers of one stack that are alike, or one parameter outside of any."""

    stack: str
    numbers: list[str]
    parts: list[tuple[str, tuple[int, ...]]] = field(default_factory=list)

    def rows(self) -> list[Row]:
        first, last, times = self.numbers[0], self.numbers[-1], len(self.numbers)
        which = first if times == 1 else f"{first}-{last}"
        return [
            Row(f"{self.stack}.{which}.{part}" if which else self.stack, shape, times)
            for part, shape in self.parts
        ]
