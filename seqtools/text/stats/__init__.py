"""What is in a corpus: statistics of one pass, whose parts merge to those of the whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from seqtools.streams.records import Record
from seqtools.text.stats.places import Places


class Statistic(Protocol):
    """Statistics of records, gathered one by one.

    The state goes into records and back (`dump`, `merge`), for a worker or another machine to do a
    part of the corpus: parts merged in the order of the corpus give what the whole gives.
    """

    @property
    def kind(self) -> str:
        """Name of the statistics; those of another kind are not merged."""

    @property
    def options(self) -> Record:
        """The options that shape the state; what differs in them is not merged."""

    @property
    def places(self) -> Places | None:
        """Takes note of where the records stand; None: nothing is told of single records."""

    def add(self, record: Record, number: int) -> None:
        """Take in a record.

        Args:
            record: as it was read.
            number: of the record in the corpus, from `--first-record`.

        Raises:
            RecordError: it is bad; the state is then as it was before.
        """

    def dump(self) -> Iterator[Record]:
        """The state as records that JSON can hold."""

    def merge(self, part: Record) -> None:
        """Take in a record that `dump` of other statistics has given; they come in its order.

        Raises:
            KeyError, TypeError, ValueError, RecordError: it is none.
        """

    def report(self) -> Iterator[Record]:
        """The statistics, as records for a reader."""
