"""Counting the tokens of records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from seqtools.cli._io import Session
from seqtools.streams.files import WHOLE, Meter
from seqtools.streams.records import Record
from seqtools.text.fields import get_all_tokens, may_be_label

if TYPE_CHECKING:
    from seqtools.streams.parallel import Counts, Transform

LARGE = 1 << 25  # bytes in files from which it pays to load compiled functions


def count_tokens(session: Session, fields: Sequence[str]) -> Counts:
    """How often each token is in the records of a session.

    Args:
        session: whose inputs are read.
        fields: lists of tokens, or strings.
    """
    streams = session.streams
    plain = len(fields) == 1 and streams.shard == WHOLE
    if plain and (Meter(streams.files).total or 0) >= LARGE:
        return _count_compiled(session, fields[0])
    total: Counts = Counter()

    def make(counts: Counts) -> Transform:
        # What is counted block by block has to be added up, which costs as much as counting.
        return _counter(fields, total if streams.jobs == 1 else counts)

    total.update(session.filter(make))
    return total


def _counter(fields: Sequence[str], counts: Counts) -> Transform:
    def transform(record: Record, number: int) -> bytes:
        # All fields are read before one is counted: a bad record counts for nothing.
        for tokens in [get_all_tokens(record, name) for name in fields]:
            counts.update(tokens)
        return b""

    return transform


def _count_compiled(session: Session, field: str) -> Counts:
    """The same without a Python object for each token."""
    from seqtools.cli._ngram_options import tell_of_compiling
    from seqtools.cli._walking import walk_records, walk_side_by_side
    from seqtools.ngram.counting import TokenCounter

    def add(counter: TokenCounter, record: Record) -> None:
        counter.add(get_all_tokens(record, field))

    tell_of_compiling(session.streams)
    counters = [TokenCounter(field, label=may_be_label(field)) for _ in range(session.streams.jobs)]
    hands = [(counter, partial(add, counter)) for counter in counters]
    if len(hands) > 1:
        walk_side_by_side(session, hands)
    else:
        for _ in walk_records(session, *hands[0]):
            pass
    total: Counts = Counter()
    for counter in counters:
        total.update(counter.counts())
    return total
