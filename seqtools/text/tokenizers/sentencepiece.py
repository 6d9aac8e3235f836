"""Pieces of words by sentencepiece, as a model has learned them (`seqtools.text.subwords`).

A piece that begins with `▁` (U+2581) begins a word. What the model does not know comes out as the
text has it, after the model's normalisation, in one token for each stretch; with byte fallback as
one piece for each byte of its UTF-8, `<0xE4>`.
"""

from __future__ import annotations

import functools
import itertools
import random
from collections.abc import Container, Sequence

from seqtools.errors import ConfigError, FormatError, SeqtoolsError
from seqtools.streams.records import dumps
from seqtools.text.normalize import Offsets
from seqtools.text.subword_library import call, library
from seqtools.text.subword_model import Habits, SubwordModel, read_model
from seqtools.text.tokenizers.drawing import Drawer, Sampling, drawer, finish
from seqtools.text.tokenizers.pieces import PieceTable

_MARK = "▁"


class SentencePieceTokenizer:
    """Split into the pieces of a model.

    Args:
        path: the model's file.
        restrict: only these pieces of the model are used, and those of one character.
        sampling: draw segmentations instead of taking the best.

    Raises:
        ConfigError: the file cannot be opened, or the model cannot do what is asked for.
        FormatError: it is no sentencepiece model.
    """

    def __init__(
        self,
        path: str,
        *,
        restrict: Container[str] | None = None,
        sampling: Sampling | None = None,
    ) -> None:
        data = read_model(path)
        if restrict is not None:
            data = _restricted(SubwordModel.read(path), restrict, path)
        self._seed = 0
        self._drawer: Drawer | None = None
        if sampling is not None:
            self._seed = sampling.seed
            try:
                self._drawer = drawer(SubwordModel.parse(data), sampling)
            except SeqtoolsError as error:
                raise type(error)(f"{path}: {error}") from None
        self._processor = library().SentencePieceProcessor(num_threads=1)
        try:
            self._processor.LoadFromSerializedProto(data)
        except RuntimeError:
            raise FormatError(f"{path}: not a sentencepiece model") from None
        self._habits = Habits.parse(data)

    @functools.cached_property
    def _table(self) -> PieceTable:
        return PieceTable(self._processor, self._habits.kind)

    @property
    def known(self) -> frozenset[str]:
        """The pieces that a text may become; any other token is unknown to the model."""
        return self._table.known

    @property
    def keeps_space(self) -> bool:
        """Whether the model leaves white space as a text has it."""
        return self._habits.drops_first_blank is False

    def tokenize(self, text: str) -> list[str]:
        """The pieces of `text`; nothing is drawn."""
        return self.tokenize_all([text])[0]

    def spans(self, text: str) -> tuple[list[str], Offsets]:
        """The pieces and where they stand; a `▁` that the text does not have is empty."""
        return self.spans_all([text])[0]

    def join(self, tokens: Sequence[str]) -> str:
        """The text of pieces, as the library gives it."""
        return self.join_all([tokens])[0]

    def tokenize_all(self, texts: Sequence[str]) -> list[list[str]]:
        """The pieces of each text."""
        return self._table.tokenize_all(texts)

    def spans_all(self, texts: Sequence[str]) -> list[tuple[list[str], Offsets]]:
        """The pieces of each text and where they stand."""
        found = call(self._processor.Encode, list(texts), return_type="offset_mapping")
        return [(each["pieces"], each["offsets"]) for each in found]

    def join_all(self, texts: Sequence[Sequence[str]]) -> list[str]:
        """The text of each list of pieces."""
        return self._join_all(texts, self._unknown(texts))

    def look_back(self, texts: Sequence[Sequence[str]]) -> list[tuple[str, int]]:
        """The text of each list of pieces, and how many of them are unknown to the model."""
        unknown = self._unknown(texts)
        return list(zip(self._join_all(texts, unknown), map(len, unknown), strict=True))

    def _unknown(self, texts: Sequence[Sequence[str]]) -> list[list[str]]:
        known = self.known.__contains__
        return [list(itertools.filterfalse(known, tokens)) for tokens in texts]

    def _join_all(self, texts: Sequence[Sequence[str]], unknown: list[list[str]]) -> list[str]:
        joined = list(map(self._join, texts, unknown))
        slow = [list(tokens) for tokens, text in zip(texts, joined, strict=True) if text is None]
        found = iter(call(self._processor.Decode, slow) if slow else [])  # of [] it makes one text
        return [next(found) if text is None else text for text in joined]

    def _join(self, tokens: Sequence[str], unknown: list[str]) -> str | None:
        """What the library makes of the pieces; None where that is more than to put them together.

        It writes a blank for each `▁` of a known piece, and leaves unknown ones as they are.
        """
        drops_first = self._habits.drops_first_blank
        if drops_first is None or self._table.falls_back:
            return None
        if unknown and (_MARK in "".join(unknown) or not self._table.own.isdisjoint(unknown)):
            return None
        text = "".join(tokens)
        if text.startswith(_MARK):
            if text.startswith(_MARK, 1):  # of several, a model may leave out each piece's first
                return None
            text = text[1:] if drops_first else text
        return text.replace(_MARK, " ")

    def draw(self, text: str, name: str | int, field: str) -> tuple[list[str], Offsets]:
        """A random segmentation, the same for the same seed, record and field.

        Args:
            text: what is cut.
            name: `id` or number of the record that has it.
            field: where it stands in the record.
        """
        assert self._drawer is not None, "made without sampling"
        normal, places = self._processor.Normalize(text, with_offsets=True)
        source = random.Random(f"{self._seed}\n{field}\n{dumps(name).decode()}")
        parts = self._drawer.draw(normal, source)
        return finish(parts, places, self.known, byte_fallback=self._table.falls_back)


def _restricted(model: SubwordModel, kept: Container[str], path: str) -> bytes:
    if model.kind not in ("bpe", "unigram"):
        raise ConfigError(f"{path}: a model of kind {model.kind} cannot be restricted")
    if not any(piece.of_text and piece.text in kept for piece in model.pieces):
        raise ConfigError(f"{path}: none of its pieces is in the vocabulary")
    return model.restricted(kept)
