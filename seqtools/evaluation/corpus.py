"""Scores of a corpus by sacrebleu's metrics, taken in one segment at a time.

BLEU and chrF of a corpus are functions of counts summed over its segments (Papineni et al. 2002,
section 2.2.1; Popović 2017, section 2), so nothing but the sums is kept, whatever the corpus' size.
The score is the very number `sacrebleu` gives for the same texts; a test holds them equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

H_contra = TypeVar("H_contra", contravariant=True)
R_contra = TypeVar("R_contra", contravariant=True)


class Metric(Protocol[H_contra, R_contra]):
    """A score of hypotheses against references, fed pair by pair; of texts both are strings."""

    def add(self, hypothesis: H_contra, references: Sequence[R_contra]) -> None:
        """Count one hypothesis against one or more references; RecordError: they do not fit."""

    def advice(self) -> str | None:
        """What the user may have overlooked, if anything."""

    def result(self) -> dict[str, Any]:
        """The score as a record; needs at least one pair."""


class CorpusScore:
    """Sums of a sacrebleu metric's statistics.

    Args:
        metric: a `sacrebleu.metrics` object.
    """

    def __init__(self, metric: Any) -> None:
        self._metric = metric
        self._sums: list[int] = []
        self._reference_counts: set[int] = set()
        self.records = 0

    def add(self, hypothesis: str, references: Sequence[str]) -> None:
        """Count one segment against one or more references."""
        # One segment, so each reference is a document of one line.
        documents = [[reference] for reference in references]
        (counts,) = self._metric._extract_corpus_statistics([hypothesis], documents)
        sums = self._sums or [0] * len(counts)
        self._sums = [total + count for total, count in zip(sums, counts, strict=True)]
        self._reference_counts.add(len(references))
        self.records += 1

    def score(self) -> Any:
        """sacrebleu's score object; needs at least one segment."""
        return self._metric._compute_score_from_stats(list(self._sums))

    def signature(self) -> str:
        """How the score was made, in sacrebleu's notation, for papers and comparisons."""
        counts = self._reference_counts
        self._metric.num_refs = next(iter(counts)) if len(counts) == 1 else -1  # -1: they vary
        return str(self._metric.get_signature())
