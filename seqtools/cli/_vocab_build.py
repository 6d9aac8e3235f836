"""The kind build of seq-vocab."""

from __future__ import annotations

from collections.abc import Sequence

import click

from seqtools.cli import _run
from seqtools.cli._io import Session
from seqtools.cli._options import Streams, example, refuse, stream_options
from seqtools.cli._vocab_count import count_tokens
from seqtools.cli._vocab_options import (
    Size,
    field_option,
    judge,
    roles,
    size_options,
    specials_option,
)
from seqtools.streams.files import STDIN


@click.command(
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
@field_option
@size_options
@specials_option
@click.option(
    "--subword-model", metavar="FILE",
    help="Take the pieces of this sentencepiece model, in its order, and read no records.",
)  # fmt: skip
@stream_options(jobs=True)
def build(
    streams: Streams,
    size: Size,
    field: tuple[str, ...],
    specials: tuple[str, ...],
    subword_model: str | None,
) -> None:
    """Count tokens and give each an id.

    Specials come first, then tokens by count, ties by code point. A token that is spelled like a
    special gets no entry.
    """
    from seqtools.text.vocab import Vocabulary

    wanted = roles(specials)
    if subword_model is not None:
        _refuse_counting(streams)
        _write_pieces(streams, subword_model, wanted, size.pad_to_multiple)
        return
    with Session(streams) as session:
        counts = count_tokens(session, field)
        vocabulary = Vocabulary.build(
            counts,
            max_size=size.max_size, min_count=size.min_count, specials=wanted,
            multiple=size.pad_to_multiple,
        )  # fmt: skip
        for entry in vocabulary.entries():
            session.write(entry)
        if session.records:
            judge(vocabulary, counts, size.min_count)
        else:
            _run.warn("no records, so the vocabulary has no tokens")


def _refuse_counting(streams: Streams) -> None:
    """See that nothing was asked for that needs records."""
    if streams.files != (STDIN,):
        raise click.UsageError("--subword-model reads no records: no FILE, please.")
    refuse(
        ("field", "max_size", "min_count", "rejects", "shard", "first_record", "jobs"),
        "--subword-model",
    )


def _write_pieces(streams: Streams, path: str, wanted: Sequence[str], multiple: int) -> None:
    """The vocabulary of a sentencepiece model: all that text becomes but unknown stretches."""
    from seqtools.text.subword_model import SubwordModel
    from seqtools.text.vocab import Vocabulary

    model = SubwordModel.read(path)
    pieces = [piece.text for piece in model.pieces if piece.of_text]
    vocabulary = Vocabulary.of_pieces(pieces, specials=wanted, multiple=multiple)
    with Session(streams) as session:
        for entry in vocabulary.entries():
            session.write(entry)
        spelled = sorted(vocabulary.spellings() & set(pieces))
        if spelled:
            _run.warn(f"pieces spelled like specials got no entry: {', '.join(spelled)}")
