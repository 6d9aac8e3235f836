"""Whole texts for the kinds of seq-ngram that take one in, as bytes."""

from __future__ import annotations

from collections.abc import Callable

from seqtools.cli._io import Session
from seqtools.cli._walking import walk_records
from seqtools.errors import InputError, RecordError
from seqtools.streams.files import WHOLE, chomp, read_blocks
from seqtools.streams.parallel import Reject, Transform
from seqtools.streams.records import Record, loads


def read_packed(
    session: Session, transform: Transform, field: str, take: Callable[[bytes], None],
    *, refuse_space: bool,
) -> None:  # fmt: skip
    """Read all records, packed as `ngram.words.pack_tokens` does.

    Args:
        session: whose inputs are read.
        transform: packs one record, or says what is wrong with it.
        field: the name of the list of tokens.
        take: receives the packed records, some at a time.
        refuse_space: leave tokens that are empty or hold white space to the transform.
    """
    if session.streams.shard != WHOLE:
        session.filter(lambda counts: transform, sink=take)
        return
    from seqtools.ngram.packing import Packer

    packer = Packer(field, refuse_space=refuse_space)

    def pack(record: Record) -> None:
        packed = transform(record, 0)  # it looks at no number
        assert isinstance(packed, bytes)
        pieces.append(packer.take() + packed)

    pieces: list[bytes] = []
    for _ in walk_records(session, packer, pack):
        take(b"".join([*pieces, packer.take()]))
        pieces.clear()


def read_text(
    session: Session, take: Callable[[bytes], None], *, refused: tuple[bytes, ...] = (),
    check: Callable[[bytes], None] | None = None,
) -> None:  # fmt: skip
    """Read plain lines, each a record.

    Args:
        session: whose inputs are read.
        take: receives whole lines, some at a time.
        refused: a block with one of these in it is looked at line by line.
        check: looks at such a line, RecordError where it is bad.
    """
    streams = session.streams
    for block in session.blocks(keep_blank=True):
        if streams.shard == WHOLE and _is_plain(block.data, refused):
            session.records += block.size[1]
            take(block.data)
        else:
            for place, raw in block.lines(streams.shard, streams.first_record):
                session.records += 1
                try:
                    _check_line(raw, check)
                except RecordError as error:
                    session.reject(Reject(place, raw, str(error)))
                    continue
                take(raw + b"\n")
        session.progress()


def read_heldout(
    path: str, transform: Transform | None, take: Callable[[bytes], None],
    *, refused: tuple[bytes, ...] = (), check: Callable[[bytes], None] | None = None,
) -> None:  # fmt: skip
    """Read a file beside the inputs, which may not have bad records.

    Args:
        path: of the file.
        transform: packs one record; None where there are plain lines.
        take: receives packed records or whole lines, some at a time.
        refused: as for `read_text`.
        check: as for `read_text`.

    Raises:
        InputError: a record is bad.
    """
    for block in read_blocks([path], keep_blank=transform is None):
        if transform is None and _is_plain(block.data, refused):
            take(block.data)
            continue
        pieces = []
        for place, raw in block.lines(WHOLE, 1):
            try:
                if transform is None:
                    _check_line(raw, check)
                    pieces.append(raw + b"\n")
                else:
                    packed = transform(loads(chomp(raw)), place.number)
                    assert isinstance(packed, bytes)
                    pieces.append(packed)
            except RecordError as error:
                raise InputError(place.source, place.line, str(error)) from None
        take(b"".join(pieces))


def _is_plain(data: bytes, refused: tuple[bytes, ...]) -> bool:
    """Whether there is nothing in the lines that has to be looked for line by line."""
    from seqtools.ngram.words import is_utf8

    return not any(spelled in data for spelled in refused) and is_utf8(data)


def _check_line(raw: bytes, check: Callable[[bytes], None] | None) -> None:
    """See that a line is UTF-8, and what `check` asks for besides.

    Raises:
        RecordError: it is not.
    """
    from seqtools.ngram.words import is_utf8

    if not is_utf8(raw):
        raise RecordError("not UTF-8")
    if check is not None:
        check(raw)
