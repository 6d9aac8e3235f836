"""Which records have which faults."""

from __future__ import annotations

import heapq
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, repeat
from operator import itemgetter

from seqtools.streams.records import Record
from seqtools.text.stats.quality_duplicates import Copies, pack, unpack

_Measured = tuple["array[int]", "array[int]"]  # numbers of records, and values
_Fault = tuple[str, str | None]  # and the field that has it, where it is one


class Listing:
    """The numbers of the records that have a fault: 8 bytes for each of those, at the end 16.

    Of what shows to be a fault only at the end, lengths and ratios, all are kept: 16 bytes each.
    """

    def __init__(self) -> None:
        self._faulty: dict[_Fault, array[int]] = defaultdict(lambda: array("Q"))
        self._measured: dict[str, _Measured] = defaultdict(lambda: (array("Q"), array("q")))

    def add(self, fault: str, number: int, field: str | None = None) -> None:
        """A record has a fault, in this field or as a whole."""
        self._faulty[fault, field].append(number)

    def measure(self, name: str, number: int, value: int) -> None:
        """A record has a value, of what `name` stands for."""
        numbers, values = self._measured[name]
        numbers.append(number)
        values.append(value)

    def dump(self) -> Iterator[Record]:
        """The state."""
        for (fault, field), numbers in self._faulty.items():
            yield {"listed": fault, "field": field, "numbers": pack(numbers)}
        for name, (numbers, values) in self._measured.items():
            yield {"measured": name, "numbers": pack(numbers), "values": pack(values)}

    def merge(self, part: Record) -> None:
        """Take in a record of another's state."""
        if "listed" in part:
            self._faulty[part["listed"], part["field"]] += unpack(part["numbers"])
        else:
            numbers, values = self._measured[part["measured"]]
            numbers += unpack(part["numbers"])
            values += unpack(part["values"], "q")

    def judge(
        self,
        name: str,
        faults: tuple[str, str],
        bounds: tuple[float, float] | None,
        field: str | None = None,
    ) -> None:
        """Add what is below or above the bounds as the one fault or the other."""
        if bounds is None:
            return
        for number, value in zip(*self._measured[name], strict=True):
            if not bounds[0] <= value <= bounds[1]:
                self.add(faults[value > bounds[1]], number, field)

    def report(
        self, order: Iterable[str], fields: Sequence[str], copies: Iterable[tuple[str, Copies]]
    ) -> Iterator[Record]:
        """A record for each one that has faults, by number.

        Args:
            order: of the faults of one.
            fields: all there are; of several, the faults of each are told, too.
            copies: those that are like an earlier one, whose number is told as `like`.
        """
        found: list[Iterable[tuple[int, str, str | None, int | None]]] = [
            zip(_ascending(self._faulty[fault, field]), repeat(fault), repeat(field), repeat(None))
            for fault in order
            for field in (*fields, None)
            if (fault, field) in self._faulty
        ]
        found += [
            zip(numbers, repeat(fault), repeat(None), originals)
            for fault, (numbers, originals, _) in copies
        ]
        # Of one number, those of the first come first.
        for number, rows in groupby(heapq.merge(*found, key=itemgetter(0)), itemgetter(0)):
            record: Record = {"record": number, "faults": []}
            if len(fields) > 1:
                record["fields"] = {field: [] for field in fields}
            for _, fault, field, original in rows:
                if fault not in record["faults"]:  # else it is of another field
                    record["faults"].append(fault)
                if field in record.get("fields", ()):
                    record["fields"][field].append(fault)
                if original is not None:
                    record["like"] = original
            yield record


def _ascending(numbers: array[int]) -> array[int]:
    """The numbers in order, which those of shards are not."""
    import numpy as np

    return array("Q", np.sort(np.frombuffer(numbers, np.uint64)).tobytes())
