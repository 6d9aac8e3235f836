"""Texts to pieces by the ids that the library gives, which are sooner there than strings."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from typing import Any

from seqtools.text.subword_library import call

_FIRST = 16  # texts that tell what others are like


class PieceTable:
    """The pieces of a model by id.

    One id stands for all that is unknown: stretches of characters that are no piece by themselves.
    They are found in the text that way; where that does not add up, the library is asked for
    strings.

    Args:
        processor: the library's, with the model.
        kind: of the model, as `Habits` has it.

    Attributes:
        known: what a text may become; any other token is unknown to the model.
        own: the model's signs that stand for no text, such as `<unk>` and `<s>`.
        falls_back: whether there are pieces for bytes.
    """

    def __init__(self, processor: Any, kind: str) -> None:
        ids = list(range(len(processor)))
        self._processor = processor
        self._pieces: list[str] = processor.IdToPiece(ids)
        self._unknown: int = processor.unk_id()
        unused, of_bytes = self._where(processor.IsUnused(ids)), self._where(processor.IsByte(ids))
        self.own = self._where(processor.IsUnknown(ids)) | self._where(processor.IsControl(ids))
        self.known = frozenset(self._pieces) - self.own - unused
        self.falls_back = bool(of_bytes)
        self._runs = None
        if kind in ("unigram", "bpe") and not any(len(piece) == 1 for piece in unused):
            self._runs = _runs_between(self.known - of_bytes)

    def tokenize_all(self, texts: Sequence[str]) -> list[list[str]]:
        """The pieces of each text."""
        # Where most texts have something unknown, finding that takes longer than the strings do.
        first = texts[:_FIRST] if len(texts) > _FIRST else ()
        if self._runs is None or (first and 2 * len(self._partly(self._ids(first))) > _FIRST):
            return self._tokenize_slowly(texts)
        ids = self._ids(texts)
        pieces = self._pieces
        tokens = [[pieces[number] for number in each] for each in ids]
        unknown = self._partly(ids)
        if unknown:
            some = [texts[place] for place in unknown]
            normal: list[str] = call(self._processor.Normalize, some)
            slow = [
                place
                for place, text in zip(unknown, normal, strict=True)
                if not self._fill(tokens[place], ids[place], text)
            ]
            found = self._tokenize_slowly([texts[place] for place in slow])
            for place, each in zip(slow, found, strict=True):
                tokens[place] = each
        return tokens

    def _ids(self, texts: Sequence[str]) -> list[list[int]]:
        ids: list[list[int]] = call(self._processor.Encode, list(texts), return_type=int)
        return ids

    def _partly(self, ids: list[list[int]]) -> list[int]:
        """Which texts have something unknown."""
        return [place for place, each in enumerate(ids) if self._unknown in each]

    def _fill(self, tokens: list[str], ids: list[int], text: str) -> bool:
        """Put the unknown stretches of a normalised text among its pieces; whether it came out."""
        assert self._runs is not None
        runs = self._runs.findall(text)
        if len(runs) != ids.count(self._unknown):
            return False
        place = -1
        for run in runs:
            place = ids.index(self._unknown, place + 1)
            tokens[place] = run
        return "".join(tokens) == text

    def _tokenize_slowly(self, texts: Sequence[str]) -> list[list[str]]:
        pieces: list[list[str]] = call(self._processor.Encode, list(texts), return_type=str)
        return pieces

    def _where(self, marks: list[bool]) -> frozenset[str]:
        return frozenset(itertools.compress(self._pieces, marks))


def _runs_between(pieces: Iterable[str]) -> re.Pattern[str] | None:
    """What finds the runs of characters that no piece has; None where one has such that is none."""
    chars = set("".join(pieces))
    if not chars or not chars.issubset(pieces):
        return None
    return re.compile(f"[^{''.join(map(re.escape, sorted(chars)))}]+")
