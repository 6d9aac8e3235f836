"""The kind subword of seq-vocab: learns a sentencepiece model from records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from seqtools.cli import _run
from seqtools.cli._io import Session
from seqtools.cli._options import (
    POSITIVE,
    FiniteFloat,
    Streams,
    WholeNumber,
    collect,
    example,
    seed_option,
    stream_options,
)
from seqtools.errors import FormatError

if TYPE_CHECKING:
    from seqtools.text.subwords import Kind, Learned, Normalization, Recipe, Sample

_NORMALIZATIONS = ("nmt_nfkc", "nmt_nfkc_cf", "nfkc", "nfkc_cf", "identity")


@dataclass(frozen=True)
class Options:
    """What is to be learned, and from what; see the options of the same names."""

    kind: Kind
    size: int
    soft_size: bool
    field: tuple[str, ...]
    sample_records: int | None
    normalization: Normalization
    keep_space: bool
    prefix: bool
    byte_fallback: bool
    character_coverage: float
    user_symbol: tuple[str, ...]
    threads: int
    seed: int

    def recipe(self) -> Recipe:
        """What the library is asked for."""
        from seqtools.text.subwords import Recipe

        return Recipe(
            self.kind,
            self.size,
            soft_size=self.soft_size,
            normalization=self.normalization,
            keep_space=self.keep_space,
            prefix=self.prefix,
            byte_fallback=self.byte_fallback,
            coverage=self.character_coverage,
            symbols=self.user_symbol,
            threads=self.threads,
        )


_learning_options = collect(
    Options,
    "options",
    (
        click.option(
            "--kind", type=click.Choice(["bpe", "unigram"]), default="unigram", show_default=True,
            help="Merge frequent pairs, or prune to the likeliest pieces.",
        ),
        click.option(
            "--size", type=WholeNumber(min=4), required=True,
            help="How many pieces, the model's <unk>, <s> and </s> counted.",
        ),
        click.option("--soft-size", is_flag=True, help="Fewer where the text does not yield them."),
        click.option(
            "--field", multiple=True, default=("text",), show_default=True,
            help="A field of text; repeatable, for one model of several.",
        ),
        click.option(
            "--sample-records", type=POSITIVE,
            help="Learn from N records drawn at random, and hold no more; default: all.",
        ),
        click.option(
            "--normalization", type=click.Choice(_NORMALIZATIONS), default="nmt_nfkc",
            show_default=True, help="What the model does to text first; _cf folds case, too.",
        ),
        click.option("--keep-space", is_flag=True, help="Keep blanks at the ends and in a row."),
        click.option(
            "--prefix/--no-prefix", default=True, show_default=True,
            help="A blank before each text, for its first word to be cut as others are.",
        ),
        click.option("--byte-fallback", is_flag=True, help="Unknown characters become bytes."),
        click.option(
            "--character-coverage", type=FiniteFloat(0.98, 1), default=0.9995, show_default=True,
            help="Share of all characters in the text that the pieces cover.",
        ),
        click.option(
            "--user-symbol", multiple=True, metavar="TEXT",
            help="A piece that is never cut, as the text has it once it is normalised; repeatable.",
        ),
        click.option(
            "--threads", type=WholeNumber(min=1, max=1024), default=1, show_default=True,
            help="Of the library.",
        ),
        seed_option,
    ),
)  # fmt: skip


@click.command(
    epilog=example(
        "$ printf 'low\\nlower\\nnewest\\nwidest\\n' | seq-convert text > words.jsonl",
        "$ seq-vocab subword --kind bpe --size 20 -o words.model --quiet words.jsonl",
        "$ seq-vocab build --subword-model words.model | tail -n 2",
        '{"id":19,"token":"n"}',
        '{"id":20,"token":"r"}',
    )
)
@_learning_options
@stream_options()
def subword(streams: Streams, options: Options) -> None:
    """Learn pieces of words from text: a sentencepiece model, which goes to -o FILE.

    seq-tokenize sentencepiece cuts text with it, and seq-vocab build --subword-model makes a
    vocabulary of its pieces. The same records, options and threads give the same file.
    """
    from seqtools.streams.records import get_text
    from seqtools.text.subwords import Sample, learn

    if streams.output is None:
        raise click.UsageError("Missing option '-o' / '--output-file': the model is no text.")
    recipe = options.recipe()
    sample = Sample(options.sample_records, options.seed)
    with Session(streams) as session:
        for _, texts in session.read(lambda record: [get_text(record, f) for f in options.field]):
            sample.add(texts)
        if not sample.seen:
            raise FormatError("no records, so there is nothing to learn from")
        used = len(sample)
        learned = learn(sample.drain(), recipe)
        session.output.write(learned.data)
        _tell(session, sample, used, learned)


def _tell(session: Session, sample: Sample, used: int, learned: Learned) -> None:
    session.summary(f"records: {sample.seen:,} read, {used:,} used; pieces: {learned.size:,}")
    if learned.skipped:
        _run.warn(
            f"not learned from, as the library keeps U+2585 (▅) for itself: {learned.skipped:,} of"
            " the texts"
        )
