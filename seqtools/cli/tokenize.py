"""seq-tokenize: text to tokens and back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from seqtools.cli import _run
from seqtools.cli._io import Session, hint_at_text
from seqtools.cli._options import NameType, Streams, collect, example, filter_options, group
from seqtools.cli._tokenize_jieba import Words, tokenize_words, words_options
from seqtools.cli._tokenize_subword import Subwords, subword_options, tokenize_subwords

if TYPE_CHECKING:
    from seqtools.streams.parallel import Counts, MakeTransform
    from seqtools.text.normalize import Form
    from seqtools.text.tokenizers import Tokenizer
    from seqtools.text.tokenizers.records import Tag


@dataclass(frozen=True)
class Plan:
    """What all kinds let one ask for; see the options of the same names."""

    field: tuple[str, ...]
    text: bool
    reverse: bool
    lowercase: bool
    normalize: Form
    offsets: bool
    lossless: bool
    keep_space: bool = False

    def __post_init__(self) -> None:
        if self.reverse:
            for name in ("text", "lowercase", "offsets", "lossless"):
                if getattr(self, name):
                    raise click.UsageError(f"--{name} makes no sense with --reverse.")
            if self.normalize != "none":
                raise click.UsageError("--normalize makes no sense with --reverse.")
        if self.text and len(self.field) > 1:
            raise click.UsageError("--text fills one --field.")

    @property
    def spaced(self) -> bool:
        """Whether white space makes tokens, too: asked for, or needed to give the text back."""
        return self.keep_space or self.lossless

    def filter(self, session: Session, make: MakeTransform) -> Counts:
        """Put records, or plain lines, through a transform; see `Session.filter`."""
        if self.reverse:
            return session.filter(make)
        if not self.text:
            with hint_at_text():
                return session.filter(make)
        from seqtools.text.convert import read_text

        (field,) = self.field
        return session.filter(make, parse=lambda line: read_text(line, field), keep_blank=True)


_PLAN_OPTIONS = (
    click.option(
        "--field", type=NameType(), multiple=True, default=("text",), show_default=True,
        help="A field of text, F, whose tokens become F_tokens (tokens for text); repeatable."
        " Of tokens that were there, F_pos, F_offsets, F_ids, F_onehot and F_ngrams go, too.",
    ),
    click.option("--text", is_flag=True, help="Read plain lines; they become the field."),
    click.option("--reverse", is_flag=True, help="Tokens to text."),
    click.option("--lowercase", is_flag=True, help="Tokens in lower case."),
    click.option(
        "--normalize", type=click.Choice(["none", "nfc", "nfkc"]), default="none",
        show_default=True, help="Unicode normal form of the tokens.",
    ),
    click.option(
        "--offsets", is_flag=True,
        help="Add F_offsets: where each token stands in F, [start, end) in code points.",
    ),
    click.option(
        "--lossless", is_flag=True,
        help="A text that its tokens would not give back as it is makes a bad record.",
    ),
)  # fmt: skip
_KEEP_SPACE = click.option(
    "--keep-space", is_flag=True,
    help="Keep tokens of white space (so does --lossless): the tokens joined are the text.",
)  # fmt: skip

plan_options = collect(Plan, "plan", (*_PLAN_OPTIONS, _KEEP_SPACE))
piece_plan_options = collect(Plan, "plan", _PLAN_OPTIONS)


@group("tokenize", "Text to tokens and, with --reverse, tokens to text.")
def cli() -> None:
    """The kinds are below."""


@cli.command(
    epilog=example(
        """$ echo '{"text":"It works, mostly."}' | seq-tokenize whitespace""",
        '{"text":"It works, mostly.","tokens":["It","works,","mostly."]}',
    )
)
@plan_options
@filter_options
def whitespace(streams: Streams, plan: Plan) -> None:
    """What stands between white space, which includes U+00A0 and U+3000, but not U+FEFF.

    --reverse puts a space between the tokens; with --keep-space nothing, and the text comes back.
    """
    from seqtools.text.tokenizers.whitespace import WhitespaceTokenizer

    _tokenize(streams, plan, WhitespaceTokenizer(keep_space=plan.spaced))


@cli.command(
    epilog=example(
        """$ echo "It works, doesn't it? 3.14!" | seq-tokenize word --text --lowercase""",
        """{"text":"It works, doesn't it? 3.14!",""",
        """ "tokens":["it","works",",","doesn't","it","?","3.14","!"]}""",
        """$ echo '{"tokens":["it","works",",","mostly","."]}' | seq-tokenize word --reverse""",
        """{"tokens":["it","works",",","mostly","."],"text":"it works, mostly."}""",
    )
)
@plan_options
@filter_options
def word(streams: Streams, plan: Plan) -> None:
    """Words, numbers and symbols; each Han character a token, an emoji with its parts one.

    Nothing but white space is left out. --reverse gives readable text: spaces stand where English
    and German have them, and none between Han characters; with --keep-space only the tokens' own.
    """
    from seqtools.text.tokenizers.word import WordTokenizer

    _tokenize(streams, plan, WordTokenizer(keep_space=plan.spaced))


@cli.command(
    epilog=example(
        "$ echo 我爱 NLP | seq-tokenize char --text",
        '{"text":"我爱 NLP","tokens":["我","爱","N","L","P"]}',
    )
)
@plan_options
@filter_options
def char(streams: Streams, plan: Plan) -> None:
    """Each code point (not each grapheme) a token.

    --reverse puts nothing between the tokens: of --keep-space and --lossless the text comes back.
    """
    from seqtools.text.tokenizers.char import CharTokenizer

    _tokenize(streams, plan, CharTokenizer(keep_space=plan.spaced))


@cli.command(
    epilog=example(
        "$ echo é! | seq-tokenize byte --text --offsets",
        '{"text":"é!","tokens":["<0xC3>","<0xA9>","<0x21>"],"offsets":[[0,0],[0,1],[1,2]]}',
    )
)
@piece_plan_options
@filter_options
def byte(streams: Streams, plan: Plan) -> None:
    """Each byte of UTF-8 a token, <0xE4>; white space is text as all else is.

    In the offsets a character is the last of its bytes. --reverse makes a bad record of bytes that
    are not UTF-8, and of a token that is no byte.
    """
    from seqtools.text.tokenizers.byte import ByteTokenizer

    _tokenize(streams, plan, ByteTokenizer())


@cli.command(
    epilog=example(
        "$ echo 他在研究所工作 | seq-tokenize jieba --text --mode search --offsets",
        "$ echo 她在北京工作 | seq-tokenize jieba --text --pos",
    )
)
@words_options
@plan_options
@filter_options
def jieba(streams: Streams, plan: Plan, words: Words) -> None:
    """Chinese words by jieba.

    --reverse puts nothing between the tokens; those of full and search overlap, so it and
    --lossless refuse them. --mode full, --pos and --user-dict take the slower engine.
    """
    tokenize_words(streams, plan, words)


@cli.command(
    epilog=example(
        "$ printf 'low\\nlower\\nnewest\\nwidest\\n' | seq-convert text > words.jsonl",
        "$ seq-vocab subword --kind bpe --size 20 -o words.model --quiet words.jsonl",
        "$ echo lowest | seq-tokenize sentencepiece --subword-model words.model --text",
        """{"text":"lowest","tokens":["▁low","est"]}""",
    )
)
@subword_options
@piece_plan_options
@filter_options
def sentencepiece(streams: Streams, plan: Plan, subwords: Subwords) -> None:
    """Pieces of words, by a model of sentencepiece; ▁ stands for the blank before a word.

    The model normalises text in its own way first. What it does not know comes out as it is, each
    stretch a token, or byte by byte, <0xE4>, where it was learned with --byte-fallback; how many
    tokens that are, and how many texts --reverse would change, is said at the end: fewest of a
    model that was learned with --normalization identity --no-prefix --keep-space.
    """
    tokenize_subwords(streams, plan, subwords)


def _tokenize(streams: Streams, plan: Plan, tokenizer: Tokenizer, tag: Tag | None = None) -> None:
    from seqtools.text.normalize import Normalizer
    from seqtools.text.tokenizers.records import join_fields, split_fields

    if plan.reverse:
        transform = join_fields(plan.field, tokenizer)
    else:
        normalizer = Normalizer(plan.normalize, plan.lowercase)
        transform = split_fields(
            plan.field,
            tokenizer,
            normalizer,
            offsets=plan.offsets,
            lossless=plan.lossless,
            tag=tag,
        )
    with Session(streams) as session:
        plan.filter(session, lambda counts: transform)


def main() -> None:
    """Run from the shell."""
    _run.main(cli)
