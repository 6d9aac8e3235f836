"""One run of `seq-batch`: records to batches, and what is said about them."""

from __future__ import annotations

from seqtools.batching.corpus import Corpus
from seqtools.cli import _run
from seqtools.cli._batch_options import Cutting
from seqtools.cli._io import Session
from seqtools.cli._options import Streams

# A vocabulary that leaves out more than this share of the tokens was hardly meant for them.
_MANY_UNKNOWN = 0.5


def write(streams: Streams, cutting: Cutting, corpus: Corpus) -> None:
    """Read all records, then write all batches behind their header."""
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
    unit = "targets" if corpus.promises else "tokens"
    padding = tally.padding / max(1, tally.positions)
    session.summary(f"epochs: {epochs}; batches: {sum(batches):,}; padding: {padding:.1%}")
    for what, count in (
        (f"records cut to --max-length {cutting.max_length}", tally.truncated),
        (f"records left out, above --max-length {cutting.max_length}", tally.dropped),
        ("records with an empty sequence", tally.empty),
        ("records left out, as they are empty", tally.left_out),
        (f"{unit} left out, outside whole windows or batches", tally.unused),
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
