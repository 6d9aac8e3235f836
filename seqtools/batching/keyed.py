"""A corpus of which something is drawn for each record, anew in each epoch."""

from __future__ import annotations

from array import array
from dataclasses import replace

import numpy as np

from seqtools.batching.corpus import Column, Corpus, Encoded, Options
from seqtools.batching.draws import Keys, epoch_keys, key_of
from seqtools.batching.padding import Sizes
from seqtools.batching.tasks import BUDGET, check_drop_last


class KeyedCorpus(Corpus):
    """Records of which each is a row, with random numbers of their own.

    Args:
        task: its name.
        column: what is taken from each record; where it is empty, there is no row.
        options: how it is cut; without a limit, by a budget of `BUDGET` tokens.

    Raises ConfigError for options that do not go together.
    """

    def __init__(self, task: str, column: Column, options: Options) -> None:
        check_drop_last(options)
        if options.batch_size is None and options.batch_tokens is None:
            options = replace(options, batch_tokens=BUDGET)
        super().__init__(task, {"tokens": column}, options, keep_empty=False)
        self._keys = array("Q")

    def append(self, encoded: Encoded, number: int) -> None:
        """Add what `encode` made of the stream's `number`-th record."""
        super().append(encoded, number)
        self._keys.append(key_of(number if encoded.name is None else encoded.name))

    @property
    def every(self) -> Sizes:
        """All records, by their numbers from 0."""
        return np.arange(len(self._keys))

    def streams(self, epoch: int, records: Sizes) -> Keys:
        """Give the random streams of records in one epoch; (rows,)."""
        keys = np.asarray(self._keys, dtype=np.uint64)[records]
        return epoch_keys(keys, self.options.seed, epoch)
