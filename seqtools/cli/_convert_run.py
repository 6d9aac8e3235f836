"""What all kinds of seq-convert share: the encoding, and the ways there and back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from seqtools.cli._io import Session
from seqtools.cli._options import Streams
from seqtools.errors import ConfigError
from seqtools.streams.encodings import Encoding, encoding

if TYPE_CHECKING:
    from seqtools.streams.files import Block
    from seqtools.streams.parallel import Counts, Parse, Transform
    from seqtools.streams.records import Record

    Regroup = Callable[[Iterator[Block]], Iterator[Block]]


class EncodingType(click.ParamType[Encoding]):
    """An encoding by any name that Python knows."""

    name = "NAME"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Encoding:
        """Look it up."""
        if isinstance(value, Encoding):
            return value
        try:
            return replace(encoding(str(value)), hint=" (see --encoding)")
        except ConfigError as error:
            self.fail(str(error), param, ctx)


encoding_option = click.option(
    "--encoding", type=EncodingType(), default="utf-8", show_default=True,
    help="Encoding of the files of the other tool: gb18030, big5, utf-16, latin-1, ...",
)  # fmt: skip
reverse_option = click.option("--reverse", is_flag=True, help="Records to lines.")


def read(
    streams: Streams,
    encoding: Encoding,
    parse: Parse,
    *,
    keep_blank: bool = True,
    regroup: Regroup | None = None,
) -> None:
    """Lines, or what `regroup` makes of them, to records; an empty record is not written."""
    with Session(streams, encoding=encoding) as session:
        session.filter(_as_it_is, parse=parse, keep_blank=keep_blank, regroup=regroup)


def write(
    streams: Streams,
    encoding: Encoding,
    line: Callable[[Record], str],
    header: str | None = None,
) -> None:
    """Records to lines, after a header where there is one."""

    def transform(record: Record, number: int) -> bytes:
        return encoding.encode(line(record) + "\n")

    with Session(streams) as session:
        session.output.write(encoding.start)
        if header is not None:
            session.output.write(encoding.encode(header + "\n"))
        session.filter(lambda counts: transform)


def _as_it_is(counts: Counts) -> Transform:
    """A filter that writes what was read, which for a line that is skipped is nothing."""
    return lambda record, number: record or b""
