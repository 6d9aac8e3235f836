"""chrF (Popović 2015) and chrF++ (Popović 2017), by sacrebleu."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sacrebleu.metrics.chrf import CHRF

from seqtools.evaluation.corpus import CorpusScore


class Chrf:
    """chrF2 of a corpus, in percent: character n-grams of orders 1 to 6, recall weighing double.

    Args:
        word_order: word n-grams that count as well; 2 makes it chrF++.
        lowercase: compare without case.
    """

    def __init__(self, *, word_order: int = 0, lowercase: bool = False) -> None:
        self._corpus = CorpusScore(CHRF(word_order=word_order, lowercase=lowercase))

    def add(self, hypothesis: str, references: Sequence[str]) -> None:
        """Count one hypothesis against one or more references; of these the best one counts."""
        self._corpus.add(hypothesis, references)

    def advice(self) -> str | None:
        """Nothing: chrF has no tokenization to get wrong."""
        return None

    def result(self) -> dict[str, Any]:
        """The score in percent and its signature; needs at least one segment."""
        return {
            "metric": "chrf",
            "score": self._corpus.score().score,
            "signature": self._corpus.signature(),
            "records": self._corpus.records,
        }
