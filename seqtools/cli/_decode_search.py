"""The searches: greedy, beam and sampling, with what binds them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from seqtools.cli._attention_options import AttentionChoice
from seqtools.cli._decode_engine import SEQUENCES, Engine, Job, MakeJob
from seqtools.cli._decode_fields import Fields, Writer
from seqtools.cli._decode_items import Item
from seqtools.cli._decode_options import Drawing, Ranking, Search
from seqtools.cli._encoding import Encoder, least
from seqtools.errors import ConfigError

if TYPE_CHECKING:
    from seqtools.cli._decode_lm import Companion
    from seqtools.decoding.constraints import Constraints
    from seqtools.decoding.hypothesis import Hypothesis
    from seqtools.decoding.walk import Beside


class Searching:
    """What all searches do alike: what binds them, and what is written of what they find.

    Args:
        encoder: what the models' files say about records.
        search: the options.
        attended: what is written of the attention.

    Raises:
        ConfigError: the models are for another task, or do not know a token that is named.
    """

    def __init__(self, encoder: Encoder, search: Search, attended: AttentionChoice) -> None:
        encoder.require(SEQUENCES)
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


def greedy(search: Search, attended: AttentionChoice) -> MakeJob:
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


def beam(search: Search, ranking: Ranking, attended: AttentionChoice) -> MakeJob:
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


def sample(search: Search, drawing: Drawing, attended: AttentionChoice) -> MakeJob:
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


def _companion(search: Search, encoder: Encoder) -> Companion | None:
    """The language model that is asked for, whose positions bind the search too."""
    if search.lm is None or search.lm_weight is None:
        return None
    from seqtools.cli._decode_lm import Companion

    companion = Companion(search.lm, search.lm_weight, encoder)
    encoder.positions = least((encoder.positions, companion.positions))
    return companion
