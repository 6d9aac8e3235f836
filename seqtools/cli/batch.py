"""seq-batch: token records to batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import click

from seqtools.cli import _run
from seqtools.cli._batch_options import Cutting, OffsetType, cutting_options
from seqtools.cli._io import Session
from seqtools.cli._options import POSITIVE, Streams, example, group

if TYPE_CHECKING:
    from seqtools.batching.corpus import Corpus

# A vocabulary that leaves out more than this share of the tokens was hardly meant for them.
_MANY_UNKNOWN = 0.5


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
    _write(streams, cutting, corpus)


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
@cutting_options
def seq2seq(
    streams: Streams,
    cutting: Cutting,
    source_vocab: str | None,
    target_vocab: str | None,
    vocab: str | None,
) -> None:
    """For sequence to sequence: records with src_tokens and tgt_tokens.

    Without --batch-size and --batch-tokens, a batch has at most 4096 tokens on either side.
    """
    from seqtools.batching.tasks import Seq2seqCorpus
    from seqtools.text.vocab import Vocabulary

    if vocab is not None and (source_vocab or target_vocab):
        raise click.UsageError("--vocab stands for both --source-vocab and --target-vocab.")
    source, target = source_vocab or vocab, target_vocab or vocab
    if source is None or target is None:
        missing = "--source-vocab" if source is None else "--target-vocab"
        raise click.UsageError(f"{missing} FILE is needed, or --vocab FILE for both sides.")
    _check_drop_last(cutting, needed=True)
    sides = Vocabulary.read(source), Vocabulary.read(target)
    _write(streams, cutting, Seq2seqCorpus(*sides, cutting.options()))


def _check_drop_last(cutting: Cutting, *, needed: bool) -> None:
    """Records are dropped by number, so `--batch-size` is needed, and nothing else."""
    if needed and cutting.drop_last and (not cutting.batch_size or cutting.batch_tokens):
        raise click.UsageError("--drop-last needs --batch-size, and no --batch-tokens.")


def _write(streams: Streams, cutting: Cutting, corpus: Corpus) -> None:
    with Session(streams) as session:
        for place, encoded in session.read(corpus.encode):
            if encoded is not None:
                corpus.append(encoded, place.number)
        if not corpus.tally.records:
            session.summary("no records, so no batches")
            return
        corpus.freeze()
        header = corpus.plan(cutting.epochs)
        _report(session, cutting, corpus, header.batches)
        session.output.write(header.to_bytes())
        for epoch in range(1, cutting.epochs + 1):
            for batch in corpus.batches(epoch):
                session.output.write(batch.to_bytes())


def _report(session: Session, cutting: Cutting, corpus: Corpus, batches: list[int]) -> None:
    """Say what is in the batches and what is not."""
    tally, epochs = corpus.tally, cutting.epochs
    said = [f"records: {tally.records:,}"]
    for name, column in corpus.columns.items():
        side = "" if name == "tokens" else f"{name} "
        said.append(f"{side}tokens: {column.tokens:,} ({column.unknown_share:.1%} unknown)")
    session.summary("; ".join(said))
    padding = tally.padding / max(1, tally.positions)
    session.summary(f"epochs: {epochs}; batches: {sum(batches):,}; padding: {padding:.1%}")
    for what, count in (
        (f"records cut to --max-length {cutting.max_length}", tally.truncated),
        (f"records left out, above --max-length {cutting.max_length}", tally.dropped),
        ("records with an empty sequence", tally.empty),
        ("records left out, as nothing stands around their empty ids", tally.left_out),
        ("targets left out, outside whole windows or batches", tally.unused),
    ):
        if count:
            session.summary(f"{what}: {count:,}")
    if tally.alone:
        count = tally.alone // epochs
        _run.warn(f"records above --batch-tokens by themselves, each in a batch alone: {count:,}")
    for name, column in corpus.columns.items():
        side = "" if name == "tokens" else f"{name} "
        if column.unknown_share > _MANY_UNKNOWN:
            _run.warn(
                f"{column.unknown_share:.1%} of the {side}tokens are not in their vocabulary;"
                " was it built from this text, with the same tokenizer?"
            )
    reserved = sum(column.reserved for column in corpus.columns.values())
    if reserved:
        _run.warn(f"tokens spelled like special symbols, taken as unknown: {reserved:,}")


def main() -> None:
    """Run from the shell."""
    _run.main(cli)
