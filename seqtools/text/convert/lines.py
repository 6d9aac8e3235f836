"""Lines of plain text, to records and back.

A line has come without its end (`\\n` or `\\r\\n`) and goes without it.
"""

from __future__ import annotations

from seqtools.errors import RecordError
from seqtools.streams.encodings import UTF_8, Encoding
from seqtools.streams.records import Record, get_text


def read_text(line: bytes, field: str = "text", encoding: Encoding = UTF_8) -> Record:
    """`a b` to `{"text": "a b"}`.

    Raises:
        RecordError: the line is not in the encoding.
    """
    return {field: encoding.decode(line)}


def write_text(record: Record, field: str = "text") -> str:
    """`{"text": "a b"}` to `a b`.

    Raises:
        RecordError: the field is no string, or holds a line end.
    """
    text = get_text(record, field)
    if "\n" in text:
        raise RecordError(f'"{field}" has a newline, a line cannot hold it')
    return check_end(text, field)


def check_end(text: str, field: str) -> str:
    """The line as it is.

    Raises:
        RecordError: reading would take its last character for a part of the line end.
    """
    if text.endswith("\r"):
        raise RecordError(f'"{field}" ends with a return, a line cannot hold it')
    return text
