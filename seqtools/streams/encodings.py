"""Encodings of text other than UTF-8.

In most of them a byte below 0x30 is always that character of ASCII, so lines, quotation marks and
blanks are found in the bytes, and each record is decoded on its own. Files in the others (UTF-16
and UTF-32; those that change their meaning by signs such as ESC, `+` or `~`) become UTF-8 as they
are read. Bytes that mean nothing there become U+DC00 and so on, which no UTF-8 text can hold, so
that they spoil no more than their own record.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from dataclasses import dataclass

from seqtools.errors import ConfigError, FormatError, RecordError

_ESCAPED = 0xDC00  # plus the byte; as UTF-8 it begins with 0xed 0xb0 to 0xed 0xb3
_UTF_8_MARK = codecs.BOM_UTF8
_NOT_OF_FILES = ("idna", "punycode", "raw-unicode-escape", "unicode-escape")  # of names and sources


@dataclass(frozen=True, slots=True)
class Encoding:
    """How text is written as bytes; `encoding` makes it from a name.

    Attributes:
        name: as messages show it.
        codec: Python's name of what the bytes of a record are in, once they have been read.
        mark: the byte-order mark that may stand at the start of a file, once it has been read.
        start: what a new file begins with.
        recoded: files become UTF-8 as they are read.
        hint: what a message about bytes that are no text ends with.
    """

    name: str
    codec: str
    mark: bytes
    start: bytes = b""
    recoded: bool = False
    hint: str = ""

    def decode(self, raw: bytes) -> str:
        """The text of a record as it was read.

        Raises:
            RecordError: some bytes are no text.
        """
        try:
            return raw.decode(self.codec)
        except UnicodeDecodeError as error:
            raise self._explain(raw, error.start) from None

    def encode(self, text: str) -> bytes:
        """The bytes of a text, without what a file begins with.

        Raises:
            RecordError: a character is not in the encoding.
        """
        try:
            return text.encode(self.name)[len(self.start) :]
        except UnicodeEncodeError as error:
            point = ord(text[error.start])
            if 0xD800 <= point <= 0xDFFF:
                raise RecordError(f"U+{point:04X} is no character") from None
            raise RecordError(f"{self.name} has no U+{point:04X} ({text[error.start]})") from None

    def recode(self, chunks: Iterator[bytes | None], source: str) -> Iterator[bytes | None]:
        """A file's content as UTF-8, in chunks; a None says that the next one is waited for.

        Raises:
            FormatError: the file has no byte-order mark, and so no one can read it.
        """
        if not self.recoded:
            yield from chunks
            return
        decoder = codecs.getincrementaldecoder(self.name)("seqtools-escape")
        try:
            for chunk in chunks:
                yield None if chunk is None else _to_utf_8(decoder.decode(chunk))
            yield _to_utf_8(decoder.decode(b"", final=True))
        except UnicodeError:  # bad bytes raise none
            what = f"no byte-order mark, try {self.name}-le or {self.name}-be"
            raise FormatError(f"{source}: not {self.name}: {what}") from None

    def _explain(self, raw: bytes, start: int) -> RecordError:
        before = raw[:start]
        above = before.count(b"\n")
        line = before[before.rfind(b"\n") + 1 :]
        if not self.recoded:
            what = f"byte 0x{raw[start]:02x} at byte {len(line) + 1}"
            return RecordError(f"not {self.name}: {what} of the line{self.hint}", above)
        point = ord(raw[start : start + 3].decode("utf-8", "surrogatepass"))
        what = f"byte 0x{point - _ESCAPED:02x}" if point >= _ESCAPED else f"U+{point:04X}"
        place = len(line.decode("utf-8", "surrogatepass")) + 1
        what += f" at character {place} of the line"
        return RecordError(f"not {self.name}: {what}{self.hint}", above)


UTF_8 = Encoding("UTF-8", "utf-8", _UTF_8_MARK)


def encoding(name: str) -> Encoding:
    """An encoding by any name that Python knows.

    Raises:
        ConfigError: there is no such encoding of text.
    """
    try:
        start = "".encode(name)
        known = codecs.lookup(name).name
    except (LookupError, UnicodeError, ValueError):
        raise ConfigError(f"no encoding is called {name!r}") from None
    if known in _NOT_OF_FILES:
        raise ConfigError(f"{name!r} is no encoding of files")
    if known in ("utf-8", "utf-8-sig"):
        return Encoding("UTF-8" if not start else name, "utf-8", _UTF_8_MARK, start)
    if not _is_like_ascii(name):
        return Encoding(name, "utf-8", _UTF_8_MARK, start, recoded=True)
    try:
        mark = "\ufeff".encode(name)
    except UnicodeEncodeError:
        mark = b""
    return Encoding(name, name, mark, start)


def _is_like_ascii(name: str) -> bool:
    """Whether bytes below 0x30 are ASCII's, and no byte below 0x80 changes what others mean."""
    try:
        alone = [bytes([byte]).decode(name) for byte in range(0x80)]
    except UnicodeDecodeError:
        return False
    return all(map(str.__eq__, alone, map(chr, range(0x30)))) and {*map(len, alone)} == {1}


def _to_utf_8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _escape(error: UnicodeError) -> tuple[str, int]:
    """An error handler of codecs: each byte that means nothing as a code of its own."""
    assert isinstance(error, UnicodeDecodeError)
    bad = error.object[error.start : error.end]
    return "".join(chr(_ESCAPED + byte) for byte in bad), error.end


codecs.register_error("seqtools-escape", _escape)
