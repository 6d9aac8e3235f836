"""States of statistics as files: what --partial writes and --merge reads.

A state stands between a header, which says of what and which records it covers, and an end, which
says how much there was.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from math import gcd
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from seqtools.errors import RecordError, SeqtoolsError
from seqtools.streams.files import STDIN, native
from seqtools.streams.records import Record, dumps

if TYPE_CHECKING:
    from seqtools.cli._io import Session
    from seqtools.streams.files import Block
    from seqtools.text.stats import Statistic

S = TypeVar("S", bound="Statistic")
# Makes empty statistics; what the mapping has of `Statistic.options` is in the place of the
# command's options.
Make = Callable[[Record], S]

_MAGIC = "statistics"
_VERSION = 2
_NAMED = 5  # missing shards


@dataclass(frozen=True)
class Piece:
    """Records that a state covers.

    Attributes:
        file: the first that was read.
        digest: of all files, their names and what they hold; nothing where they were empty.
        first_record: number of the first record.
        index, count: the shard, or 1 and 1.
        records: how many.
    """

    file: str
    digest: str
    first_record: int
    index: int
    count: int
    records: int

    @property
    def corpus(self) -> tuple[str, int]:
        """What it is a shard of."""
        return self.digest, self.first_record

    def overlaps(self, other: Piece) -> bool:
        """Whether some records are (or, where there are only a few, would be) in both."""
        same = self.corpus == other.corpus
        return same and (self.index - other.index) % gcd(self.count, other.count) == 0

    def __str__(self) -> str:
        return self.file if self.count == 1 else f"{self.file}, shard {self.index}/{self.count}"


class Watch:
    """Takes note of what is read, for a `Piece`."""

    def __init__(self) -> None:
        from hashlib import blake2b

        self._hash = blake2b(digest_size=16)
        self._source: str | None = None
        self._first = ""
        self._empty = True

    def watch(self, blocks: Iterator[Block]) -> Iterator[Block]:
        """Give the blocks on."""
        for block in blocks:
            if block.source != self._source:
                self._source = block.source
                name = native(os.path.normpath(block.source))
                self._first = self._first or name.decode("utf-8", "replace")
                self._hash.update(b"\0%b\0" % name)  # no line of JSON has these bytes
            self._hash.update(block.data)
            self._empty = self._empty and not block.data
            yield block

    def piece(self, session: Session) -> Piece:
        """What was read in this session."""
        streams = session.streams
        digest = "" if self._empty else self._hash.hexdigest()
        shard, records = streams.shard, session.records - session.rejected
        return Piece(
            self._first, digest, streams.first_record, shard.index, shard.count, records
        )  # fmt: skip


def state(statistic: Statistic, pieces: Iterable[Piece]) -> Iterator[Record]:
    """The state of the statistics, which are of these pieces."""
    yield {
        "seqtools": _MAGIC,
        "version": _VERSION,
        "kind": statistic.kind,
        "options": statistic.options,
        "covers": [vars(piece) for piece in pieces],
    }
    count = 0
    for count, part in enumerate(statistic.dump(), 1):  # noqa: B007
        yield part
    yield {"seqtools": _MAGIC, "end": count}


def merge(session: Session, make: Make[S], given: set[str]) -> tuple[S, list[Piece]]:
    """Merge the states that the session reads; all are of the first one's options.

    Args:
        make: makes the statistics.
        given: names of `Statistic.options` that are not taken from the states, but must agree.

    Raises:
        InputError: a state is damaged, of another kind or other options, or covers records that
            one before it did.
        SeqtoolsError: a file has no state, or a part of one.
    """
    merging = _Merging(make, given)
    name = ""
    seen = set()
    for place, _ in session.read(merging.take):
        name = place.source
        seen.add(name)
    if merging.open:
        raise SeqtoolsError(f"{name}: the statistics end too early")
    for file in session.streams.files:
        name = "<stdin>" if file == STDIN else file
        if name not in seen:
            raise SeqtoolsError(f"{name}: no statistics in it")
    assert merging.whole is not None
    return merging.whole, merging.pieces


def missing(pieces: Iterable[Piece]) -> Iterator[str]:
    """Which shards are missing, of each corpus that there are some of, in words.

    Where a corpus was cut in more than one way nothing is said.
    """
    corpora = defaultdict(list)
    for piece in pieces:
        if piece.digest:
            corpora[piece.corpus].append(piece)
    for found in corpora.values():
        count = found[0].count
        left = count - len(found)
        if left and all(piece.count == count for piece in found):
            have = {piece.index for piece in found}
            lacking = (number for number in range(1, count + 1) if number not in have)
            names = ", ".join(f"{number}/{count}" for number in islice(lacking, _NAMED))
            more = f" and {left - _NAMED} more" if left > _NAMED else ""
            yield f"missing shards of {found[0].file}: {names}{more}"


class _Merging(Generic[S]):
    """Takes parts, record by record; each begins with a header and ends with a count."""

    def __init__(self, make: Make[S], given: set[str]) -> None:
        self.whole: S | None = None
        self.pieces: list[Piece] = []
        self.open = False
        self._make = make
        self._given = given
        self._kind = make({}).kind
        self._corpora: dict[tuple[str, int], list[Piece]] = defaultdict(list)
        self._count = 0

    def take(self, record: Record) -> None:
        if record.get("seqtools") != _MAGIC:
            self._take_state(record)
        elif "end" in record:
            if not self.open or record["end"] != self._count:
                raise RecordError("records of the statistics are missing")
            self.open = False
        else:
            self._check(record)
            self.open, self._count = True, 0

    def _check(self, head: Record) -> None:
        if self.open:
            raise RecordError("the statistics before this line end too early")
        if head.get("version") != _VERSION:
            raise RecordError(f"statistics of version {head.get('version')}, not {_VERSION}")
        if head.get("kind") != self._kind:
            raise RecordError(f"statistics of kind {head.get('kind')}, not {self._kind}")
        theirs = head.get("options")
        if self.whole is None:
            self.whole = self._begin(theirs)
        if theirs != self.whole.options:
            raise RecordError(f"statistics with {_spell(theirs)}, not {_spell(self.whole.options)}")
        try:
            pieces = [Piece(**piece) for piece in head["covers"]]
            for piece in pieces:
                self._cover(piece)
        except (KeyError, TypeError, ValueError):
            raise RecordError("the statistics do not say which records they cover") from None

    def _begin(self, options: Any) -> S:
        if not isinstance(options, dict):
            return self._make({})
        stated = {name: value for name, value in options.items() if name not in self._given}
        try:
            return self._make(stated)
        except (KeyError, TypeError, ValueError, AttributeError):
            return self._make({})  # which will differ

    def _cover(self, piece: Piece) -> None:
        if piece.digest:  # where nothing was read, nothing can be counted twice
            before = self._corpora[piece.corpus]
            if any(piece.overlaps(other) for other in before):
                raise RecordError(f"these records are already counted: {piece}")
            before.append(piece)
        self.pieces.append(piece)

    def _take_state(self, record: Record) -> None:
        if not self.open or self.whole is None:
            raise RecordError("not what seq-stats --partial wrote")
        try:
            self.whole.merge(record)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
            raise RecordError(f"no part of statistics of kind {self._kind}") from None
        self._count += 1


def _spell(options: Any) -> str:
    if not isinstance(options, dict):
        return "no options"
    return ", ".join(f"{name} {dumps(value).decode()}" for name, value in options.items())
