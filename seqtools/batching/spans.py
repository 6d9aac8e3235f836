"""Corrupted spans: `seq2seq` from plain text (Raffel et al. 2020, sections 3.1.4 and 3.3.4).

Spans of each text are taken out, anew in each epoch. The source is the text with a sentinel in
place of each span; the target is each sentinel with the span it stands for, and a last sentinel for
the end: `<extra_id_0> for inviting <extra_id_1> last <extra_id_2>`. What is taken out depends on
the seed, the epoch and the record's name, so neither the other records nor the batches matter.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from seqtools.batching.corpus import Column, Cut, Options
from seqtools.batching.draws import (
    Counts,
    Flags,
    Keys,
    choose,
    round_at_random,
    uniforms,
)
from seqtools.batching.keyed import KeyedCorpus
from seqtools.batching.padding import Ids, Sizes, gather
from seqtools.batching.sampling import generator
from seqtools.batching.stream import Batch
from seqtools.batching.tasks import cut_records, symbol
from seqtools.errors import ConfigError
from seqtools.text.vocab import Vocabulary

RATE, LENGTH, SENTINELS = 0.15, 3.0, 100
_COUNT, _SPANS, _PLACES, _SIZES = range(4)  # what random numbers are for


@dataclass(frozen=True)
class Corruption:
    """What is taken out of a text.

    Attributes:
        rate: share of the tokens; at least one of each text, and never all but of a single one.
        length: mean length of a span.
        sentinels: how many there are; a text has at most one span less.

    Raises ConfigError for values out of range.
    """

    rate: float = RATE
    length: float = LENGTH
    sentinels: int = SENTINELS

    def __post_init__(self) -> None:
        if not 0 < self.rate < 1:
            raise ConfigError(f"the rate must be between 0 and 1, got {self.rate}")
        if not 1 <= self.length < float("inf"):
            raise ConfigError(f"the length of spans must be at least 1, got {self.length}")
        if self.sentinels < 2:
            raise ConfigError(f"at least 2 sentinels are needed, got {self.sentinels}")

    def amounts(self, lengths: Sizes, streams: Keys) -> tuple[Counts, Counts]:
        """How many tokens are taken out of texts of these `lengths` (rows,), and in how many spans.

        Both are rounded up or down at random, so that they are right on average.
        """
        draws = (uniforms(streams, purpose, 1)[:, 0] for purpose in (_COUNT, _SPANS))
        out = round_at_random(lengths * np.float64(self.rate), next(draws))
        out = np.maximum(1, np.minimum(out, lengths - 1))
        spans = np.maximum(1, round_at_random(out / self.length, next(draws)))
        most = np.minimum(out, lengths - out + 1)  # spans are not empty and do not touch
        return out, np.minimum(spans, np.minimum(most, self.sentinels - 1))


class Spans(NamedTuple):
    """Spans of several texts, row by row from left to right; all (spans of all rows,).

    Attributes:
        rows: the text of each.
        starts: its first token.
        sizes: how many tokens it has.
    """

    rows: Sizes
    starts: Sizes
    sizes: Sizes


def draw_spans(lengths: Sizes, out: Counts, spans: Counts, streams: Keys) -> Spans:
    """Draw where spans stand, every way to place them apart from one another being equally likely.

    The tokens taken out are cut into spans, and each span has a place of its own between, before or
    behind the tokens that stay.

    Args:
        lengths: (rows,) of the texts.
        out: (rows,) how many tokens are taken out.
        spans: (rows,) in how many spans.
        streams: (rows,) random streams of the records.
    """
    columns = np.arange(int(lengths.max()) + 1)[None, :]
    places = choose(
        uniforms(streams, _PLACES, columns.size), columns <= (lengths - out)[:, None], spans
    )
    inner = (columns >= 1) & (columns < out[:, None])
    cuts = choose(uniforms(streams, _SIZES, columns.size), inner, spans - 1)
    cuts[:, 0] = True
    rows, stay = np.nonzero(places)  # tokens that stay before each span
    _, gone = np.nonzero(cuts)  # tokens of the spans before it
    ends = np.append(gone[1:], 0)
    last = np.append(rows[1:] != rows[:-1], True)
    return Spans(rows, stay + gone, np.where(last, out[rows], ends) - gone)


class SpanCorpus(KeyedCorpus):
    """Records with `tokens` (or `ids`), made into pairs over one vocabulary with sentinels.

    Raises:
        ConfigError: the options do not go together, or the vocabulary lacks a symbol they need, or
            has a sentinel already.
    """

    def __init__(self, vocabulary: Vocabulary, options: Options, corruption: Corruption) -> None:
        self.corruption = corruption
        self._joint, sentinels = add_sentinels(vocabulary, corruption.sentinels)
        self._first = len(vocabulary)  # id of the first sentinel
        ends = not options.ids
        self._bos = symbol(vocabulary, "bos") if ends else []
        self._eos = symbol(vocabulary, "eos") if ends else []
        kind = "tokens" if ends else "ids"
        column = Column(kind, vocabulary, bos=[], eos=[], not_text=frozenset(sentinels))
        super().__init__("seq2seq", column, options)

    def vocabularies(self) -> dict[str, Vocabulary]:
        """Give the vocabulary with the sentinels, for both sides."""
        return {"source": self._joint, "target": self._joint}

    def describe(self) -> dict[str, Any]:
        """What the header says, the spans with it."""
        corruption, share = self.corruption, self.columns["tokens"].unknown_share
        return {
            "objective": "span",
            "mask_rate": corruption.rate,
            "span_length": corruption.length,
            "sentinels": corruption.sentinels,
            **super().describe(),
            "unknown_share": dict.fromkeys(("source", "target"), round(share, 6)),
        }

    def targets(self, epoch: int) -> int:
        """Count the targets of an epoch: every id of the target side but the first of each row."""
        _, targets = self._sizes(epoch, self.every)
        return int((targets - 1).sum())

    def widths(self, epoch: int, cut: Cut) -> list[Sizes]:
        """Lengths of the rows on the source and on the target side."""
        assert cut.records is not None
        return [self._sizes(epoch, cut.records)[0], cut.lengths]

    def cuts(self, epoch: int) -> Iterator[Cut]:
        """Give the batches of an epoch as places; records of like length stand together."""
        options = self.options
        sources, targets = self._sizes(epoch, self.every)
        counted = targets - 1
        inputs = targets if options.ids else counted
        longer = np.maximum(inputs, sources)
        widths = np.maximum(longer, options.pad_to)
        rng = generator(options.seed, epoch)
        starts = self.predicted.starts
        for rows in cut_records(widths, [longer, sources], options, options.batch_size, rng):
            yield Cut(starts[rows], inputs[rows], counted[rows], records=rows)

    def batch(self, epoch: int, index: int, cut: Cut) -> Batch:
        """Draw the spans of one batch, and fill in the ids of both sides."""
        assert cut.records is not None
        lengths, starts = self.predicted.lengths[cut.records], self.predicted.starts[cut.records]
        streams = self.streams(epoch, cut.records)
        spans = draw_spans(lengths, *self.corruption.amounts(lengths, streams), streams)
        text = gather(self.predicted.flat, starts, lengths, int(lengths.max()) + 1, 0)
        corrupted, taken_out = corrupt(text, lengths, spans, self._first)
        source = frame(*corrupted, [], self._eos)
        target = frame(*taken_out, self._bos, self._eos)
        begins, source_begins = (
            np.cumsum(side.lengths) - side.lengths for side in (target, source)
        )
        pad = self._joint.pad or 0
        return Batch(
            epoch,
            index,
            self.rectangle(target.flat, begins, cut.lengths, pad),
            self.predictions(target.flat, begins, cut),
            cut.lengths.astype(np.int32),
            self.rectangle(source.flat, source_begins, source.lengths, pad),
            source.lengths.astype(np.int32),
            records=self.names.take(cut.records),
        )

    def _sizes(self, epoch: int, records: Sizes) -> tuple[Sizes, Sizes]:
        """Lengths of the source and of the target, all symbols counted, bos too."""
        lengths = self.predicted.lengths[records]
        out, spans = self.corruption.amounts(lengths, self.streams(epoch, records))
        source = lengths - out + spans + len(self._eos)
        return source, out + spans + 1 + len(self._bos) + len(self._eos)


class Side(NamedTuple):
    """The sequences of one side: `flat` ids back to back, `lengths` (rows,)."""

    flat: Ids
    lengths: Sizes


Kept = tuple[Ids, Flags]
"""A matrix of ids, and which of them are there, in their order."""


def corrupt(text: Ids, lengths: Sizes, spans: Spans, first: int) -> tuple[Kept, Kept]:
    """Make both sides of each text, without bos and eos.

    Args:
        text: (rows, width) padded on the right, with at least one column of padding.
        lengths: (rows,) of the texts.
        spans: what is taken out.
        first: id of the first sentinel.

    Returns:
        Source and target, each (rows, 2 * width): before each token is a place for a sentinel.
    """
    columns = np.arange(text.shape[1])[None, :]
    begins = np.zeros(text.shape, np.bool_)
    begins[spans.rows, spans.starts] = True
    edges = begins.astype(np.int64)
    edges[spans.rows, spans.starts + spans.sizes] = -1  # never where another begins
    out = edges.cumsum(axis=1) > 0
    stays = ~out & (columns < lengths[:, None])
    end = columns == lengths[:, None]
    sentinels = (begins | end).cumsum(axis=1) + (first - 1)
    ids = np.stack([sentinels, text], axis=2).astype(np.int32).reshape(len(text), -1)
    kept = (np.stack(flags, axis=2) for flags in ((begins, stays), (begins | end, out)))
    source, target = (flags.reshape(ids.shape) for flags in kept)
    return (ids, source), (ids, target)


def frame(ids: Ids, kept: Flags, before: list[int], behind: list[int]) -> Side:
    """Put symbols around each row's ids and those back to back, (rows, width) to a `Side`."""
    rows = len(ids)
    symbols = [np.broadcast_to(np.array(s, np.int32), (rows, len(s))) for s in (before, behind)]
    there = [np.ones(matrix.shape, np.bool_) for matrix in symbols]
    kept = np.hstack([there[0], kept, there[1]])
    return Side(np.hstack([symbols[0], ids, symbols[1]])[kept], kept.sum(axis=1))


def add_sentinels(vocabulary: Vocabulary, count: int) -> tuple[Vocabulary, list[str]]:
    """Put `count` sentinels behind a vocabulary's tokens, and give them, too.

    Raises:
        ConfigError: it has one of them.
    """
    names = [f"<extra_id_{number}>" for number in range(count)]
    for name in sorted(set(names).intersection(vocabulary.tokens)):
        raise ConfigError(f"the vocabulary has a token {name} already, which is to be a sentinel")
    counts = None if vocabulary.counts is None else vocabulary.counts + [0] * count
    return Vocabulary(vocabulary.tokens + names, vocabulary.specials, counts), names
