"""Each Unicode code point a token.

What a reader takes for one character may be several: a letter and its combining mark, the parts of
an emoji joined by U+200D, the two halves of a flag.
"""

from __future__ import annotations

from collections.abc import Sequence

from seqtools.text.normalize import Offsets
from seqtools.text.tokenizers import locate


class CharTokenizer:
    """Split into code points.

    Args:
        keep_space: white space makes tokens, too.
    """

    def __init__(self, *, keep_space: bool = False) -> None:
        self._keep_space = keep_space

    def tokenize(self, text: str) -> list[str]:
        """The code points of `text`."""
        return list(text if self._keep_space else "".join(text.split()))

    def spans(self, text: str) -> tuple[list[str], Offsets]:
        """The tokens and where they stand."""
        tokens = self.tokenize(text)
        return tokens, locate(text, tokens)

    def join(self, tokens: Sequence[str]) -> str:
        """The tokens with nothing between them."""
        return "".join(tokens)
