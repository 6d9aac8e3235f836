"""seq-batch: token records to batches."""

from __future__ import annotations

from typing import Literal

import click

from seqtools.cli import _run
from seqtools.cli._batch_options import (
    Cutting,
    Objective,
    OffsetType,
    cutting_options,
    mask_rate_option,
    objective_options,
)
from seqtools.cli._options import POSITIVE, Streams, example, group


@group("batch", "Cut token records into batches, each a line behind a header that says it all.")
def cli() -> None:
    """The kinds are below."""


@cli.command(
    epilog=example(
        "seq-vocab build chars.jsonl > chars.vocab",
        "seq-batch lm --vocab chars.vocab --steps 64 --epochs 2 chars.jsonl > batches.jsonl",
    )
)
@click.option("--vocab", required=True, metavar="FILE", help="Vocabulary.")
@click.option(
    "--sampling", type=click.Choice(["random", "sequential", "records"]), default="random",
    show_default=True,
    help="Windows of the whole stream in random order; windows that continue those of the batch"
    " before; or each record by itself.",
)  # fmt: skip
@click.option("--steps", type=POSITIVE, help="Length of a window; default: 35.")
@click.option(
    "--offset", type=OffsetType(),
    help="Where the first window starts, below --steps; random draws it each epoch. Default:"
    " random for windows in random order, else 0.",
)  # fmt: skip
@cutting_options
def lm(
    streams: Streams,
    cutting: Cutting,
    vocab: str,
    sampling: str,
    steps: int | None,
    offset: int | Literal["random"] | None,
) -> None:
    """For a language model: records with tokens."""
    from seqtools.batching.tasks import STEPS, LmCorpus, Sampling
    from seqtools.cli._batch_run import write
    from seqtools.text.vocab import Vocabulary

    windows = sampling != "records"
    for name, value in (("--steps", steps), ("--offset", offset)):
        if value is not None and not windows:
            raise click.UsageError(f"{name} does not go with --sampling records.")
    if isinstance(offset, int) and offset >= (steps or STEPS):
        raise click.UsageError(f"--offset must be below --steps, {steps or STEPS}.")
    if windows and cutting.batch_tokens is not None and cutting.batch_tokens < (steps or STEPS):
        raise click.UsageError(f"--batch-tokens must be at least --steps, {steps or STEPS}.")
    _check_drop_last(cutting, needed=not windows)
    corpus = LmCorpus(Vocabulary.read(vocab), cutting.options(), Sampling(sampling, steps, offset))
    write(streams, cutting, corpus)


@cli.command(
    epilog=example(
        "seq-vocab build --field src_tokens pairs.jsonl > src.vocab",
        "seq-vocab build --field tgt_tokens pairs.jsonl > tgt.vocab",
        "seq-batch seq2seq --source-vocab src.vocab --target-vocab tgt.vocab pairs.jsonl > b.jsonl",
    )
)
@click.option("--source-vocab", metavar="FILE", help="Vocabulary of the source side.")
@click.option("--target-vocab", metavar="FILE", help="Vocabulary of the target side.")
@click.option("--vocab", metavar="FILE", help="One vocabulary for both sides.")
@objective_options
@cutting_options
def seq2seq(
    streams: Streams,
    cutting: Cutting,
    objective: Objective,
    source_vocab: str | None,
    target_vocab: str | None,
    vocab: str | None,
) -> None:
    """For sequence to sequence: records with src_tokens and tgt_tokens.

    With --objective span, records with tokens: the source is the text with a sentinel for each span
    that is taken out, the target each sentinel with its span.

    Without --batch-size and --batch-tokens, a batch has at most 4096 tokens on either side.
    """
    from seqtools.batching.spans import SpanCorpus
    from seqtools.batching.tasks import Seq2seqCorpus
    from seqtools.cli._batch_run import write
    from seqtools.text.vocab import Vocabulary

    if vocab is not None and (source_vocab or target_vocab):
        raise click.UsageError("--vocab stands for both --source-vocab and --target-vocab.")
    _check_drop_last(cutting, needed=True)
    corruption = objective.corruption()
    if corruption is not None:
        if vocab is None:
            raise click.UsageError("--objective span needs --vocab FILE, one for both sides.")
        write(streams, cutting, SpanCorpus(Vocabulary.read(vocab), cutting.options(), corruption))
        return
    source, target = source_vocab or vocab, target_vocab or vocab
    if source is None or target is None:
        missing = "--source-vocab" if source is None else "--target-vocab"
        raise click.UsageError(f"{missing} FILE is needed, or --vocab FILE for both sides.")
    sides = Vocabulary.read(source), Vocabulary.read(target)
    write(streams, cutting, Seq2seqCorpus(*sides, cutting.options()))


@cli.command(
    epilog=example(
        "seq-vocab build --specials pad,unk,mask,cls,sep chars.jsonl > mlm.vocab",
        "seq-batch mlm --vocab mlm.vocab --max-length 128 --epochs 2 chars.jsonl > batches.jsonl",
    )
)
@click.option(
    "--vocab", required=True, metavar="FILE",
    help="Vocabulary, with <mask>, and with <cls> and <sep> if texts are to stand between them.",
)  # fmt: skip
@mask_rate_option
@click.option(
    "--whole-word", is_flag=True,
    help="Hide words whole: those that begin at a ▁, or Chinese ones, found by jieba.",
)  # fmt: skip
@click.option(
    "--next-sentence", is_flag=True,
    help="Put a second record behind each: half of them the next one, half any other.",
)  # fmt: skip
@cutting_options
def mlm(
    streams: Streams,
    cutting: Cutting,
    vocab: str,
    mask_rate: float | None,
    *,
    whole_word: bool,
    next_sentence: bool,
) -> None:
    """For hidden tokens: records with tokens, and perhaps text_pair_tokens.

    Without --batch-size and --batch-tokens, a batch has at most 4096 tokens.
    """
    from seqtools.batching.mlm import RATE, Masking, MlmCorpus
    from seqtools.cli._batch_run import write
    from seqtools.text.vocab import Vocabulary

    _check_drop_last(cutting, needed=True)
    if next_sentence and streams.shard.count > 1:
        raise click.UsageError("--next-sentence needs all records, not a --shard of them.")
    masking = Masking(mask_rate or RATE, whole_word, next_sentence)
    write(streams, cutting, MlmCorpus(Vocabulary.read(vocab), cutting.options(), masking))


def _check_drop_last(cutting: Cutting, *, needed: bool) -> None:
    """Records are dropped by number, so `--batch-size` is needed, and nothing else."""
    if needed and cutting.drop_last and (not cutting.batch_size or cutting.batch_tokens):
        raise click.UsageError("--drop-last needs --batch-size, and no --batch-tokens.")


def main() -> None:
    """Run from the shell."""
    _run.main(cli)
