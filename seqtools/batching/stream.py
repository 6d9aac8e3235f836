"""The batch stream: one header line, then one batch a line.

The header holds everything a trainer needs, the vocabularies included, and promises how many
batches and targets each epoch has; `Reader` holds a stream to its promises.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from seqtools.errors import FormatError, InputError, RecordError
from seqtools.streams.files import Line
from seqtools.streams.records import dumps, loads, name_of
from seqtools.text.vocab import Vocabulary

VERSION = 1
IGNORED = -100  # a target position that does not count

# Which vocabulary the ids of a column come from, for the tasks there are.
COLUMNS = {
    "lm": {"inputs": "tokens", "targets": "tokens"},
    "seq2seq": {"source": "source", "inputs": "target", "targets": "target"},
    "mlm": {"inputs": "tokens", "targets": "tokens"},
}


@dataclass(frozen=True)
class Header:
    """First line of a batch stream.

    Args:
        task: `lm`, `seq2seq` or `mlm`.
        vocabularies: by the names of `COLUMNS`: `tokens`, or `source` and `target`.
        batches: how many batches each epoch has.
        targets: how many targets count in each epoch; None where that is not known beforehand.
        options: how the batches were cut, JSON-able; goes into the model.
    """

    task: str
    vocabularies: dict[str, Vocabulary]
    batches: list[int]
    targets: list[int] | None
    options: dict[str, Any] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        """Give the header as one line of JSON, with its newline."""
        value: dict[str, Any] = {
            "seqtools": "batches",
            "version": VERSION,
            "task": self.task,
            "vocabularies": {name: v.to_header() for name, v in self.vocabularies.items()},
            "batches": self.batches,
        }
        if self.targets is not None:
            value["targets"] = self.targets
        value["options"] = self.options
        return dumps(value) + b"\n"

    @classmethod
    def from_bytes(cls, line: bytes) -> Header:
        """Read what `to_bytes` made.

        Raises:
            FormatError: the line is no header of a batch stream, or one of a later version.
        """
        try:
            value = loads(line)
        except RecordError as error:
            raise FormatError(f"not a batch stream: {error}") from None
        if value.get("seqtools") != "batches":
            if "inputs" in value and "epoch" in value:
                raise FormatError(
                    "a batch stands where the header should be; a batch stream must stay in order"
                )
            raise FormatError("not a batch stream: its first line must be a header of seq-batch")
        version = value.get("version")
        if version != VERSION:
            raise FormatError(f"the batch stream has version {version!r}, only {VERSION} is known")
        task, options = value.get("task"), value.get("options", {})
        if not isinstance(task, str) or not isinstance(options, dict):
            raise FormatError('"task" and "options" of the header must be a string and an object')
        batches = _counts(value, "batches")
        targets = _counts(value, "targets") if value.get("targets") is not None else None
        if targets is not None and len(targets) != len(batches):
            raise FormatError('"batches" and "targets" of the header differ in their epochs')
        return cls(task, _vocabularies(value, task), batches, targets, options)


def _counts(value: dict[str, Any], name: str) -> list[int]:
    counts = value.get(name)
    if not isinstance(counts, list) or not all(type(n) is int and n >= 0 for n in counts):
        raise FormatError(f'"{name}" of the header must be a list of whole numbers')
    return counts


def _vocabularies(value: dict[str, Any], task: str) -> dict[str, Vocabulary]:
    found = value.get("vocabularies")
    if not isinstance(found, dict):
        raise FormatError('"vocabularies" of the header must be an object')
    for name in COLUMNS.get(task, {}).values():
        if name not in found:
            raise FormatError(f'the header of task {task} has no vocabulary "{name}"')
    return {name: Vocabulary.from_header(entries) for name, entries in found.items()}


@dataclass
class Batch:
    """One batch: rectangles of int32, padded on the side that the header's `pad_side` names.

    Args:
        epoch: from 1.
        index: from 1 within the epoch.
        inputs: (rows, time) ids to feed.
        targets: (rows, time) ids to predict, `IGNORED` where none counts.
        lengths: (rows,) how many positions of each row are real.
        source: (rows, source_time) for seq2seq, else None.
        source_lengths: (rows,) with `source`.
        carry: row i continues row i of the batch before.
        records: the `id` of each row's record, or its number where it has none.
        segments: (rows, time) for mlm, 1 in the second text of a pair, 0 elsewhere; else None.
        next_sentence: (rows,) 1 where that text follows the first in its source, 0 where not; None
            where that was not asked for.
    """

    epoch: int
    index: int
    inputs: NDArray[np.int32]
    targets: NDArray[np.int32]
    lengths: NDArray[np.int32]
    source: NDArray[np.int32] | None = None
    source_lengths: NDArray[np.int32] | None = None
    carry: bool = False
    records: list[str | int] = field(default_factory=list)
    segments: NDArray[np.int32] | None = None
    next_sentence: NDArray[np.int32] | None = None

    @cached_property
    def target_count(self) -> int:
        """How many targets count."""
        return int(np.count_nonzero(self.targets != IGNORED))

    def to_bytes(self) -> bytes:
        """Give the batch as one line of JSON, with its newline."""
        value: dict[str, Any] = {"epoch": self.epoch, "index": self.index}
        if self.source is not None:
            value |= {"source": self.source, "source_lengths": self.source_lengths}
        value |= {"inputs": self.inputs, "targets": self.targets, "lengths": self.lengths}
        for name in ("segments", "next_sentence"):
            if (column := getattr(self, name)) is not None:
                value[name] = column
        value |= {"carry": self.carry, "records": self.records}
        return dumps(value) + b"\n"

    @classmethod
    def from_bytes(cls, line: bytes) -> Batch:
        """Read what `to_bytes` made.

        Raises:
            RecordError: the line is no batch, or its parts do not fit together.
        """
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError:
            value = loads(line)  # says what is wrong
        if type(value) is not dict:
            raise RecordError(f"a batch must be an object, got {name_of(value)}")
        if value.get("seqtools") == "batches":
            raise RecordError("a header stands where a batch should be")
        records = value.get("records", [])
        if type(records) is not list:
            raise RecordError(f'"records" must be a list, got {name_of(records)}')
        if any(type(name) is float for name in records):
            records = loads(line)["records"]  # integers that orjson cannot hold
        carry = value.get("carry", False)
        if type(carry) is not bool:
            raise RecordError(f'"carry" must be a boolean, got {name_of(carry)}')
        inputs, lengths = _rectangle(value, "inputs", "lengths")
        targets = _beside(value, "targets", inputs)
        source, source_lengths = None, None
        if "source" in value:
            source, source_lengths = _rectangle(value, "source", "source_lengths")
            if len(source) != len(inputs):
                raise RecordError(f'"inputs" has {len(inputs)} rows, but "source" {len(source)}')
        return cls(
            _number(value, "epoch"),
            _number(value, "index"),
            inputs,
            targets,
            lengths,
            source,
            source_lengths,
            carry,
            records,
            _flags(_beside(value, "segments", inputs), "segments") if "segments" in value else None,
            _row_flags(value, "next_sentence", len(inputs)) if "next_sentence" in value else None,
        )


def _number(value: dict[str, Any], name: str) -> int:
    number = value.get(name)
    if type(number) is not int or number < 1:
        raise RecordError(f'"{name}" must be a number from 1')
    return number


def _matrix(value: dict[str, Any], name: str) -> NDArray[np.int32]:
    rows = value.get(name)
    if type(rows) is not list or not rows or type(rows[0]) is not list or not rows[0]:
        raise RecordError(f'"{name}" must be a list of rows, none of them empty')
    width = len(rows[0])
    numbers = array("i")
    try:
        for row in rows:
            numbers.fromlist(row)  # refuses all but integers, as numpy would not
            if len(row) != width:
                raise RecordError(f'the rows of "{name}" must be equally long')
    except (TypeError, OverflowError):
        raise RecordError(f'"{name}" must be lists of integers of 32 bits') from None
    return np.frombuffer(numbers, dtype=np.int32).reshape(len(rows), width)


def _beside(value: dict[str, Any], name: str, inputs: NDArray[np.int32]) -> NDArray[np.int32]:
    """A matrix that has something for each input."""
    matrix = _matrix(value, name)
    if matrix.shape != inputs.shape:
        raise RecordError(f'"inputs" are {inputs.shape} ids, but "{name}" {matrix.shape}')
    return matrix


def _row_flags(value: dict[str, Any], name: str, rows: int) -> NDArray[np.int32]:
    """0 or 1 for each row."""
    found = value[name]
    if type(found) is not list or len(found) != rows:
        raise RecordError(f'"{name}" must be a list with a number for each of {rows} rows')
    return _flags(_matrix({name: [found]}, name)[0], name)


def _flags(numbers: NDArray[np.int32], name: str) -> NDArray[np.int32]:
    if numbers.min() < 0 or numbers.max() > 1:
        raise RecordError(f'"{name}" must be 0 or 1')
    return numbers


def _rectangle(
    value: dict[str, Any], name: str, name_of_lengths: str
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    matrix = _matrix(value, name)
    rows, width = matrix.shape
    found = value.get(name_of_lengths)
    if type(found) is not list or not found:
        raise RecordError(f'"{name_of_lengths}" must be a list of integers')
    lengths = _matrix({name_of_lengths: [found]}, name_of_lengths)[0]
    if len(lengths) != rows:
        raise RecordError(f'"{name}" has {rows} rows, but "{name_of_lengths}" {len(lengths)}')
    if lengths.min() < 1 or lengths.max() > width:
        raise RecordError(f'"{name_of_lengths}" must lie between 1 and {width}')
    return matrix, lengths


class Reader:
    """A batch stream that is held to its header; `header` is there at once, before any batch.

    Iterating gives the batches in order. The same header again (`cat a b`) starts a new stream,
    whose epochs count on from those before.

    Args:
        lines: the stream's lines with their places, without blank ones.
        name: the stream's name, for a message when there is no line at all.

    Raises:
        InputError: a line is malformed or out of place, or the stream ends short of its promise.
        FormatError: the stream is empty.
    """

    def __init__(self, lines: Iterable[Line], name: str = "<stdin>") -> None:
        self._lines = iter(lines)
        first = next(self._lines, None)
        if first is None:
            raise FormatError(f"{name}: no records: the batch stream is empty")
        self._last = first.place
        self._header_line = first.raw
        self.header = _read_header(first)

    def __iter__(self) -> Iterator[Batch]:
        finished = 0  # epochs of the streams before this one
        progress = _Progress(self.header)
        for line in self._lines:
            self._last = line.place
            if progress.complete and line.raw.startswith(b'{"seqtools":'):
                self._check_again(line)
                finished += len(self.header.batches)
                progress = _Progress(self.header)
                continue
            batch = parse_batch(line, self.header)
            try:
                progress.take(batch)
            except RecordError as error:
                raise _placed(error, line) from None
            batch.epoch += finished
            yield batch
        if not progress.complete:
            reason = f"the batch stream ends too early: {progress.shortfall()}"
            raise InputError(self._last.source, self._last.line, reason)

    def _check_again(self, line: Line) -> None:
        if line.raw.strip() != self._header_line.strip() and _read_header(line) != self.header:
            reason = "a different header in the middle of the stream"
            raise InputError(line.place.source, line.place.line, reason)


def parse_batch(line: Line, header: Header) -> Batch:
    """Read one batch and see that it fits the header.

    Raises:
        InputError: it is malformed, or has ids that are not in the vocabulary.
    """
    try:
        batch = Batch.from_bytes(line.raw)
        check_ids(batch, header)
    except RecordError as error:
        raise _placed(error, line) from None
    return batch


def _read_header(line: Line) -> Header:
    try:
        return Header.from_bytes(line.raw)
    except FormatError as error:
        raise _placed(error, line) from None


def _placed(error: Exception, line: Line) -> InputError:
    return InputError(line.place.source, line.place.line, str(error))


class _Progress:
    """Where a stream stands between its header and the end that the header promises."""

    def __init__(self, header: Header) -> None:
        self._batches = header.batches
        self._promised = header.targets
        self._epoch = 1
        self._index = 0  # of the batch taken last
        self._targets = 0
        self._skip_finished()

    @property
    def complete(self) -> bool:
        return self._epoch > len(self._batches)

    def take(self, batch: Batch) -> None:
        if self.complete:
            raise RecordError(
                f"more batches than the header promises: {sum(self._batches)} "
                f"in {len(self._batches)} epochs"
            )
        if (batch.epoch, batch.index) != (self._epoch, self._index + 1):
            raise RecordError(
                f"batch {self._index + 1} of epoch {self._epoch} should stand here, got batch "
                f"{batch.index} of epoch {batch.epoch}; a batch stream must stay in order"
            )
        self._index += 1
        if self._promised is not None:
            self._targets += batch.target_count
            promised = self._promised[self._epoch - 1]
            if self._index == self._batches[self._epoch - 1] and self._targets != promised:
                raise RecordError(
                    f"promised {promised} targets in epoch {self._epoch}, got {self._targets}"
                )
        self._skip_finished()

    def shortfall(self) -> str:
        """Say what is missing."""
        promised = self._batches[self._epoch - 1]
        return f"promised {promised} batches in epoch {self._epoch}, got {self._index}"

    def _skip_finished(self) -> None:
        while not self.complete and self._index == self._batches[self._epoch - 1]:
            self._epoch, self._index, self._targets = self._epoch + 1, 0, 0


def check_ids(batch: Batch, header: Header) -> None:
    """See that every id of `batch` is in its vocabulary.

    Raises:
        RecordError: one is not, or a column that the task needs is missing.
    """
    for column, name in COLUMNS.get(header.task, {}).items():
        ids: NDArray[np.int32] | None = getattr(batch, column)
        if ids is None:
            raise RecordError(f'"{column}" is missing, a batch of task {header.task} needs it')
        size = len(header.vocabularies[name])
        if ids.max() >= size:
            raise RecordError(f'"{column}" has id {ids.max()}, but its vocabulary {size} entries')
        low = ids[ids < 0] if column != "targets" else ids[(ids < 0) & (ids != IGNORED)]
        if low.size:
            raise RecordError(f'"{column}" has id {low[0]}')
