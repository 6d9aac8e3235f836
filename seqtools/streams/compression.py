"""Compressed files, known by the ending of their names: `.gz`, `.bz2`, `.xz`, `.zst`.

Reading goes through all members of a file, and zeros after a member are padding. The libraries are
imported when a file needs them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from seqtools.errors import FormatError

# How files begin, and what unpacks them; bzip2's three letters alone might be text.
_MAGIC = {
    b"\x1f\x8b\x08": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\xfd7zXZ\x00": "xz",
    **{b"BZh%d1AY&SY" % level: "bzip2" for level in range(1, 10)},
}


class _Codec(Protocol):
    eof: bool
    unused_data: bytes

    def decompress(self, data: bytes, /) -> bytes: ...


class Packer(Protocol):
    """Compresses piece by piece."""

    def compress(self, data: bytes, /) -> bytes:
        """Take the data, and give what is ready."""

    def flush(self) -> bytes:
        """Give the rest."""


class Unpacker:
    """Decompresses piece by piece, through all members of a file.

    Args:
        make: makes the decompressor of one member.
        name: of the file, for messages.
    """

    def __init__(self, make: Callable[[], _Codec], name: str) -> None:
        self._make = make
        self._name = name
        self._codec: _Codec | None = None
        self._any = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        """What the data gives, in pieces.

        Raises:
            FormatError: the file is damaged; all before the damage has been given.
        """
        while data:
            if self._codec is None:
                if self._any:
                    data = data.lstrip(b"\0")
                    if not data:
                        return
                self._codec = self._make()
                self._any = True
            try:
                piece = self._codec.decompress(data)
            except Exception as error:  # each library has its own class
                raise FormatError(f"{self._name}: damaged compressed file ({error})") from None
            if piece:
                yield piece
            if not self._codec.eof:
                return
            data = self._codec.unused_data
            self._codec = None

    def finish(self) -> None:
        """See that there is a member, and that the last one is whole.

        Raises:
            FormatError: it is not.
        """
        if self._codec is not None or not self._any:
            raise FormatError(f"{self._name}: compressed file ends too early")


def unpacker(path: str, name: str) -> Unpacker | None:
    """What reads this file, None where it is not compressed."""
    make: Any
    if path.endswith(".gz"):
        import zlib

        make = functools.partial(zlib.decompressobj, 31)
    elif path.endswith(".bz2"):
        import bz2

        make = bz2.BZ2Decompressor
    elif path.endswith(".xz"):
        import lzma

        make = lzma.LZMADecompressor
    elif path.endswith(".zst"):
        import zstandard

        make = zstandard.ZstdDecompressor().decompressobj
    else:
        return None
    return Unpacker(make, name)


def refuse_packed(start: bytes, name: str) -> None:
    """See that what is not called compressed is not.

    Args:
        start: the first bytes of the file.
        name: of the file, for messages.

    Raises:
        FormatError: it begins as compressed files do.
    """
    for magic, tool in _MAGIC.items():
        if start.startswith(magic):
            raise FormatError(
                f"{name}: compressed, which only the end of a file's name tells: `{tool} -dc` first"
            )


def packer(path: str) -> Packer | None:
    """What writes this file, None where it is not to be compressed; no name and no time in it."""
    made: Any = None
    if path.endswith(".gz"):
        import zlib

        made = zlib.compressobj(6, zlib.DEFLATED, 31)
    elif path.endswith(".bz2"):
        import bz2

        made = bz2.BZ2Compressor()
    elif path.endswith(".xz"):
        import lzma

        made = lzma.LZMACompressor()
    elif path.endswith(".zst"):
        import zstandard

        made = zstandard.ZstdCompressor().compressobj()
    found: Packer | None = made
    return found
