"""CoNLL-U, the format of Universal Dependencies, to records and back.

https://universaldependencies.org/format.html: ten columns between tabs, comments before the words,
and lines that are no words: ranges (`1-2 au`, the token that the words 1 and 2 are written as) and
empty nodes (`8.1`, a word of the syntax that is not written). The first column is not kept, since
it counts the words; ranges and empty nodes are fields of their own, `ranges` and `empty_nodes`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from seqtools.errors import RecordError
from seqtools.streams.records import Record, get, name_of
from seqtools.text.convert.columns import CONLLU, RESERVED
from seqtools.text.convert.conll import (
    Conll,
    check_rows,
    check_values,
    fill_columns,
    get_columns,
    read_head,
    split_lines,
    write_head,
)

_RANGE = re.compile(r"([1-9][0-9]*)-([1-9][0-9]*)")
_EMPTY = re.compile(r"(0|[1-9][0-9]*)\.([1-9][0-9]*)")
_FORM = CONLLU.index("form")


@dataclass(frozen=True, slots=True)
class Conllu(Conll):
    """How sentences of CoNLL-U are read and written; `separator` counts for nothing.

    Attributes:
        all_comments: write all fields that are strings or true, and no column, as comments.
    """

    all_comments: bool = True

    def read(self, raw: bytes) -> Record:
        """A sentence to `{"text": "au lit", "tokens": ["à", "le", "lit"], …}`.

        A range or an empty node is an object with its `id` and what is in the columns, but for
        `_`: `{"id": "1-2", "tokens": "au"}`.

        Raises:
            RecordError: as `Conll.read` does; words that are not counted from 1, ranges and empty
                nodes that do not stand where they belong.
        """
        lines = split_lines(raw, self.encoding)
        record, first = read_head(lines, read_comment)
        rows = [line.split("\t") for line in lines[first:]]
        check_rows(rows, self.layout, first)
        words = list(range(len(rows)))
        if any(row[0] != str(number) for number, row in enumerate(rows, 1)):
            words, ranges, empty = _sort(rows, first)
            if not words:
                raise RecordError("a sentence without words", first)
        fill_columns(record, self.layout, [rows[word] for word in words])
        if len(words) < len(rows):
            if ranges:
                record["ranges"] = [self._to_object(rows[place]) for place in ranges]
            if empty:
                record["empty_nodes"] = [self._to_object(rows[place]) for place in empty]
        self.change(record, [first + word for word in words])
        return record

    def write(self, record: Record) -> str:
        """A record to lines, with `_` for what it lacks; the last is blank, without its end.

        Raises:
            RecordError: as `Conll.write` does; a range or an empty node that is none.
        """
        columns = get_columns(record, self._names(record))
        self.change(columns, None)
        for name, values in columns.items():
            check_values(values, name, "\t")
        rows = self.layout.rows(columns, len(next(iter(columns.values()))))
        for number, row in enumerate(rows, 1):
            row[0] = str(number)
        if any(name in record for name in ("ranges", "empty_nodes")):
            rows = self._with_others(rows, record)
        comments = self.comments
        if self.all_comments:
            taken = {*RESERVED, *(name for name, _ in self.layout.taken)}
            comments = tuple(
                name
                for name, value in record.items()
                if name not in taken and (type(value) is str or value is True)
            )
        head = write_head(record, comments, read_comment)
        return "\n".join([*head, *map("\t".join, rows), ""])

    def _names(self, record: Record) -> list[str]:
        """The fields that are columns of this record; words and tags have to be there."""
        needed = self.tag_fields if self.change_tags else ()
        taken = self.layout.taken
        names = [name for name, at in taken if name in record or at == _FORM or name in needed]
        return names or [taken[0][0]]

    def _to_object(self, row: Sequence[str]) -> Record:
        found = {name: row[place] for name, place in self.layout.taken if row[place] != "_"}
        return {"id": row[0], **found}

    def _with_others(self, words: list[list[str]], record: Record) -> list[list[str]]:
        """The lines of words with those of ranges and empty nodes between them."""
        rows = {(number, 0.0): row for number, row in enumerate(words, 1)}
        for field, pattern in (("ranges", _RANGE), ("empty_nodes", _EMPTY)):
            for item in _get_objects(record, field):
                found = pattern.fullmatch(item["id"])
                if found is None:
                    raise RecordError(f'"{field}" has the id {item["id"]!r}')
                start, end = int(found[1]), int(found[2])
                if field == "ranges":
                    sound, place = start < end <= len(words), (start - 1, math.inf)
                else:
                    sound, place = start <= len(words), (start, float(end))
                if not sound or place in rows:
                    raise RecordError(f'"{field}" has the id {item["id"]!r}, which has no place')
                columns = {name: [item[name]] for name, _ in self.layout.taken if name in item}
                for name, values in columns.items():
                    check_values(values, name, "\t")
                (row,) = self.layout.rows(columns, 1)
                rows[place] = [item["id"], *row[1:]]
        return [rows[place] for place in sorted(rows)]


def read_comment(line: str) -> tuple[str, str | bool] | None:
    """`# key = value` to its key and value, any other comment to itself and True."""
    if not line.startswith("#"):
        return None
    text = line[1:].strip(" \t")
    key, equals, value = line[1:].partition(" = ")
    if equals and key.strip():
        return key.strip(), value
    if text.endswith(" ="):
        return text[:-2].strip(), ""
    return text, True


def _sort(rows: Sequence[Sequence[str]], first: int) -> tuple[list[int], list[int], list[int]]:
    """Which lines are words, which are ranges and which are empty nodes.

    Raises:
        RecordError: one is nothing of these, or does not stand where its number belongs.
    """
    words: list[int] = []
    ranges: list[int] = []
    empty: list[int] = []
    covered = below = 0  # the last word of the range before, empty nodes after the word before
    for place, row in enumerate(rows):
        name, last = row[0], len(words)
        if name == str(last + 1):
            words.append(place)
            below = 0
        elif (found := _RANGE.fullmatch(name)) and int(found[1]) == last + 1 > covered:
            covered = int(found[2])
            if covered <= last + 1:
                raise RecordError(f"the range {name} has no two words", first + place)
            ranges.append(place)
        elif name == f"{last}.{below + 1}" and place - 1 not in ranges[-1:]:
            empty.append(place)
            below += 1
        else:
            raise RecordError(f"word {last + 1} expected, got {name!r}", first + place)
    if covered > len(words):
        raise RecordError(f"a range goes to word {covered}, but there are {len(words)}", first)
    return words, ranges, empty


def _get_objects(record: Record, field: str) -> list[dict[str, Any]]:
    if field not in record:
        return []
    items = get(record, field)
    if type(items) is not list:
        raise RecordError(f'"{field}" must be a list of objects, got {name_of(items)}')
    for item in items:
        if type(item) is not dict or {*map(type, item.values())} - {str} or "id" not in item:
            raise RecordError(f'"{field}" must be objects of strings, each with an "id"')
    return items
