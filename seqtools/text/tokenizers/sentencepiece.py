"""Pieces of words by sentencepiece, as a model has learned them (`seqtools.text.subwords`).

A piece that begins with `▁` (U+2581) begins a word. What the model does not know comes out as the
text has it, after the model's normalisation, in one token for each stretch; with byte fallback as
one piece for each byte of its UTF-8, `<0xE4>`.
"""

from __future__ import annotations

import functools
import random
import re
from collections.abc import Container, Sequence
from typing import Any

from seqtools.errors import ConfigError, FormatError, SeqtoolsError
from seqtools.streams.records import dumps
from seqtools.text.normalize import Offsets
from seqtools.text.subword_model import SubwordModel, read_model
from seqtools.text.tokenizers.drawing import Drawer, Sampling, drawer, finish

_CODE = re.compile(r"^[A-Z_]+: (src/\S+ )?(\[.*?\] )?")  # of an error: kind, place, condition


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

    @functools.cached_property
    def _byte_fallback(self) -> bool:
        return any(self._processor.IsByte(list(range(len(self._processor)))))

    @functools.cached_property
    def known(self) -> frozenset[str]:
        """The pieces that a text may become; any other token is unknown to the model."""
        processor = self._processor
        ids = list(range(len(processor)))
        marks = (processor.IsUnknown(ids), processor.IsControl(ids), processor.IsUnused(ids))
        pieces = zip(processor.IdToPiece(ids), *marks, strict=True)
        return frozenset(piece for piece, *others in pieces if not any(others))

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
        pieces: list[list[str]] = _call(self._processor.Encode, list(texts), return_type=str)
        return pieces

    def spans_all(self, texts: Sequence[str]) -> list[tuple[list[str], Offsets]]:
        """The pieces of each text and where they stand."""
        found = _call(self._processor.Encode, list(texts), return_type="offset_mapping")
        return [(each["pieces"], each["offsets"]) for each in found]

    def join_all(self, texts: Sequence[Sequence[str]]) -> list[str]:
        """The text of each list of pieces."""
        if not texts:  # which the library would take for one text
            return []
        joined: list[str] = _call(self._processor.Decode, list(texts))
        return joined

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
        return finish(parts, places, self.known, byte_fallback=self._byte_fallback)


def library() -> Any:
    """The module sentencepiece, without what it has to say."""
    import sentencepiece

    sentencepiece.SetMinLogLevel(3)  # above all but what ends the process
    return sentencepiece


def explain(error: Exception) -> str:
    """What the library says went wrong, without the place in its source."""
    text = " ".join(str(error).split())
    return _CODE.sub("", text) or text


def _call(method: Any, *arguments: Any, **settings: Any) -> Any:
    try:
        return method(*arguments, **settings)
    except (RuntimeError, ValueError) as error:
        raise SeqtoolsError(f"sentencepiece: {explain(error)}") from None


def _restricted(model: SubwordModel, kept: Container[str], path: str) -> bytes:
    if model.kind not in ("bpe", "unigram"):
        raise ConfigError(f"{path}: a model of kind {model.kind} cannot be restricted")
    if not any(piece.of_text and piece.text in kept for piece in model.pieces):
        raise ConfigError(f"{path}: none of its pieces is in the vocabulary")
    return model.restricted(kept)
