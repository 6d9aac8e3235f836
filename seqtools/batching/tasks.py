"""The tasks: what each takes from a record, and which rows it cuts.

In an `lm` that reads windows of a stream, an eos stands behind each record, also an empty one, and
nothing before it. Where records are sequences of their own, in an `lm` and on the target side of
`seq2seq`, inputs are bos + tokens and targets tokens + eos; a source is tokens + eos. Ids that are
taken as they are get neither: then the inputs are the ids, and the last one has no target.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from seqtools.batching.corpus import Column, Corpus, Cut, Options
from seqtools.batching.padding import Sizes
from seqtools.batching.sampling import (
    chunks,
    cut_by_size,
    generator,
    order_by_length,
    random_offset,
    random_windows,
    sequential_windows,
)
from seqtools.batching.stream import Batch
from seqtools.errors import ConfigError
from seqtools.lazy import unknown
from seqtools.text.specials import SPECIALS
from seqtools.text.vocab import Vocabulary

SAMPLINGS = ("random", "sequential", "records")
ROWS = 32  # where nothing else limits an lm's batch
STEPS = 35
BUDGET = 4096  # where nothing else limits a seq2seq batch


@dataclass(frozen=True)
class Sampling:
    """Which rows an lm has.

    Attributes:
        kind: one of `SAMPLINGS`: windows in random order, windows that continue one another, or
            records.
        steps: length of a window, `STEPS` where it is None.
        offset: where the first window starts, from 0 to `steps` - 1; `random` draws it anew each
            epoch. None means `random` where the windows are shuffled, else 0.
    """

    kind: str = "random"
    steps: int | None = None
    offset: int | Literal["random"] | None = None


class LmCorpus(Corpus):
    """Records with `tokens` (or `ids`), for a language model.

    Raises:
        ConfigError: the options do not go together, or the vocabulary lacks a symbol they need.
    """

    def __init__(self, vocabulary: Vocabulary, options: Options, sampling: Sampling) -> None:
        self.sampling = sampling
        self._per_record = sampling.kind == "records"
        self._rows = _rows(options, sampling)
        ends = not options.ids
        column = Column(
            "ids" if options.ids else "tokens",
            vocabulary,
            bos=symbol(vocabulary, "bos") if ends and self._per_record else [],
            eos=symbol(vocabulary, "eos") if ends else [],
        )
        keep_empty = ends or not self._per_record
        super().__init__("lm", {"tokens": column}, options, keep_empty=keep_empty)

    def describe(self) -> dict[str, Any]:
        """What the header says, the sampling with it."""
        steps = None if self._per_record else self.sampling.steps or STEPS
        described = {"sampling": self.sampling.kind, "steps": steps, **super().describe()}
        return described | {"batch_size": self._rows}

    def targets(self, epoch: int) -> int:
        """Count the targets: every id but the first one, of the stream or of each record."""
        if self._per_record:
            return int((self.predicted.lengths - 1).sum())
        return self._positions

    @property
    def _positions(self) -> int:
        """Predictions in the stream."""
        return max(0, len(self.predicted.flat) - 1)

    def cuts(self, epoch: int) -> Iterator[Cut]:
        """Give the batches of an epoch as places."""
        rng = generator(self.options.seed, epoch)
        return self._record_cuts(rng) if self._per_record else self._window_cuts(rng)

    def _window_cuts(self, rng: np.random.RandomState) -> Iterator[Cut]:
        rows, steps, offset = self._rows, self.sampling.steps or STEPS, self.sampling.offset
        assert rows is not None
        positions, drop_last = self._positions, self.options.drop_last
        shuffled = self.sampling.kind == "random" and self.options.shuffle
        if offset == "random" or (offset is None and shuffled):
            offset = random_offset(positions, steps, rng)
        if self.sampling.kind == "random":
            found = random_windows(positions, steps, offset or 0, rng if shuffled else None)
            windows = chunks(found, rows, drop_last=drop_last)
        else:
            windows = sequential_windows(positions, rows, steps, offset or 0, drop_last=drop_last)
        for starts, lengths, carry in windows:
            yield Cut(starts, lengths, lengths, carry)

    def _record_cuts(self, rng: np.random.RandomState) -> Iterator[Cut]:
        starts, counted = self.predicted.starts, self.predicted.lengths - 1
        inputs = self.predicted.lengths if self.options.ids else counted
        widths = np.maximum(inputs, self.options.pad_to)
        for rows in cut_records(widths, [inputs], self.options, self._rows, rng):
            yield Cut(starts[rows], inputs[rows], counted[rows], records=rows)


class Seq2seqCorpus(Corpus):
    """Records with `src_tokens` and `tgt_tokens` (or `src_ids` and `tgt_ids`).

    Raises:
        ConfigError: the options do not go together, or a vocabulary lacks a symbol they need.
    """

    def __init__(self, source: Vocabulary, target: Vocabulary, options: Options) -> None:
        self._rows = options.batch_size
        if options.batch_size is None and options.batch_tokens is None:
            options = replace(options, batch_tokens=BUDGET)
        check_drop_last(options)
        kind, ends = ("ids", False) if options.ids else ("tokens", True)
        before = symbol(target, "bos", "target ") if ends else []
        behind = symbol(target, "eos", "target ") if ends else []
        behind_source = symbol(source, "eos", "source ") if ends else []
        columns = {
            "source": Column(f"src_{kind}", source, bos=[], eos=behind_source),
            "target": Column(f"tgt_{kind}", target, bos=before, eos=behind),
        }
        super().__init__("seq2seq", columns, options, keep_empty=ends)

    def targets(self, epoch: int) -> int:
        """Count the targets: every id of the target side but the first of each record."""
        return int((self.predicted.lengths - 1).sum())

    def widths(self, epoch: int, cut: Cut) -> list[Sizes]:
        """Lengths of the rows on the source and on the target side."""
        assert cut.records is not None
        return [self.sequences["source"].lengths[cut.records], cut.lengths]

    def cuts(self, epoch: int) -> Iterator[Cut]:
        """Give the batches of an epoch as places.

        Records of like length stand together, by the longer side, then by the source: on real
        text this pads least.
        """
        starts, counted = self.predicted.starts, self.predicted.lengths - 1
        inputs = self.predicted.lengths if self.options.ids else counted
        sources = self.sequences["source"].lengths
        longer = np.maximum(inputs, sources)
        widths = np.maximum(longer, self.options.pad_to)
        rng = generator(self.options.seed, epoch)
        for rows in cut_records(widths, [longer, sources], self.options, self._rows, rng):
            yield Cut(starts[rows], inputs[rows], counted[rows], records=rows)

    def batch(self, epoch: int, index: int, cut: Cut) -> Batch:
        """Fill in the ids of one batch, its source with them."""
        assert cut.records is not None
        source = self.sequences["source"]
        lengths = source.lengths[cut.records]
        batch = super().batch(epoch, index, cut)
        pad = self.columns["source"].vocabulary.pad or 0
        batch.source = self.rectangle(source.flat, source.starts[cut.records], lengths, pad)
        batch.source_lengths = lengths.astype(np.int32)
        return batch


def cut_records(
    widths: Sizes,
    keys: list[Sizes],
    options: Options,
    batch_size: int | None,
    rng: np.random.RandomState,
) -> list[Sizes]:
    """Cut records into batches: of like length and in random order, or as they stand in the file.

    With `drop_last` the records too many for whole batches are the last ones of the file, or random
    ones, so that it is not always the longest that are missing.
    """
    count = len(widths)
    if options.drop_last and batch_size is not None:
        count -= count % batch_size
    if not options.shuffle:
        return cut_by_size(widths, np.arange(count), batch_size, options.batch_tokens)
    chosen = rng.permutation(len(widths))[:count]
    order = order_by_length(keys, chosen)
    batches = cut_by_size(widths, order, batch_size, options.batch_tokens)
    return [batches[i] for i in rng.permutation(len(batches))]


def _rows(options: Options, sampling: Sampling) -> int | None:
    """Rows of an lm's batch at most, checked against what else was asked for."""
    kind, budget = sampling.kind, options.batch_tokens
    if kind not in SAMPLINGS:
        raise ConfigError(unknown(kind, SAMPLINGS, "sampling"))
    if kind == "records":
        if sampling.steps is not None or sampling.offset is not None:
            raise ConfigError("steps and offsets belong to windows, records are taken whole")
        check_drop_last(options)
        return options.batch_size or (None if budget else ROWS)
    steps = sampling.steps or STEPS
    if isinstance(sampling.offset, int) and not 0 <= sampling.offset < steps:
        raise ConfigError(f"the offset must lie between 0 and {steps - 1}, below the steps")
    if budget is None:
        return options.batch_size or ROWS
    if budget < steps:
        raise ConfigError(f"a window of {steps} steps is above the budget of {budget} tokens")
    return min(budget // steps, options.batch_size or budget)


def check_drop_last(options: Options) -> None:
    """Raise ConfigError where the last batch is to be dropped and none is known to be full."""
    if options.drop_last and (options.batch_size is None or options.batch_tokens is not None):
        raise ConfigError(
            "the last batch can be dropped only where a batch size is given, and no budget of "
            "tokens, under which batches have no number of rows to be full at"
        )


def symbol(vocabulary: Vocabulary, role: str, side: str = "") -> list[int]:
    """Give the id of bos or eos as a list, ConfigError where the `side ` vocabulary has none."""
    number = vocabulary.specials.get(role)
    if number is None:
        where = "behind" if role == "eos" else "before"
        raise ConfigError(f"the {side}vocabulary has no {SPECIALS[role]} to put {where} sequences")
    return [number]
