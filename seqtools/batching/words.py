"""Where words begin in a record of smaller tokens, for masking them whole.

In a vocabulary of pieces, which has tokens that begin with `▁` (U+2581), a word begins at each of
these. Han characters, which nothing separates, are put together into words by jieba; so is all text
where there are no pieces.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import accumulate

from seqtools.text.tokenizers.jieba import JiebaTokenizer
from seqtools.text.vocab import Vocabulary

MARK = "▁"
_HAN = re.compile("[\u4e00-\u9fff]")


class Words:
    """Finds where words begin.

    Args:
        vocabulary: of the tokens; it tells whether they are pieces.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._pieces = any(token.startswith(MARK) for token in vocabulary.tokens)
        self._jieba: JiebaTokenizer | None = None

    def begins(self, tokens: Sequence[str]) -> list[int]:
        """Give 1 for each token that begins a word, 0 for one that continues it."""
        text = "".join(tokens)
        if not self._pieces:
            places = self._cuts(text)
            return [int(place in places) for place in _starts(tokens)]
        if not _HAN.search(text):
            return [int(token.startswith(MARK)) for token in tokens]
        places = self._cuts(text.replace(MARK, " "))
        return [
            int(text.startswith(MARK, place) or (place in places and _touches_han(text, place)))
            for place in _starts(tokens)
        ]

    def _cuts(self, text: str) -> set[int]:
        """Places in `text` where a word of jieba's begins."""
        if self._jieba is None:
            self._jieba = JiebaTokenizer(keep_space=True)  # its words are the whole text
        return set(_starts(self._jieba.tokenize(text)))


def _starts(tokens: Sequence[str]) -> list[int]:
    return list(accumulate(map(len, tokens), initial=0))[:-1]


def _touches_han(text: str, place: int) -> bool:
    return _HAN.search(text, max(0, place - 1), place + 1) is not None
