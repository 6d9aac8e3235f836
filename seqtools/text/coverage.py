"""How much of a text the first types of a vocabulary cover, for a ladder of sizes.

Types are ranked from 1 in the order of a vocabulary. A size covers the tokens whose rank it
reaches, and the records whose rarest token's rank it reaches. Records without tokens do not count:
corpora are full of blank lines, and any size would cover them.
"""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any

from seqtools.errors import SeqtoolsError
from seqtools.streams.files import reason
from seqtools.text.vocab import Vocabulary, ranked

_END = (1 << 32) - 1  # of a record, among numbers of tokens
_IN_MEMORY = 1 << 24  # numbers of tokens, 64 MiB
_PORTION = 1 << 18  # of them, read from a file together


def ladder(types: int) -> list[int]:
    """The sizes 1, 2, 5, 10, 20, ... below `types`, and `types` itself.

    >>> ladder(30)
    [1, 2, 5, 10, 20, 30]
    """
    sizes = []
    power = 1
    while power < types:
        sizes += [size for size in (power, 2 * power, 5 * power) if size < types]
        power *= 10
    return [*sizes, types] if types else []


@dataclass(frozen=True)
class Coverage:
    """What is known of a text.

    Attributes:
        types: how many there are, specials not counted.
        tokens: how many tokens have a rank; those that no size covers have one past `types`.
        records: how many records need the rank; None where it is not known.
        counts: of each type, by rank; None where they are not known.
    """

    types: int
    tokens: Mapping[int, int]
    records: Mapping[int, int] | None = None
    counts: Sequence[int] | None = None

    @classmethod
    def of_vocabulary(cls, vocabulary: Vocabulary, counts: Sequence[int]) -> Coverage:
        """Of the text that a vocabulary was built from, as far as its entries tell."""
        seen = [counts[number] for number in _ordinary(vocabulary)]
        return cls(len(seen), dict(enumerate(seen, 1)), counts=seen)

    def size_for(self, share: float) -> int | None:
        """The smallest size that covers this share of the tokens, in (0, 1]; None: no size does."""
        whole, covered = sum(self.tokens.values()), 0
        for rank, count in sorted(self.tokens.items()):
            covered += count
            if rank <= self.types and covered / whole >= share:
                return rank
        return None

    def rows(self, sizes: Iterable[int]) -> Iterator[dict[str, Any]]:
        """Records of what each of the rising `sizes` covers; none where there is no token.

        `min_count` is the count of the last type that fits.
        """
        tokens = sorted(self.tokens.items())
        records = sorted((self.records or {}).items())
        all_tokens, all_records = sum(self.tokens.values()), sum(count for _, count in records)
        covered = places = of_records = record_places = 0
        for size in sizes if all_tokens else ():
            while places < len(tokens) and tokens[places][0] <= min(size, self.types):
                covered += tokens[places][1]
                places += 1
            while record_places < len(records) and records[record_places][0] <= min(
                size, self.types
            ):
                of_records += records[record_places][1]
                record_places += 1
            row: dict[str, Any] = {"size": size}
            if self.counts:
                row["min_count"] = self.counts[min(size, self.types) - 1]
            row |= {"tokens": covered, "token_coverage": covered / all_tokens}
            if self.records is not None:
                row |= {"records": of_records, "record_coverage": of_records / all_records}
            yield row


class Measured:
    """Coverage of records by a vocabulary that is there already, in its order."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        ordinary = _ordinary(vocabulary)
        self._ranks = {vocabulary.tokens[n]: rank for rank, n in enumerate(ordinary, 1)}
        self._counts = vocabulary.counts and [vocabulary.counts[number] for number in ordinary]
        self._tokens: Counter[int] = Counter()
        self._records: Counter[int] = Counter()

    def add(self, tokens: Iterable[str]) -> None:
        """See one record."""
        get, beyond = self._ranks.get, len(self._ranks) + 1
        ranks = [get(token, beyond) for token in tokens]
        if ranks:
            self._tokens.update(ranks)
            self._records[max(ranks)] += 1

    def result(self) -> Coverage:
        """What is covered."""
        return Coverage(len(self._ranks), self._tokens, self._records, self._counts)


class Learned:
    """Coverage of records by the types in them, whose order only the last record settles.

    Tokens are kept as numbers, 4 bytes each and 4 a record; beyond 64 MiB they go to an unnamed
    temporary file. Memory is that, and the types.

    Args:
        reserved: spellings of specials; no size covers a token that is spelled so.

    Raises:
        SeqtoolsError: there is no room for the file.
    """

    def __init__(self, reserved: Iterable[str] = ()) -> None:
        self._reserved = frozenset(reserved)
        self._numbers: defaultdict[str, int] = defaultdict()
        self._numbers.default_factory = self._numbers.__len__  # in order of appearance
        self._counts: Counter[int] = Counter()
        self._held = array("I")
        self._file: IO[bytes] | None = None  # for what is no longer held

    def __enter__(self) -> Learned:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def add(self, tokens: Iterable[str]) -> None:
        """See one record."""
        numbers = [*map(self._numbers.__getitem__, tokens)]
        if not numbers:
            return
        self._counts.update(numbers)
        self._held.extend(numbers)
        self._held.append(_END)
        if len(self._held) >= _IN_MEMORY:
            self._put_away()

    def spelled(self) -> dict[str, int]:
        """How many tokens are spelled like a special, for each that there is."""
        here = sorted(self._reserved & self._numbers.keys())
        return {token: self._counts[self._numbers[token]] for token in here}

    def result(self) -> Coverage:
        """What is covered."""
        counts = {token: self._counts[number] for token, number in self._numbers.items()}
        order = ranked(counts, self._reserved)
        ranks = array("I", [len(order) + 1]) * len(counts)
        for rank, token in enumerate(order, 1):
            ranks[self._numbers[token]] = rank
        seen = [counts[token] for token in order]
        tokens = dict(enumerate(seen, 1))
        tokens[len(order) + 1] = sum(self.spelled().values())
        return Coverage(len(order), tokens, self._needed(ranks), seen)

    def _needed(self, ranks: array[int]) -> Counter[int]:
        """How many records need each rank."""
        needed: Counter[int] = Counter()
        rest = array("I")
        for portion in self._portions():
            rest += portion
            begin = 0
            for _ in range(portion.count(_END)):
                end = rest.index(_END, begin)
                needed[max(map(ranks.__getitem__, rest[begin:end]))] += 1
                begin = end + 1
            del rest[:begin]
        return needed

    def _portions(self) -> Iterator[array[int]]:
        if self._file is not None:
            self._file.seek(0)
            while data := self._file.read(_PORTION * self._held.itemsize):
                yield array("I", data)
        for begin in range(0, len(self._held), _PORTION):
            yield self._held[begin : begin + _PORTION]

    def _put_away(self) -> None:
        import tempfile

        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile()
            self._file.write(self._held.tobytes())
            self._file.flush()
        except OSError as error:
            raise SeqtoolsError(f"temporary file: {reason(error)}") from None
        del self._held[:]


def _ordinary(vocabulary: Vocabulary) -> list[int]:
    """The ids of all entries that are not special."""
    special = set(vocabulary.specials.values())
    return [number for number in range(len(vocabulary)) if number not in special]
