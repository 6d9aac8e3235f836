"""Lower case and Unicode normal forms, with the way back to where a character came from."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import Literal

Form = Literal["none", "nfc", "nfkc"]
FORMS: tuple[Form, ...] = ("none", "nfc", "nfkc")

Offsets = list[tuple[int, int]]


@dataclass(frozen=True)
class Normalizer:
    """Normal form first, then lower case; with neither, text stays as it is.

    Attributes:
        form: `nfc` composes letters and their marks; `nfkc` also folds full width, ligatures and
            other compatibility characters. Unicode Standard Annex 15.
        lowercase: Unicode lower case (`str.lower`), the same in every language.
    """

    form: Form = "none"
    lowercase: bool = False

    @property
    def changes(self) -> bool:
        """Whether there is anything to do."""
        return self.lowercase or self.form != "none"

    def __call__(self, text: str) -> str:
        """The normalised text."""
        if self.form != "none":
            text = unicodedata.normalize(self.form.upper(), text)  # type: ignore[arg-type]
        return text.lower() if self.lowercase else text

    def trace(self, text: str, offsets: Offsets) -> Offsets:
        """Carry offsets in the normalised text back to `text`.

        A character that came out of several, or one of several that came out of one, stands for all
        of its source.

        Args:
            text: the text before normalisation.
            offsets: `[start, end)` pairs of code-point positions in `self(text)`, none empty.
        """
        normal = self(text)
        # Lower case alone never shortens, so the same length means that nothing has moved.
        if normal == text or (self.form == "none" and len(normal) == len(text)):
            return offsets
        spans: Offsets = []  # of each normalised character, in `text`
        start = 0
        for chunk in self._chunks(text):
            made, end = self(chunk), start + len(chunk)
            if made == chunk:
                spans += [(place, place + 1) for place in range(start, end)]
            else:
                spans += [(start, end)] * len(made)
            start = end
        return [(spans[first][0], spans[last - 1][1]) for first, last in offsets]

    def _chunks(self, text: str) -> list[str]:
        """Cut `text` where normalising the parts gives the same as normalising the whole."""
        if self.form == "none":
            return list(text)
        form = self.form.upper()
        chunks: list[str] = []
        for char in text:
            if chunks and not self._starts(chunks[-1], char, form):
                chunks[-1] += char
            else:
                chunks.append(char)
        return chunks

    @staticmethod
    def _starts(before: str, char: str, form: str) -> bool:
        """Whether `char` is no part of what comes before: it neither reorders nor composes."""
        if char < "\u0300":  # none of these ever does
            return True
        norm = unicodedata.normalize
        # A mark that a compatibility form brings along, such as that of U+FF9E, is a mark too.
        if unicodedata.combining(norm(form, char)[0]):  # type: ignore[arg-type]
            return False
        return norm(form, before + char) == norm(form, before) + norm(form, char)  # type: ignore[arg-type]
