"""The kind quality of seq-stats."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from seqtools.cli._options import NON_NEGATIVE, POSITIVE, FiniteFloat, Streams, example
from seqtools.cli._stats_run import Mode, run_statistic, statistic_options
from seqtools.cli._stats_show import Drawing, Histogram, Percent, Table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seqtools.streams.records import Record

_ROWS = 60  # of a table on a terminal
_MOST = 1 << 62  # numbers of records are held as whole numbers of 64 bits


@click.command(
    epilog=example(
        """$ printf '{"text":"a caf\\u00c3\\u00a9"}\\n{"text":"to be"}\\n' > menu.jsonl""",
        """$ seq-stats quality menu.jsonl | grep '"count":1'""",
        """{"statistic":"fault","fault":"mojibake","field":"text","count":1,"share":0.5,""",
        """"examples":[{"record":1,"file":"menu.jsonl","line":1,""",
        """"at":5,"found":"Ã©","text":"a cafÃ©"}]}""",
    )
)
@click.option(
    "--field", multiple=True, default=("text",), show_default=True,
    help="A string, or a list of tokens; repeatable. Of two, pairs are looked at, too.",
)  # fmt: skip
@click.option(
    "--examples", type=NON_NEGATIVE, default=5, show_default=True, help="How many of each fault."
)
@click.option(
    "--near-duplicates", type=FiniteFloat(0.5, 1), metavar="SIMILARITY",
    help="Look for records like an earlier one: from 0.5 to 1, the share of what the two have in"
    " common of what either has.",
)  # fmt: skip
@click.option(
    "--shingle", type=POSITIVE, default=4, show_default=True,
    help="For --near-duplicates: compare stretches of so many characters.",
)  # fmt: skip
@click.option(
    "--fence", type=FiniteFloat(0, 10), default=3.0, show_default=True,
    help="Lengths and ratios are unusual if they are so many times the distance of the quartiles"
    " beyond these, on a logarithmic scale.",
)  # fmt: skip
@click.option(
    "--list", "listing", is_flag=True,
    help="Write a record for each faulty one instead: its place, its faults, and which earlier"
    " record it is like.",
)  # fmt: skip
@statistic_options
def quality(
    streams: Streams,
    mode: Mode,
    field: tuple[str, ...],
    examples: int,
    near_duplicates: float | None,
    shingle: int,
    fence: float,
    *,
    listing: bool,
) -> None:
    """Dirty data: faults, how many records have each, and examples with file and line.

    Memory is 16 bytes a record, and with --near-duplicates 144; with --list 16 more for each length
    and ratio. To find duplicates at the end takes 50 bytes a record more, near-duplicates 100.
    Where parts that are no shards are merged, each needs its --first-record.
    """
    from seqtools.text.stats.quality import Limits, Quality

    def make(stated: Record) -> Quality:
        limits = Limits(
            stated.get("examples", examples),
            fence,
            stated.get("near_duplicates", near_duplicates),
            stated.get("shingle", shingle),
            stated.get("list", listing),
        )
        return Quality([*dict.fromkeys(stated.get("fields", field))], limits)

    if streams.first_record >= _MOST:
        raise click.UsageError("--first-record must be below 2^62.")
    run_statistic(streams, mode, make, _show, most=_ROWS)


def _show(records: list[Record]) -> Iterator[Drawing]:
    listing = not records or "statistic" not in records[0]
    return _show_list(records) if listing else _show_faults(records)


def _show_faults(records: list[Record]) -> Iterator[Drawing]:
    """Only those that there are; the records have the others, too."""
    rows = [
        (row["fault"], row.get("field"), row["count"], Percent(row["share"]),
         _first(row["examples"]))
        for row in records[1:] if row["count"]
    ]  # fmt: skip
    title = f"faults of {records[0]['records']:,} records"
    yield Table(title, ["fault", "field", "records", "share", "first example"], rows)
    bars = [(" ".join(filter(None, row[:2])), row[2]) for row in rows]
    if bars:
        yield Histogram("records by fault", bars)


def _show_list(records: list[Record]) -> Iterator[Drawing]:
    rows = [
        (_place(row), ", ".join(_named(row)), _place(row["like"]) if "like" in row else "")
        for row in records
    ]
    yield Table("faulty records", ["line", "faults", "like"], rows)


def _named(row: Record) -> Iterator[str]:
    """The faults of a record, with the fields that have them where there are several."""
    of_fields = row.get("fields", {})
    for fault in row["faults"]:
        fields = [field for field, faults in of_fields.items() if fault in faults]
        yield f"{fault} ({', '.join(fields)})" if fields else fault


def _first(examples: list[Record]) -> str:
    if not examples:
        return ""
    first = examples[0]
    texts = first.get("texts") or [first[name] for name in ("text",) if name in first]
    like = f" is like {_place(first['like'])}" if "like" in first else ""
    return f"{_place(first)}{like} {' | '.join(texts)}".strip()


def _place(row: Record) -> str:
    """File and line of what is told of; the number of a record that nothing else is known of."""
    return f"{row['file']}:{row['line']}" if "line" in row else str(row["record"])
