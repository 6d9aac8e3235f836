"""The kind jieba of seq-tokenize: its options, and the words it can never find."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from seqtools.cli import _run
from seqtools.cli._io import Session
from seqtools.cli._options import Streams, collect

if TYPE_CHECKING:
    from seqtools.cli.tokenize import Plan
    from seqtools.streams.parallel import Counts, Together, Transform
    from seqtools.text.tokenizers.jieba import Engine, JiebaTokenizer, Mode

_SHOWN = 10  # entries of a user dictionary named in a warning


@dataclass(frozen=True)
class Words:
    """Which words; see the options of the same names."""

    mode: Mode
    hmm: bool
    user_dict: tuple[str, ...]
    pos: bool
    engine: Engine

    def tokenizer(self, plan: Plan) -> JiebaTokenizer:
        """The tokenizer that finds them."""
        from seqtools.text.tokenizers.jieba import JiebaTokenizer

        return JiebaTokenizer(
            mode=self.mode,
            hmm=self.hmm,
            user_dict=self.user_dict,
            pos=self.pos,
            keep_space=plan.spaced,
            engine=self.engine,
        )

    def refuse(self, plan: Plan) -> None:
        """See that what was asked for can be done together."""
        if self.mode != "precise":
            wanted = {"pos": self.pos, "reverse": plan.reverse, "lossless": plan.lossless}
            for name in (name for name, given in wanted.items() if given):
                raise click.UsageError(f"--{name} needs --mode precise.")
        if plan.reverse and (self.pos or self.user_dict):
            raise click.UsageError("--reverse needs no dictionary.")


words_options = collect(
    Words,
    "words",
    (
        click.option(
            "--mode", type=click.Choice(["precise", "full", "search"]), default="precise",
            show_default=True, help="One segmentation, all words of the dictionary, or one with the"
            " shorter words before each long one.",
        ),
        click.option(
            "--hmm/--no-hmm", default=True, show_default=True,
            help="Find words that are in no dictionary (full never does).",
        ),
        click.option(
            "--user-dict", metavar="FILE", multiple=True,
            help="More words, lines of WORD [COUNT] [TAG]; repeatable.",
        ),
        click.option(
            "--pos", is_flag=True,
            help="Add F_pos: parts of speech, by jieba's posseg, which segments in its own way.",
        ),
        click.option(
            "--engine", type=click.Choice(["auto", "jieba"]), default="auto", show_default=True,
            help="What finds the words, which are jieba's either way: rjieba where it can, or"
            " jieba.",
        ),
    ),
)  # fmt: skip


def tokenize_words(streams: Streams, plan: Plan, words: Words) -> None:
    """Text to words, a block of records at a time, or words to text."""
    from seqtools.text.normalize import Normalizer
    from seqtools.text.tokenizers.blocks import Care, SplitBlock
    from seqtools.text.tokenizers.char import CharTokenizer
    from seqtools.text.tokenizers.records import join_fields, split_fields

    words.refuse(plan)
    tokenizer = None if plan.reverse else words.tokenizer(plan)
    for path, entries in tokenizer.unmatchable.items() if tokenizer else ():
        if entries:
            _run.warn(_unmatchable(path, entries))
    normalizer = Normalizer(plan.normalize, plan.lowercase)

    def make(counts: Counts) -> Transform | Together:
        if tokenizer is None:
            return join_fields(plan.field, CharTokenizer())
        if not (words.pos or plan.lossless):
            return SplitBlock(plan.field, tokenizer, normalizer, Care(plan.offsets), counts)
        return split_fields(
            plan.field,
            tokenizer,
            normalizer,
            offsets=plan.offsets,
            lossless=plan.lossless,
            tag=tokenizer.tag if words.pos else None,
        )

    with Session(streams) as session:
        plan.filter(session, make)


def _unmatchable(path: str, entries: Sequence[tuple[int, str]]) -> str:
    shown = ", ".join(f'"{word}" (line {line})' for line, word in entries[:_SHOWN])
    more = f" and {len(entries) - _SHOWN} more" if len(entries) > _SHOWN else ""
    return (
        f"{path}: {len(entries)} entries can never be found, since jieba joins only Han characters,"
        f" ASCII letters and digits, and some of +#&._%- into words: {shown}{more}"
    )
