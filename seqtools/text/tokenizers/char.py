"""Each Unicode code point a token.

What a reader takes for one character may be several: a letter and its combining mark, the parts of
an emoji joined by U+200D, the two halves of a flag.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import orjson

from seqtools.text.normalize import Offsets
from seqtools.text.tokenizers import json_list


class CharTokenizer:
    """Split into code points.

    Args:
        keep_space: white space makes tokens, too.
    """

    json_from = 32

    def __init__(self, *, keep_space: bool = False) -> None:
        self._keep_space = keep_space

    def tokenize(self, text: str) -> list[str]:
        """The code points of `text`."""
        return list(self._kept(text))

    def to_json(self, text: str) -> str | bytes:
        """The tokens as a JSON list."""
        kept = self._kept(text)
        if not kept or not kept.isprintable() or '"' in kept or "\\" in kept:
            return orjson.dumps(list(kept))
        return json_list(kept)  # there is nothing that JSON would escape

    def spans(self, text: str) -> tuple[list[str], Offsets]:
        """The tokens and where they stand."""
        places = itertools.pairwise(range(len(text) + 1))
        if self._keep_space:
            return list(text), list(places)
        spans = [place for place, char in zip(places, text, strict=True) if not char.isspace()]
        return self.tokenize(text), spans

    def join(self, tokens: Sequence[str]) -> str:
        """The tokens with nothing between them."""
        return "".join(tokens)

    def _kept(self, text: str) -> str:
        return text if self._keep_space else "".join(text.split())
