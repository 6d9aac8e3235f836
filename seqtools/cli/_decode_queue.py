"""Records on their way through a model: read in windows, cut into batches, written in order.

Batches are cut here, whatever the number of processes, so what comes out is the same.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from seqtools.batching.sampling import cut_by_size
from seqtools.cli._decode_engine import Prepare
from seqtools.cli._decode_items import Item
from seqtools.cli._decode_options import Setup
from seqtools.cli._io import Session
from seqtools.errors import FormatError, RecordError
from seqtools.streams.files import Line, Place, chomp
from seqtools.streams.parallel import Reject
from seqtools.streams.records import loads

WINDOW = 1024  # records at most that are sorted by length, then cut into batches


@dataclass(frozen=True, slots=True)
class Batch:
    """Records that are decoded together.

    Attributes:
        items: the records.
        pause: nothing more is there to be read, so all before is to be written first.
    """

    items: list[Item]
    pause: bool = False


@dataclass(frozen=True, slots=True)
class Answers:
    """What became of a batch.

    Attributes:
        lines: what is written for each record; nothing where it failed.
        errors: why it failed, None where it did not.
        counts: what is to be warned about.
    """

    lines: list[bytes]
    errors: list[str | None]
    counts: Counter[str]


@dataclass(slots=True)
class _Window:
    """Records in the input's order, and how many of their batches are not yet decoded."""

    items: list[Item] = field(default_factory=list)
    waiting: int = 0


class Queue:
    """Cuts records into batches, and writes them when they are decoded.

    Args:
        session: inputs, output and rejects.
        setup: the options.
    """

    def __init__(self, session: Session, setup: Setup) -> None:
        self._session = session
        self._setup = setup
        self._room = setup.batch_size  # small at first, so that something comes out soon
        self._items: list[Item] = []
        self._windows: deque[_Window] = deque()  # not yet written, in the input's order
        self._sent: deque[tuple[_Window, list[Item]]] = deque()  # batches not yet answered

    def read(self, prepare: Prepare) -> Iterator[Batch]:
        """All records of the session."""
        streams = self._session.streams
        try:
            for block in self._session.blocks():
                for line in block.lines(streams.shard, streams.first_record):
                    yield from self._add(_prepared(line, prepare))
                if block.pause:  # nobody waits for what could be written already
                    yield from self._cut(pause=True)
        except FormatError:  # of a damaged file: what came before it still counts
            yield from self._cut()
            raise
        yield from self._cut()

    def repeat(self, item: Item, numbers: Iterable[int]) -> Iterator[Batch]:
        """The same record again and again, numbered."""
        for number in numbers:
            place = Place(item.place.source, number, number)
            yield from self._add(replace(item, place=place, record={**item.record}))
        yield from self._cut()

    def take(self, answers: Answers) -> None:
        """Note what became of the oldest batch, and write what is ready."""
        window, items = self._sent.popleft()
        for item, line, error in zip(items, answers.lines, answers.errors, strict=True):
            item.line, item.error = line, error
        window.waiting -= 1
        self._write()

    def _add(self, item: Item) -> Iterator[Batch]:
        """One record more; a full window is cut, and one with an error that ends the run."""
        self._session.records += 1
        self._items.append(item)
        if item.error is not None and self._session.streams.rejects is None:
            yield from self._cut(pause=True)
        elif len(self._items) >= self._room:
            yield from self._cut()
            self._room = max(self._setup.batch_size, min(2 * self._room, WINDOW))

    def _cut(self, *, pause: bool = False) -> Iterator[Batch]:
        """The records at hand as batches of like length."""
        items, self._items = self._items, []
        good = [item for item in items if item.error is None]
        widths = np.array([item.width for item in good])
        order = np.argsort(widths, kind="stable")
        size, tokens = self._setup.batch_size, self._setup.batch_tokens
        parts = [
            [good[row] for row in rows.tolist()]
            for rows in cut_by_size(widths, order, size, tokens)
        ]
        window = _Window(items, len(parts) + pause)
        self._windows.append(window)
        for part in parts:
            self._sent.append((window, part))
            yield Batch(part)
        if pause:
            self._sent.append((window, []))
            yield Batch([], pause=True)
        self._write()  # where nothing was to be decoded

    def _write(self) -> None:
        """Write the windows that are done, as far as none before them is not."""
        while self._windows and not self._windows[0].waiting:
            for item in self._windows.popleft().items:
                if item.error is not None:
                    self._session.reject(Reject(item.place, item.raw, item.error))
                else:
                    self._session.output.write(item.line)
            self._session.output.flush()
            self._session.progress()


def _prepared(line: Line, prepare: Prepare) -> Item:
    try:
        return prepare(line.place, line.raw, loads(chomp(line.raw)))
    except RecordError as error:  # it waits for those before it, so that all keep their order
        return Item(line.place, line.raw, {}, [], error=str(error))
