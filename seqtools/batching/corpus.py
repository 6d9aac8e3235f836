"""A corpus in memory: ids in compact arrays, cut into batches by place and length.

Ids take 4 bytes each, names of records a few more. Nothing is kept as Python objects, so millions
of records cost the garbage collector nothing. What a task adds to this stands in `tasks`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from seqtools.batching.padding import Ids, Sizes, gather
from seqtools.batching.stream import IGNORED, Batch, Header
from seqtools.errors import ConfigError, RecordError
from seqtools.lazy import unknown
from seqtools.streams.records import Record, dumps, get_ids, get_tokens, loads
from seqtools.text.vocab import Vocabulary

TRUNCATIONS = ("right", "left", "drop", "error")


@dataclass(frozen=True)
class Options:
    """How a corpus is cut into batches; None where nothing limits.

    Attributes:
        ids: records hold ids, which are taken as they are, without bos or eos.
        max_length: longest sequence, the symbols around it (but for the bos) counted.
        truncate: what becomes of a longer one: `right` cuts its end off, `left` its beginning,
            `drop` leaves the record out, `error` calls it a bad record.
        batch_size: rows at most.
        batch_tokens: rows x longest row at most.
        shuffle: draw the order anew each epoch; else the order of the file.
        drop_last: leave out what does not fill a whole batch.
        pad_left: put the padding before the ids.
        pad_to: columns at least.
        seed: of all random choices.

    Raises ConfigError for an unknown way to truncate.
    """

    ids: bool = False
    max_length: int | None = None
    truncate: str = "right"
    batch_size: int | None = None
    batch_tokens: int | None = None
    shuffle: bool = True
    drop_last: bool = False
    pad_left: bool = False
    pad_to: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.truncate not in TRUNCATIONS:
            raise ConfigError(unknown(self.truncate, TRUNCATIONS, "way to truncate"))


@dataclass
class Column:
    """One column of sequences: where it stands in a record, and what was seen in it.

    Attributes:
        field: its name in the records.
        vocabulary: what its ids mean.
        bos: ids put before each sequence, none or one.
        eos: ids put behind each sequence, none or one.
        not_text: spellings that text cannot have, besides those of the vocabulary's specials.
        tokens: how many tokens were taken, bos and eos not counted.
        unknown: how many of them are not in the vocabulary.
        reserved: how many of these are spelled like a special.
    """

    field: str
    vocabulary: Vocabulary
    bos: list[int]
    eos: list[int]
    not_text: frozenset[str] = frozenset()
    tokens: int = 0
    unknown: int = 0
    reserved: int = 0

    def __post_init__(self) -> None:
        self._spellings = self.vocabulary.spellings() | self.not_text

    @property
    def unknown_share(self) -> float:
        """Unknown tokens over tokens."""
        return self.unknown / max(1, self.tokens)

    def read(self, record: Record, *, ids: bool) -> list[Any]:
        """Take the column's tokens, or ids, out of a record.

        Raises:
            RecordError: the field is missing, of another type, or has an id out of range.
        """
        if ids:
            return get_ids(record, self.field, len(self.vocabulary))
        return get_tokens(record, self.field)

    def count(self, tokens: list[Any], numbers: list[int]) -> None:
        """Count what was taken from a record: as it stood there, and encoded."""
        self.tokens += len(tokens)
        unk = self.vocabulary.unk
        unknown = 0 if unk is None else numbers.count(unk)
        if unknown:
            self.unknown += unknown
            if tokens is not numbers and not self._spellings.isdisjoint(tokens):
                self.reserved += sum(token in self._spellings for token in tokens)


class Encoded(NamedTuple):
    """What a record gives: its `id`, if it has a usable one, and one sequence a column."""

    name: str | int | None
    sequences: list[list[int]]


@dataclass
class Tally:
    """What became of the records, and how full the batches of all epochs are.

    Attributes:
        records: how many were read.
        empty: how many have an empty sequence.
        left_out: how many of these give no row, since nothing is put around their ids.
        truncated: how many were cut to the maximal length.
        dropped: how many were longer than that and are not in the batches.
        alone: rows that are above the token budget by themselves.
        unused: targets that the sampling leaves out.
        positions: places in the rectangles.
        padding: how many of these are padding.
    """

    records: int = 0
    empty: int = 0
    left_out: int = 0
    truncated: int = 0
    dropped: int = 0
    alone: int = 0
    unused: int = 0
    positions: int = 0
    padding: int = 0


class Sequences:
    """Lists of ids, one behind the other, at 4 bytes an id."""

    def __init__(self) -> None:
        self._ids = array("i")
        self._ends = array("q", [0])

    def append(self, ids: list[int]) -> None:
        """Add one sequence."""
        self._ids.fromlist(ids)
        self._ends.append(len(self._ids))

    def freeze(self) -> None:
        """Set `flat`, `starts` and `lengths` to what was appended, without a copy of the ids."""
        self.flat: Ids = np.asarray(self._ids)
        ends: Sizes = np.asarray(self._ends)
        self.starts, self.lengths = ends[:-1], np.diff(ends)


class Names:
    """The `id` or number of every record, as JSON text back to back."""

    def __init__(self) -> None:
        self._text = bytearray()
        self._ends = array("q", [0])

    def append(self, name: str | int) -> None:
        """Add one."""
        self._text += dumps(name)
        self._ends.append(len(self._text))

    def take(self, records: Sizes) -> list[str | int]:
        """Give the names of these records."""
        text, ends = self._text, self._ends
        parts = [text[ends[i] : ends[i + 1]] for i in records.tolist()]
        names: list[str | int] = loads(b'{"names":[%b]}' % b",".join(parts))["names"]
        return names


class Cut(NamedTuple):
    """The rows of one batch, as places in the flat array of the predicted column.

    Attributes:
        starts: (rows,) place of the first input.
        lengths: (rows,) how many inputs.
        counted: (rows,) how many inputs have a target, the id behind them, that counts.
        carry: the rows continue those of the batch before.
        records: (rows,) the record of each row; None where rows are no records.
    """

    starts: Sizes
    lengths: Sizes
    counted: Sizes
    carry: bool = False
    records: Sizes | None = None


class Corpus(ABC):
    """The records of a task, taken one by one, then cut into the batches of any epoch.

    Args:
        task: its name.
        columns: what is taken from each record; the last one is predicted.
        options: how it is cut.
        keep_empty: records with an empty sequence are used; else they give no row.
    """

    promises = True
    """The targets of an epoch are known before it is made."""

    def __init__(
        self, task: str, columns: dict[str, Column], options: Options, *, keep_empty: bool
    ) -> None:
        self.task = task
        self.columns = columns
        self.options = options
        self.tally = Tally()
        self.names = Names()
        self.sequences = {name: Sequences() for name in columns}
        self.predicted = self.sequences[list(columns)[-1]]
        self._keep_empty = keep_empty
        self._limit = options.max_length
        if self._limit is not None and not options.ids:
            self._limit -= 1  # for the eos

    @abstractmethod
    def cuts(self, epoch: int) -> Iterator[Cut]:
        """Give the batches of an epoch as places; always the same for the same epoch."""

    @abstractmethod
    def targets(self, epoch: int) -> int:
        """Count what could be a target in an epoch, if no record or window were left out."""

    def widths(self, epoch: int, cut: Cut) -> list[Sizes]:
        """Lengths of a batch's rows, for each of its rectangles."""
        return [cut.lengths]

    def vocabularies(self) -> dict[str, Vocabulary]:
        """Give the vocabularies for the header."""
        return {name: column.vocabulary for name, column in self.columns.items()}

    def describe(self) -> dict[str, Any]:
        """What the header says about how the batches were made."""
        options = self.options
        return {
            "ids": options.ids,
            "max_length": options.max_length,
            "truncate": options.truncate,
            "batch_size": options.batch_size,
            "batch_tokens": options.batch_tokens,
            "pad_side": "left" if options.pad_left else "right",
            "seed": options.seed,
            "unknown_share": {
                name: round(column.unknown_share, 6) for name, column in self.columns.items()
            },
        }

    def encode(self, record: Record) -> Encoded | None:
        """Take the sequences out of a record, and count what is in it; None if it is left out.

        Raises:
            RecordError: a field is missing or of another type, has an id outside the vocabulary,
                or is too long where that is an error.
        """
        options, tally = self.options, self.tally
        columns, taken = self.take(record)
        empty = not all(taken)
        parts = self.fit(taken)
        too_long = parts is not taken
        numbers = [
            part if options.ids else column.vocabulary.encode(part)
            for part, column in zip(parts, columns, strict=True)
        ]
        tally.records += 1
        tally.empty += empty
        if empty and not self._keep_empty:
            tally.left_out += 1
            return None
        if too_long and options.truncate == "drop":
            tally.dropped += 1
            return None
        tally.truncated += too_long
        for column, part, ids in zip(columns, parts, numbers, strict=True):
            column.count(part, ids)
        name = record.get("id")
        return Encoded(name if type(name) in (str, int) else None, self.store(parts, numbers))

    def take(self, record: Record) -> tuple[list[Column], list[list[Any]]]:
        """Take the tokens, or ids, out of a record, with the columns that they are of.

        Raises:
            RecordError: a field is missing, of another type, or has an id out of range.
        """
        columns = list(self.columns.values())
        return columns, [column.read(record, ids=self.options.ids) for column in columns]

    def fit(self, parts: list[list[Any]]) -> list[list[Any]]:
        """Cut what is too long; the very same `parts` where nothing is.

        Raises:
            RecordError: something is, and that is an error.
        """
        limit = self._limit
        if limit is None or all(len(part) <= limit for part in parts):
            return parts
        columns = self.columns.values()
        if self.options.truncate == "error":
            for part, column in zip(parts, columns, strict=True):
                if len(part) > limit:
                    symbols = (self.options.max_length or 0) - limit
                    raise too_long_error([column.field], len(part) + symbols, self.options)
        return [self.trim(part, limit) for part in parts]

    def trim(self, part: list[Any], limit: int) -> list[Any]:
        """Cut the end off, or the beginning."""
        if len(part) <= limit:
            return part
        return part[:limit] if self.options.truncate != "left" else part[len(part) - limit :]

    def store(self, parts: list[list[Any]], numbers: list[list[int]]) -> list[list[int]]:
        """Make what is kept of a record, one sequence for each of `sequences`, of its ids."""
        columns = self.columns.values()
        return [c.bos + ids + c.eos for c, ids in zip(columns, numbers, strict=True)]

    def append(self, encoded: Encoded, number: int) -> None:
        """Add what `encode` made of the stream's `number`-th record."""
        self.names.append(number if encoded.name is None else encoded.name)
        for sequences, ids in zip(self.sequences.values(), encoded.sequences, strict=True):
            sequences.append(ids)

    def freeze(self) -> None:
        """End reading, so that batches can be cut."""
        for sequences in self.sequences.values():
            sequences.freeze()

    def plan(self, epochs: int) -> Header:
        """Count the batches and targets of `epochs` epochs, and what they hold in the tally."""
        batches, targets = [], []
        tally = self.tally
        budget = self.options.batch_tokens
        for epoch in range(1, epochs + 1):
            count = counted = 0
            for cut in self.cuts(epoch):
                count += 1
                counted += int(cut.counted.sum())
                columns = self.widths(epoch, cut)
                area = [len(lengths) * self._width(lengths) for lengths in columns]
                tally.positions += sum(area)
                tally.padding += sum(area) - sum(int(lengths.sum()) for lengths in columns)
                tally.alone += budget is not None and max(area) > budget
            batches.append(count)
            targets.append(counted)
            tally.unused += self.targets(epoch) - counted
        promised = targets if self.promises else None
        return Header(self.task, self.vocabularies(), batches, promised, self.describe())

    def batches(self, epoch: int) -> Iterator[Batch]:
        """Give the batches of an epoch, counted from 1."""
        for index, cut in enumerate(self.cuts(epoch), start=1):
            yield self.batch(epoch, index, cut)

    def batch(self, epoch: int, index: int, cut: Cut) -> Batch:
        """Fill in the ids of one batch."""
        sequences = self.predicted
        starts, records = cut.starts, cut.records
        if records is None:
            records = np.searchsorted(sequences.starts, starts, side="right") - 1
        pad = list(self.columns.values())[-1].vocabulary.pad or 0
        return Batch(
            epoch,
            index,
            self.rectangle(sequences.flat, starts, cut.lengths, pad),
            self.predictions(sequences.flat, starts, cut),
            cut.lengths.astype(np.int32),
            carry=cut.carry,
            records=self.names.take(records),
        )

    def rectangle(self, flat: Ids, starts: Sizes, lengths: Sizes, fill: int) -> Ids:
        """Cut rows out of `flat`, padded as the options say: (rows, width)."""
        width = self._width(lengths)
        return gather(flat, starts, lengths, width, fill, left=self.options.pad_left)

    def predictions(self, flat: Ids, starts: Sizes, cut: Cut) -> Ids:
        """The ids behind the inputs, which begin at `starts` in `flat`: (rows, width)."""
        targets = self.rectangle(flat, starts + 1, cut.lengths, IGNORED)
        bare = np.flatnonzero(cut.counted < cut.lengths)  # rows whose last input has no target
        targets[bare, -1 if self.options.pad_left else cut.lengths[bare] - 1] = IGNORED
        return targets

    def _width(self, lengths: Sizes) -> int:
        return max(int(lengths.max()), self.options.pad_to)


def too_long_error(fields: list[str], length: int, options: Options) -> RecordError:
    """Say that what stands in a record's `fields`, together, is too long."""
    names = " and ".join(f'"{field}"' for field in fields)
    have = "has" if len(fields) == 1 else "have"
    return RecordError(f"{names} {have} length {length}, more than {options.max_length}")
