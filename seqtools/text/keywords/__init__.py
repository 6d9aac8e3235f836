"""The words that say what a text is about, by TF-IDF and by TextRank.

The rules about which words count are those of jieba's `analyse` module, and so are the weights: for
the same words the numbers are the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from seqtools.errors import RecordError

Weighted = list[tuple[str, float]]
Words = list[str | None]

_ENGLISH = """
    all an and are as at be by can for from has have if in is it not of on one or that the then this
    to we which with you
"""
# What jieba passes over, whatever stop words it is given besides.
STOPWORDS = frozenset(_ENGLISH.split())


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which words may be keywords.

    Attributes:
        stopwords: in lower case; words are compared in lower case.
        min_length: shorter words, in code points and without white space round them, are left out.
        pos: parts of speech that may be; None: all.
    """

    stopwords: frozenset[str] = field(default=STOPWORDS)
    min_length: int = 2
    pos: frozenset[str] | None = None

    def choose(self, tokens: Sequence[str], pos: Sequence[str] | None = None) -> Words:
        """The tokens, with None in the place of each that may not be a keyword.

        Raises:
            RecordError: `pos` is asked for and has another length.
        """
        stopwords, min_length, kinds = self.stopwords, self.min_length, self.pos
        words: Words = [
            token
            if len(token) >= min_length
            and len(token.strip()) >= min_length
            and token.lower() not in stopwords
            else None
            for token in tokens
        ]
        if kinds is None:
            return words
        if pos is None or len(pos) != len(tokens):
            raise RecordError(f"{len(tokens)} tokens have {len(pos or ())} parts of speech")
        return [word if kind in kinds else None for word, kind in zip(words, pos, strict=True)]


def read_stopwords(lines: Iterable[str]) -> frozenset[str]:
    """Stop words, one a line, in lower case, and `STOPWORDS` with them."""
    return STOPWORDS | {line.strip().lower() for line in lines}


def best(weights: Mapping[str, float], top: int | None) -> Weighted:
    """The `top` heaviest words (None: all), heaviest first, ties in the order of the mapping."""
    ranked = sorted(weights.items(), key=lambda item: item[1], reverse=True)
    return ranked[:top]
