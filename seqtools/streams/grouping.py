"""Records of several lines: blocks of lines to blocks of whole records.

A `Grouping` says where records end; what is left of a block waits for the next one, so memory is
bounded by the longest record.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

from seqtools.errors import InputError
from seqtools.streams.files import Block, Shard

LONGEST = 1 << 28
"""From how many bytes a record is taken for a mistake, such as a quote that is never closed."""


class Group(NamedTuple):
    """The lines of one record: how many stand before it in its block, and its bytes."""

    above: int
    raw: bytes


class Grouping(Protocol):
    """How lines become records."""

    @property
    def closing(self) -> re.Pattern[bytes]:
        """What further lines hold where they can end a record that the lines before did not."""

    def cut(self, data: bytes, /, *, last: bool) -> tuple[list[Group], int]:
        """The records of these lines, and where in the data one begins that may go on.

        Args:
            data: whole lines; only the last of a file may lack its `\\n`.
            last: nothing follows in this file.
        """


@dataclass(frozen=True)
class GroupBlock(Block):
    """A block that has records of several lines instead of `data`."""

    groups: tuple[Group, ...] = ()

    def raw_lines(self, shard: Shard, first_record: int) -> Iterator[tuple[int, int, bytes]]:
        """The records of this block that belong to the shard: line, number of the record, bytes."""
        for number, (above, raw) in enumerate(self.groups, self.record):
            if (number - first_record) % shard.count == shard.index - 1:
                yield self.line + above, number, raw

    def has_returns(self) -> bool:
        """Whether a record may end with a return."""
        return True

    def behead(self) -> tuple[bytes, Block] | None:
        """The first record and the block without it, or None where there is none."""
        if not self.groups:
            return None
        return self.groups[0].raw, replace(self, groups=self.groups[1:])


def group_lines(
    blocks: Iterator[Block], grouping: Grouping, longest: int = LONGEST
) -> Iterator[Block]:
    """Blocks of lines to blocks of records; none goes from one file into the next.

    Raises:
        InputError: a record has more than `longest` bytes.
    """
    held = _Held(grouping, longest)
    for block in blocks:
        if block.line == 1 and held:
            yield held.give(pause=False, last=True)
        if held.take(block) or block.pause:
            yield held.give(pause=block.pause)
    if held:
        yield held.give(pause=False, last=True)


class _Held:
    """Lines whose records have not been given yet."""

    def __init__(self, grouping: Grouping, longest: int) -> None:
        self._grouping = grouping
        self._longest = longest
        self._pieces: list[bytes] = []
        self._size = 0
        self._source = ""
        self._line = self._record = 0
        self._began = False
        self._closed = True  # a record may end in what is held

    def __bool__(self) -> bool:
        return bool(self._pieces)

    def take(self, block: Block) -> bool:
        """Hold the lines of a block; whether there may now be a whole record."""
        if not self._began:
            self._began, self._record = True, block.record
        if not self._pieces:
            self._source, self._line, self._closed = block.source, block.line, True
        elif not self._closed:
            self._closed = self._grouping.closing.search(block.data) is not None
        if block.data:
            self._pieces.append(block.data)
            self._size += len(block.data)
        if self._size > self._longest and not self._closed:
            megabytes = self._longest >> 20
            raise InputError(self._source, self._line, f"a record of more than {megabytes} MiB")
        return self._closed

    def give(self, *, pause: bool, last: bool = False) -> GroupBlock:
        """The records that are whole, or all where nothing follows in the file."""
        data = b"".join(self._pieces) if self._closed or last else b""
        groups, end = self._grouping.cut(data, last=last)
        made = GroupBlock(
            source=self._source, data=b"", line=self._line, record=self._record, pause=pause,
            keep_blank=True, groups=tuple(groups),
        )  # fmt: skip
        if data:
            self._pieces = [data[end:]] if end < len(data) else []
            self._size = len(data) - end
            self._line += data.count(b"\n", 0, end)
            self._record += len(groups)
            self._closed = False
        return made
