"""seq-vocab: vocabularies, and tokens to ids and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from seqtools.cli import _run, _vocab_subword
from seqtools.cli._io import Session
from seqtools.cli._options import (
    POSITIVE,
    NamesType,
    Streams,
    example,
    filter_options,
    group,
    stream_options,
)
from seqtools.streams.files import STDIN

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
        """$ echo '{"tokens":["to","be","or","not","to","be"]}' | seq-vocab build --min-count 2""",
        '{"id":0,"token":"<pad>","special":"pad"}',
        '{"id":1,"token":"<unk>","special":"unk"}',
        '{"id":2,"token":"<s>","special":"bos"}',
        '{"id":3,"token":"</s>","special":"eos"}',
        '{"id":4,"token":"be","count":2}',
        '{"id":5,"token":"to","count":2}',
        """$ echo '{"label":"joy"}' | seq-vocab build --field label --specials none""",
        '{"id":0,"token":"joy","count":1}',
    )
)
@click.option(
    "--field", multiple=True, default=("tokens",), show_default=True,
    help="A list of tokens, or a string (a label); repeatable, for one vocabulary of several.",
)  # fmt: skip
@click.option("--max-size", type=POSITIVE, help="Keep so many tokens, specials not counted.")
@click.option(
    "--min-count", type=POSITIVE, default=1, show_default=True,
    help="Leave out tokens seen less often.",
)  # fmt: skip
@click.option(
    "--specials", type=NamesType(), default=(), metavar="LIST|none",
    help="Specials besides pad, unk, bos and eos (mask, cls, sep), or none for none at all.",
)  # fmt: skip
@click.option(
    "--subword-model", metavar="FILE",
    help="Take the pieces of this sentencepiece model, in its order, and read no records.",
)  # fmt: skip
@stream_options(jobs=True)
def build(
    streams: Streams,
    field: tuple[str, ...],
    max_size: int | None,
    min_count: int,
    specials: tuple[str, ...],
    subword_model: str | None,
) -> None:
    """Count tokens and give each an id.

    Specials come first, then tokens by count, ties by code point. A token that is spelled like a
    special gets no entry.
    """
    from seqtools.text.fields import get_tokens_or_label
    from seqtools.text.specials import DEFAULT_SPECIALS, ordered
    from seqtools.text.vocab import Vocabulary

    roles = () if specials == ("none",) else ordered((*DEFAULT_SPECIALS, *specials))
    if subword_model is not None:
        _refuse_counting(streams)
        _write_pieces(streams, subword_model, roles)
        return

    def count(counts: Counts) -> Transform:
        def transform(record: Record, number: int) -> bytes:
            # All fields are read before one is counted: a bad record counts for nothing.
            for value in [get_tokens_or_label(record, name) for name in field]:
                counts.update((value,) if isinstance(value, str) else value)
            return b""

        return transform

    with Session(streams) as session:
        counts = session.filter(count)
        vocabulary = Vocabulary.build(
            counts, max_size=max_size, min_count=min_count, specials=roles
        )
        for entry in vocabulary.entries():
            session.write(entry)
        _judge(vocabulary, counts, min_count, session.records)


def _refuse_counting(streams: Streams) -> None:
    """See that nothing was asked for that needs records."""
    if streams.files != (STDIN,):
        raise click.UsageError("--subword-model reads no records: no FILE, please.")
    context = click.get_current_context()
    for name in ("field", "max_size", "min_count", "rejects", "shard", "first_record", "jobs"):
        if context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
            option = name.replace("_", "-")
            raise click.UsageError(f"--{option} makes no sense with --subword-model.")


def _write_pieces(streams: Streams, path: str, roles: Sequence[str]) -> None:
    """The vocabulary of a sentencepiece model: all that text becomes but unknown stretches."""
    from seqtools.text.subword_model import SubwordModel
    from seqtools.text.vocab import Vocabulary

    model = SubwordModel.read(path)
    pieces = [piece.text for piece in model.pieces if piece.of_text]
    vocabulary = Vocabulary.of_pieces(pieces, specials=roles)
    with Session(streams) as session:
        for entry in vocabulary.entries():
            session.write(entry)
        spelled = sorted(vocabulary.spellings() & set(pieces))
        if spelled:
            _run.warn(f"pieces spelled like specials got no entry: {', '.join(spelled)}")


def _judge(vocabulary: Vocabulary, counts: Counts, min_count: int, records: int) -> None:
    """Warn about what the user may not have meant."""
    if not records:
        _run.warn("no records, so the vocabulary has no tokens")
    elif len(vocabulary) == len(vocabulary.specials):
        why = f" seen {min_count} times or more" if counts else ""
        _run.warn(f"no tokens{why}, so the vocabulary has none")
    spelled = {token: counts[token] for token in vocabulary.spellings() if counts[token]}
    if spelled:
        names = ", ".join(f"{token} {counts[token]}" for token in sorted(spelled))
        _run.warn(f"tokens spelled like specials got no entry of their own: {names}")


@cli.command(
    epilog=example(
        """$ echo '{"tokens":["to","be"]}' | seq-vocab build > words.vocab""",
        """$ echo '{"tokens":["be","brief"]}' | seq-vocab encode --vocab words.vocab --quiet""",
        '{"tokens":["be","brief"],"ids":[4,1]}',
    )
)
@click.option(
    "--field", multiple=True, default=("tokens",), show_default=True,
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
    "--field", multiple=True, default=("ids",), show_default=True,
    help="F_ids becomes F_tokens (ids: tokens); repeatable.",
)  # fmt: skip
@vocab_option
@filter_options
def decode(streams: Streams, field: tuple[str, ...], vocab: str) -> None:
    """Ids to tokens, specials as they are spelled."""
    from seqtools.text.fields import base, derived, get_ids_or_id
    from seqtools.text.vocab import Vocabulary

    spelling = Vocabulary.read(vocab).tokens
    names = [(name, derived(base(name, "ids"), "tokens")) for name in field]

    def transform(record: Record, number: int) -> Record:
        for name, tokens_name in names:
            ids = get_ids_or_id(record, name, len(spelling))
            record[tokens_name] = (
                spelling[ids] if isinstance(ids, int) else [spelling[each] for each in ids]
            )
        return record

    with Session(streams) as session:
        session.filter(lambda counts: transform)


cli.add_command(_vocab_subword.subword)


def main() -> None:
    """Run from the shell."""
    _run.main(cli)
