"""BLEU (Papineni et al. 2002), by sacrebleu."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sacrebleu.metrics.bleu import BLEU

from seqtools.evaluation.corpus import CorpusScore

# sacrebleu warns from this many hypotheses on that end in a full stop standing by itself.
_TOKENIZED_FROM = 100


class Bleu:
    """BLEU of a corpus, in percent, with up to four-gram precisions and exponential smoothing.

    Args:
        tokenize: sacrebleu's tokenizer: `13a` (mteval's, the default for most languages), `zh`
            (Chinese characters apart, the rest as 13a), `char`, `intl`, `none`.
        lowercase: compare without case.
    """

    def __init__(self, *, tokenize: str = "13a", lowercase: bool = False) -> None:
        self._corpus = CorpusScore(BLEU(tokenize=tokenize, lowercase=lowercase))
        self._looks_tokenized = 0
        self._tokenizes = tokenize != "none"

    def add(self, hypothesis: str, references: Sequence[str]) -> None:
        """Count one hypothesis against one or more references."""
        self._looks_tokenized += hypothesis.endswith(" .")
        self._corpus.add(hypothesis, references)

    def advice(self) -> str | None:
        """What the user may have overlooked, if anything."""
        if self._tokenizes and self._looks_tokenized >= _TOKENIZED_FROM:
            return (
                f'{self._looks_tokenized} hypotheses end in " ." and look tokenized; '
                "BLEU compares between systems on detokenized text only"
            )
        return None

    def result(self) -> dict[str, Any]:
        """The score with what it is made of; needs at least one segment.

        `score` and `precisions` (orders 1 to 4) are percentages, lengths are tokens.
        """
        score = self._corpus.score()
        return {
            "metric": "bleu",
            "score": score.score,
            "signature": self._corpus.signature(),
            "precisions": score.precisions,
            "brevity_penalty": score.bp,
            "hypothesis_length": score.sys_len,
            "reference_length": score.ref_len,
            "records": self._corpus.records,
        }
