"""seq-decode: records through a trained model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from seqtools.cli import _run
from seqtools.cli._decode_options import (
    Drawing,
    Search,
    Setup,
    attention_option,
    drawing_options,
    model_option,
    search_options,
    setup_options,
)
from seqtools.cli._device import Compute, compute_options
from seqtools.cli._options import (
    POSITIVE,
    FiniteFloat,
    Streams,
    example,
    group,
    stream_options,
)

if TYPE_CHECKING:
    from seqtools.cli._decoding import Engine
    from seqtools.cli._encoding import Item

Fields = list[dict[str, Any]]


@group("decode", "Translate, continue, score or evaluate records with a model of seq-train.")
def cli() -> None:
    """The kinds are below."""


@cli.command(epilog=example("seq-decode greedy --model mt.safetensors tok.jsonl > out.jsonl"))
@model_option
@search_options
@setup_options
@stream_options()
def greedy(streams: Streams, setup: Setup, search: Search) -> None:
    """Take the likeliest token at each step.

    Reads src_tokens, or for an lm the prompt in tokens; adds output_tokens and hypotheses.
    """
    from seqtools.cli._decoding import decode

    def work(engine: Engine, items: Sequence[Item]) -> Fields:
        from seqtools.decoding.greedy import greedy

        found = greedy(
            engine.model, engine.prompts(items), engine.constraints(items, search.max_length),
            attention=search.attention,
        )  # fmt: skip
        return engine.fields(items, [[one] for one in found], search)

    decode(streams, setup, work)


@cli.command(
    epilog=example("seq-decode beam --model mt.safetensors --beam 5 tok.jsonl > out.jsonl")
)
@model_option
@click.option("--beam", type=POSITIVE, default=5, show_default=True, help="Live hypotheses.")
@click.option("--nbest", type=POSITIVE, default=1, show_default=True, help="Hypotheses written.")
@click.option(
    "--length-penalty", type=FiniteFloat(-10, 10), default=0.0, show_default=True, metavar="ALPHA",
    help="Rank by sum / T^ALPHA, T counting </s>.",
)  # fmt: skip
@search_options
@setup_options
@stream_options()
def beam(
    streams: Streams, setup: Setup, search: Search, beam: int, nbest: int, length_penalty: float
) -> None:
    """Keep the likeliest sequences at each step.

    Reads src_tokens, or for an lm the prompt in tokens; adds output_tokens and hypotheses, the
    best first. One that is cut at --max-length is not finished, and ranks among the others.
    """
    from seqtools.cli._decoding import decode

    if nbest > beam:
        raise click.UsageError(f"--nbest {nbest} is more than --beam {beam} can hold.")

    def work(engine: Engine, items: Sequence[Item]) -> Fields:
        from seqtools.decoding.beam import beam as beam_search

        found = beam_search(
            engine.model, engine.prompts(items), engine.constraints(items, search.max_length),
            width=beam, nbest=nbest, length_penalty=length_penalty, attention=search.attention,
        )  # fmt: skip
        return engine.fields(items, found, search)

    decode(streams, setup, work)


@cli.command(
    epilog=example("seq-decode sample --model lm.safetensors --count 3 --top-p 0.9 > new.jsonl")
)
@model_option
@click.option(
    "--count", type=POSITIVE, help="Read nothing and make N new records from the empty prompt."
)
@drawing_options
@search_options
@setup_options
@stream_options()
def sample(
    streams: Streams, setup: Setup, search: Search, drawing: Drawing, count: int | None
) -> None:
    """Draw sequences at random.

    Reads src_tokens, or for an lm the prompt in tokens; adds output_tokens and hypotheses, the
    likeliest first. What is drawn depends on the seed and the record's id, or its number if it
    has none.
    """
    from seqtools.cli._decoding import decode, drawn, invent

    work = drawn(drawing, search)
    if count is None:
        decode(streams, setup, work)
    else:
        invent(streams, setup, work, count)


@cli.command(epilog=example("seq-decode score --model lm.safetensors tok.jsonl > scored.jsonl"))
@model_option
@attention_option
@setup_options
@stream_options()
def score(streams: Streams, setup: Setup, *, attention: bool) -> None:
    """Give the log-probability of sequences under the model.

    Reads tokens, or src_tokens and tgt_tokens; adds logprob, n_tokens and token_logprobs.
    """
    from seqtools.cli._decoding import decode

    def work(engine: Engine, items: Sequence[Item]) -> Fields:
        return engine.score(items, attention=attention)

    decode(streams, setup, work, pairs=True)


@cli.command(
    epilog=example("seq-decode predict --model lm.safetensors --top-k 5 tok.jsonl > next.jsonl")
)
@model_option
@click.option("--top-k", type=POSITIVE, default=10, show_default=True, help="How many tokens.")
@setup_options
@stream_options()
def predict(streams: Streams, setup: Setup, top_k: int) -> None:
    """Give the likeliest next tokens of an lm.

    Reads the prompt in tokens; adds next.
    """
    from seqtools.cli._decoding import decode

    def work(engine: Engine, items: Sequence[Item]) -> Fields:
        return engine.next_tokens(items, top_k)

    decode(streams, setup, work, task="lm")


@cli.command(epilog=example("seq-decode evaluate --model lm.safetensors valid.batches > loss.json"))
@model_option
@compute_options
@stream_options(rejects=False, shard=False)
def evaluate(streams: Streams, model: str, compute: Compute) -> None:
    """Give the loss on a batch stream of seq-batch.

    Writes one record: loss in nats per target, perplexity, bits, targets.
    """
    from seqtools.cli import _decoding

    _decoding.evaluate(streams, model, compute)


def main() -> None:
    """Run from the shell."""
    _run.main(cli)
