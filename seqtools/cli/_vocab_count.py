"""Counting the tokens of records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from seqtools.cli._io import Session
from seqtools.cli._options import Streams
from seqtools.streams.files import WHOLE, Block
from seqtools.streams.records import Record

if TYPE_CHECKING:
    from seqtools.cli._vocab_plain import PlainCounter
    from seqtools.streams.parallel import Counts, Transform

LARGE = 1 << 26  # bytes in files from which it pays to load compiled functions


class CountingSession(Session):
    """A session whose inputs are counted.

    Args:
        streams: the options.
        fields: lists of tokens, or strings.
    """

    def __init__(self, streams: Streams, fields: Sequence[str]) -> None:
        super().__init__(streams)
        self._fields = fields
        self._plain: PlainCounter | None = None
        if (self._meter.total or 0) >= LARGE and len(fields) == 1 and streams.shard == WHOLE:
            from seqtools.cli._ngram_options import tell_of_compiling
            from seqtools.cli._vocab_plain import PlainCounter

            tell_of_compiling(streams)
            self._plain = PlainCounter(fields[0])

    def count(self) -> Counts:
        """How often each token is there."""
        total: Counts = Counter()

        def make(counts: Counts) -> Transform:
            # What is counted block by block has to be added up, which costs as much as counting.
            return _counter(self._fields, total if self.streams.jobs == 1 else counts)

        total.update(self.filter(make))
        if self._plain is not None:
            total.update(self._plain.counts())
        return total

    def blocks(self, *, keep_blank: bool = False) -> Iterator[Block]:
        """The blocks that are not counted already."""
        for block in super().blocks(keep_blank=keep_blank):
            records = None if self._plain is None else self._plain.take(block.data)
            if records is None:
                yield block
            else:
                self.records += records
                self.progress()


def _counter(fields: Sequence[str], counts: Counts) -> Transform:
    from seqtools.text.fields import get_tokens_or_label

    def transform(record: Record, number: int) -> bytes:
        # All fields are read before one is counted: a bad record counts for nothing.
        for value in [get_tokens_or_label(record, name) for name in fields]:
            counts.update((value,) if isinstance(value, str) else value)
        return b""

    return transform
