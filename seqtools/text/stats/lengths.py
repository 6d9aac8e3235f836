"""Lengths of fields: moments, percentiles, histograms, and what a limit would cut."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import accumulate
from typing import TypeVar

from seqtools.streams.records import Record
from seqtools.text.stats.values import get_string_or_strings

N = TypeVar("N", int, float)

PERCENTILES = (5.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.9)


class Lengths:
    """Lengths of fields: of a string in characters (code points), of a list in tokens.

    Of two fields also the ratio, the first's length by the second's. All numbers are exact: what
    is held is a count of each different length, of which there are at most about the square root
    of twice the total length, and of each different ratio.

    Args:
        fields: which.
        percentiles: of the lengths and ratios, from 0 to 100.
        limits: what each would cut is reported.
        bins: how many of a histogram are reported at most; 0 for none.
    """

    kind = "lengths"
    places = None

    def __init__(
        self,
        fields: Sequence[str] = ("text",),
        *,
        percentiles: Sequence[float] = PERCENTILES,
        limits: Sequence[int] = (),
        bins: int = 0,
    ) -> None:
        self.options: Record = {"fields": [*fields]}
        self._fields = tuple(fields)
        self._percentiles = percentiles
        self._limits = limits
        self._bins = bins
        # By field and type: a field that is a string here and a list there is told of twice.
        self._lengths: dict[tuple[str, str], Counter[int]] = {}
        self._ratios: Counter[float] = Counter()
        self._undefined = 0

    def add(self, record: Record, number: int) -> None:
        """Take in a record.

        Raises:
            RecordError: a field is missing, or neither a string nor a list of strings.
        """
        found = [_measure(record, field) for field in self._fields]
        for field, (unit, length) in zip(self._fields, found, strict=True):
            self._counts(field, unit)[length] += 1
        if len(found) == 2:
            (_, source), (_, target) = found
            if target:
                self._ratios[source / target] += 1
            else:
                self._undefined += 1

    def dump(self) -> Iterator[Record]:
        """A record for each field and unit, and one for the ratios."""
        for (field, unit), counts in self._lengths.items():
            yield {
                "field": field,
                "unit": unit,
                "lengths": [*counts],
                "counts": [*counts.values()],
            }
        if len(self._fields) == 2:
            yield {
                "ratios": [*self._ratios],
                "counts": [*self._ratios.values()],
                "undefined": self._undefined,
            }

    def merge(self, part: Record) -> None:
        """Take in a record of `dump`."""
        if "ratios" in part:
            _add(self._ratios, part["ratios"], part["counts"])
            self._undefined += part["undefined"]
        else:
            _add(self._counts(part["field"], part["unit"]), part["lengths"], part["counts"])

    def report(self) -> Iterator[Record]:
        """Of each field its lengths, what limits cut, and a histogram; then the ratios.

        `deviation` is the root of the mean square (divided by the number of records), `median` of
        an even number the middle of the two; a percentile p is the smallest length that p percent
        of the records do not exceed (Hyndman and Fan 1996, definition 1).
        """
        for (field, unit), counts in sorted(self._lengths.items(), key=self._order):
            total = sum(length * count for length, count in counts.items())
            head = {"field": field, "unit": unit}
            yield {
                "statistic": "lengths",
                **head,
                "records": counts.total(),
                "empty": counts[0],
                "total": total,
                **summary(counts, self._percentiles),
            }
            for limit in self._limits:
                yield {"statistic": "cut", **head, **cut(counts, limit)}
            if self._bins:
                yield {"statistic": "histogram", **head, "bins": histogram(counts, self._bins)}
        if self._ratios or self._undefined:
            yield {
                "statistic": "ratio",
                "fields": [*self._fields],
                "records": self._ratios.total(),
                "undefined": self._undefined,
                **(summary(self._ratios, self._percentiles) if self._ratios else {}),
            }

    def _order(self, item: tuple[tuple[str, str], Counter[int]]) -> tuple[int, str]:
        (field, unit), _ = item
        return self._fields.index(field), unit

    def _counts(self, field: str, unit: str) -> Counter[int]:
        return self._lengths.setdefault((field, unit), Counter())


def _measure(record: Record, field: str) -> tuple[str, int]:
    value = get_string_or_strings(record, field)
    return ("characters" if type(value) is str else "tokens"), len(value)


def _add(counts: Counter[N], keys: Sequence[N], more: Sequence[int]) -> None:
    for key, count in zip(keys, more, strict=True):
        counts[key] += count


def summary(counts: Mapping[N, int], percentiles: Sequence[float]) -> Record:
    """Least, greatest, mean, deviation, median and percentiles of numbers that are counted.

    Args:
        counts: of each number, at least one.
        percentiles: from 0 to 100.
    """
    values: list[N] = sorted(counts)
    ends = [*accumulate(counts[value] for value in values)]
    number = ends[-1]
    mean = math.fsum(value * counts[value] for value in values) / number
    square = math.fsum((value - mean) ** 2 * counts[value] for value in values) / number

    ranks = [(number + 1) // 2, number // 2 + 1]
    ranks += [_rank(percentile, number) for percentile in percentiles]
    at: list[N] = [values[bisect_left(ends, rank)] for rank in ranks]
    low, high = at[:2]
    return {
        "min": values[0],
        "max": values[-1],
        "mean": mean,
        "deviation": math.sqrt(square),
        "median": low if low == high else (low + high) / 2,
        "percentiles": {f"{p:.15g}": value for p, value in zip(percentiles, at[2:], strict=True)},
    }


def _rank(percentile: float, number: int) -> int:
    """The rank, from 1, of a percentile of so many; 99.9 is what it is written as."""
    return max(1, math.ceil(Fraction(repr(percentile)) * number / 100))


def cut(counts: Mapping[int, int], limit: int) -> Record:
    """What is lost where nothing may be longer than `limit`."""
    longer = sum(count for length, count in counts.items() if length > limit)
    lost = sum((length - limit) * count for length, count in counts.items() if length > limit)
    total = sum(length * count for length, count in counts.items())
    return {
        "max_length": limit,
        "longer": longer,
        "longer_share": longer / sum(counts.values()),
        "lost": lost,
        "lost_share": lost / total if total else 0.0,
    }


def histogram(counts: Mapping[int, int], bins: int) -> list[tuple[int, int, int]]:
    """Bins of one width (1, 2 or 5 times a power of ten), the last as wide as it needs to be.

    The width is the smallest for which the 99th percentile is within so many bins, so that a few
    long records do not press all others into one bin.

    Returns:
        Of each bin the shortest and the longest length in it, and how many there are.
    """
    longest = max(counts)
    most: int = summary(counts, (99.0,))["percentiles"]["99"]
    width = next(width for width in _widths() if most < width * bins)
    made = [0] * min(bins, longest // width + 1)
    for length, count in counts.items():
        made[min(length // width, len(made) - 1)] += count
    lows = range(0, len(made) * width, width)
    highs = [*(low - 1 for low in lows[1:]), max(longest, lows[-1] + width - 1)]
    return [*zip(lows, highs, made, strict=True)]


def _widths() -> Iterator[int]:
    power = 1
    while True:
        yield from (power, 2 * power, 5 * power)
        power *= 10
