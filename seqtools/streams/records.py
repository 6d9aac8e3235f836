"""One record: bytes of a line to a dict and back, and checked access to its fields.

orjson does the work; where an integer would lose digits (it has more than 18 of them) the standard
library's parser takes over, so integers of any size come out digit for digit.
"""

from __future__ import annotations

import json
import re
from typing import Any

import orjson

from seqtools.errors import RecordError

Record = dict[str, Any]

# orjson turns integers from 2**64 into floats; 19 digits in a row, not after a point, may be one.
_LONG_NUMBER = re.compile(rb"(?<![\d.])\d{19,}")
_EQUAL_DIGITS = bytes.maketrans(b"123456789", b"000000000")
_OPTIONS = orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_APPEND_NEWLINE
_MOST_DIGITS = 4300  # Python's own limit
_NOT_FINITE = "a number is not finite, and JSON cannot hold it"
_NAMES = {
    dict: "object",
    list: "list",
    str: "string",
    bool: "boolean",
    int: "number",
    float: "number",
    type(None): "null",
    orjson.Fragment: "number",
}


def loads(line: bytes) -> Record:
    """Parse one line.

    Duplicate keys: the last one counts.

    Raises:
        RecordError: not UTF-8, not JSON, or not an object.
    """
    if not has_long_number(line):
        return loads_short(line)
    # The standard library lets pass what is no JSON, so orjson has to agree to all but the digits.
    loads_short(_LONG_NUMBER.sub(_shorten, line))
    try:
        record: Record = json.loads(line, parse_int=_integer)
    except (ValueError, RecursionError) as error:
        raise RecordError(_explain(line, error)) from None
    return record


def loads_short(line: bytes) -> Record:
    """`loads` where `has_long_number` has said no, for instance of a whole block of lines."""
    try:
        record = orjson.loads(line)
    except ValueError as error:
        raise RecordError(_explain(line, error)) from None
    if type(record) is not dict:
        raise RecordError(f"a record must be an object, got {name_of(record)}")
    return record


def has_long_number(data: bytes) -> bool:
    """Whether there may be an integer beyond 64 bits in the data."""
    # The pattern is slow and such numbers rare: first see whether any digits can be one. Of 19
    # bytes in a row four are among each fourth of all.
    if b"0000" not in data[::4].translate(_EQUAL_DIGITS):
        return False
    return b"0" * 19 in data.translate(_EQUAL_DIGITS) and _LONG_NUMBER.search(data) is not None


def _shorten(digits: re.Match[bytes]) -> bytes:
    """A number that orjson can hold; four digits at least, they may belong to an escape \\uXXXX."""
    length = len(digits[0])
    return b"1" * (length if length < 300 else 4)


def _integer(digits: str) -> Any:
    """An integer, or what is only written again: of more digits, making one takes too long."""
    return int(digits) if len(digits) <= _MOST_DIGITS else orjson.Fragment(digits)


def dumps(record: Any) -> bytes:
    """One record as JSON, without the newline.

    Floats of numpy's float32 keep the fewest digits that give the same float32 back.

    Raises:
        RecordError: a NaN or an infinity, which JSON cannot hold; no Unicode text; too deep.
    """
    return to_line(record)[:-1]


def to_line(record: Any) -> bytes:
    """`dumps` with the newline."""
    try:
        data = orjson.dumps(record, option=_OPTIONS)
    except orjson.JSONEncodeError:
        return _dumps_exactly(record) + b"\n"
    # orjson writes NaN and infinities as null; only where there is a null can one be hidden.
    if b"null" in data:
        _refuse_non_finite(record)
    return data


def get(record: Record, field: str) -> Any:
    """The field's value.

    Raises:
        RecordError: the record has no such field.
    """
    try:
        return record[field]
    except KeyError:
        raise RecordError(f'"{field}" is missing') from None


def get_text(record: Record, field: str) -> str:
    """The field as a string.

    Raises:
        RecordError: it is missing or something else.
    """
    value = record.get(field)
    if type(value) is not str:
        raise RecordError(f'"{field}" must be a string, got {name_of(get(record, field))}')
    return value


def get_tokens(record: Record, field: str) -> list[str]:
    """The field as a list of strings.

    Raises:
        RecordError: it is missing or something else.
    """
    value = record.get(field)
    if type(value) is not list:
        raise RecordError(f'"{field}" must be a list of strings, got {name_of(get(record, field))}')
    if {*map(type, value)} - {str}:
        other = next(item for item in value if type(item) is not str)
        raise RecordError(f'"{field}" must be a list of strings, got {name_of(other)} among them')
    return value


def get_ids(record: Record, field: str, size: int | None = None) -> list[int]:
    """The field as a list of ids from 0, below `size` where that is given.

    Raises:
        RecordError: it is missing, something else, or an id is outside the vocabulary.
    """
    value = get(record, field)
    if type(value) is not list:
        raise RecordError(f'"{field}" must be a list of ids, got {name_of(value)}')
    for item in value:
        if type(item) is not int or item < 0:
            shown = item if type(item) in (int, float) else name_of(item)
            raise RecordError(f'"{field}" must be a list of ids (integers from 0), got {shown}')
        if size is not None and item >= size:
            raise RecordError(f'"{field}" has id {item}, but the vocabulary has {size} entries')
    return value


def name_of(value: Any) -> str:
    """The JSON type of a value, as messages call it."""
    return _NAMES.get(type(value), type(value).__name__)


def _dumps_exactly(record: Any) -> bytes:
    """What orjson refuses: integers beyond 64 bits, deep nesting; and the reason for the rest."""
    try:
        text = json.dumps(
            record, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain
        )
        return text.encode("utf-8")
    except RecursionError:
        raise RecordError("nested too deeply to be written") from None
    except UnicodeEncodeError:
        raise RecordError("a string is not Unicode text, and JSON cannot hold it") from None
    except ValueError:
        raise RecordError(_NOT_FINITE) from None


def _plain(value: Any) -> Any:
    """A numpy value as plain Python, a float32 as the float that is written as short."""
    if type(value) is orjson.Fragment:
        raise RecordError(f"an integer of more than {_MOST_DIGITS} digits beside other long ones")
    _refuse_non_finite(value)
    contiguous = value.copy()
    return orjson.loads(orjson.dumps(contiguous, option=orjson.OPT_SERIALIZE_NUMPY))


def _refuse_non_finite(value: Any) -> None:
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        raise RecordError(_NOT_FINITE)
    if isinstance(value, dict):
        for item in value.values():
            _refuse_non_finite(item)
    elif isinstance(value, list | tuple):
        for item in value:
            _refuse_non_finite(item)
    elif type(value).__module__ == "numpy":
        _refuse_non_finite(value.tolist())


def _explain(line: bytes, error: Exception) -> str:
    """What is wrong with a line, in words that name the right place in it."""
    try:
        line.decode("utf-8")
    except UnicodeDecodeError as problem:
        return (
            f"not UTF-8: byte 0x{line[problem.start]:02x} at byte {problem.start + 1} of the line"
        )
    if isinstance(error, RecursionError):
        return "nested too deeply to be read"
    if isinstance(error, json.JSONDecodeError):
        if error.msg.startswith(("depth", "recursion")):
            return "nested too deeply to be read"
        return f"not JSON: {error.msg} at column {error.colno}"
    return f"not JSON: {error}"
