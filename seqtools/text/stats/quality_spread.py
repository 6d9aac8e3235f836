"""Values that stand far outside the rest, with the most extreme of them as examples."""

from __future__ import annotations

from bisect import insort
from collections import Counter
from collections.abc import Callable
from typing import Any

from seqtools.streams.records import Record

_Entry = tuple[int, int, Record]  # how extreme, minus the record's number, and what is shown


class Spread:
    """Whole numbers in one pass; a count of each different one and the extremes are kept.

    Beyond the fences is what is farther than `fence` times the distance of the quartiles from the
    nearer of them (Tukey 1977, section 2D: 1.5 "outside", 3 "far out"), on a scale that is either
    that of the values or that of their logarithms. A quartile is the smallest value that a quarter
    (three quarters) of the values do not exceed. On logarithms their distance is taken from half
    below the one to half above the other, as a whole number stands for what rounds to it: else,
    where half of the values are the same, all others would be far out.

    Args:
        examples: how many of each end are kept.
        fence: see above.
        logarithmic: the values are positive, and the fences are on their logarithms.
    """

    def __init__(self, examples: int, fence: float, *, logarithmic: bool) -> None:
        self._examples = examples
        self._fence = fence
        self._logarithmic = logarithmic
        self.counts: Counter[int] = Counter()
        self._ends: dict[int, list[_Entry]] = {-1: [], 1: []}  # least extreme first

    def add(self, value: int, number: int, show: Callable[..., Record], *arguments: Any) -> None:
        """Take in the value of a record; `show` with the arguments makes its example."""
        self.counts[value] += 1
        for sign, ends in self._ends.items():
            if len(ends) < self._examples or (ends and (sign * value, -number) > ends[0][:2]):
                insort(ends, (sign * value, -number, show(*arguments)), key=_extremity)
                if len(ends) > self._examples:
                    del ends[0]

    def dump(self) -> Record:
        """The state."""
        low, high = ([*map(list, ends)] for ends in self._ends.values())
        values = sorted(self.counts)
        counts = [self.counts[value] for value in values]
        return {"values": values, "counts": counts, "low": low, "high": high}

    def merge(self, part: Record) -> None:
        """Take in another's state."""
        for value, count in zip(part["values"], part["counts"], strict=True):
            self.counts[value] += count
        for ends, name in zip(self._ends.values(), ("low", "high"), strict=True):
            ends += [(extremity, number, shown) for extremity, number, shown in part[name]]
            ends.sort(key=_extremity)
            del ends[: max(0, len(ends) - self._examples)]

    def fences(self) -> tuple[float, float] | None:
        """Below the first and above the second a value is far out; None without any value."""
        if not self.counts:
            return None
        low, high = self._quartile(1), self._quartile(3)
        if self._logarithmic:
            factor = ((high + 0.5) / (low - 0.5)) ** self._fence
            return low / factor, high * factor
        distance = self._fence * (high - low)
        return low - distance, high + distance

    def outside(self, sign: int, bound: float | None) -> tuple[int, list[Record]]:
        """How many are below (`sign` -1) or above (1) the bound, and examples, farthest first."""
        if bound is None:
            return 0, []
        count = sum(count for value, count in self.counts.items() if sign * value > sign * bound)
        entries = reversed(self._ends[sign])
        return count, [shown for extremity, _, shown in entries if extremity > sign * bound]

    def _quartile(self, quarters: int) -> int:
        wanted, seen = quarters * self.counts.total(), 0
        for value in sorted(self.counts):
            seen += 4 * self.counts[value]
            if seen >= wanted:
                return value
        raise AssertionError("the counts do not add up")


def _extremity(entry: _Entry) -> tuple[int, int]:
    return entry[0], entry[1]
