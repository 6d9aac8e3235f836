"""Records through a model: read in windows, decoded in batches of like length, written in order.

torch is loaded with the first record that proved valid.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from seqtools.batching.sampling import cut_by_size
from seqtools.cli._decode_options import Drawing, Search, Setup
from seqtools.cli._device import Compute, start_torch
from seqtools.cli._encoding import Encoder, Item, hypotheses_fields
from seqtools.cli._io import Session
from seqtools.cli._options import Streams
from seqtools.errors import FormatError, RecordError
from seqtools.models.description import describe
from seqtools.streams.files import STDIN, Line, Place, chomp
from seqtools.streams.parallel import Reject
from seqtools.streams.records import Record, loads

if TYPE_CHECKING:
    from seqtools.decoding.hypothesis import Constraints, Hypothesis, Prompts

WINDOW = 1024  # records at most that are sorted by length, then cut into batches

Prepare = Callable[[Place, bytes, Record], Item]
Opener = Callable[[str], Encoder]
Work = Callable[["Engine", Sequence[Item]], list[dict[str, Any]]]


def decode(
    streams: Streams,
    setup: Setup,
    work: Work,
    *,
    pairs: bool = False,
    task: str | None = None,
    opener: Opener = Encoder.open,
) -> None:
    """Put the records of the inputs through a model.

    Args:
        streams: where they are read and written.
        setup: the options.
        work: what is done with a batch; gives the fields to add to each record.
        pairs: records hold what is to be scored, not only what is to be continued.
        task: what the model must be made for.
        opener: reads what the model's file says about records.

    Raises:
        ConfigError: it is made for another task.
    """
    encoder = opener(setup.model)
    if task is not None:
        encoder.require(task, "this kind")
    with Session(streams) as session:
        windows = _Windows(session, setup, encoder, work)
        windows.read(encoder.pair if pairs else encoder.prompt)
        encoder.report()


def invent(
    streams: Streams,
    setup: Setup,
    work: Work,
    count: int,
    *,
    prompt: Sequence[str] = (),
    opener: Opener = Encoder.open,
) -> None:
    """Make new records from a prompt, reading nothing.

    Args:
        streams: where they are written; which of them, where there are shards.
        setup: the options.
        work: what is done with a batch; gives the fields of each record.
        count: how many.
        prompt: tokens that each begins with; where there are some, the records hold them.
        opener: reads what the model's file says about records.
    """
    if streams.files != (STDIN,):
        raise click.UsageError("--count makes new records and reads no FILE.")
    encoder = opener(setup.model)
    encoder.require("lm", "--count")
    shard, first = streams.shard, streams.first_record
    with Session(streams) as session:
        windows = _Windows(session, setup, encoder, work)
        begun = encoder.empty(first)
        if prompt:
            begun = encoder.prompt(Place("--prompt", 1, first), b"", {"tokens": [*prompt]})
        for number in range(first + shard.index - 1, first + count, shard.count):
            session.records += 1
            place = Place(begun.place.source, number, number)
            windows.add(replace(begun, place=place, record={**begun.record}))
        windows.flush()
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


def drawn(drawing: Drawing, search: Search) -> Work:
    """The work of drawing sequences at random.

    Args:
        drawing: how.
        search: the options.
    """

    def work(engine: Engine, items: Sequence[Item]) -> list[dict[str, Any]]:
        from seqtools.decoding import sampling

        found = sampling.sample(
            engine.model, engine.prompts(items), engine.constraints(items, search.max_length),
            sampling.Sampler(drawing.temperature, drawing.top_k, drawing.top_p),
            [
                sampling.source(drawing.seed, item.name, number)
                for item in items
                for number in range(drawing.samples)
            ],
            attention=search.attention,
        )  # fmt: skip
        return engine.fields(items, found, search)

    return work


class Engine:
    """The model on its device.

    Args:
        setup: the options.
        encoder: what the model's file says about records.

    Raises:
        ConfigError: the device is not there.
        FormatError: the model cannot be loaded.
    """

    def __init__(self, setup: Setup, encoder: Encoder) -> None:
        self.device = start_torch(setup.compute)
        self.model: Any = encoder.load(self.device)
        self._encoder = encoder
        self._half = setup.compute.precision == "bf16"

    def run(self, work: Work, items: Sequence[Item]) -> list[dict[str, Any]]:
        """Do the work, in the precision asked for."""
        import torch

        with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self._half):
            return work(self, items)

    def prompts(self, items: Sequence[Item]) -> Prompts:
        """What the searches start from."""
        from seqtools.decoding.hypothesis import Prompts

        return Prompts.from_ids(
            [item.prefix for item in items], _sources(items), device=self.device
        )

    def constraints(self, items: Sequence[Item], max_length: int | None) -> Constraints:
        """What binds the searches."""
        from seqtools.decoding.hypothesis import Constraints

        encoder = self._encoder
        lengths = [max_length or encoder.default_length(item) for item in items]
        return Constraints(encoder.vocabulary.eos, lengths, encoder.banned)

    def fields(
        self, items: Sequence[Item], found: Sequence[Sequence[Hypothesis]], search: Search
    ) -> list[dict[str, Any]]:
        """What a search adds to the records."""
        return [
            hypotheses_fields(
                item, hypotheses, self._encoder, search.output_field, attention=search.attention
            )
            for item, hypotheses in zip(items, found, strict=True)
        ]

    def score(self, items: Sequence[Item], *, attention: bool) -> list[dict[str, Any]]:
        """Log-probabilities of the records' targets."""
        from seqtools.decoding.scoring import attend, score

        inputs = [(item.prefix + item.targets)[: len(item.targets)] for item in items]
        targets = [item.targets for item in items]
        found = score(self.model, inputs, targets, _sources(items), device=self.device)
        fields: list[dict[str, Any]] = [
            {
                "logprob": np.float32(one.logprob),
                "n_tokens": len(one.token_logprobs),
                "token_logprobs": one.token_logprobs,
            }
            for one in found
        ]
        if attention:
            # Ids without any that is predicted may have none to feed either.
            rows = [row for row, target in enumerate(targets) if target]
            prompts = self.prompts([items[row] for row in rows])
            crosses = attend(self.model, prompts, [targets[row] for row in rows]) if rows else []
            attended = dict(zip(rows, crosses, strict=True))
            for row, (added, item) in enumerate(zip(fields, items, strict=True)):
                cross = attended.get(row)
                added["attention"] = self._encoder.attention(item, item.targets, cross)
        return fields

    def next_tokens(self, items: Sequence[Item], count: int) -> list[dict[str, Any]]:
        """The likeliest next tokens of each record."""
        from seqtools.decoding.scoring import next_tokens

        encoder = self._encoder
        found = next_tokens(self.model, self.prompts(items), count, banned=encoder.banned)
        return [{"next": encoder.next_tokens(pairs)} for pairs in found]


def _sources(items: Sequence[Item]) -> list[list[int]] | None:
    """The sources of the records, None for an lm."""
    return [item.source for item in items if item.source is not None] or None


class _Windows:
    """Takes records one by one, and writes them with what the model made of them.

    Args:
        session: inputs, output and rejects.
        setup: the options.
        encoder: what the model's file says about records.
        work: what is done with a batch; gives the fields to add to each record.
    """

    def __init__(self, session: Session, setup: Setup, encoder: Encoder, work: Work) -> None:
        self._session = session
        self._setup = setup
        self._encoder = encoder
        self._work = work
        self._engine: Engine | None = None
        self._room = setup.batch_size  # small at first, so that something comes out soon
        self._items: list[Item] = []

    def read(self, prepare: Prepare) -> None:
        """Put all records of the session through the model."""
        streams = self._session.streams
        try:
            for block in self._session.blocks():
                for line in block.lines(streams.shard, streams.first_record):
                    self._session.records += 1
                    self._take(line, prepare)
                if block.pause:  # nobody waits for what could be written already
                    self.flush()
        except FormatError:  # of a damaged file: what came before it still counts
            self.flush()
            raise
        self.flush()

    def _take(self, line: Line, prepare: Prepare) -> None:
        try:
            item = prepare(line.place, line.raw, loads(chomp(line.raw)))
        except RecordError as error:  # it waits for those before it, so that all keep their order
            item = Item(line.place, line.raw, {}, [], error=str(error))
        self.add(item)
        if item.error is not None and self._session.streams.rejects is None:
            self.flush()  # ends the run

    def add(self, item: Item) -> None:
        """Take one record; a full window is decoded."""
        self._items.append(item)
        if len(self._items) >= self._room:
            self.flush()
            self._room = max(self._setup.batch_size, min(2 * self._room, WINDOW))

    def flush(self) -> None:
        """Decode and write what was taken."""
        items, self._items = self._items, []
        good = [item for item in items if item.error is None]
        if good:
            engine = self._engine = self._engine or Engine(self._setup, self._encoder)
            for batch in self._batches(good):
                self._decode(engine, batch)
        for item in items:
            if item.error is not None:
                self._session.reject(Reject(item.place, item.raw, item.error))
                continue
            item.record.update(item.added)
            self._session.write(item.record)
        self._session.output.flush()
        self._session.progress()

    def _batches(self, items: list[Item]) -> Iterator[list[Item]]:
        """Records of like length together."""
        widths = np.array([item.width for item in items])
        order = np.argsort(widths, kind="stable")
        for rows in cut_by_size(widths, order, self._setup.batch_size, self._setup.batch_tokens):
            yield [items[row] for row in rows.tolist()]

    def _decode(self, engine: Engine, items: list[Item]) -> None:
        """Decode a batch; where it fails, each record alone, to see which one it is."""
        try:
            for item, added in zip(items, engine.run(self._work, items), strict=True):
                item.added = added
        except RecordError as error:
            if len(items) == 1:
                items[0].error = str(error)
                return
            for item in items:
                self._decode(engine, [item])
