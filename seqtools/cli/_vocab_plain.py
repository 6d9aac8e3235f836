"""Counting tokens without a Python object for each, for large files."""

from __future__ import annotations

import numpy as np

from seqtools.ngram.packing import pack_lines
from seqtools.ngram.words import BOS, EOS, UNK, Learner, is_utf8

_FIRST = max(UNK, BOS, EOS) + 1  # id of a word: those below stand for no text here


class PlainCounter:
    """Counts the tokens of whole blocks of lines that are plainly records, see `ngram.packing`.

    Args:
        field: name of the list of tokens.
    """

    def __init__(self, field: str) -> None:
        self._key = np.frombuffer(field.encode(), dtype=np.uint8)
        self._learner = Learner(unk_as_word=True, literal=True)
        self._counts = np.zeros(1 << 16, dtype=np.int64)

    def take(self, data: bytes) -> int | None:
        """Count the tokens of some lines.

        Returns:
            How many records they are; None, with nothing counted, where one is not plain.
        """
        if not is_utf8(data):
            return None
        text = data if data.endswith(b"\n") else data + b"\n"
        packed = np.empty(len(text), dtype=np.uint8)
        state = np.zeros(3, dtype=np.int64)
        lines = np.frombuffer(text, dtype=np.uint8)
        if pack_lines(lines, 0, self._key, 0, packed, state) < len(text):
            return None
        seen = np.bincount(self._learner.learn_packed(packed[: state[0]].tobytes()))
        if len(seen) > len(self._counts):
            self._counts = np.pad(self._counts, (0, 2 * len(seen)))
        self._counts[: len(seen)] += seen
        return int(state[2])

    def counts(self) -> dict[str, int]:
        """How often each token was seen."""
        words = self._learner.words().strings()[_FIRST:]
        numbers = self._counts[_FIRST:].tolist()
        return {word.decode(): count for word, count in zip(words, numbers, strict=False)}
