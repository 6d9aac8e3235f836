"""seq-stats: what is in a corpus, as records, with tables and histograms on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from seqtools.cli import _run, _stats_keywords, _stats_quality
from seqtools.cli._options import (
    NON_NEGATIVE,
    POSITIVE,
    FiniteFloat,
    ListOption,
    Option,
    Streams,
    example,
    group,
)
from seqtools.cli._stats_run import Mode, run_statistic, statistic_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seqtools.cli._io import Session
    from seqtools.streams.records import Record
    from seqtools.text.stats.labels import Labels


@group(
    "stats",
    "Say what is in a corpus: records out, tables and histograms on a terminal.\n\n"
    "What shards or pieces of a corpus give with --partial becomes one with --merge.",
)
def cli() -> None:
    """The kinds are below."""


def _fields(default: str, what: str) -> Option:
    return click.option(
        "--field", multiple=True, default=(default,), show_default=True, help=f"{what}; repeatable."
    )


class PercentilesType(click.ParamType[tuple[float, ...]]):
    """Numbers from 0 to 100, separated by commas."""

    name = "LIST"
    _each = FiniteFloat(0, 100)

    def convert(
        self,
        value: str | tuple[float, ...],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> tuple[float, ...]:
        """Parse and check."""
        if isinstance(value, tuple):
            return value
        return tuple(self._each.convert(part, param, ctx) for part in value.split(","))


@cli.command(
    epilog=example(
        """$ printf '{"text":"I am"}\\n{"text":"I am here"}\\n' \\""",
        "    | seq-stats lengths --percentiles 50 --max-length 5 --bins 0",
        '{"statistic":"lengths","field":"text","unit":"characters","records":2,"empty":0,"total":13,'
        '"min":4,"max":9,"mean":6.5,"deviation":2.5,"median":6.5,"percentiles":{"50":4}}',
        '{"statistic":"cut","field":"text","unit":"characters","max_length":5,"longer":1,'
        '"longer_share":0.5,"lost":4,"lost_share":0.3076923076923077}',
    )
)
@_fields("text", "A string, measured in characters, or a list of tokens")
@click.option(
    "--percentiles", cls=ListOption, type=PercentilesType(),
    default="5,25,50,75,90,95,99,99.9", show_default=True,
    help="Each the smallest length that so many percent do not exceed.",
)  # fmt: skip
@click.option(
    "--max-length", type=POSITIVE, multiple=True,
    help="Say what would be cut where nothing may be longer; repeatable.",
)  # fmt: skip
@click.option(
    "--bins", type=NON_NEGATIVE, default=20, show_default=True,
    help="At most so many bins in a histogram; 0 for none.",
)  # fmt: skip
@statistic_options
def lengths(
    streams: Streams,
    mode: Mode,
    field: tuple[str, ...],
    percentiles: tuple[float, ...],
    max_length: tuple[int, ...],
    bins: int,
) -> None:
    """Lengths: percentiles, what a limit would cut, histograms.

    Of two fields also the ratio of their lengths, the first's by the second's. Markers that
    seq-batch adds are not counted.
    """
    from seqtools.cli._stats_tables import show_lengths
    from seqtools.text.stats.lengths import Lengths

    def make(stated: Record) -> Lengths:
        fields = _once(stated.get("fields", field))
        return Lengths(fields, percentiles=percentiles, limits=max_length, bins=bins)

    run_statistic(streams, mode, make, show_lengths)


@cli.command(
    epilog=example(
        """$ echo '{"tokens":["to","be","or","not","to","be"]}' | seq-stats tokens --top 1 \\""",
        "    | tail -n 1",
        '{"statistic":"top","field":"tokens","rank":1,"token":"be","count":2,'
        '"share":0.3333333333333333}',
    )
)
@_fields("tokens", "A list of tokens")
@click.option(
    "--top", type=NON_NEGATIVE, default=10, show_default=True,
    help="Report so many of the most frequent tokens.",
)  # fmt: skip
@click.option(
    "--spectrum", type=NON_NEGATIVE, default=10, show_default=True,
    help="Report how many types occur once, twice, up to N times.",
)  # fmt: skip
@statistic_options
def tokens(streams: Streams, mode: Mode, field: tuple[str, ...], top: int, spectrum: int) -> None:
    """Tokens and types: richness, frequencies (Zipf), growth of the vocabulary (Heaps).

    The growth is that of the tokens in the order in which they are read: pieces that stand one
    after the other merge to the growth of the whole, while shards I/N are merged as if one stood
    behind the other. All other numbers do not depend on it.
    """
    from seqtools.cli._stats_tables import show_tokens
    from seqtools.text.stats.tokens import Tokens

    def make(stated: Record) -> Tokens:
        return Tokens(_once(stated.get("fields", field)), top=top, spectrum=spectrum)

    run_statistic(streams, mode, make, show_tokens)


@cli.command(
    epilog=example(
        """$ printf '{"label":"joy"}\\n{"label":"joy"}\\n{"label":"fear"}\\n{}\\n' \\""",
        "    | seq-stats labels | tail -n 2",
        '{"statistic":"label","field":"label","label":"joy","count":2,'
        '"share":0.6666666666666666,"records":2,"record_share":0.5}',
        '{"statistic":"label","field":"label","label":"fear","count":1,'
        '"share":0.3333333333333333,"records":1,"record_share":0.25}',
    )
)
@_fields("label", "A string, or a list of strings (labels, tags)")
@click.option(
    "--entities", is_flag=True,
    help="The lists are tags like B-PER, I-PER, O (IOB1, IOB2, IOBES, BMES): count entities.",
)  # fmt: skip
@statistic_options
def labels(streams: Streams, mode: Mode, field: tuple[str, ...], *, entities: bool) -> None:
    """Labels and tags: how many of each, in how many records, how balanced.

    A record where the field is missing, null or an empty list is counted as missing a label.
    """
    from seqtools.cli._stats_tables import show_labels
    from seqtools.text.stats.labels import Labels

    def remark(_: Session, found: Labels) -> None:
        for each in found.nowhere():
            _run.warn(f'no record has a "{each}"')

    def make(stated: Record) -> Labels:
        fields = _once(stated.get("fields", field))
        return Labels(fields, entities=stated.get("entities", entities))

    run_statistic(streams, mode, make, show_labels, remark=remark)


def _once(fields: Sequence[str]) -> list[str]:
    """Fields that were named, each once."""
    return [*dict.fromkeys(fields)]


cli.add_command(_stats_quality.quality)
cli.add_command(_stats_keywords.keywords)
cli.add_command(_stats_keywords.idf)


def main() -> None:
    """Run from the shell."""
    _run.main(cli)
