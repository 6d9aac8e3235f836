"""What each kind does with a batch of records.

A kind makes a `Job` once the models' files are read: all that can be wrong with its options is said
then. Its work runs where the models are, which may be another process; torch is loaded there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from seqtools.cli._decode_fields import Fields, Writer, listed
from seqtools.cli._decode_options import Attended, Drawing, Ranking, Search, Setup
from seqtools.cli._device import start_torch
from seqtools.cli._encoding import Encoder, Item, least
from seqtools.errors import ConfigError
from seqtools.streams.files import Place
from seqtools.streams.records import Record

if TYPE_CHECKING:
    from seqtools.cli._decode_lm import Companion
    from seqtools.decoding.constraints import Constraints
    from seqtools.decoding.hypothesis import Hypothesis, Prompts
    from seqtools.decoding.walk import Beside

Prepare = Callable[[Place, bytes, Record], Item]
Work = Callable[["Engine", Sequence[Item]], list[Fields]]
_SEQUENCES = ("lm", "seq2seq")


@dataclass(frozen=True)
class Job:
    """What a kind does.

    Attributes:
        prepare: record to ids.
        work: what is done with a batch; gives the fields to add to each record.
    """

    prepare: Prepare
    work: Work


MakeJob = Callable[[Encoder], Job]


class Engine:
    """The models on their device.

    Args:
        setup: the options.
        encoder: what the models' files say about records.
        processes: how many of it there are.

    Raises:
        ConfigError: the device is not there.
        FormatError: a model cannot be loaded.
    """

    def __init__(self, setup: Setup, encoder: Encoder, *, processes: int = 1) -> None:
        self.device = start_torch(setup.compute, processes=processes)
        self.model: Any = encoder.load(self.device)
        self._half = setup.compute.precision == "bf16"

    def run(self, work: Work, items: Sequence[Item]) -> list[Fields]:
        """Do the work, in the precision asked for."""
        import torch

        with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self._half):
            return work(self, items)

    def prompts(self, items: Sequence[Item]) -> Prompts:
        """What the searches start from."""
        from seqtools.decoding.hypothesis import Prompts

        return Prompts.from_ids([item.prefix for item in items], sources(items), device=self.device)


class Searching:
    """What all searches do alike: what binds them, and what is written of what they find.

    Args:
        encoder: what the models' files say about records.
        search: the options.
        attended: what is written of the attention.

    Raises:
        ConfigError: the models are for another task, or do not know a token that is named.
    """

    def __init__(self, encoder: Encoder, search: Search, attended: Attended) -> None:
        encoder.require(_SEQUENCES, "this kind")
        if attended.align:
            encoder.require(("seq2seq",), "--align")
        if search.max_length is not None and search.max_length.multiple:
            encoder.require(("seq2seq",), f"--max-length {search.max_length}")
        self._encoder = encoder
        self._search = search
        self._banned = [*encoder.banned, *(encoder.id_of(one, "--ban") for one in search.ban)]
        self._forced = [encoder.id_of(one, "--force") for one in search.force]
        self._writer = Writer(encoder, attended)
        self._lm = _companion(search, encoder)
        for token, number in zip(search.force, self._forced, strict=True):
            if number in self._banned or number == encoder.vocabulary.eos:
                raise ConfigError(f"--force {token}: it is the end, or never proposed")

    def job(self, work: Callable[[Engine, Sequence[Item]], Sequence[Sequence[Hypothesis]]]) -> Job:
        """The job of a search that gives hypotheses, the best first."""

        def fields(engine: Engine, items: Sequence[Item]) -> list[Fields]:
            return [
                self._fields(item, found)
                for item, found in zip(items, work(engine, items), strict=True)
            ]

        return Job(self._encoder.prompt, fields)

    def constraints(self, items: Sequence[Item]) -> Constraints:
        """What binds the search of these records."""
        from seqtools.decoding.constraints import Constraints

        encoder, search = self._encoder, self._search
        begins = [item.begin for item in items]
        return Constraints(
            eos=encoder.vocabulary.eos,
            max_lengths=[encoder.max_length(item, search.max_length) for item in items],
            banned=self._banned,
            min_length=search.min_length,
            no_repeat_ngram=search.no_repeat_ngram or 0,
            repetition_penalty=search.repetition_penalty,
            prefixes=begins if any(begins) else None,
            forced=self._forced,
        )

    def beside(self, engine: Engine, items: Sequence[Item]) -> Beside | None:
        """The language model that has a say."""
        return None if self._lm is None else self._lm.beside(items, engine.device)

    def _fields(self, item: Item, found: Sequence[Hypothesis]) -> Fields:
        if self._encoder.cut_short(item, self._search.max_length) and not found[0].finished:
            self._encoder.counts["short of positions"] += 1
        return self._writer.hypotheses(item, found, self._search.output_field)


def greedy(search: Search, attended: Attended) -> MakeJob:
    """Take the likeliest token at each step."""

    def make(encoder: Encoder) -> Job:
        searching = Searching(encoder, search, attended)

        def work(engine: Engine, items: Sequence[Item]) -> list[list[Hypothesis]]:
            from seqtools.decoding.greedy import greedy

            found = greedy(
                engine.model, engine.prompts(items), searching.constraints(items),
                beside=searching.beside(engine, items), attention=bool(attended),
            )  # fmt: skip
            return [[one] for one in found]

        return searching.job(work)

    return make


def beam(search: Search, ranking: Ranking, attended: Attended) -> MakeJob:
    """Keep the likeliest sequences at each step."""

    def make(encoder: Encoder) -> Job:
        searching = Searching(encoder, search, attended)

        def work(engine: Engine, items: Sequence[Item]) -> list[list[Hypothesis]]:
            from seqtools.decoding.beam import Diversity, beam
            from seqtools.decoding.penalty import Penalty

            penalty = Penalty(
                ranking.length_penalty, ranking.length_penalty_form, ranking.coverage_penalty
            )
            return beam(
                engine.model, engine.prompts(items), searching.constraints(items),
                width=ranking.beam, nbest=ranking.nbest, penalty=penalty,
                diversity=Diversity(ranking.diverse_groups, ranking.strength),
                beside=searching.beside(engine, items), attention=bool(attended),
            )  # fmt: skip

        return searching.job(work)

    return make


def sample(search: Search, drawing: Drawing, attended: Attended) -> MakeJob:
    """Draw sequences at random."""

    def make(encoder: Encoder) -> Job:
        searching = Searching(encoder, search, attended)

        def work(engine: Engine, items: Sequence[Item]) -> list[list[Hypothesis]]:
            from seqtools.decoding import sampling

            return sampling.sample(
                engine.model, engine.prompts(items), searching.constraints(items),
                sampling.Sampler(drawing.temperature, drawing.top_k, drawing.top_p, drawing.min_p),
                [
                    sampling.source(drawing.seed, item.name, number)
                    for item in items
                    for number in range(drawing.samples)
                ],
                beside=searching.beside(engine, items), attention=bool(attended),
            )  # fmt: skip

        return searching.job(work)

    return make


def score(attended: Attended) -> MakeJob:
    """Give the log-probabilities of the records' targets."""

    def make(encoder: Encoder) -> Job:
        encoder.require(_SEQUENCES, "this kind")
        writer = Writer(encoder, attended)

        def work(engine: Engine, items: Sequence[Item]) -> list[Fields]:
            from seqtools.decoding.scoring import score

            inputs = [(item.prefix + item.targets)[: len(item.targets)] for item in items]
            targets = [item.targets for item in items]
            found = score(engine.model, inputs, targets, sources(items), device=engine.device)
            fields: list[Fields] = [
                {
                    "logprob": np.float32(one.logprob),
                    "n_tokens": len(one.token_logprobs),
                    "token_logprobs": one.token_logprobs,
                }
                for one in found
            ]
            if attended:
                _add_attention(fields, engine, items, writer)
            return fields

        return Job(encoder.pair, work)

    return make


def predict(top_k: int) -> MakeJob:
    """Give the likeliest next tokens."""

    def make(encoder: Encoder) -> Job:
        encoder.require(("lm",), "this kind")

        def work(engine: Engine, items: Sequence[Item]) -> list[Fields]:
            from seqtools.decoding.scoring import next_tokens

            prompts = engine.prompts(items)
            found = next_tokens(engine.model, prompts, top_k, banned=encoder.banned)
            return [{"next": listed(pairs, encoder.vocabulary)} for pairs in found]

        return Job(encoder.prompt, work)

    return make


def sources(items: Sequence[Item]) -> list[list[int]] | None:
    """The sources of the records, None for an lm."""
    return [item.source for item in items if item.source is not None] or None


def _companion(search: Search, encoder: Encoder) -> Companion | None:
    """The language model that is asked for, whose positions bind the search too."""
    if search.lm is None or search.lm_weight is None:
        return None
    from seqtools.cli._decode_lm import Companion

    companion = Companion(search.lm, search.lm_weight, encoder)
    encoder.positions = least((encoder.positions, companion.positions))
    return companion


def _add_attention(
    fields: Sequence[Fields], engine: Engine, items: Sequence[Item], writer: Writer
) -> None:
    """The attention while given targets are produced, step by step."""
    from seqtools.decoding.scoring import attend

    # Ids without any that is predicted may have none to feed either.
    rows = [row for row, item in enumerate(items) if item.targets]
    some = [items[row] for row in rows]
    found = (
        attend(engine.model, engine.prompts(some), [one.targets for one in some]) if rows else []
    )
    weights = dict(zip(rows, found, strict=True))
    for row, (added, item) in enumerate(zip(fields, items, strict=True)):
        own = len(item.targets) - writer.encoder.ends
        ended = own < len(item.targets)
        added |= writer.attention(item, item.targets[:own], weights.get(row), ended=ended)
