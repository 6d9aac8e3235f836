"""Tables to records and back: columns between tabs, and comma-separated values (RFC 4180).

Between tabs there are no quotation marks; a field is what stands there. A line comes without its
end (`\\n` or `\\r\\n`) and goes without it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol

from seqtools.errors import ConfigError, RecordError
from seqtools.streams.encodings import UTF_8, Encoding
from seqtools.streams.files import chomp
from seqtools.streams.grouping import Group
from seqtools.streams.records import Record, get_text
from seqtools.text.convert.lines import check_end


class Table(Protocol):
    """How rows are written."""

    def split(self, row: str, /) -> list[str]:
        """The fields of a row; RecordError where it is none."""

    def write(self, record: Record, names: Sequence[str], /) -> str:
        """The row that has these fields of a record; RecordError where there is none."""


class Tabs:
    """Tabs between columns."""

    def split(self, row: str) -> list[str]:
        """`x<TAB>y` to `x` and `y`."""
        return row.split("\t")

    def write(self, record: Record, names: Sequence[str]) -> str:
        """`{"a": "x", "b": "y"}` to `x<TAB>y`.

        Raises:
            RecordError: a field is no string, or holds a tab or a line end.
        """
        fields = []
        for name in names:
            field = get_text(record, name)
            if "\t" in field or "\n" in field:
                what = "tab" if "\t" in field else "newline"
                raise RecordError(f'"{name}" has a {what}, a column cannot hold it')
            fields.append(field)
        return check_end("\t".join(fields), names[-1])


NOT_WANTED = "_"
"""Stands in place of a column's name."""


class Columns:
    """Which columns a table has, and which of them are wanted.

    Args:
        names: of all columns, in their order.
        wanted: names of the columns to take, in the order of the record's fields; all by default.
        table: how rows are written.
        encoding: of the lines.

    Raises:
        ConfigError: a wanted column is not there or has no name, two have one, or none is wanted.
    """

    def __init__(
        self,
        names: Sequence[str],
        wanted: Sequence[str] | None = None,
        table: Table | None = None,
        encoding: Encoding = UTF_8,
    ) -> None:
        self._size = len(names)
        self._split = (table or Tabs()).split
        self._encoding = encoding
        taken = names if wanted is None else wanted
        if names and not taken:
            raise ConfigError("no column is wanted")
        if "" in taken:
            place = names.index("") + 1
            raise ConfigError(f"column {place} has no name (see --columns): {', '.join(names)}")
        for name in taken:
            if names.count(name) != 1:
                problem = "no column" if name not in names else "more than one column"
                raise ConfigError(f"{problem} is called {name!r}: {', '.join(names)}")
        self._taken = [(name, names.index(name)) for name in taken]

    def read(self, line: bytes) -> Record:
        """`x<TAB>y` to `{"a": "x", "b": "y"}`; an empty line to an empty record.

        With a single column an empty line is a record as any other, with an empty field.

        Raises:
            RecordError: not in the encoding, not as many columns as there should be, or bad
                quotation marks.
        """
        text = self._encoding.decode(line)
        if not text and self._size > 1:
            return {}
        fields = self._split(text)
        if len(fields) != self._size:
            raise RecordError(f"{_columns(self._size)} expected, got {len(fields)}")
        return {name: fields[place] for name, place in self._taken}


def read_header(line: bytes, table: Table, encoding: Encoding) -> list[str]:
    """The names of the columns.

    Raises:
        RecordError: as `Columns.read` does.
    """
    return table.split(encoding.decode(chomp(line)))


class Csv:
    """Comma-separated values as in RFC 4180, section 2, with any line end and delimiter.

    A field that holds a delimiter, a quotation mark or a line end stands between quotation marks,
    and a mark within it is doubled. Marks anywhere else are an error, which ends with its line.

    Args:
        delimiter: one character of ASCII.
        quote_all: write quotation marks around every field, not only where they are needed.

    Raises:
        ConfigError: no delimiter can be this.
    """

    # A field that a block leaves open goes on to a mark that is not doubled.
    closing = re.compile(rb'(?<!")(?:"")*+"(?!")')

    def __init__(self, delimiter: str = ",", *, quote_all: bool = False) -> None:
        if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n\0':
            raise ConfigError(f"a delimiter is one character of ASCII, got {delimiter!r}")
        self._delimiter = delimiter
        other = re.escape(delimiter)
        plain = rf'[^"\r\n{other}]*+'
        quoted = r'"[^"]*+(?:""[^"]*+)*+"'
        field = rf"(?:{quoted}(?=\r?\n|\r?\Z|{other})|{plain})"
        row = rf"{field}(?:{other}{field})*+(?=\r?\n|\r?\Z)"
        sound = rf"(?:{field}{other})*+"
        self._field = re.compile(rf"(?:^|{other})({quoted}|{plain})")
        self._quoted, self._bytes_quoted = re.compile(quoted), re.compile(quoted.encode())
        self._row, self._bytes_row = re.compile(row), re.compile(row.encode())
        self._sound, self._bytes_sound = re.compile(sound), re.compile(sound.encode())
        self._odd = re.compile("" if quote_all else rf'["\r\n\ufeff{other}]')

    def split(self, row: str) -> list[str]:
        """`x,"a, b"` to `x` and `a, b`.

        Raises:
            RecordError: quotation marks or returns where none can be.
        """
        if '"' not in row and "\r" not in row:
            return row.split(self._delimiter)
        found = self._row.match(row)
        if found is None or found.end() < len(row):
            raise RecordError(self._explain(row))
        return [
            field[1:-1].replace('""', '"') if field[:1] == '"' else field
            for field in self._field.findall(row)
        ]

    def write(self, record: Record, names: Sequence[str]) -> str:
        """`{"a": "x", "b": "y, z"}` to `x,"y, z"`.

        Raises:
            RecordError: a field is no string.
        """
        fields = [get_text(record, name) for name in names]
        if fields == [""]:
            return '""'  # else the line would be empty
        return self._delimiter.join(map(self._quote, fields))

    def cut(self, data: bytes, /, *, last: bool) -> tuple[list[Group], int]:
        """Lines to rows; see `Grouping`."""
        if b'"' not in data:
            lines = data.split(b"\n")
            if not lines[-1]:
                lines.pop()
            return list(map(Group, range(len(lines)), lines)), len(data)
        groups: list[Group] = []
        begin = above = mark = 0
        while begin < len(data):
            end = _find(data, b"\n", begin)
            if mark < begin:
                mark = _find(data, b'"', begin)
            if mark < end:
                end = self._end(data, begin)
                if end < 0:
                    if not last:
                        break
                    end = len(data) - data.endswith(b"\n")
            raw = data[begin:end]
            groups.append(Group(above, raw))
            above += 1 + raw.count(b"\n")
            begin = end + 1
        return groups, min(begin, len(data))

    def _end(self, data: bytes, begin: int) -> int:
        """Where the row that begins here ends, -1 where a field is open."""
        row = self._bytes_row.match(data, begin)
        if row is not None:
            return _find(data, b"\n", row.end())
        sound = self._bytes_sound.match(data, begin)
        bad = sound.end() if sound else begin
        if data[bad : bad + 1] != b'"':
            return _find(data, b"\n", bad)
        quoted = self._bytes_quoted.match(data, bad)
        return -1 if quoted is None else _find(data, b"\n", quoted.end())

    def _explain(self, row: str) -> str:
        sound = self._sound.match(row)
        bad = sound.end() if sound else 0
        column = len(self._field.findall(row[: max(bad - 1, 0)])) + 1 if bad else 1
        if row[bad : bad + 1] == '"':
            if self._quoted.match(row, bad):
                return f"column {column} goes on after its closing quotation mark"
            return f"column {column} has a quotation mark that is never closed"
        rest = row[bad:].split(self._delimiter, 1)[0]
        if '"' in rest:
            return f"column {column} has a quotation mark, but does not begin with one"
        return f"column {column} has a return outside quotation marks"

    def _quote(self, field: str) -> str:
        if self._odd.search(field) is None:
            return field
        return '"' + field.replace('"', '""') + '"'


def _find(data: bytes, what: bytes, begin: int) -> int:
    """Where it stands, or the end of the data."""
    found = data.find(what, begin)
    return len(data) if found < 0 else found


def _columns(number: int) -> str:
    return "1 column" if number == 1 else f"{number} columns"
