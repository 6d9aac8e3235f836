"""The language model that `--lm` puts beside the models of a search."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from seqtools.cli._decode_items import Item, Symbols
from seqtools.cli._encoding import Encoder
from seqtools.cli._run import warn
from seqtools.errors import ConfigError, FormatError
from seqtools.ngram import model as ngrams
from seqtools.ngram.words import BOS, EOS, UNK

if TYPE_CHECKING:
    import torch

    from seqtools.decoding.walk import Beside
    from seqtools.ngram.model import Model
    from seqtools.ngram.words import Words

_FEW = 0.2  # of the model's tokens; pieces that are whole words may happen to be known


class Companion:
    """A model of n-grams, or an lm of seq-train over the same vocabulary.

    Args:
        path: its file.
        weight: of its log-probabilities.
        encoder: what the files of the models beside it say.

    Raises:
        ConfigError: it is no language model, or over another vocabulary.
        FormatError: it cannot be read.
    """

    def __init__(self, path: str, weight: float, encoder: Encoder) -> None:
        self._weight = weight
        self._main = encoder
        self._stepper: Any = None
        self._ngrams = self._own = None
        found = _open(path)
        if isinstance(found, Encoder):
            found.require(("lm",), "--lm")
            if found.vocabulary != encoder.vocabulary:
                raise ConfigError(f"--lm {path} does not have the vocabulary of the model's output")
            self._own = found
        else:
            self._ngrams = found
            self._words = words_of(encoder.vocabulary, found.words)
            _warn_of_unknown(path, encoder.vocabulary, self._words)

    @property
    def positions(self) -> int | None:
        """How many inputs it can take; None where there is no limit."""
        return None if self._own is None else self._own.positions

    def beside(self, items: Sequence[Item], device: torch.device) -> Beside:
        """The model as it stands beside a search of these records."""
        from seqtools.decoding.hypothesis import Prompts
        from seqtools.decoding.walk import Beside

        if self._stepper is None:
            self._stepper = self._load(device)
        prompts = Prompts.from_ids([self._prefix(item) for item in items], device=device)
        return Beside(self._stepper, self._weight, prompts)

    def _prefix(self, item: Item) -> list[int]:
        """What it is fed first: it may start from another symbol than the models do."""
        start = self._main.start
        if self._own is None or item.prefix[: len(start)] != start:
            return item.prefix
        return [*self._own.start, *item.prefix[len(start) :]]

    def _load(self, device: torch.device) -> Any:
        if self._own is not None:
            return self._own.load(device)
        from seqtools.models.ngram import ForeignNgramLm

        assert self._ngrams is not None
        return ForeignNgramLm(self._ngrams, self._words)


def words_of(vocabulary: Symbols, words: Words) -> np.ndarray[Any, Any]:
    """The word that each id of a vocabulary is to a model of n-grams, (V,).

    The symbols that neither of them says are `<s>`, whose probability is always 0.
    """
    ids, _ = words.encode_tokens([vocabulary.decode(range(len(vocabulary)))])
    found = ids.astype(np.int64)
    for role, number in vocabulary.specials.items():
        found[number] = {"unk": UNK, "eos": EOS}.get(role, BOS)
    return found


def _warn_of_unknown(path: str, vocabulary: Symbols, words: np.ndarray[Any, Any]) -> None:
    """Say so where the n-grams know hardly any token: all others would rank alike."""
    tokens = np.delete(words, list(vocabulary.specials.values()))
    known = int((tokens != UNK).sum())
    if known < _FEW * len(tokens):
        warn(
            f"--lm {path} knows {known:,} of the {len(tokens):,} tokens that the model writes"
            f" ({known / len(tokens):.1%}); were both made by the same tokenizer?"
        )


def _open(path: str) -> Encoder | Model:
    """The n-grams, or what the file of an lm says."""
    try:
        return ngrams.load(path)
    except FormatError as error:
        other = error
    try:
        return Encoder.open([path])
    except FormatError as error:
        raise FormatError(f"--lm: {other}; {error}") from error
