"""seq-decode: records through a trained model."""

from __future__ import annotations

from functools import partial

import click

from seqtools.cli import _run
from seqtools.cli._attention_options import (
    AttentionChoice,
    attention_options,
    plain_attention_options,
)
from seqtools.cli._decode_options import (
    Drawing,
    Ranking,
    Search,
    Setup,
    Windows,
    candidates_option,
    drawing_options,
    model_option,
    models_option,
    ranking_options,
    search_options,
    setup_options,
    windows_options,
)
from seqtools.cli._device import Compute, compute_options
from seqtools.cli._options import POSITIVE, Streams, example, filter_options, group, stream_options


@group("decode", "Translate, continue, score or evaluate records with a model of seq-train.")
def cli() -> None:
    """The kinds are below."""


@cli.command(epilog=example("seq-decode greedy --model mt.safetensors tok.jsonl > out.jsonl"))
@models_option
@search_options
@attention_options
@setup_options
@filter_options
def greedy(streams: Streams, setup: Setup, search: Search, attended: AttentionChoice) -> None:
    """Take the likeliest token at each step.

    Reads src_tokens, or for an lm the prompt in tokens, and in prefix_tokens, if there, what the
    output has to begin with; adds output_tokens and hypotheses.
    """
    from seqtools.cli import _decode_search, _decoding

    _decoding.decode(streams, setup, _decode_search.greedy(search, attended))


@cli.command(
    epilog=example("seq-decode beam --model mt.safetensors --beam 5 tok.jsonl > out.jsonl")
)
@models_option
@ranking_options
@search_options
@attention_options
@setup_options
@filter_options
def beam(
    streams: Streams, setup: Setup, search: Search, ranking: Ranking, attended: AttentionChoice
) -> None:
    """Keep the likeliest sequences at each step.

    Reads src_tokens, or for an lm the prompt in tokens, and in prefix_tokens, if there, what the
    output has to begin with; adds output_tokens and hypotheses, the best first. One that is cut at
    --max-length is not finished, and ranks among the others.
    """
    from seqtools.cli import _decode_search, _decoding

    _decoding.decode(streams, setup, _decode_search.beam(search, ranking, attended))


@cli.command(
    epilog=example("seq-decode sample --model lm.safetensors --count 3 --top-p 0.9 > new.jsonl")
)
@models_option
@click.option(
    "--count", type=POSITIVE, help="Read nothing and make N new records from the empty prompt."
)
@drawing_options
@search_options
@attention_options
@setup_options
@filter_options
def sample(  # one parameter for each group of options
    streams: Streams, setup: Setup, search: Search, drawing: Drawing, attended: AttentionChoice,
    count: int | None,
) -> None:  # fmt: skip
    """Draw sequences at random.

    Reads src_tokens, or for an lm the prompt in tokens, and in prefix_tokens, if there, what the
    output has to begin with; adds output_tokens and hypotheses, the likeliest first. What is drawn
    depends on the seed and the record's id, or its number if it has none.
    """
    from seqtools.cli import _decode_search, _decoding

    job = _decode_search.sample(search, drawing, attended)
    if count is None:
        _decoding.decode(streams, setup, job)
    else:
        _decoding.invent(streams, setup, job, count)


@cli.command(epilog=example("seq-decode score --model lm.safetensors tok.jsonl > scored.jsonl"))
@models_option
@windows_options
@attention_options
@setup_options
@filter_options
def score(streams: Streams, setup: Setup, windows: Windows, attended: AttentionChoice) -> None:
    """Give the log-probability of sequences under the model.

    Reads tokens, or src_tokens and tgt_tokens; adds logprob, n_tokens and token_logprobs. With
    --window, what comes behind the first window is scored after N - M tokens or more.
    """
    from seqtools.cli import _decode_work, _decoding

    _decoding.decode(streams, setup, _decode_work.score(windows, attended))


@cli.command(
    epilog=example("seq-decode predict --model lm.safetensors --top-k 5 tok.jsonl > next.jsonl")
)
@models_option
@candidates_option
@plain_attention_options
@setup_options
@filter_options
def predict(streams: Streams, setup: Setup, attended: AttentionChoice, top_k: int) -> None:
    """Give the likeliest next tokens of an lm.

    Reads the prompt in tokens; adds next.
    """
    from seqtools.cli import _decode_work, _decoding

    _decoding.decode(streams, setup, _decode_work.predict(top_k, attended))


@cli.command(
    epilog=example("seq-decode fill --model mlm.safetensors --top-k 3 gaps.jsonl > filled.jsonl")
)
@models_option
@candidates_option
@plain_attention_options
@setup_options
@filter_options
def fill(streams: Streams, setup: Setup, attended: AttentionChoice, top_k: int) -> None:
    """Give the likeliest tokens for each <mask>.

    Reads tokens and, if there, text_pair_tokens; adds filled_tokens (and filled_text_pair_tokens),
    with the likeliest token in each gap, and candidates, a list for each gap.
    """
    from seqtools.cli import _decode_work, _decoding
    from seqtools.cli._text_encoding import TextEncoder

    job = _decode_work.fill(top_k, attended)
    _decoding.decode(streams, setup, job, opener=partial(TextEncoder.open, setup.models))


@cli.command(epilog=example("seq-decode encode --model mlm.safetensors tok.jsonl > vectors.jsonl"))
@models_option
@click.option(
    "--pool", type=click.Choice(["mean", "cls", "last", "none"]), default="mean",
    show_default=True, help="The mean of the tokens' vectors, that of <cls>, that of the last"
    " token, or all of the tokens.",
)  # fmt: skip
@plain_attention_options
@setup_options
@filter_options
def encode(streams: Streams, setup: Setup, attended: AttentionChoice, pool: str) -> None:
    """Give vectors of texts: the states of the model's top layer.

    Reads tokens and, for an mlm and if there, text_pair_tokens; adds vector or, with --pool none,
    vectors.
    """
    from seqtools.cli import _decode_work, _decoding
    from seqtools.cli._text_encoding import TextEncoder

    job = _decode_work.encode(pool, attended)
    _decoding.decode(streams, setup, job, opener=partial(TextEncoder.open, setup.models))


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
