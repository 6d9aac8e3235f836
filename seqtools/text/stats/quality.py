"""Dirty data: faults of records, how many there are and what they look like."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from seqtools.streams.records import Record
from seqtools.text.stats.places import Places
from seqtools.text.stats.quality_duplicates import Copies, Duplicates
from seqtools.text.stats.quality_listing import Listing
from seqtools.text.stats.quality_signs import SIGNS, Sign, find_signs
from seqtools.text.stats.quality_spread import Spread
from seqtools.text.stats.values import get_string_or_strings

_AROUND = 20  # code points shown on either side of a sign
_SHOWN = 60  # of a text as a whole
_LENGTHS, _RATIOS = ("short", "long"), ("ratio-low", "ratio-high")
_OF_LENGTHS, _OF_RATIOS = "lengths of ", "ratios"  # what a listing has the values of
_PARTS = 100  # a logarithm of a ratio is held as a whole number of such parts


@dataclass(frozen=True, slots=True)
class Limits:
    """What counts as a fault, and how much is told of it.

    Attributes:
        examples: of each fault in each field.
        fence: see `Spread`; at most 10, where whatever a text may be is within the range of floats.
        near: resemblance from which records are near-duplicates; None: not looked for.
        shingle: code points of what is compared for them.
        listing: tell of each faulty record instead.
    """

    examples: int = 5
    fence: float = 3.0
    near: float | None = None
    shingle: int = 4
    listing: bool = False


@dataclass(slots=True)
class _Fault:
    """How many records have a fault, and the first of them."""

    count: int = 0
    examples: list[Record] = field(default_factory=list)

    def merge(self, count: int, examples: list[Record], most: int) -> None:
        self.count += count
        self.examples = sorted(self.examples + examples, key=lambda shown: shown["record"])[:most]


class Quality:
    """Faults of records, in one pass.

    Signs (`quality_signs`) and unusual lengths are of a field, which is a string, or a list of
    tokens, which are joined by blanks. Records are duplicates in all fields together; those in
    which all are blank are not compared. Of two fields there are also unusual ratios of the first
    one's length to the second's, and pairs whose two sides are the same but for white space at
    their ends.

    Held are 16 bytes a record (144 with `near`; see `Duplicates`, and `Listing` and `Places` for
    what they add), a count for each different length, and the examples. Lengths and ratios are
    unusual beyond the fences of `Spread`, on logarithms; those of ratios are held to a hundredth.

    Args:
        fields: which.
        limits: what counts.
    """

    kind = "quality"

    def __init__(self, fields: Sequence[str] = ("text",), limits: Limits | None = None) -> None:
        self._limits = limits = limits or Limits()
        self._fields = tuple(fields)
        self._pair = len(self._fields) == 2
        self._records = 0
        self._signs = {(name, sign): _Fault() for name in self._fields for sign in SIGNS}
        self._identical = _Fault()
        self._lengths = {
            name: Spread(limits.examples, limits.fence, logarithmic=True) for name in self._fields
        }
        self._ratios = Spread(limits.examples, limits.fence, logarithmic=False)
        self._duplicates = Duplicates(limits.near, limits.shingle)
        self._listing = Listing() if limits.listing else None
        self.places = Places()

    @property
    def options(self) -> Record:
        """What shapes the state."""
        limits = self._limits
        return {
            "fields": [*self._fields],
            "examples": limits.examples,
            "near_duplicates": limits.near,
            "shingle": limits.shingle,
            "list": limits.listing,
        }

    def add(self, record: Record, number: int) -> None:
        """Look at a record.

        Raises:
            RecordError: a field is missing, or neither a string nor a list of strings.
        """
        texts = [_text(record, name) for name in self._fields]
        self._records += 1
        blank = 0
        for name, text in zip(self._fields, texts, strict=True):
            for sign in find_signs(text):
                fault = self._signs[name, sign[0]]
                self._add(sign[0], name, fault, record, number, _show_sign, text, sign)
                blank += sign[0] == "empty"
            if text:
                length = len(text)
                self._lengths[name].add(length, number, _show_length, record, number, text)
                if self._listing:
                    self._listing.measure(_OF_LENGTHS + name, number, length)
        if blank < len(texts):
            self._duplicates.add("\0".join(texts), number)
        if self._pair and not blank:
            self._add_pair(texts[0], texts[1], record, number)

    def _add_pair(self, source: str, target: str, record: Record, number: int) -> None:
        ratio = round(_PARTS * math.log(len(source) / len(target)))
        self._ratios.add(ratio, number, _show_pair, record, number, source, target)
        if self._listing:
            self._listing.measure(_OF_RATIOS, number, ratio)
        if source.strip() == target.strip():
            self._add("identical", None, self._identical, record, number, _show_length, source)

    def _add(
        self, name: str, field: str | None, fault: _Fault, record: Record, number: int,
        show: Callable[..., Record], *arguments: Any,
    ) -> None:  # fmt: skip
        fault.count += 1
        if len(fault.examples) < self._limits.examples:
            fault.examples.append(show(record, number, *arguments))
        if self._listing:
            self._listing.add(name, number, field)

    def dump(self) -> Iterator[Record]:
        """The state."""
        yield {"records": self._records}
        for (name, sign), fault in self._signs.items():
            if fault.count:
                yield {"field": name, "sign": sign, "count": fault.count,
                       "examples": fault.examples}  # fmt: skip
        yield {"identical": self._identical.count, "examples": self._identical.examples}
        for name, lengths in self._lengths.items():
            yield {"lengths": name, **lengths.dump()}
        yield {"ratios": None, **self._ratios.dump()}
        yield from self.places.dump()
        yield from self._duplicates.dump()
        if self._listing:
            yield from self._listing.dump()

    def merge(self, part: Record) -> None:
        """Take in a record of another's state."""
        most = self._limits.examples
        if "records" in part:
            self._records += int(part["records"])
        elif "sign" in part:
            fault = self._signs[part["field"], part["sign"]]
            fault.merge(int(part["count"]), part["examples"], most)
        elif "identical" in part:
            self._identical.merge(int(part["identical"]), part["examples"], most)
        elif "lengths" in part:
            self._lengths[part["lengths"]].merge(part)
        elif "ratios" in part:
            self._ratios.merge(part)
        elif "places" in part:
            self.places.merge(part)
        elif self._listing and "hashes" not in part:
            self._listing.merge(part)
        else:
            self._duplicates.merge(part)

    def report(self) -> Iterator[Record]:
        """How many records there were, and for each fault those that have it, with examples.

        Those of signs are the first, those of lengths and ratios the farthest out. A duplicate is a
        record like an earlier one; a near-duplicate is no duplicate. With `listing`, a record for
        each one that has faults instead.

        Raises:
            FormatError: parts had records of the same number.
        """
        if self._listing:
            yield from self._list(self._listing)
            return
        exact = self._duplicates.exact()
        yield {"statistic": "quality", "records": self._records}
        for name in self._fields:
            for sign in SIGNS:
                fault = self._signs[name, sign]
                yield self._row(sign, fault.count, fault.examples, field=name)
            yield from self._unusual(_LENGTHS, self._lengths[name], field=name)
        if self._pair:
            yield from self._unusual_ratios()
            yield self._row("identical", self._identical.count, self._identical.examples)
        yield self._row("duplicate", len(exact.numbers), self._show_copies(exact))
        if self._limits.near is not None:
            near = self._duplicates.near(exact)
            shown = self._show_copies(near)
            for example, likeness in zip(shown, near.likeness, strict=False):
                example["similarity"] = round(likeness, 3)
            yield self._row("near-duplicate", len(near.numbers), shown)

    def _list(self, listing: Listing) -> Iterator[Record]:
        for name, lengths in self._lengths.items():
            listing.judge(_OF_LENGTHS + name, _LENGTHS, lengths.fences(), name)
        listing.judge(_OF_RATIOS, _RATIOS, self._ratios.fences())
        copies = [("duplicate", self._duplicates.exact())]
        if self._limits.near is not None:
            copies.append(("near-duplicate", self._duplicates.near(copies[0][1])))
        order = (*SIGNS, *_LENGTHS, *_RATIOS, "identical")
        for row in listing.report(order, self._fields, copies):
            yield self._place(row)

    def _row(self, fault: str, count: int, examples: list[Record], **more: Any) -> Record:
        share = count / self._records if self._records else 0.0
        head = {"statistic": "fault", "fault": fault, **more}
        placed = [*map(self._place, examples)]
        return {**head, "count": count, "share": share, "examples": placed}

    def _place(self, shown: Record) -> Record:
        """What is told of a record, with the places of it and of the one that it is like."""
        placed = {**self.places.tell(shown["record"]), **shown}
        if "like" in placed:
            placed["like"] = self.places.tell(placed["like"])
        return placed

    def _unusual(self, names: tuple[str, str], spread: Spread, **more: Any) -> Iterator[Record]:
        low, high = spread.fences() or (None, None)
        for sign, name, side, bound in ((-1, names[0], "below", low), (1, names[1], "above", high)):
            count, examples = spread.outside(sign, bound)
            yield self._row(name, count, examples, **more, **{side: bound})

    def _unusual_ratios(self) -> Iterator[Record]:
        for row in self._unusual(_RATIOS, self._ratios):
            for side in {"below", "above"} & {*row}:
                row[side] = None if row[side] is None else math.exp(row[side] / _PARTS)
            yield row

    def _show_copies(self, copies: Copies) -> list[Record]:
        pairs = zip(copies.numbers, copies.originals, strict=True)
        return [
            {"record": number, "like": original}
            for number, original in islice(pairs, self._limits.examples)
        ]


def _text(record: Record, name: str) -> str:
    value = get_string_or_strings(record, name)
    return value if isinstance(value, str) else " ".join(value)


def _named(record: Record, number: int) -> Record:
    return {"record": number, "id": record["id"]} if "id" in record else {"record": number}


def _show_sign(record: Record, number: int, text: str, sign: Sign) -> Record:
    _, start, end = sign
    end = min(end, start + _SHOWN)
    found = text[start:end]
    if len(found) == 1 and not found.isalnum():
        found = f"U+{ord(found):04X}"  # or it would hardly be seen
    around = text[max(0, start - _AROUND) : end + _AROUND]
    return {**_named(record, number), "at": start, "found": found, "text": around}


def _show_length(record: Record, number: int, text: str) -> Record:
    return {**_named(record, number), "length": len(text), "text": text[:_SHOWN]}


def _show_pair(record: Record, number: int, source: str, target: str) -> Record:
    sides = [source[:_SHOWN], target[:_SHOWN]]
    return {**_named(record, number), "lengths": [len(source), len(target)], "texts": sides}
