"""Tokens as the text has them already: what stands between white space.

White space is what Unicode calls so (`str.split`): U+00A0, U+2028, U+3000 and the control
characters U+001C to U+001F are, U+200B and U+FEFF are not.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import orjson

from seqtools.text.normalize import Offsets
from seqtools.text.tokenizers import locate

_RUNS = re.compile(r"\s+|\S+")


class WhitespaceTokenizer:
    """Split at white space.

    Args:
        keep_space: each run of white space is a token, too.
    """

    json_from = 128

    def __init__(self, *, keep_space: bool = False) -> None:
        self._keep_space = keep_space
        self.tokenize = _RUNS.findall if keep_space else str.split
        self._glue = "" if keep_space else " "

    def to_json(self, text: str) -> bytes:
        """The tokens as a JSON list."""
        text = text if self._keep_space else text.strip(" ")
        # Of all white space only the blank counts as printable, and JSON writes it as it is.
        if self._keep_space or not text or "  " in text or not text.isprintable():
            return orjson.dumps(self.tokenize(text))
        return b"[%b]" % orjson.dumps(text).replace(b" ", b'","')

    def spans(self, text: str) -> tuple[list[str], Offsets]:
        """The tokens and where they stand."""
        tokens = self.tokenize(text)
        return tokens, locate(text, tokens)

    def join(self, tokens: Sequence[str]) -> str:
        """The tokens with a space between them."""
        return self._glue.join(tokens)
