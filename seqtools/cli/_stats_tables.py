"""What is drawn of lengths, tokens and labels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from seqtools.cli._stats_show import Drawing, Histogram, Percent, Table

if TYPE_CHECKING:
    from seqtools.streams.records import Record

_MOST = 40  # rows of a table; the records have them all
_MEASURES = ("records", "empty", "undefined", "total", "min", "max", "mean", "deviation", "median")


def show_lengths(report: list[Record]) -> Iterator[Drawing]:
    """A column for each field, a table of cuts, and histograms."""
    summaries = _of(report, "lengths")
    ratios = _of(report, "ratio")
    if summaries:
        names = [f"{each['field']} ({each['unit']})" for each in summaries]
        yield _columns("lengths", names, summaries)
    if ratios:
        yield _columns("lengths, one by the other", [" / ".join(ratios[0]["fields"])], ratios)
    cuts = _of(report, "cut")
    if cuts:
        names = ["max_length", "longer", "longer_share", "lost", "lost_share"]
        rows = [[each["field"], *(_cell(name, each[name]) for name in names)] for each in cuts]
        yield Table("what a limit cuts", ["field", *names], rows)
    for each in _of(report, "histogram"):
        bars = [
            (f"{low:,}" if low == high else f"{low:,}-{high:,}", count)
            for low, high, count in each["bins"]
        ]
        yield Histogram(f"{each['field']}: records by {each['unit']}", bars)


def _columns(title: str, names: list[str], summaries: list[Record]) -> Table:
    rows = [
        [name, *(each[name] for each in summaries)] for name in _MEASURES if name in summaries[0]
    ]
    for percentile in summaries[0].get("percentiles", ()):
        rows.append([f"{percentile} %", *(each["percentiles"][percentile] for each in summaries)])
    return Table(title, ["", *names], rows)


def show_tokens(report: list[Record]) -> Iterator[Drawing]:
    """Measures, the most frequent tokens, the spectrum and the growth of each field."""
    for head in _of(report, "tokens"):
        field = head["field"]
        mine = [record for record in report if record["field"] == field]
        measures = [[name, _cell(name, value)] for name, value in head.items()][1:]
        yield Table(f"{field}: types", ["", ""], measures[1:])
        best = [[each["rank"], each["token"], each["count"], Percent(each["share"])]
                for each in _of(mine, "top")[:_MOST]]  # fmt: skip
        if best:
            yield Table(f"{field}: most frequent", ["rank", "token", "count", "share"], best)
        growth = [(f"{each['tokens']:,}", each["types"]) for each in _of(mine, "growth")]
        if growth:
            yield Histogram(f"{field}: types by tokens read", growth)
        spectrum = [(f"{each['count']:,}", each["types"]) for each in _of(mine, "spectrum")]
        if spectrum:
            yield Histogram(f"{field}: types by how often they occur", spectrum[:_MOST])


def show_labels(report: list[Record]) -> Iterator[Drawing]:
    """Measures, labels and entities of each field."""
    for head in _of(report, "labels"):
        field = head["field"]
        mine = [record for record in report if record["field"] == field]
        measures = [[name, _cell(name, value)] for name, value in head.items()][1:]
        yield Table(f"{field}: balance", ["", ""], measures[1:])
        for statistic, name in (("label", "label"), ("entity", "type")):
            found = _of(mine, statistic)
            if not found:
                continue
            columns = [key for key in found[0] if key not in ("statistic", "field")]
            rows = [[_cell(key, each[key]) for key in columns] for each in found[:_MOST]]
            more = f", {_MOST} of {len(found)}" if len(found) > _MOST else ""
            yield Table(f"{field}: {statistic}{more}", columns, rows)
            yield Histogram("", [(each[name], each["count"]) for each in found[:_MOST]])


def _cell(name: str, value: Any) -> Any:
    return Percent(value) if name.endswith("share") else value


def _of(report: list[Record], statistic: str) -> list[Record]:
    return [record for record in report if record["statistic"] == statistic]
