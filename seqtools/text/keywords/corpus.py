"""Keywords of a whole corpus, or of each of its classes, as one text each."""

from __future__ import annotations

import zlib
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from seqtools.streams.records import Record, get_text, get_tokens
from seqtools.text.fields import base, derived
from seqtools.text.keywords import Wanted, Words, best
from seqtools.text.keywords.idf import IdfTable, chunks
from seqtools.text.keywords.textrank import Pairs, count_pairs, rank
from seqtools.text.keywords.tfidf import weigh_counts

_CHUNK = 10_000  # pairs in a record of a dumped state


class _Class:
    """What is counted of the records of one class."""

    def __init__(self) -> None:
        self.words: Counter[str] = Counter()
        self.pairs: Pairs = Counter()


class Shape(NamedTuple):
    """Where the words are, and which of them count."""

    field: str = "tokens"
    wanted: Wanted = Wanted()

    def words(self, record: Record) -> Words:
        """The words of a record, None in the place of those that do not count.

        Raises:
            RecordError: they are missing or something else.
        """
        tokens = get_tokens(record, self.field)
        if self.wanted.pos is None:
            return self.wanted.choose(tokens)
        return self.wanted.choose(
            tokens, get_tokens(record, derived(base(self.field, "tokens"), "pos"))
        )


class CorpusKeywords:
    """Keywords of a stream, or with `by` of each class of its records.

    Kept is a count for each type of a class and, with TextRank, for each pair of types that stand
    near each other in a record. Ties are broken by code point.

    Args:
        shape: where the words are, and which of them count.
        table: how rare words are, for TF-IDF; None ranks by TextRank.
        by: field of the class, a string.
        top: how many words are reported of each class; None: all.
    """

    kind = "keywords"
    places = None

    def __init__(
        self,
        shape: Shape,
        table: IdfTable | None,
        *,
        by: str | None = None,
        top: int | None = None,
    ) -> None:
        self._shape = shape
        self._table = table
        self._by = by
        self._top = top
        self._classes: dict[str, _Class] = defaultdict(_Class)

    @property
    def options(self) -> Record:
        """What shapes the state."""
        wanted = self._shape.wanted
        return {
            "field": self._shape.field,
            "by": self._by,
            "method": "textrank" if self._table is None else "tfidf",
            "min_length": wanted.min_length,
            "pos": None if wanted.pos is None else sorted(wanted.pos),
            "stopwords": zlib.crc32("\n".join(sorted(wanted.stopwords)).encode()),
        }

    def add(self, record: Record, number: int) -> None:
        """Count the words of a record."""
        words = self._shape.words(record)
        found = self._classes[get_text(record, self._by) if self._by else ""]
        found.words.update(word for word in words if word is not None)
        if self._table is None:
            found.pairs.update(count_pairs(words))

    def count_unknown(self) -> tuple[int, int]:
        """How many words there are, and how many of them the table, if any, does not have."""
        if self._table is None:
            return 0, 0
        known = self._table.values
        words = unknown = 0
        for found in self._classes.values():
            words += found.words.total()
            unknown += sum(n for word, n in found.words.items() if word not in known)
        return words, unknown

    def dump(self) -> Iterator[Record]:
        """The state."""
        for name, found in self._classes.items():
            for words in chunks(found.words):
                yield {"class": name, "words": words}
            pairs = sorted(found.pairs.items())
            for start in range(0, len(pairs), _CHUNK):
                yield {"class": name, "pairs": pairs[start : start + _CHUNK]}

    def merge(self, part: Record) -> None:
        """Take in a record of another's state."""
        found = self._classes[part["class"]]
        if "words" in part:
            found.words.update(part["words"])
        else:
            found.pairs.update({(first, second): count for (first, second), count in part["pairs"]})

    def report(self) -> Iterator[Record]:
        """A record for each keyword: those of a class together, heaviest first."""
        for name, found in sorted(self._classes.items()):
            head = {self._by: name} if self._by else {}
            if self._table is None:
                weights = rank(dict(sorted(found.pairs.items())))
            else:
                weights = weigh_counts(found.words, self._table)
            for word, weight in best(dict(sorted(weights.items())), self._top):
                yield {**head, "token": word, "count": found.words[word], "weight": weight}
