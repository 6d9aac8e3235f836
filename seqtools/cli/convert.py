"""seq-convert: files of other tools to records and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from seqtools.cli import _run
from seqtools.cli._io import Session
from seqtools.cli._options import NamesType, Streams, example, filter_options, group
from seqtools.errors import ConfigError, InputError, RecordError

if TYPE_CHECKING:
    from seqtools.streams.parallel import Counts, Transform
    from seqtools.streams.records import Record


@group("convert", "Files of other tools to records and back.")
def cli() -> None:
    """The kinds are below."""


reverse_option = click.option("--reverse", is_flag=True, help="Records to lines.")


@cli.command(
    epilog=example(
        r"$ printf 'a dog\n\n一只狗\n' | seq-convert text",
        '{"text":"a dog"}',
        '{"text":""}',
        '{"text":"一只狗"}',
        """$ echo '{"id":7,"text":"a dog"}' | seq-convert text --reverse""",
        "a dog",
    )
)
@click.option("--field", default="text", show_default=True, help="Name of the field.")
@reverse_option
@filter_options
def text(streams: Streams, field: str, *, reverse: bool) -> None:
    """Each line a record; an empty line is an empty text."""
    from seqtools.text.convert import read_text, write_text

    with Session(streams) as session:
        if reverse:
            session.filter(_lines(lambda record: write_text(record, field)))
        else:
            session.filter(_as_it_is, parse=lambda line: read_text(line, field), keep_blank=True)


@cli.command(
    epilog=example(
        r"$ printf 'ein Hund\ta dog\n' | seq-convert tsv --columns src,tgt",
        '{"src":"ein Hund","tgt":"a dog"}',
        r"$ printf 'id\tde\ten\n7\tein Hund\ta dog\n' | seq-convert tsv --header --columns en",
        '{"en":"a dog"}',
        """$ echo '{"src":"ein Hund","tgt":"a dog"}' | seq-convert tsv --reverse --columns tgt""",
        "a dog",
    )
)
@click.option("--columns", type=NamesType(), help="Names of the columns, separated by commas.")
@click.option(
    "--header",
    is_flag=True,
    help="Line 1 of each file names the columns, and --columns says which to take (default: all)."
    " With --reverse: write such a line.",
)
@reverse_option
@filter_options
def tsv(streams: Streams, columns: tuple[str, ...] | None, *, header: bool, reverse: bool) -> None:
    """Columns separated by tabs, without quotation marks; each line a record of strings.

    A line that is empty is skipped, unless there is but one column.
    """
    from seqtools.text.convert import Columns, write_row

    if header and not reverse:
        with Session(streams) as session:
            _read_with_header(session, columns)
        return
    if columns is None:
        raise click.UsageError("--columns NAMES is needed.")
    with Session(streams) as session:
        if reverse:
            if header:
                session.output.write("\t".join(columns).encode() + b"\n")
            session.filter(_lines(lambda record: write_row(record, columns)))
        else:
            session.filter(_as_it_is, parse=Columns(columns).read, keep_blank=True)


def _read_with_header(session: Session, wanted: tuple[str, ...] | None) -> None:
    """Read tables that name their columns; in this process, since blocks depend on line 1."""
    from dataclasses import replace

    from seqtools.streams.files import chomp
    from seqtools.streams.parallel import Reject
    from seqtools.text.convert import Columns, decode

    streams = session.streams
    headers = 0  # they have numbers among the records, but are none
    for block in session.blocks(keep_blank=True):
        block = replace(block, record=block.record - headers)
        if block.line == 1 and block.data:
            first, _, rest = block.data.partition(b"\n")
            try:
                columns = Columns(decode(chomp(first)).split("\t"), wanted)
            except RecordError as error:
                raise InputError(block.source, 1, str(error)) from None
            except ConfigError as error:
                raise ConfigError(f"{block.source}: {error}") from None
            block = replace(block, data=rest, line=2)
            headers += 1
        for place, raw in block.lines(streams.shard, streams.first_record):
            session.records += 1
            try:
                record = columns.read(chomp(raw))
            except RecordError as error:
                session.reject(Reject(place, raw, str(error)))
            else:
                if record:
                    session.write(record)
        session.progress()


def _as_it_is(counts: Counts) -> Transform:
    """A filter that writes what was read, which for a line that is skipped is nothing."""
    return lambda record, number: record or b""


def _lines(write: Callable[[Record], bytes]) -> Callable[[Counts], Transform]:
    """A filter that writes a line for each record."""
    return lambda counts: lambda record, number: write(record) + b"\n"


def main() -> None:
    """Run from the shell."""
    _run.main(cli)
