"""The kind sentencepiece of seq-tokenize: its options, and what it says at the end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from seqtools.cli._io import Session
from seqtools.cli._options import POSITIVE, FiniteFloat, Streams, WholeNumber, collect, seed_option
from seqtools.errors import ConfigError

if TYPE_CHECKING:
    from seqtools.cli.tokenize import Plan
    from seqtools.streams.parallel import Counts, Together, Transform
    from seqtools.text.tokenizers.drawing import Sampling


@dataclass(frozen=True)
class Subwords:
    """What the model does; see the options of the same names."""

    subword_model: str
    restrict_vocab: str | None
    threshold: int | None
    sample: float | None
    sample_from: int | None
    seed: int

    def __post_init__(self) -> None:
        if self.threshold is not None and self.restrict_vocab is None:
            raise click.UsageError("--threshold needs --restrict-vocab FILE.")
        if self.sample_from is not None and self.sample is None:
            raise click.UsageError("--sample-from needs --sample ALPHA.")

    def refuse_reverse(self) -> None:
        """See that nothing was asked for that only splitting does."""
        for name in ("restrict_vocab", "sample"):
            if getattr(self, name) not in (None, False):
                option = name.replace("_", "-")
                raise click.UsageError(f"--{option} makes no sense with --reverse.")

    def kept(self) -> frozenset[str] | None:
        """The pieces of `--restrict-vocab` that are frequent enough."""
        if self.restrict_vocab is None:
            return None
        from seqtools.text.vocab import Vocabulary

        vocabulary = Vocabulary.read(self.restrict_vocab)
        threshold = self.threshold or 0
        if threshold and vocabulary.counts is None:
            raise ConfigError(f"{self.restrict_vocab}: --threshold needs counts, and it has none")
        counts = vocabulary.counts or [0] * len(vocabulary)
        pairs = zip(vocabulary.tokens, counts, strict=True)
        return frozenset(token for token, count in pairs if count >= threshold)

    def sampling(self) -> Sampling | None:
        """How segmentations are drawn."""
        from seqtools.text.tokenizers.drawing import Sampling

        if self.sample is None:
            return None
        return Sampling(self.sample, self.sample_from, self.seed)


subword_options = collect(
    Subwords,
    "subwords",
    (
        click.option(
            "--subword-model", metavar="FILE", required=True,
            help="A model of sentencepiece, such as seq-vocab subword learns.",
        ),
        click.option(
            "--restrict-vocab", metavar="FILE",
            help="Use only pieces of this vocabulary, and single characters.",
        ),
        click.option(
            "--threshold", type=POSITIVE,
            help="With --restrict-vocab: only those with this count or more.",
        ),
        click.option(
            "--sample", type=FiniteFloat(0), metavar="ALPHA",
            help="Draw segmentations: their probabilities to this power (unigram), or each merge"
            " left out with this probability (BPE).",
        ),
        click.option(
            "--sample-from", type=WholeNumber(min=2),
            help="With --sample, unigram: draw from the N best; default: all.",
        ),
        seed_option,
    ),
)  # fmt: skip


def tokenize_subwords(streams: Streams, plan: Plan, subwords: Subwords) -> None:
    """Text to pieces, or pieces to text, a block of records at a time."""
    from seqtools.text.normalize import Normalizer
    from seqtools.text.tokenizers.blocks import Care, JoinBlock, SplitBlock, SplitDrawn
    from seqtools.text.tokenizers.sentencepiece import SentencePieceTokenizer

    if plan.reverse:
        subwords.refuse_reverse()
    if plan.lossless and subwords.sample is not None:
        raise click.UsageError("--lossless and --sample exclude each other.")
    tokenizer = SentencePieceTokenizer(
        subwords.subword_model, restrict=subwords.kept(), sampling=subwords.sampling()
    )
    normalizer = Normalizer(plan.normalize, plan.lowercase)
    care = Care(plan.offsets, not streams.quiet, plan.lossless)

    def make(counts: Counts) -> Transform | Together:
        if plan.reverse:
            return JoinBlock(plan.field, tokenizer)
        if subwords.sample is not None:
            return SplitDrawn(plan.field, tokenizer, normalizer, offsets=plan.offsets)
        return SplitBlock(plan.field, tokenizer, normalizer, care, counts)

    with Session(streams) as session:
        _tell(session, plan.filter(session, make), exact=tokenizer.keeps_space)


def _tell(session: Session, counts: Counts, *, exact: bool) -> None:
    """What the user may not have meant, in numbers."""
    unknown, tokens = counts["unknown"], counts["tokens"]
    if unknown:
        session.summary(
            f"{unknown} of {tokens} tokens unknown to the model (share {unknown / tokens:.4g})"
        )
    if counts["changed"]:
        advice = (
            "for instance where they have ▁ themselves"
            if exact
            else "more would if the model were learned with --normalization identity --no-prefix"
            " --keep-space"
        )
        session.summary(
            f"{counts['changed']} of {counts['texts']} texts would not come back from their tokens"
            f" as they are (see --lossless; {advice})"
        )
