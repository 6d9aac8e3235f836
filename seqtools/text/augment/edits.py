"""Changes to a sentence: tokens exchanged, shuffled, left out, put in, replaced.

After Wei and Zou (2019), "EDA: Easy Data Augmentation Techniques for Boosting Performance on Text
Classification Tasks", section 2: of n tokens, max(1, floor(rate n)) are changed, and each is left
out with probability `rate`. The shuffle is that of Lample et al. (2018), "Unsupervised Machine
Translation Using Monolingual Corpora Only", section 2.3; tokens drawn by their counts are put in
after the unigram noising of Xie et al. (2017), "Data Noising as Smoothing in Neural Network
Language Models", section 3.1.

Only `random.Random.random` is drawn from, whose numbers are the same in all versions of Python.
"""

from __future__ import annotations

import itertools
from bisect import bisect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Protocol, TypeVar

from seqtools.errors import FormatError, RecordError
from seqtools.text.augment.labels import stretch
from seqtools.text.augment.synonyms import Pieces, Synonyms
from seqtools.text.tags import Letters
from seqtools.text.vocab import Vocabulary

T = TypeVar("T")
Row = tuple[Any, ...]  # a token, and its value in each field that goes with the tokens
Unit = list[Row]  # rows that stay together
MakeUnit = Callable[[Random], Unit]


@dataclass(frozen=True)
class Sentence:
    """The tokens of a record and what goes with them.

    Attributes:
        units: spans, and tokens that are in none.
        fields: what goes with the tokens.
        letters: of the tags of each field, or None.
        outside: the value of each field for a token from elsewhere, None where nobody can know.
    """

    units: list[Unit]
    fields: tuple[str, ...] = ()
    letters: tuple[Letters | None, ...] = ()
    outside: tuple[str | None, ...] = ()

    def replace(self, row: Row, pieces: Pieces) -> Unit:
        """Put pieces in the place of a token; their tags are of its span."""
        columns = [
            stretch(value, len(pieces), letters)
            for value, letters in zip(row[1:], self.letters, strict=True)
        ]
        return list(zip(pieces, *columns, strict=True))

    def added(self, token: str) -> Row:
        """Make a row for a token that belongs to nothing in the sentence.

        Raises:
            RecordError: a field has no value for it.
        """
        for field, value in zip(self.fields, self.outside, strict=True):
            if value is None:
                raise RecordError(
                    f'"{field}" has no value for a token from a vocabulary'
                    " (--align none leaves it out, and so does it all that no --align names)"
                )
        return (token, *self.outside)


class Edit(Protocol):
    """A change; it draws what it does and leaves the sentence itself as it is."""

    def __call__(self, sentence: Sentence, draw: Random, /) -> list[Unit]:
        """The units of the changed sentence."""


@dataclass(frozen=True)
class Amount:
    """How much is changed.

    Attributes:
        rate: share of the tokens, above 0.
        stopwords: tokens that are left alone, in lower case.
    """

    rate: float = 0.1
    stopwords: frozenset[str] = frozenset()

    def of(self, size: int) -> int:
        """How many of `size` are changed: floor(rate size), but one at least."""
        return max(1, int(self.rate * size + 1e-9))  # 0.29 * 100 is a little below 29

    def may_change(self, token: str) -> bool:
        """Whether the token is no stop word."""
        return not self.stopwords or token.lower() not in self.stopwords

    def free(self, units: Sequence[Unit]) -> list[int]:
        """Places of the units without stop words."""
        if not self.stopwords:
            return list(range(len(units)))
        return [
            place
            for place, unit in enumerate(units)
            if all(self.may_change(row[0]) for row in unit)
        ]


@dataclass(frozen=True)
class Swap:
    """Exchange two units, drawn at random, as often as the rate says."""

    amount: Amount

    def __call__(self, sentence: Sentence, draw: Random) -> list[Unit]:
        """See the class."""
        units = list(sentence.units)
        places = self.amount.free(units)
        if len(places) < 2:
            return units
        for _ in range(self.amount.of(len(units))):
            one = below(draw, len(places))
            other = below(draw, len(places) - 1)
            other += other >= one
            one, other = places[one], places[other]
            units[one], units[other] = units[other], units[one]
        return units


@dataclass(frozen=True)
class Shuffle:
    """Put the units in the order of i + U(0, distance + 1): none is moved by more than `distance`.

    Stop words stay in their places, and the others still keep within the distance.
    """

    amount: Amount
    distance: int

    def __call__(self, sentence: Sentence, draw: Random) -> list[Unit]:
        """See the class."""
        units = list(sentence.units)
        places = self.amount.free(units)
        keys = {place: place + (self.distance + 1) * draw.random() for place in places}
        for place, source in zip(places, sorted(places, key=keys.__getitem__), strict=True):
            units[place] = sentence.units[source]
        return units


@dataclass(frozen=True)
class Delete:
    """Leave each unit out with a probability of the rate; where none would remain, one does."""

    amount: Amount

    def __call__(self, sentence: Sentence, draw: Random) -> list[Unit]:
        """See the class."""
        units = sentence.units
        gone = {place for place in self.amount.free(units) if draw.random() < self.amount.rate}
        if gone and len(gone) == len(units):
            gone.remove(below(draw, len(units)))
        return [unit for place, unit in enumerate(units) if place not in gone]


class Source(Protocol):
    """Where the tokens that are put in come from."""

    def __call__(self, sentence: Sentence, tokens: Sequence[Row], /) -> MakeUnit | None:
        """What draws one, given the tokens of the sentence that may be copied."""


@dataclass(frozen=True)
class Insert:
    """Put in tokens, as many as the rate says, each between two units drawn at random.

    Tokens that are no stop words and no part of a longer span are what `source` may look at.
    """

    amount: Amount
    source: Source

    def __call__(self, sentence: Sentence, draw: Random) -> list[Unit]:
        """See the class."""
        units = list(sentence.units)
        if not units:
            return units
        places = self.amount.free(units)
        tokens = [units[place][0] for place in places if len(units[place]) == 1]
        make = self.source(sentence, tokens)
        if make is None:
            return units
        added = [make(draw) for _ in range(self.amount.of(len(units)))]
        # One after the other, each at any place, is the same as to draw which places of the longer
        # sentence they have, but would take quadratic time.
        size = len(units) + len(added)
        at = dict(zip(sample(range(size), len(added), draw), added, strict=True))
        old = iter(units)
        return [at[place] if place in at else next(old) for place in range(size)]


def from_sentence(sentence: Sentence, tokens: Sequence[Row]) -> MakeUnit | None:
    """Draw a token of the sentence; it brings its tags."""
    return (lambda draw: [choose(tokens, draw)]) if tokens else None


@dataclass(frozen=True)
class FromSynonyms:
    """Draw a synonym of a token of the sentence; its tags are those of the token."""

    synonyms: Synonyms

    def __call__(self, sentence: Sentence, tokens: Sequence[Row]) -> MakeUnit | None:
        """See the class."""
        known = [row for row in tokens if self.synonyms.of(row[0])]

        def make(draw: Random) -> Unit:
            row = choose(known, draw)
            return sentence.replace(row, choose(self.synonyms.of(row[0]), draw))

        return make if known else None


class FromVocabulary:
    """Draw any token, by the counts of a vocabulary; specials are never drawn.

    Raises:
        FormatError: the vocabulary has no counts.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        specials = set(vocabulary.specials.values())
        counts = vocabulary.counts or []
        pairs = [
            (token, count)
            for number, (token, count) in enumerate(zip(vocabulary.tokens, counts, strict=False))
            if number not in specials and count
        ]
        if not pairs:
            raise FormatError("a vocabulary with counts is needed")
        self._tokens = [token for token, _ in pairs]
        self._sums = list(itertools.accumulate(count for _, count in pairs))

    def __call__(self, sentence: Sentence, tokens: Sequence[Row]) -> MakeUnit | None:
        """See the class."""

        def make(draw: Random) -> Unit:
            return [sentence.added(self._tokens[bisect(self._sums, below(draw, self._sums[-1]))])]

        return make


@dataclass(frozen=True)
class Replace:
    """Put synonyms in the place of tokens that have some, as many as the rate says or there are."""

    amount: Amount
    synonyms: Synonyms

    def __call__(self, sentence: Sentence, draw: Random) -> list[Unit]:
        """See the class."""
        rows = [row for unit in sentence.units for row in unit]
        known = [
            place
            for place, row in enumerate(rows)
            if self.synonyms.of(row[0]) and self.amount.may_change(row[0])
        ]
        chosen = sample(known, self.amount.of(len(rows)), draw)
        pieces = {place: choose(self.synonyms.of(rows[place][0]), draw) for place in chosen}
        places = itertools.count()
        units: list[Unit] = []
        for unit in sentence.units:
            made: Unit = []
            for row in unit:
                other = pieces.get(next(places))
                made += [row] if other is None else sentence.replace(row, other)
            units.append(made)
        return units


def below(draw: Random, size: int) -> int:
    """Draw an integer from 0 to below `size`."""
    return int(draw.random() * size)


def choose(items: Sequence[T], draw: Random) -> T:
    """Draw one of the items."""
    return items[below(draw, len(items))]


def sample(items: Sequence[T], size: int, draw: Random) -> list[T]:
    """Draw `size` of the items, or all where there are fewer; every set is equally likely."""
    left = list(items)
    for place in range(min(size, len(left))):
        other = place + below(draw, len(left) - place)
        left[place], left[other] = left[other], left[place]
    return left[:size]
