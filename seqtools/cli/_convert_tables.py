"""seq-convert tsv and csv: tables, with or without a line that names their columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from seqtools.cli import _run
from seqtools.cli._convert_run import read, write
from seqtools.cli._options import NamesType, Streams
from seqtools.errors import ConfigError, InputError, RecordError
from seqtools.streams.records import loads

if TYPE_CHECKING:
    from seqtools.cli._convert_run import Regroup
    from seqtools.streams.encodings import Encoding
    from seqtools.streams.files import Block
    from seqtools.streams.parallel import Parse
    from seqtools.text.convert.tables import Table


class ColumnsType(NamesType):
    """Names of columns, or _ for any that is not wanted, separated by commas."""

    repeatable = frozenset({"_"})


def read_table(
    streams: Streams,
    encoding: Encoding,
    table: Table,
    wanted: tuple[str, ...] | None,
    *,
    header: bool,
    regroup: Regroup | None = None,
) -> None:
    """Rows to records."""
    from seqtools.text.convert.tables import NOT_WANTED, Columns

    if not header:
        names = _needed(wanted, " (or --header, where line 1 names them)")
        for name in names:
            if name != name.strip():
                raise click.UsageError(f"--columns: {name!r} has white space at an end.")
        taken = [name for name in names if name != NOT_WANTED]
        columns = Columns(names, taken, table, encoding)
        read(streams, encoding, columns.read, regroup=regroup)
        return

    def behead(blocks: Iterator[Block]) -> Iterator[Block]:
        whole = blocks if regroup is None else regroup(blocks)
        return _take_headers(whole, table, wanted, encoding)

    read(streams, encoding, loads, regroup=behead)  # each file has its own way to parse


def write_table(
    streams: Streams,
    encoding: Encoding,
    table: Table,
    columns: tuple[str, ...] | None,
    *,
    header: bool,
) -> None:
    """Records to rows."""
    from seqtools.text.convert.tables import NOT_WANTED

    names = _needed(columns)
    if NOT_WANTED in names:
        raise click.UsageError(f"--columns: no field can be written for {NOT_WANTED}.")
    write(
        streams, encoding, lambda record: table.write(record, names),
        table.write(dict(zip(names, names, strict=True)), names) if header else None,
    )  # fmt: skip


def _needed(columns: tuple[str, ...] | None, otherwise: str = "") -> tuple[str, ...]:
    if columns is None:
        raise click.UsageError(f"--columns NAMES is needed{otherwise}.")
    return columns


def _take_headers(
    blocks: Iterator[Block], table: Table, wanted: tuple[str, ...] | None, encoding: Encoding
) -> Iterator[Block]:
    """Blocks of tables that name their columns, without the lines that do so.

    Raises:
        InputError: such a line is bad.
        ConfigError: a wanted column is not in it.
    """
    from seqtools.text.convert.tables import Columns, read_header

    headers = 0  # they have numbers among the records, but are none
    parse: Parse | None = None
    for block in blocks:
        block = replace(block, record=block.record - headers)
        parts = block.behead() if block.line == 1 else None
        if parts is not None:
            first, block = parts
            try:
                names = read_header(first, table, encoding)
                _look_at(names, table, block.source)
                parse = Columns(names, wanted, table, encoding).read
            except RecordError as error:
                raise InputError(block.source, 1 + error.line, str(error)) from None
            except ConfigError as error:
                raise ConfigError(f"{block.source}: {error}") from None
            headers += 1
        yield replace(block, parse=parse)


def _look_at(names: list[str], table: Table, source: str) -> None:
    """Warn of a single column whose name looks like several."""
    from seqtools.text.convert.tables import Csv

    if isinstance(table, Csv) and len(names) == 1 and any(mark in names[0] for mark in ";\t"):
        _run.warn(f"{source}: one column, called {names[0]!r} (see --delimiter)")
