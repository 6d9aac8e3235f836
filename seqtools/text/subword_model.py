"""The file of a sentencepiece model: its pieces, read and changed without the library.

It is a protocol buffer (`sentencepiece_model.proto`). Field 1, once for each piece, holds its text
(1), its score (2) and its type (3); field 2 is how it was trained, with the kind of model (3) and
whether white space ends a word (24) instead of beginning it; field 3 is how text is normalised,
with whether a blank is put before it (3) and whether runs of blanks become one (4); field 5 is what
is done to a text that was put together.
"""

from __future__ import annotations

import struct
from collections.abc import Container, Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from seqtools.errors import ConfigError, FormatError
from seqtools.streams.files import native, reason

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5  # wire types
_PIECE, _TRAINING, _NORMALIZING, _CHANGING_BACK = 1, 2, 3, 5
_TEXT, _SCORE, _TYPE, _KIND, _SUFFIX, _PREFIX, _TRIM = 1, 2, 3, 3, 24, 3, 4
_PIECE_BEGIN = bytes([_PIECE << 3 | _BYTES])
_TYPE_TAG = bytes([_TYPE << 3 | _VARINT])
_UNIGRAM = 1  # what a model is unless it says otherwise
_KINDS = {_UNIGRAM: "unigram", 2: "bpe", 3: "word", 4: "char"}


class PieceType(IntEnum):
    """What a piece stands for."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


class Piece(NamedTuple):
    """A piece of a model; its id is its place."""

    text: str
    type: int
    score: float = 0.0

    @property
    def of_text(self) -> bool:
        """Whether a text may come out as this piece."""
        return self.type in (PieceType.NORMAL, PieceType.USER_DEFINED, PieceType.BYTE)


class _Field(NamedTuple):
    """A field of a message: its number, its value, and the bytes that it is written as."""

    number: int
    value: int | bytes
    raw: bytes


@dataclass(frozen=True)
class SubwordModel:
    """A sentencepiece model as its file holds it.

    Attributes:
        data: the file.
        pieces: in the order of their ids.
        kind: `unigram`, `bpe`, `word` or `char`.
    """

    data: bytes
    pieces: list[Piece]
    kind: str

    @classmethod
    def read(cls, path: str) -> SubwordModel:
        """Read a model file.

        Raises:
            ConfigError: the file cannot be opened.
            FormatError: it is no sentencepiece model.
        """
        data = read_model(path)
        try:
            return cls.parse(data)
        except FormatError as error:
            raise FormatError(f"{path}: {error}") from None

    @classmethod
    def parse(cls, data: bytes) -> SubwordModel:
        """Read the bytes of a model file.

        Raises:
            FormatError: they are no sentencepiece model.
        """
        pieces = []
        kind = 0
        try:
            for number, value, _ in _fields(data):
                if number == _PIECE:
                    pieces.append(_piece(_message(value)))
                elif number == _TRAINING:
                    kind = _numbers(value).get(_KIND, _UNIGRAM)
        except (ValueError, IndexError, struct.error):
            pieces = []
        if not pieces or kind not in _KINDS:
            raise FormatError("not a sentencepiece model")
        return cls(data, pieces, _KINDS[kind])

    def restricted(self, kept: Container[str]) -> bytes:
        """The model's file with only the pieces `kept`, and those of one character, in use.

        The same pieces are left as after `SetVocabulary` of the library in C++, which its Python
        side does not have: ids stay, and text is cut into smaller pieces that are in use.
        """
        pieces = iter(self.pieces)
        parts = []
        for number, value, raw in _fields(self.data):
            if number == _PIECE:
                text, kind, _ = next(pieces)
                if kind in (PieceType.NORMAL, PieceType.UNUSED):
                    used = text in kept or len(text) == 1
                    raw = _retyped(_message(value), PieceType.NORMAL if used else PieceType.UNUSED)
            parts.append(raw)
        return b"".join(parts)


def read_model(path: str) -> bytes:
    """The bytes of a model file.

    Raises:
        ConfigError: the file cannot be opened.
    """
    try:
        with open(native(path), "rb") as file:
            return file.read()
    except OSError as error:
        raise ConfigError(f"{path}: {reason(error)}") from None


class Habits(NamedTuple):
    """What a model does to text beside cutting it.

    Attributes:
        kind: `unigram`, `bpe`, `word` or `char`.
        drops_first_blank: whether the blank that begins the pieces of a text is left out when they
            are joined; None where joining does more than that and writing blanks for `▁`.
    """

    kind: str
    drops_first_blank: bool | None

    @classmethod
    def parse(cls, data: bytes) -> Habits:
        """Read the bytes of a model file that the library has read."""
        place = 0
        # Most of a file is pieces, of which only the length counts here, and most are short.
        while data[place : place + 1] == _PIECE_BEGIN and data[place + 1] < 0x80:
            place += 2 + data[place + 1]
        kind, plain = _UNIGRAM, True
        prefix = trim = True
        for number, value, _ in _fields(data[place:]):
            if number == _CHANGING_BACK and value:
                plain = False
            elif number == _TRAINING:
                chosen = _numbers(value)
                kind = chosen.get(_KIND, _UNIGRAM)
                plain = plain and not chosen.get(_SUFFIX)
            elif number == _NORMALIZING:
                chosen = _numbers(value)
                prefix, trim = bool(chosen.get(_PREFIX, True)), bool(chosen.get(_TRIM, True))
        return cls(_KINDS.get(kind, ""), (prefix or trim) if plain else None)


def _fields(data: bytes) -> Iterator[_Field]:
    """The fields of a message; ValueError or IndexError where it is none."""
    place = 0
    while place < len(data):
        start = place
        tag, place = _varint(data, place)
        value: int | bytes
        wire = tag & 7
        if wire == _VARINT:
            value, place = _varint(data, place)
        else:
            if wire == _BYTES:
                size, place = _varint(data, place)
            else:
                size = {_FIXED32: 4, _FIXED64: 8}.get(wire, len(data))
            value = data[place : place + size]
            if len(value) < size:
                raise ValueError
            place += size
        yield _Field(tag >> 3, value, data[start:place])


def _varint(data: bytes, place: int) -> tuple[int, int]:
    """A number of 7 bits a byte, the lowest first, and the place behind it."""
    value = shift = 0
    while True:
        byte = data[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place
        shift += 7
        if shift > 63:
            raise ValueError


def _message(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise ValueError
    return value


def _numbers(message: int | bytes) -> dict[int, int]:
    """The fields of a message that are numbers."""
    found = _fields(_message(message))
    return {number: value for number, value, _ in found if isinstance(value, int)}


def _piece(data: bytes) -> Piece:
    text, kind, score = b"", int(PieceType.NORMAL), 0.0
    for number, value, _ in _fields(data):
        if number == _TEXT:
            text = _message(value)
        elif number == _SCORE:
            (score,) = struct.unpack("<f", _message(value))
        elif number == _TYPE and isinstance(value, int):
            kind = value
    return Piece(text.decode("utf-8"), kind, score)


def _retyped(data: bytes, kind: PieceType) -> bytes:
    """The field of a piece, with another type."""
    kept = b"".join(field.raw for field in _fields(data) if field.number != _TYPE)
    data = kept + _TYPE_TAG + bytes([kind])
    return _PIECE_BEGIN + _encoded(len(data)) + data


def _encoded(value: int) -> bytes:
    """`_varint` backwards."""
    parts = []
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*parts, value])
