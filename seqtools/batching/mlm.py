"""The task `mlm`: tokens are hidden, and predicted from both sides (Devlin et al. 2019, 3.1).

A row is `<cls> text <sep>` or, with a second text, `<cls> text <sep> second <sep>`, where the
vocabulary has these symbols, and the bare tokens where it has not. Of all tokens but the special
ones a share is chosen, anew in each epoch; of these 80 % become `<mask>`, 10 % any token, and 10 %
stay as they are. What is chosen depends on the seed, the epoch and the record's name, so neither
the other records nor the size of batches matter.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from seqtools.batching.corpus import (
    Column,
    Cut,
    Encoded,
    Options,
    Sequences,
    too_long_error,
)
from seqtools.batching.draws import Flags
from seqtools.batching.keyed import KeyedCorpus
from seqtools.batching.masking import choose_words, hide, partners, shorten
from seqtools.batching.padding import Ids, Sizes, pad_left
from seqtools.batching.sampling import generator
from seqtools.batching.stream import IGNORED, Batch
from seqtools.batching.tasks import cut_records
from seqtools.batching.words import Words
from seqtools.errors import ConfigError, FormatError, RecordError
from seqtools.streams.records import Record
from seqtools.text.vocab import Vocabulary

RATE = 0.15
_SMALLEST = 5  # a row with a token of each of two texts


@dataclass(frozen=True)
class Masking:
    """What is hidden, and what makes a row.

    Attributes:
        rate: share of the tokens that is chosen, or of the words.
        whole_word: choose words, of which all tokens are hidden together.
        next_sentence: rows are pairs of records: half of them a record and the next one that has
            tokens, half a record and any other.

    Raises ConfigError for a rate that is no share.
    """

    rate: float = RATE
    whole_word: bool = False
    next_sentence: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.rate <= 1:
            raise ConfigError(f"the rate must be above 0 and at most 1, got {self.rate}")


class Texts(NamedTuple):
    """The two texts of each row, as places in the flat array of tokens; all (rows,).

    Attributes:
        starts: of the first texts.
        lengths: of the first texts.
        second_starts: of the second texts.
        second_lengths: of the second texts, 0 where there is none.
        follows: 1 where the second text is the one behind the first in the source.
    """

    starts: Sizes
    lengths: Sizes
    second_starts: Sizes
    second_lengths: Sizes
    follows: Sizes


class MlmCorpus(KeyedCorpus):
    """Records with `tokens` and perhaps `text_pair_tokens` (or `ids`, `text_pair_ids`).

    Raises:
        ConfigError: the options do not go together, or the vocabulary lacks a symbol they need; in
            `encode`, the first pair for which it does.
        FormatError: in `freeze`, there is no other record to make a pair with.
    """

    promises = False

    def __init__(self, vocabulary: Vocabulary, options: Options, masking: Masking) -> None:
        specials, kind = vocabulary.specials, "ids" if options.ids else "tokens"
        if "mask" not in specials:
            raise ConfigError("the vocabulary has no <mask> to hide tokens with")
        self.masking = masking
        self._wrapped = not options.ids and {"cls", "sep"} <= specials.keys()
        if self._wrapped and options.max_length is not None and options.max_length < _SMALLEST:
            raise ConfigError(f"the maximal length must be at least {_SMALLEST}, symbols counted")
        if masking.next_sentence:
            self._check_pairs(vocabulary, options)
        self._column = Column(kind, vocabulary, bos=[], eos=[])
        self._second = Column(f"text_pair_{kind}", vocabulary, bos=[], eos=[])
        super().__init__("mlm", self._column, options)
        self.sequences = {"first": Sequences(), "tokens": self.predicted}
        if masking.whole_word:
            self._words = Words(vocabulary)
            self.sequences = {"begins": Sequences()} | self.sequences
        self._pairs = masking.next_sentence
        self._ordinary = np.ones(len(vocabulary), np.bool_)
        self._ordinary[list(specials.values())] = False

    def describe(self) -> dict[str, Any]:
        """What the header says, the masking with it; `pairs`: some row has a second text."""
        masking = self.masking
        return {
            "mask_rate": masking.rate,
            "whole_word": masking.whole_word,
            "next_sentence": masking.next_sentence,
            "pairs": self._pairs,
            **super().describe(),
        }

    # Reading

    def take(self, record: Record) -> tuple[list[Column], list[list[Any]]]:
        """Take the text out of a record, and the second one where it has one."""
        options, column, second = self.options, self._column, self._second
        parts = [column.read(record, ids=options.ids)]
        if record.get(second.field) is not None:
            if self.masking.next_sentence:
                reason = "but the next record is to be the second text"
                raise RecordError(f'"{second.field}" stands in the record, {reason}')
            parts.append(second.read(record, ids=options.ids))
            if parts[1]:
                self._check_pairs(column.vocabulary, options)
            else:
                del parts[1]
        return [column] * len(parts), parts

    def fit(self, parts: list[list[Any]]) -> list[list[Any]]:
        """Cut what is too long, of a pair the longer text first."""
        options, pair = self.options, len(parts) == 2 or self.masking.next_sentence
        if options.max_length is None:
            return parts
        symbols = (3 if pair else 2) if self._wrapped else 0
        room, total = options.max_length - symbols, sum(map(len, parts))
        if total <= room:
            return parts
        if options.truncate == "error":
            fields = [self._column.field, self._second.field][: len(parts)]
            raise too_long_error(fields, total + symbols, options)
        if len(parts) == 1:
            return [self.trim(parts[0], room)]
        sizes = shorten(np.array([len(parts[0])]), np.array([len(parts[1])]), room)
        return [self.trim(p, int(size[0])) for p, size in zip(parts, sizes, strict=True)]

    def store(self, parts: list[list[Any]], numbers: list[list[int]]) -> list[list[int]]:
        """Make what is kept: where words begin, how long the first text is, and both texts."""
        kept = [[len(numbers[0])], [number for ids in numbers for number in ids]]
        if not self.masking.whole_word:
            return kept
        tokens = self._column.vocabulary.tokens
        texts = [[tokens[i] for i in part] if self.options.ids else part for part in parts]
        return [[flag for text in texts for flag in self._words.begins(text)], *kept]

    def append(self, encoded: Encoded, number: int) -> None:
        """Add what `encode` made of the stream's `number`-th record."""
        super().append(encoded, number)
        (first,), ids = encoded.sequences[-2:]
        self._pairs = self._pairs or first < len(ids)

    def freeze(self) -> None:
        """End reading, so that batches can be cut."""
        super().freeze()
        if self.masking.next_sentence and len(self.every) == 1:
            raise FormatError("one record alone makes no pair; at least two must have tokens")

    # Cutting

    def targets(self, epoch: int) -> int:
        """Count the tokens and symbols of an epoch's rows."""
        return int(self._sizes(self._texts(epoch, self.every)).sum())

    def cuts(self, epoch: int) -> Iterator[Cut]:
        """Give the batches of an epoch as places; records of like length stand together."""
        texts, options = self._texts(epoch, self.every), self.options
        sizes = self._sizes(texts)
        rng = generator(options.seed, epoch)
        widths = np.maximum(sizes, options.pad_to)
        for rows in cut_records(widths, [sizes], options, options.batch_size, rng):
            yield Cut(texts.starts[rows], sizes[rows], sizes[rows], records=rows)

    def _texts(self, epoch: int, records: Sizes) -> Texts:
        """Give the texts of the rows that begin with these records."""
        starts, lengths = self.predicted.starts, self.predicted.lengths
        if not self.masking.next_sentence:
            first = self.sequences["first"].flat[records].astype(np.int64)
            begin, none = starts[records], np.zeros(len(records), np.int64)
            return Texts(begin, first, begin + first, lengths[records] - first, none)
        streams = self.streams(epoch, records)
        others, follows = partners(records, len(self.every), streams)
        begin, first, second_begin, second = (
            values[which] for which in (records, others) for values in (starts, lengths)
        )
        if self.options.max_length is not None:
            size, second_size = shorten(first, second, self.options.max_length - 3 * self._wrapped)
            if self.options.truncate == "left":
                begin, second_begin = begin + first - size, second_begin + second - second_size
            first, second = size, second_size
        return Texts(begin, first, second_begin, second, follows)

    def _sizes(self, texts: Texts) -> Sizes:
        """Lengths of rows, the symbols counted."""
        symbols = self._wrapped * (2 + (texts.second_lengths > 0))
        sizes: Sizes = texts.lengths + texts.second_lengths + symbols
        return sizes

    # Filling in

    def batch(self, epoch: int, index: int, cut: Cut) -> Batch:
        """Fill in the ids of one batch, and hide what is to be predicted."""
        assert cut.records is not None
        texts, width = self._texts(epoch, cut.records), self._width(cut.lengths)
        ids, places, segments = self._rows(texts, cut.lengths, width)
        words = np.where(places >= 0, self._begins(places, texts), False)
        streams = self.streams(epoch, cut.records)
        maskable = (places >= 0) & self._ordinary[ids]
        chosen = choose_words(maskable, words.cumsum(axis=1), self.masking.rate, streams)
        targets = np.where(chosen, ids, IGNORED).astype(np.int32)
        mask = self._column.vocabulary.specials["mask"]
        inputs = hide(ids, chosen, mask, np.flatnonzero(self._ordinary), streams)
        made = [inputs, targets, segments]
        if self.options.pad_left:
            made = [pad_left(matrix, cut.lengths) for matrix in made]
        return Batch(
            epoch,
            index,
            made[0],
            made[1],
            cut.lengths.astype(np.int32),
            records=self.names.take(cut.records),
            segments=made[2],
            next_sentence=texts.follows.astype(np.int32) if self.masking.next_sentence else None,
        )

    def _rows(self, texts: Texts, sizes: Sizes, width: int) -> tuple[Ids, Sizes, Ids]:
        """Ids, the place of each in the flat array (-1: none), segments; all (rows, width)."""
        vocabulary, lead = self._column.vocabulary, int(self._wrapped)
        columns = np.arange(width)[None, :]
        first = columns - lead
        border = (texts.lengths + 2 * lead)[:, None]  # where the second text begins
        second, real = columns - border, columns < sizes[:, None]
        places = np.full(real.shape, -1)
        for at, starts, lengths in (
            (first, texts.starts, texts.lengths),
            (second, texts.second_starts, texts.second_lengths),
        ):
            inside = (at >= 0) & (at < lengths[:, None])
            places = np.where(inside, starts[:, None] + at, places)
        ids = self.predicted.flat[places]
        ids[~real] = vocabulary.pad or 0
        if self._wrapped:
            ids[(places < 0) & real] = vocabulary.specials["sep"]
            ids[:, 0] = vocabulary.specials["cls"]
        return ids, places, ((columns >= border) & real).astype(np.int32)

    def _begins(self, places: Sizes, texts: Texts) -> Flags:
        """Whether a word begins at each place; without words, each token is one."""
        if not self.masking.whole_word:
            return places >= 0
        begins: Flags = self.sequences["begins"].flat[places] > 0
        for starts in (texts.starts, texts.second_starts):
            begins |= places == starts[:, None]
        return begins

    def _check_pairs(self, vocabulary: Vocabulary, options: Options) -> None:
        if not self._wrapped and not options.ids:
            raise ConfigError("the vocabulary has no <cls> and <sep>, which pairs of texts need")
