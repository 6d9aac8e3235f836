"""Lines of plain text and of tab-separated columns, to records and back.

A line has come without its end (`\\n` or `\\r\\n`) and goes without it.
"""

from __future__ import annotations

from collections.abc import Sequence

from seqtools.errors import ConfigError, RecordError
from seqtools.streams.records import Record, get_text


def read_text(line: bytes, field: str = "text") -> Record:
    """`a b` to `{"text": "a b"}`.

    Raises:
        RecordError: not UTF-8.
    """
    return {field: decode(line)}


def write_text(record: Record, field: str = "text") -> bytes:
    """`{"text": "a b"}` to `a b`.

    Raises:
        RecordError: the field is no string, or holds a line end.
    """
    text = get_text(record, field)
    if "\n" in text:
        raise RecordError(f'"{field}" has a newline, a line cannot hold it')
    return _line(text, field)


class Columns:
    """Which columns a table has, and which of them are wanted.

    Args:
        names: of all columns, in their order.
        wanted: names of the columns to take, in the order of the record's fields; all by default.

    Raises:
        ConfigError: a wanted column is not there, or two columns have one name.
    """

    def __init__(self, names: Sequence[str], wanted: Sequence[str] | None = None) -> None:
        self._size = len(names)
        taken = names if wanted is None else wanted
        for name in taken:
            if names.count(name) != 1:
                problem = "no column" if name not in names else "more than one column"
                raise ConfigError(f"{problem} is called {name!r}: {', '.join(names)}")
        self._taken = [(name, names.index(name)) for name in taken]

    def read(self, line: bytes) -> Record:
        """`x<TAB>y` to `{"a": "x", "b": "y"}`; an empty line to an empty record.

        With a single column an empty line is a record as any other, with an empty field.

        Raises:
            RecordError: not UTF-8, or not as many columns as there should be.
        """
        if not line and self._size > 1:
            return {}
        fields = decode(line).split("\t")
        if len(fields) != self._size:
            raise RecordError(f"{_columns(self._size)} expected, got {len(fields)}")
        return {name: fields[place] for name, place in self._taken}


def write_row(record: Record, names: Sequence[str]) -> bytes:
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
    return _line("\t".join(fields), names[-1])


def _line(text: str, field: str) -> bytes:
    # Reading would take a return before the newline for a part of the line end.
    if text.endswith("\r"):
        raise RecordError(f'"{field}" ends with a return, a line cannot hold it')
    return text.encode("utf-8")


def decode(line: bytes) -> str:
    """The text of a line.

    Raises:
        RecordError: not UTF-8.
    """
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        byte = line[error.start]
        raise RecordError(
            f"not UTF-8: byte 0x{byte:02x} at byte {error.start + 1} of the line"
        ) from None


def _columns(number: int) -> str:
    return "1 column" if number == 1 else f"{number} columns"
