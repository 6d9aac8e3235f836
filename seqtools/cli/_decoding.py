"""Records through a model: decoded in batches of like length, written in the input's order.

torch is loaded where the batches are decoded, with the first record that proved valid.
"""

from __future__ import annotations

import contextlib
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial

import click

from seqtools.cli._decode_engine import Engine, Job, MakeJob
from seqtools.cli._decode_items import Item
from seqtools.cli._decode_options import Setup
from seqtools.cli._decode_queue import Answers, Batch, Queue
from seqtools.cli._device import Compute, start_torch
from seqtools.cli._encoding import Encoder
from seqtools.cli._io import Session
from seqtools.cli._options import Streams
from seqtools.errors import FormatError, RecordError
from seqtools.models.description import describe
from seqtools.streams.files import STDIN, Place
from seqtools.streams.parallel import map_blocks
from seqtools.streams.records import to_line

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
        queue = Queue(session, setup)
        _work_through(queue, queue.read(job.prepare), _Decoder(setup, encoder, job, streams.jobs))
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
        queue = Queue(session, setup)
        numbers = range(first + shard.index - 1, first + count, shard.count)
        made = queue.repeat(begun, numbers)
        _work_through(queue, made, _Decoder(setup, encoder, job, streams.jobs))
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
        name = "<stdin>" if streams.files[0] == STDIN else streams.files[0]
        if header.task != description.task:
            raise FormatError(
                f"{name} is for {header.task}, the model {model} for {description.task}"
            )
        known = description.vocabularies
        if sides := [side for side, one in header.vocabularies.items() if one != known.get(side)]:
            raise FormatError(
                f"{name}: the {' and the '.join(sides)} vocabulary does not match the model {model}"
            )
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


def _work_through(queue: Queue, batches: Iterable[Batch], decoder: _Decoder) -> None:
    """Decode the batches in as many processes as there are to be, and write the records."""
    answered = map_blocks(batches, lambda: decoder, decoder.jobs)
    with contextlib.closing(answered):
        for answers in answered:
            queue.take(answers)
            decoder.encoder.counts += answers.counts
