"""Records through a model: read in windows, decoded in batches of like length, written in order.

Batches are cut here, whatever the number of processes, so what comes out is the same. torch is
loaded where the batches are decoded, with the first record that proved valid.
"""

from __future__ import annotations

import contextlib
import math
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import click
import numpy as np

from seqtools.batching.sampling import cut_by_size
from seqtools.cli._decode_engine import Engine, Job, MakeJob, Prepare
from seqtools.cli._decode_items import Item
from seqtools.cli._decode_options import Setup
from seqtools.cli._device import Compute, start_torch
from seqtools.cli._encoding import Encoder
from seqtools.cli._io import Session
from seqtools.cli._options import Streams
from seqtools.errors import FormatError, RecordError
from seqtools.models.description import describe
from seqtools.streams.files import STDIN, Line, Place, chomp
from seqtools.streams.parallel import Reject, map_blocks
from seqtools.streams.records import loads, to_line

WINDOW = 1024  # records at most that are sorted by length, then cut into batches

Opener = Callable[[], Encoder]


def decode(streams: Streams, setup: Setup, make: MakeJob, *, opener: Opener | None = None) -> None:
    """Put the records of the inputs through a model.

    Args:
        streams: where they are read and written, and in how many processes they are decoded.
        setup: the options.
        make: makes what is done with them.
        opener: reads what the models' files say about records.

    Raises:
        ConfigError: the model is made for another task, or an option does not fit it.
    """
    setup = _for_processes(setup, streams.jobs)
    encoder = (opener or partial(Encoder.open, setup.models))()
    job = make(encoder)
    with Session(streams) as session:
        windows = _Windows(session, setup)
        _work_through(
            windows, windows.read(job.prepare), _Decoder(setup, encoder, job, streams.jobs)
        )
        encoder.report()


def invent(
    streams: Streams,
    setup: Setup,
    make: MakeJob,
    count: int,
    *,
    prompt: Sequence[str] = (),
    opener: Opener | None = None,
) -> None:
    """Make new records from a prompt, reading nothing.

    Args:
        streams: where they are written; which of them, where there are shards.
        setup: the options.
        make: makes what is done.
        count: how many.
        prompt: tokens that each begins with; where there are some, the records hold them.
        opener: reads what the models' files say about records.
    """
    if streams.files != (STDIN,):
        raise click.UsageError("--count makes new records and reads no FILE.")
    setup = _for_processes(setup, streams.jobs)
    encoder = (opener or partial(Encoder.open, setup.models))()
    encoder.require(("lm",), "--count")
    job = make(encoder)
    shard, first = streams.shard, streams.first_record
    with Session(streams) as session:
        begun = encoder.empty(first)
        if prompt:
            begun = encoder.prompt(Place("--prompt", 1, first), b"", {"tokens": [*prompt]})
        windows = _Windows(session, setup)
        numbers = range(first + shard.index - 1, first + count, shard.count)
        made = windows.repeat(begun, numbers)
        _work_through(windows, made, _Decoder(setup, encoder, job, streams.jobs))
        encoder.report()


def evaluate(streams: Streams, model: str, compute: Compute) -> None:
    """Write the loss of a model on a batch stream.

    Raises:
        FormatError: the stream's task or vocabularies are not the model's.
    """
    from seqtools.training.data import Batches

    description = describe(model)
    with Session(streams, "batches") as session:
        batches = Batches(streams.files)
        header = batches.header
        if header.task != description.task:
            raise FormatError(
                f"the batches are for {header.task}, the model for {description.task}"
            )
        if header.vocabularies != description.vocabularies:
            raise FormatError("vocabulary does not match the model")
        device = start_torch(compute)
        from seqtools.models.store import load_model
        from seqtools.training.loop import evaluate

        network = load_model(model, device=device).model
        tensors = (batch for _, batch in batches.tensors(device) if batch is not None)
        found = evaluate(network, tensors, precision=compute.precision)
        session.write(
            {
                "loss": found.loss,
                "perplexity": found.perplexity if math.isfinite(found.perplexity) else "inf",
                "bits": found.bits,
                "targets": found.targets,
            }
        )


def _for_processes(setup: Setup, jobs: int) -> Setup:
    """Several processes decode on the CPU."""
    if jobs == 1:
        return setup
    if setup.compute.device.startswith("cuda"):
        raise click.UsageError("--jobs is for decoding on the CPU.")
    return replace(setup, compute=replace(setup.compute, device="cpu"))


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


class _Decoder:
    """Decodes batches; what is needed for that is loaded with the first.

    Args:
        setup: the options.
        encoder: what the models' files say about records; its counts go with the answers.
        job: what is done.
        jobs: how many processes there are.
    """

    def __init__(self, setup: Setup, encoder: Encoder, job: Job, jobs: int) -> None:
        self.encoder = encoder
        self.jobs = jobs
        self._setup = setup
        self._job = job
        self._engine: Engine | None = None

    def __call__(self, batch: Batch) -> Answers:
        before = Counter(self.encoder.counts)
        if batch.items:
            self._decode(batch.items)
        counts = self.encoder.counts - before
        self.encoder.counts = before
        items = batch.items
        return Answers([item.line for item in items], [item.error for item in items], counts)

    def _decode(self, items: list[Item]) -> None:
        """Decode a batch; where it fails, each record alone, to see which one it is."""
        if self._engine is None:
            self._engine = Engine(self._setup, self.encoder, processes=self.jobs)
        try:
            for item, added in zip(items, self._engine.run(self._job.work, items), strict=True):
                item.line = to_line({**item.record, **added})
        except RecordError as error:
            if len(items) == 1:
                items[0].error = str(error)
                return
            for item in items:
                self._decode([item])


def _work_through(windows: _Windows, batches: Iterable[Batch], decoder: _Decoder) -> None:
    """Decode the batches in as many processes as there are to be, and write the records."""
    answered = map_blocks(batches, lambda: decoder, decoder.jobs)
    with contextlib.closing(answered):
        for answers in answered:
            windows.take(answers)
            decoder.encoder.counts += answers.counts


@dataclass(slots=True)
class _Window:
    """Records in the input's order, and how many of their batches are not yet decoded."""

    items: list[Item] = field(default_factory=list)
    waiting: int = 0


class _Windows:
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
