"""Where the records of a corpus stand."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator

from seqtools.streams.files import WHOLE, Block, native
from seqtools.streams.records import Record

_CHUNK = 10_000  # stretches in a record of a dumped state


class Places:
    """File and physical line of each record, by its number.

    Held are 24 bytes for each stretch of records on lines that follow one another: what parts them
    is blank lines, and the ends of files.
    """

    def __init__(self) -> None:
        self._files: list[str] = []
        self._places: dict[str, int] = {}  # of the files in that list
        # Of each stretch the number of its first record, that one's line, and which file.
        self._numbers, self._lines, self._owners = array("q"), array("q"), array("q")
        self._sorted = True

    def watch(self, blocks: Iterator[Block]) -> Iterator[Block]:
        """Give the blocks of a corpus on, and take note of where their records stand."""
        for block in blocks:
            source = native(block.source).decode("utf-8", "replace")
            if not block.every_line:
                for line, number, _ in block.raw_lines(WHOLE, block.record):
                    self._note(number, line, source)
            elif block.data:
                self._note(block.record, block.line, source)
            yield block

    def _note(self, number: int, line: int, source: str) -> None:
        owner = self._own(source)
        follows = (
            len(self._numbers) > 0
            and owner == self._owners[-1]
            and line - self._lines[-1] == number - self._numbers[-1]
        )
        if not follows:
            self._append(number, line, owner)

    def _own(self, source: str) -> int:
        owner = self._places.setdefault(source, len(self._files))
        if owner == len(self._files):
            self._files.append(source)
        return owner

    def _append(self, number: int, line: int, owner: int) -> None:
        self._numbers.append(number)
        self._lines.append(line)
        self._owners.append(owner)

    def _sort(self) -> None:
        """Put the stretches in order; those that several parts have told of are there once."""
        if self._sorted:
            return
        stretches = zip(self._numbers, self._lines, self._owners, strict=True)
        first = {number: (line, owner) for number, line, owner in stretches}
        self._numbers, self._lines, self._owners = array("q"), array("q"), array("q")
        for number in sorted(first):
            self._append(number, *first[number])
        self._sorted = True

    def tell(self, number: int) -> Record:
        """The record's number as `record`, and its `file` and `line` where they are known."""
        self._sort()
        at = bisect_right(self._numbers, number) - 1
        if at < 0:
            return {"record": number}
        line = self._lines[at] + number - self._numbers[at]
        return {"record": number, "file": self._files[self._owners[at]], "line": line}

    def dump(self) -> Iterator[Record]:
        """The state."""
        self._sort()
        for start in range(0, len(self._numbers), _CHUNK):
            at = slice(start, start + _CHUNK)
            yield {
                "places": [self._files[owner] for owner in self._owners[at]],
                "lines": self._lines[at].tolist(),
                "numbers": self._numbers[at].tolist(),
            }

    def merge(self, part: Record) -> None:
        """Take in a record of another's state: of a shard, or of another piece of the corpus.

        Shards have read the same lines, so where a stretch begins for one it does for all.
        """
        columns = part["numbers"], part["lines"], part["places"]
        for number, line, file in zip(*columns, strict=True):
            self._append(number, line, self._own(file))
        self._sorted = False
