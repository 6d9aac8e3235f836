"""How rare words are: inverse document frequencies, learned from a corpus or read from a file."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from seqtools.errors import ConfigError, FormatError, RecordError
from seqtools.streams.files import read_blocks
from seqtools.streams.records import Record, get_text, get_tokens, loads

_CHUNK = 10_000  # words in a record of a dumped state


@dataclass(frozen=True, slots=True)
class IdfTable:
    """Inverse document frequencies.

    Attributes:
        values: of each word.
        unknown: of a word that is not there.
    """

    values: dict[str, float]
    unknown: float

    @classmethod
    def of(cls, values: dict[str, float]) -> IdfTable:
        """A table whose unknown words get the median (the upper one of two), as jieba's do.

        Raises:
            FormatError: there are no words.
        """
        if not values:
            raise FormatError("the IDF table has no words")
        return cls(values, sorted(values.values())[len(values) // 2])

    @classmethod
    def read(cls, path: str) -> IdfTable:
        """Read what `DocumentCounts` reports, or lines of `word idf` as jieba has them.

        Raises:
            ConfigError: the file cannot be opened.
            FormatError: a line is neither.
        """
        values: dict[str, float] = {}
        name = path
        for block in read_blocks([path]):
            name = block.source
            parse = _parse_record if block.data.startswith(b'{"') else _parse_pair
            for number, raw in enumerate(block.data.splitlines(), block.line):
                if not raw.strip():
                    continue
                try:
                    word, value = parse(raw)
                except (RecordError, ValueError, OverflowError):
                    raise FormatError(f"{name}:{number}: not a word and its IDF") from None
                if not math.isfinite(value):
                    raise FormatError(f"{name}:{number}: the IDF is not finite")
                values[word] = value
        try:
            return cls.of(values)
        except FormatError as error:
            raise FormatError(f"{name}: {error}") from None

    @classmethod
    def of_jieba(cls) -> IdfTable:
        """The table of Chinese words that comes with jieba.

        Raises:
            ConfigError: jieba is not installed.
        """
        spec = find_spec("jieba")  # which imports neither jieba nor its dictionary
        if spec is None or spec.origin is None:
            raise ConfigError("jieba is not installed, so there is no table of Chinese words")
        return cls.read(str(Path(spec.origin).parent / "analyse" / "idf.txt"))


def _parse_record(raw: bytes) -> tuple[str, float]:
    record = loads(raw)
    value = record.get("idf")
    if not isinstance(value, int | float):
        raise ValueError
    return get_text(record, "token"), float(value)


def _parse_pair(raw: bytes) -> tuple[str, float]:
    word, value = raw.decode().split()
    return word, float(value)


class DocumentCounts:
    """In how many records each token is; the statistics of `seq-stats idf`.

    idf = ln(N / n) for a token in n of N records (Spärck Jones 1972), so one that is in every
    record gets 0. A count for each type is kept.

    Args:
        field: the list of tokens.
        min_count: tokens in fewer records are not reported.
    """

    kind = "idf"
    places = None

    def __init__(self, field: str = "tokens", *, min_count: int = 1) -> None:
        self._field = field
        self._min_count = min_count
        self._records = 0
        self._counts: Counter[str] = Counter()

    @property
    def options(self) -> Record:
        """What shapes the state."""
        return {"field": self._field}

    def add(self, record: Record, number: int) -> None:
        """Count a record's tokens, each once."""
        self._counts.update(set(get_tokens(record, self._field)))
        self._records += 1

    def dump(self) -> Iterator[Record]:
        """The state."""
        yield {"records": self._records}
        for counts in chunks(self._counts):
            yield {"documents": counts}

    def merge(self, part: Record) -> None:
        """Take in a record of another's state."""
        if "records" in part:
            self._records += int(part["records"])
        else:
            self._counts.update(part["documents"])

    def report(self) -> Iterator[Record]:
        """A record for each token: those in most records first, ties by code point."""
        for token, count in sorted(self._counts.items(), key=lambda item: (-item[1], item[0])):
            if count < self._min_count:
                break
            yield {"token": token, "documents": count, "idf": math.log(self._records / count)}


def chunks(counts: Counter[str]) -> Iterator[dict[str, int]]:
    """The counts in mappings that make lines of a moderate length, tokens by code point."""
    words = sorted(counts)
    for start in range(0, len(words), _CHUNK):
        yield {word: counts[word] for word in words[start : start + _CHUNK]}


def count_unknown(words: Iterable[str | None], table: IdfTable) -> tuple[int, int]:
    """How many words there are (None does not count), and how many the table does not have."""
    found = [word in table.values for word in words if word is not None]
    return len(found), len(found) - sum(found)
