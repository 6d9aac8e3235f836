"""seq-vocab: vocabularies, and tokens to ids and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from seqtools.cli import _run, _vocab_build, _vocab_coverage, _vocab_merge, _vocab_subword
from seqtools.cli._io import Session
from seqtools.cli._options import NameType, Streams, example, filter_options, group

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seqtools.streams.parallel import Counts, Transform
    from seqtools.streams.records import Record
    from seqtools.text.vocab import Vocabulary


@group("vocab", "Build vocabularies, and turn tokens into ids and back.")
def cli() -> None:
    """The kinds are below."""


vocab_option = click.option("--vocab", metavar="FILE", required=True, help="Vocabulary to use.")


@cli.command(
    epilog=example(
        """$ echo '{"tokens":["to","be"]}' | seq-vocab build > words.vocab""",
        """$ echo '{"tokens":["be","brief"]}' | seq-vocab encode --vocab words.vocab --quiet""",
        '{"tokens":["be","brief"],"ids":[4,1]}',
    )
)
@click.option(
    "--field", type=NameType(), multiple=True, default=("tokens",), show_default=True,
    help="F_tokens becomes F_ids (tokens: ids); any other F, a list or a string, too; repeatable.",
)  # fmt: skip
@vocab_option
@click.option("--one-hot", is_flag=True, help="Add F_onehot: a row of 0 and 1 for each token.")
@filter_options
def encode(streams: Streams, field: tuple[str, ...], vocab: str, *, one_hot: bool) -> None:
    """Tokens to ids.

    Unknown tokens, and text that is spelled like a special, become unk; how many is said at the
    end. Where the vocabulary has no unk, such a token makes a bad record.
    """
    from seqtools.text.fields import base, derived
    from seqtools.text.vocab import Vocabulary

    vocabulary = Vocabulary.read(vocab)
    names = [
        (name, derived(base(name, "tokens"), "ids"), derived(base(name, "tokens"), "onehot"))
        for name in field
    ]
    with Session(streams) as session:
        counts = session.filter(lambda counts: _encoder(vocabulary, names, counts, one_hot=one_hot))
        unknown, tokens = counts["unknown"], counts["tokens"]
        if unknown:
            session.summary(f"{unknown} of {tokens} tokens unknown (share {unknown / tokens:.4g})")
        if counts["spelled"]:
            _run.warn(f"{counts['spelled']} tokens are spelled like a special and became unknown")


def _encoder(
    vocabulary: Vocabulary, names: Sequence[tuple[str, str, str]], counts: Counts, *, one_hot: bool
) -> Transform:
    from seqtools.text.fields import get_tokens_or_label

    unk, spellings = vocabulary.unk, vocabulary.spellings()

    def transform(record: Record, number: int) -> Record:
        for name, ids_name, rows_name in names:
            value = get_tokens_or_label(record, name)
            label = isinstance(value, str)
            tokens = [value] if isinstance(value, str) else value
            ids = vocabulary.encode(tokens)
            if ids_name in record:
                record.pop(rows_name, None)  # by another vocabulary, as may be
            record[ids_name] = ids[0] if label else ids
            if one_hot:
                rows = [_row(each, len(vocabulary)) for each in ids]
                record[rows_name] = rows[0] if label else rows
            counts["tokens"] += len(ids)
            if unk in ids:
                counts["unknown"] += ids.count(unk)
                counts["spelled"] += sum(token in spellings for token in tokens)
        return record

    return transform


def _row(number: int, size: int) -> list[int]:
    row = [0] * size
    row[number] = 1
    return row


@cli.command(
    epilog=example(
        """$ echo '{"tokens":["to","be"]}' | seq-vocab build > words.vocab""",
        """$ echo '{"ids":[5,4,3]}' | seq-vocab decode --vocab words.vocab""",
        '{"ids":[5,4,3],"tokens":["to","be","</s>"]}',
    )
)
@click.option(
    "--field", type=NameType(), multiple=True, default=("ids",), show_default=True,
    help="F_ids becomes F_tokens (ids: tokens); repeatable.",
)  # fmt: skip
@vocab_option
@filter_options
def decode(streams: Streams, field: tuple[str, ...], vocab: str) -> None:
    """Ids to tokens, specials as they are spelled.

    What was made of the tokens before, such as F_pos and F_offsets, leaves the record.
    """
    from seqtools.text.fields import base, derived, forget, get_ids_or_id, of_tokens
    from seqtools.text.vocab import Vocabulary

    spelling = Vocabulary.read(vocab).tokens
    names = [
        (name, derived(base(name, "ids"), "tokens"), of_tokens(base(name, "ids"), keep=field))
        for name in field
    ]

    def transform(record: Record, number: int) -> Record:
        for name, tokens_name, stale in names:
            ids = get_ids_or_id(record, name, len(spelling))
            if tokens_name in record:
                forget(record, stale)
            record[tokens_name] = (
                spelling[ids] if isinstance(ids, int) else [spelling[each] for each in ids]
            )
        return record

    with Session(streams) as session:
        session.filter(lambda counts: transform)


for kind in (
    _vocab_build.build, _vocab_coverage.coverage, _vocab_merge.merge, _vocab_subword.subword
):  # fmt: skip
    cli.add_command(kind)


def main() -> None:
    """Run from the shell."""
    _run.main(cli)
