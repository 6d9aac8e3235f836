"""Records to ids and back by the words of an n-gram model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from seqtools.cli._encoding import Encoder
from seqtools.models.description import Description
from seqtools.ngram import model as ngrams
from seqtools.ngram.words import BOS, EOS, SPECIALS, UNK, Words

if TYPE_CHECKING:
    import torch

    from seqtools.ngram.model import Model


class NgramSymbols:
    """The words of an n-gram model as a vocabulary; they stay where they lie.

    Args:
        words: of the model.
    """

    unk: int | None = UNK
    bos: int | None = BOS
    eos: int | None = EOS

    def __init__(self, words: Words) -> None:
        self._words = words
        self.specials = {"unk": UNK, "bos": BOS, "eos": EOS}

    def __len__(self) -> int:
        return len(self._words)

    def encode(self, tokens: Sequence[str]) -> list[int]:
        """Ids of `tokens`, 0 for what is unknown."""
        ids, _ = self._words.encode_tokens([tokens])
        return [int(number) for number in ids]

    def decode(self, ids: Iterable[int]) -> list[str]:
        """Tokens of `ids`, specials as they are spelled."""
        return [self._words.string(number).decode("utf-8", "replace") for number in ids]

    def spellings(self) -> frozenset[str]:
        """What text cannot become though it is spelled so."""
        reserved = SPECIALS[1:] if self._words.unk_as_word else SPECIALS
        return frozenset(special.decode() for special in reserved)


class NgramEncoder(Encoder):
    """What an n-gram model says about records.

    Args:
        model: the n-grams.
        no_unk: `<unk>` is never proposed.
    """

    def __init__(self, model: Model, *, no_unk: bool = False) -> None:
        made = model.metadata
        batching: dict[str, Any] = {"sampling": "records"}
        if made.get("tokens"):
            batching["unknown_share"] = {"tokens": made["unknown"] / made["tokens"]}
        description = Description("ngram", "lm", {}, {}, batching, {})
        super().__init__(description, vocabularies={"tokens": NgramSymbols(model.words)})
        self._model = model
        self._no_unk = no_unk

    @classmethod
    def open_ngrams(cls, path: str, *, no_unk: bool = False) -> NgramEncoder:
        """Open a model; torch is not needed for that."""
        return cls(ngrams.load(path), no_unk=no_unk)

    def load(self, device: torch.device) -> Any:
        """The model as the searches see it."""
        from seqtools.models.ngram import NgramLm

        return NgramLm(self._model)

    @property
    def banned(self) -> list[int]:
        """Ids that are never proposed."""
        return [UNK, BOS] if self._no_unk else [BOS]
