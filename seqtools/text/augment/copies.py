"""Records to changed copies of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Set
from dataclasses import dataclass
from random import Random
from typing import Any

from seqtools.errors import RecordError
from seqtools.streams.records import Record, dumps, get, get_tokens, name_of, to_line
from seqtools.text.augment.edits import Edit, Row, Sentence
from seqtools.text.augment.labels import Labels, look_like_tags, read_labels
from seqtools.text.fields import base, derived, of_tokens

ORIGIN = "augmented_from"
_BESIDE = ("tags", "pos")  # go with tokens wherever they are


def of_text(field: str) -> frozenset[str]:
    """Fields that are made of the text field F, and are of no use when it is another text."""
    return frozenset((derived(field, "tokens"), derived(field, "tags"), *of_tokens(field)))


def lists_beside(record: Record, field: str, known: Set[str]) -> list[str]:
    """Other fields than `known` that are lists as long as the tokens, and so may be of them.

    Args:
        record: where they stand.
        field: the tokens; where they are no list, or missing, there are none.
        known: what is not asked about.
    """
    tokens = record.get(field)
    if type(tokens) is not list:
        return []
    return [
        name
        for name, value in record.items()
        if type(value) is list
        and len(value) == len(tokens)
        and name not in known
        and name not in ("id", ORIGIN)
    ]


def name_of_record(record: Record, number: int) -> str | int:
    """What the random choices about a record depend on: its `id`, or its number without one."""
    name = record.get("id")
    return name if type(name) in (str, int) else number  # type: ignore[return-value]


def as_copy(record: Record, origin: Record, number: int) -> Record:
    """`record` as a copy of `origin`: without an `id`, but with that of the original.

    The copy of a copy that has no `id` keeps what it was made of in the first place.
    """
    copy = {key: value for key, value in record.items() if key != "id"}
    name = origin.get("id")
    copy[ORIGIN] = origin.get(ORIGIN, number) if name is None else name
    return copy


@dataclass(frozen=True)
class Tokens:
    """Which fields are changed together.

    Attributes:
        field: a list of tokens.
        align: more lists with a value for each token.
        beside: so have the tags and pos of the field, where a record has them.
        scheme: of all tags, as `read_labels` takes it.
    """

    field: str = "tokens"
    align: tuple[str, ...] = ()
    beside: bool = True
    scheme: str = "auto"

    @property
    def text(self) -> str | None:
        """The text field that the tokens are of; None where the name does not say."""
        if self.field == "tokens" or self.field.endswith("_tokens"):
            return base(self.field, "tokens")
        return None

    def aligned(self, record: Record) -> tuple[str, ...]:
        """The fields of this record that go with the tokens."""
        if self.text is None or not self.beside:
            return self.align
        names = (derived(self.text, suffix) for suffix in _BESIDE)
        return tuple(dict.fromkeys((*(name for name in names if name in record), *self.align)))

    def read(self, record: Record) -> Sentence:
        """Take the tokens, and what goes with them, out of a record.

        Raises:
            RecordError: a field is missing, no list, of another length, or its tags are wrong.
        """
        tokens = get_tokens(record, self.field)
        fields = self.aligned(record)
        if not fields:
            return Sentence([[(token,)] for token in tokens])
        columns = [self._column(record, field, len(tokens)) for field in fields]
        labels = [
            self._labels(field, column) for field, column in zip(fields, columns, strict=True)
        ]
        units: list[list[Row]] = []
        for place, row in enumerate(zip(tokens, *columns, strict=True)):
            if any(label.joined[place] for label in labels):
                units[-1].append(row)
            else:
                units.append([row])
        letters = tuple(label.letters for label in labels)
        return Sentence(units, fields, letters, tuple(label.outside for label in labels))

    def stale(self, fields: tuple[str, ...]) -> frozenset[str]:
        """What does not hold for other tokens: the text, its ids, offsets and so on."""
        if self.text is None:
            return frozenset()
        return frozenset({self.text, *of_tokens(self.text)} - {*fields})

    def _labels(self, field: str, values: list[Any]) -> Labels:
        """Parts of speech have no scheme; one that is named is for all else that may be tags."""
        tags, pos = (self.text and derived(self.text, suffix) for suffix in _BESIDE)
        scheme = self.scheme
        if field == pos or not (scheme == "auto" or field == tags or look_like_tags(values)):
            scheme = "none"
        return read_labels(field, values, scheme)

    def _column(self, record: Record, field: str, size: int) -> list[Any]:
        values = get(record, field)
        if type(values) is not list:
            raise RecordError(f'"{field}" must be a list, got {name_of(values)}')
        if len(values) != size:
            raise RecordError(
                f'"{field}" has {len(values)} items, but "{self.field}" has {size} (see --align)'
            )
        return values


@dataclass(frozen=True)
class Number:
    """What is written for a record.

    Attributes:
        copies: how many.
        keep: the record itself comes before them.
        drop_unchanged: copies that are like it are left out.
    """

    copies: int = 1
    keep: bool = False
    drop_unchanged: bool = False


class Copier:
    """Make the copies of a record; a transform for `Session.filter`.

    What is drawn depends on the seed, the kind, the number of the copy, and the record's `id` or
    number.

    Args:
        kind: name of the change.
        edit: the change.
        tokens: what it is applied to.
        number: what is written.
        seed: of all random choices.
        counts: is told of `copies`, how many are `unchanged`, and which lists as long as the
            tokens, that do not go with them, left how many others, as `left FIELD`.
    """

    def __init__(
        self,
        kind: str,
        edit: Edit,
        tokens: Tokens,
        number: Number,
        *,
        seed: int,
        counts: Counter[str],
    ) -> None:
        self._edit, self._tokens, self._number = edit, tokens, number
        self._seed = f"{seed}\n{kind}\n{tokens.field}\n"
        self._counts = counts

    def __call__(self, record: Record, number: int) -> bytes:
        """The lines of the copies."""
        sentence = self._tokens.read(record)
        fields = (self._tokens.field, *sentence.fields)
        stale = self._tokens.stale(fields)
        beside = lists_beside(record, self._tokens.field, {*fields, *stale})
        lines = [to_line(record)] if self._number.keep else []
        left = {key: value for key, value in record.items() if key not in stale}
        copy = as_copy(left, record, number)
        name = dumps(name_of_record(record, number)).decode()
        for turn in range(1, self._number.copies + 1):
            units = self._edit(sentence, Random(f"{self._seed}{turn}\n{name}"))
            rows = [row for unit in units for row in unit]
            columns = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in fields]
            changed = any(
                column != record[field] for field, column in zip(fields, columns, strict=True)
            )
            self._counts["copies"] += 1
            self._counts["unchanged"] += not changed
            if changed or not self._number.drop_unchanged:
                made = copy | dict(zip(fields, columns, strict=True))
                if changed:
                    self._leave(made, beside)
                lines.append(to_line(made))
        return b"".join(lines)

    def _leave(self, made: Record, beside: list[str]) -> None:
        """Take out what would stand beside other tokens than it was made for."""
        for field in beside:
            del made[field]
            self._counts[f"left {field}"] += 1
