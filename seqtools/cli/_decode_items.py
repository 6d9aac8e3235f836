"""A record on its way through a model, and what is asked of the vocabulary that makes its ids."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from seqtools.streams.files import Place, chomp
from seqtools.streams.records import Record, loads


class Symbols(Protocol):
    """What is asked of a vocabulary here; `text.vocab.Vocabulary` is one."""

    @property
    def specials(self) -> Mapping[str, int]:
        """Role to id."""
        ...

    @property
    def unk(self) -> int | None:
        """Id that stands for every unknown token."""
        ...

    @property
    def bos(self) -> int | None:
        """Id of the symbol before a sequence."""
        ...

    @property
    def eos(self) -> int | None:
        """Id of the symbol after a sequence."""
        ...

    def __len__(self) -> int: ...

    def encode(self, tokens: Sequence[str]) -> list[int]:
        """Ids of `tokens`, RecordError where there is none for one."""
        ...

    def decode(self, ids: Iterable[int]) -> list[str]:
        """Tokens of `ids`."""
        ...

    def spellings(self) -> frozenset[str]:
        """What the specials are spelled like, if text cannot become a token of that spelling."""
        ...


@dataclass
class Item:
    """A record on its way through the model.

    Attributes:
        place: where it stands.
        raw: its line, or nothing where the record was made here.
        record: what the line holds.
        prefix: ids fed before the first target or produced token.
        source: ids of the source, None for an lm.
        source_cut: tokens left out before the source's first.
        targets: ids to be scored, empty where the model is to produce some.
        begin: ids that the output has to begin with.
        line: what is written for it.
        error: why it could not be decoded.
    """

    place: Place
    raw: bytes
    record: Record
    prefix: list[int]
    source: list[int] | None = None
    source_cut: int = 0
    targets: list[int] = field(default_factory=list)
    begin: list[int] = field(default_factory=list)
    line: bytes = b""
    error: str | None = None

    @property
    def width(self) -> int:
        """Positions that the record takes in a batch."""
        return max(len(self.prefix) + len(self.targets), len(self.source or ()))

    @property
    def name(self) -> str:
        """What the record's random choices depend on: its `id`, or its number without one."""
        name = self.record.get("id")
        return str(name if type(name) in (str, int) else self.place.number)

    def __getstate__(self) -> dict[str, Any]:
        """For another process, which reads the line anew: a record can hold what cannot travel."""
        return {**self.__dict__, "record": None if self.raw else self.record}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if self.raw:
            self.record = loads(chomp(self.raw))
