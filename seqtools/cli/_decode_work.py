"""What the kinds do that do not search: score, predict, fill, encode."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, cast

import click
import numpy as np

from seqtools.cli._attention_options import AttentionChoice
from seqtools.cli._decode_engine import SEQUENCES, Engine, Job, MakeJob, sources
from seqtools.cli._decode_fields import Fields, Writer, listed
from seqtools.cli._decode_items import Item
from seqtools.cli._decode_options import Windows
from seqtools.cli._encoding import Encoder
from seqtools.cli._text_encoding import Text, TextEncoder, filled
from seqtools.errors import ConfigError

if TYPE_CHECKING:
    from seqtools.decoding.scoring import Score


def score(windows: Windows, attended: AttentionChoice) -> MakeJob:
    """Give the log-probabilities of the records' targets."""
    if windows.window is not None and attended:
        raise click.UsageError("--attention and --align cannot go with --window.")

    def make(encoder: Encoder) -> Job:
        encoder.require(SEQUENCES)
        if attended.align:
            encoder.require(("seq2seq",), "--align")
        writer = Writer(encoder, attended)
        if windows.window is not None and encoder.task != "lm":
            # a decoder that starts anew in the middle of a target has lost its place in the source
            raise click.UsageError(
                f"--window is for models of the task lm; {encoder.file} is for {encoder.task}."
            )
        window, positions = windows.window, encoder.positions
        if window is not None and positions is not None and window > positions:
            raise ConfigError(f"--window {window}: the model has {positions} positions")

        def work(engine: Engine, items: Sequence[Item]) -> list[Fields]:
            fields: list[Fields] = [
                {
                    "logprob": np.float32(one.logprob),
                    "n_tokens": len(one.token_logprobs),
                    "token_logprobs": one.token_logprobs,
                }
                for one in _scores(engine, items, windows)
            ]
            if attended:
                _add_attention(fields, engine, items, writer)
            return fields

        return Job(partial(encoder.pair, windows=window is not None), work)

    return make


def predict(top_k: int, attended: AttentionChoice) -> MakeJob:
    """Give the likeliest next tokens."""

    def make(encoder: Encoder) -> Job:
        encoder.require(("lm",))
        writer = Writer(encoder, attended)

        def work(engine: Engine, items: Sequence[Item]) -> list[Fields]:
            from seqtools.decoding.scoring import attend, next_tokens

            prompts = engine.prompts(items)
            found = next_tokens(engine.model, prompts, top_k, banned=encoder.banned)
            fields: list[Fields] = [{"next": listed(pairs, encoder.vocabulary)} for pairs in found]
            if attended:  # while any token is produced: it is not looked at
                weights = attend(engine.model, prompts, [[0]] * len(items))
                for added, item, one in zip(fields, items, weights, strict=True):
                    added |= writer.text(item, one)
            return fields

        return Job(encoder.prompt, work)

    return make


def fill(top_k: int, attended: AttentionChoice) -> MakeJob:
    """Give the likeliest tokens of gaps, and fill them with the first."""

    def make(encoder: Encoder) -> Job:
        assert isinstance(encoder, TextEncoder)
        encoder.require(("mlm",))
        writer = Writer(encoder, attended)

        def work(engine: Engine, items: Sequence[Item]) -> list[Fields]:
            from seqtools.decoding.fill import fill

            texts = cast("Sequence[Text]", items)
            found = fill(
                engine.model, [one.prefix for one in texts], [one.gaps for one in texts], top_k,
                segments=[one.segments for one in texts], banned=encoder.banned,
                attention=bool(attended), device=engine.device,
            )  # fmt: skip
            return [
                _filled(text, one.candidates, encoder) | writer.text(text, one.attention)
                for text, one in zip(texts, found, strict=True)
            ]

        return Job(encoder.gapped, work)

    return make


def encode(pool: str, attended: AttentionChoice) -> MakeJob:
    """Give the vectors of texts."""

    def make(encoder: Encoder) -> Job:
        assert isinstance(encoder, TextEncoder)
        encoder.require(("mlm", "lm"))
        if len(encoder.paths) > 1:
            raise click.UsageError("Several models do not have one vector; give one --model.")
        if pool == "cls" and not encoder.begins_with_cls:
            raise ConfigError(
                "--pool cls: the model was not trained on texts that begin with <cls>"
            )
        writer = Writer(encoder, attended)

        def work(engine: Engine, items: Sequence[Item]) -> list[Fields]:
            from seqtools.decoding.vectors import vectors

            texts = cast("Sequence[Text]", items)
            found = vectors(
                engine.model, [one.prefix for one in texts], pool=pool,
                places=[one.places for one in texts],
                segments=[one.segments for one in texts] if encoder.task == "mlm" else None,
                attention=bool(attended), device=engine.device,
            )  # fmt: skip
            name = "vectors" if pool == "none" else "vector"
            return [
                {name: one.values} | writer.text(text, one.attention)
                for text, one in zip(texts, found, strict=True)
            ]

        return Job(encoder.text, work)

    return make


def _scores(engine: Engine, items: Sequence[Item], windows: Windows) -> list[Score]:
    from seqtools.decoding.scoring import score, score_windows

    inputs = [(item.prefix + item.targets)[: len(item.targets)] for item in items]
    targets = [item.targets for item in items]
    if windows.window is None:
        return score(engine.model, inputs, targets, sources(items), device=engine.device)
    return score_windows(
        engine.model, inputs, targets, sources(items), window=windows.window, stride=windows.step,
        device=engine.device, batch_size=engine.batch_size,
    )  # fmt: skip


def _filled(
    item: Text, candidates: Sequence[Sequence[tuple[int, float]]], encoder: TextEncoder
) -> Fields:
    """The texts with the likeliest token in each gap, and what else may stand there."""
    ids = [pairs[0][0] for pairs in candidates]
    fields: Fields = {}
    for name in encoder.fields(item.record):
        values, gap = item.record[name], encoder.gap(name)
        count = values.count(gap)
        own, ids = ids[:count], ids[count:]
        found = own if name.endswith("ids") else encoder.vocabulary.decode(own)
        fields[f"filled_{name}"] = filled(values, gap, found)
    return fields | {"candidates": [listed(pairs, encoder.vocabulary) for pairs in candidates]}


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
