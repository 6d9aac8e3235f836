"""Records through compiled code, of which only those that are not plain become Python objects."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from seqtools.cli._io import Session
from seqtools.errors import RecordError, SeqtoolsError
from seqtools.streams.files import Block, Place, chomp
from seqtools.streams.parallel import Reject, until_error
from seqtools.streams.records import Record, loads

if TYPE_CHECKING:
    from seqtools.ngram.jsonlines import Walker

# Takes what is wanted out of a record that is not plain, RecordError where it is not there.
Other = Callable[[Record], None]


class Walked(NamedTuple):
    """What there was in a block: lines, records, and which of these are bad."""

    lines: int
    records: int
    rejects: list[Reject]


def walk_records(session: Session, walker: Walker, other: Other) -> Iterator[None]:
    """Read all records of a session, in order; gives way after each block.

    Args:
        session: whose inputs are read, all of them.
        walker: takes what is wanted out of plain records.
        other: does so for any other record.
    """
    for block in session.blocks():
        walked = walk_block(block, walker, other)
        block.tell_size(walked.lines, walked.records)
        yield
        _settle(session, walked)


def walk_side_by_side(session: Session, hands: Sequence[tuple[Walker, Other]]) -> None:
    """The same in threads, each with a walker of its own, where the order does not matter.

    Bad records are still met in order.
    """
    from concurrent.futures import Future, ThreadPoolExecutor

    free = deque(hands)
    busy: deque[tuple[Future[Walked], tuple[Walker, Other]]] = deque()
    errors: list[SeqtoolsError] = []

    def wait() -> None:
        work, hand = busy.popleft()
        _settle(session, work.result())
        free.append(hand)

    with contextlib.ExitStack() as stack:
        pool = stack.enter_context(ThreadPoolExecutor(len(hands)))
        stack.callback(pool.shutdown, cancel_futures=True)
        for block in until_error(session.blocks(), errors):
            # Lines are counted here, before the block is worked on; numbers of records tell nobody.
            lines = block.data.count(b"\n")
            block.tell_size(lines, lines)
            if not free:
                wait()
            hand = free.popleft()
            busy.append((pool.submit(walk_block, block, *hand), hand))
            while block.pause and busy:
                wait()
        while busy:
            wait()
    if errors:
        raise errors[0]


def walk_block(block: Block, walker: Walker, other: Other) -> Walked:
    """Take what is wanted out of the records of a block."""
    from seqtools.ngram.words import is_utf8

    if not block.data:
        return Walked(0, 0, [])
    text = block.data if block.data.endswith(b"\n") else block.data + b"\n"
    walker.begin(text)
    plain = is_utf8(text)
    rejects = []
    position = 0
    while position < len(text):
        if plain:
            position = walker.walk(position)
            if position == len(text):
                break
        # A line that is not plain: the way that knows all of JSON.
        end = text.index(b"\n", position)
        raw, position = text[position:end], end + 1
        place = Place(block.source, block.line + walker.lines, block.record + walker.records)
        blank = not raw.strip(b" \t\r")
        walker.step_over(record=not blank)
        if blank:
            continue
        try:
            other(loads(chomp(raw)))
        except RecordError as error:
            rejects.append(Reject(place, raw, str(error)))
    return Walked(walker.lines, walker.records, rejects)


def _settle(session: Session, walked: Walked) -> None:
    session.records += walked.records
    for reject in walked.rejects:
        session.reject(reject)
    session.progress()
