"""Counting the tokens of records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from seqtools.cli._io import Session
from seqtools.streams.files import WHOLE, Meter
from seqtools.streams.records import Record
from seqtools.text.fields import get_tokens_or_label

if TYPE_CHECKING:
    from seqtools.streams.parallel import Counts, Transform

LARGE = 1 << 26  # bytes in files from which it pays to load compiled functions


def count_tokens(session: Session, fields: Sequence[str]) -> Counts:
    """How often each token is in the records of a session.

    Args:
        session: whose inputs are read.
        fields: lists of tokens, or strings.
    """
    streams = session.streams
    alone = len(fields) == 1 and streams.shard == WHOLE and streams.jobs == 1
    if alone and (Meter(streams.files).total or 0) >= LARGE:
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
        for value in [get_tokens_or_label(record, name) for name in fields]:
            counts.update((value,) if isinstance(value, str) else value)
        return b""

    return transform


def _count_compiled(session: Session, field: str) -> Counts:
    """The same without a Python object for each token."""
    import numpy as np

    from seqtools.cli._ngram_input import read_packed
    from seqtools.cli._ngram_options import tell_of_compiling
    from seqtools.ngram.words import SPECIALS, Learner, pack_record

    learner = Learner(unk_as_word=True, literal=True)
    counts = np.zeros(1 << 16, dtype=np.int64)

    def pack(record: Record, number: int) -> bytes:
        value = get_tokens_or_label(record, field)
        return pack_record([value] if isinstance(value, str) else value)

    def take(packed: bytes) -> None:
        nonlocal counts
        ids = learner.learn_packed(packed)
        if len(learner) > len(counts):
            counts = np.pad(counts, (0, len(learner)))
        np.add.at(counts, ids, 1)

    tell_of_compiling(session.streams)
    read_packed(session, pack, field, take, refuse_space=False)
    words = learner.words().strings()[len(SPECIALS) :]  # those first ids stand for no text here
    numbers = counts[len(SPECIALS) :].tolist()
    return Counter({word.decode(): count for word, count in zip(words, numbers, strict=False)})
