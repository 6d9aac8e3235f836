"""What statistics measure of a record."""

from __future__ import annotations

from seqtools.errors import RecordError
from seqtools.streams.records import Record, get, name_of
from seqtools.text.fields import get_tokens_or_label


def get_string_or_strings(record: Record, field: str) -> str | list[str]:
    """The field: a string, or a list of strings, which it must be where its name says so.

    Raises:
        RecordError: it is missing or something else.
    """
    value = get(record, field)
    if type(value) not in (str, list):
        raise RecordError(f'"{field}" must be a string or a list of strings, got {name_of(value)}')
    return get_tokens_or_label(record, field)
