"""References that stand in a file of their own, found for each hypothesis by order or by a key."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

from seqtools.errors import InputError, RecordError
from seqtools.streams.files import WHOLE, Place, chomp, read_blocks
from seqtools.streams.parallel import Parse
from seqtools.streams.records import Record, get, get_tokens, loads, name_of

Key = str | int
T = TypeVar("T")


def get_values(record: Record, field: str) -> str | list[str]:
    """The field as a string or a list of tokens, whichever it is.

    Raises:
        RecordError: it is missing or something else.
    """
    value: Any = get(record, field)
    if type(value) is str:
        return value
    if type(value) is list:
        return get_tokens(record, field)
    raise RecordError(f'"{field}" must be a string or a list of tokens, got {name_of(value)}')


def get_string(record: Record, field: str) -> str:
    """The field as a string; a list of tokens is joined by single blanks.

    Raises:
        RecordError: it is missing or something else.
    """
    value = get_values(record, field)
    return value if isinstance(value, str) else " ".join(value)


def get_key(record: Record, field: str) -> Key:
    """The field as what records are joined by: a string or a whole number; `1` and `"1"` differ.

    Raises:
        RecordError: it is missing or something else.
    """
    value = get(record, field)
    if type(value) is str or type(value) is int:
        return value
    raise RecordError(f'"{field}" must be a string or a whole number, got {name_of(value)}')


class InOrder(Generic[T]):
    """The n-th reference belongs to the n-th hypothesis; nothing is held in memory.

    Args:
        path: the file, `-` for standard input.
        check: takes the references out of a record.
        parse: line to record.
        keep_blank: blank lines are references too (plain text).
    """

    def __init__(
        self,
        path: str,
        check: Callable[[Record], list[T]],
        *,
        parse: Parse = loads,
        keep_blank: bool = False,
    ) -> None:
        self._path = path
        self._records = read_values(path, check, parse=parse, keep_blank=keep_blank)

    def find(self, place: Place, key: Key = "") -> list[T]:
        """The references of the hypothesis at `place`, whatever its key.

        Places come in order; some may be left out.

        Raises:
            InputError: there are none, or one is bad.
        """
        for own, texts in self._records:
            if own.number == place.number:
                return texts
        raise InputError(place.source, place.line, f"no reference: {self._path} ends before it")

    def finish(self, records: int) -> None:
        """See, after the last of `records` hypotheses, that no reference is left over.

        Raises:
            InputError: one is.
        """
        for place, _ in self._records:
            reason = f"no hypothesis: there are only {records}"
            raise InputError(place.source, place.line, reason)


class ByKey(Generic[T]):
    """The reference with the same key belongs to a hypothesis; all are held in memory.

    Args:
        path: the file, `-` for standard input.
        field: name of the key, as messages show it.
        check: takes the key and the references out of a record.

    Raises:
        InputError: a record is bad, or two have one key.
    """

    def __init__(
        self, path: str, field: str, check: Callable[[Record], tuple[Key, list[T]]]
    ) -> None:
        self._path = path
        self._field = field
        self._texts: dict[Key, tuple[Place, list[T]]] = {}
        self._used: dict[Key, Place] = {}
        places: dict[Key, Place] = {}
        for place, (key, texts) in read_values(path, check):
            self._refuse_second(places, key, place)
            self._texts[key] = place, texts

    def find(self, place: Place, key: Key) -> list[T]:
        """The references of the hypothesis at `place` with this key.

        Raises:
            InputError: there are none, or an earlier hypothesis has the key.
        """
        self._refuse_second(self._used, key, place)
        if key not in self._texts:
            reason = f'no reference: "{self._field}" {key!r} is not in {self._path}'
            raise InputError(place.source, place.line, reason)
        return self._texts[key][1]

    def finish(self, records: int) -> None:
        """See that no reference is left over.

        Raises:
            InputError: one is.
        """
        for key, (place, _) in self._texts.items():
            if key not in self._used:
                reason = f'no hypothesis among {records} has "{self._field}" {key!r}'
                raise InputError(place.source, place.line, reason)

    def _refuse_second(self, places: dict[Key, Place], key: Key, place: Place) -> None:
        first = places.setdefault(key, place)
        if first is not place:
            reason = f'"{self._field}" {key!r} stands in line {first.line} as well'
            raise InputError(place.source, place.line, reason)


def read_values(
    path: str, check: Callable[[Record], T], *, parse: Parse = loads, keep_blank: bool = False
) -> Iterator[tuple[Place, T]]:
    """The records of a file through `check`, each with its place.

    Raises:
        ConfigError: the file cannot be opened.
        InputError: a record is bad.
        FormatError: a compressed file is damaged.
    """
    blocks = read_blocks([path], keep_blank=keep_blank)
    for place, raw in itertools.chain.from_iterable(block.lines(WHOLE, 1) for block in blocks):
        try:
            value = check(parse(chomp(raw)))
        except RecordError as error:
            raise InputError(place.source, place.line, str(error)) from None
        yield place, value
