"""Each byte of the text's UTF-8 a token, written `<0xE4>`: nothing is unknown, white space no less.

So sentencepiece writes the bytes of what a model with byte fallback does not know.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from seqtools.errors import RecordError
from seqtools.text.normalize import Offsets

_TOKENS = [f"<0x{byte:02X}>" for byte in range(256)]
_BYTES = {token: byte for byte, token in enumerate(_TOKENS)}
_FIRST = bytes(byte & 0xC0 != 0x80 for byte in range(256))  # whether a byte begins a character


class ByteTokenizer:
    """Split into the bytes of UTF-8."""

    def tokenize(self, text: str) -> list[str]:
        """The bytes of `text`."""
        return [_TOKENS[byte] for byte in text.encode()]

    def spans(self, text: str) -> tuple[list[str], Offsets]:
        """The bytes and where they stand: a character is the last of its bytes, others are empty.

        So the offsets never overlap, and what they name joined is the text.
        """
        data = text.encode()
        last = (data.translate(_FIRST) + b"\1")[1:]  # of its character, each byte: 1 or 0
        places = itertools.accumulate(last, initial=0)
        return [_TOKENS[byte] for byte in data], list(itertools.pairwise(places))

    def join(self, tokens: Sequence[str]) -> str:
        """The text of these bytes.

        Raises:
            RecordError: a token is no byte, or the bytes are not UTF-8.
        """
        try:
            return bytes(map(_BYTES.__getitem__, tokens)).decode()
        except KeyError as error:
            place = tokens.index(error.args[0]) + 1
            raise RecordError(f"token {place} is no byte such as <0xE4>: {error}") from None
        except UnicodeDecodeError as error:
            raise RecordError(f"the bytes are not UTF-8 from token {error.start + 1} on") from None
