"""Log-probabilities of given sequences under forced decoding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from seqtools.decoding.hypothesis import Array, pad
from seqtools.errors import RecordError
from seqtools.models.protocols import IGNORED, Scorer, TensorBatch


@dataclass(frozen=True)
class Score:
    """One sequence under the model.

    Attributes:
        token_logprobs: (T,) float32, log P of each target, the end included.
        logprob: their sum.
    """

    token_logprobs: Array
    logprob: float


@torch.inference_mode()
def score(
    scorer: Scorer,
    inputs: Sequence[Sequence[int]],
    targets: Sequence[Sequence[int]],
    sources: Sequence[Sequence[int]] | None = None,
    *,
    device: torch.device | str = "cpu",
) -> list[Score]:
    """Score each of B target sequences.

    Args:
        scorer: the model.
        inputs: what is fed, as long as its target: the start symbol and all but the last target.
        targets: what is predicted.
        sources: the source of each, for a model that has one.
        device: where the model is.

    Raises:
        RecordError: a log-probability is not finite.
        ValueError: an input is not as long as its target.
    """
    if [len(row) for row in inputs] != [len(row) for row in targets]:
        raise ValueError("each input must be as long as its target")
    fed, lengths = pad(inputs, device)
    wanted, _ = pad(targets, device)
    positions = torch.arange(wanted.shape[1], device=device)
    wanted = wanted.masked_fill(positions >= lengths[:, None], IGNORED)
    source, source_lengths = (None, None) if sources is None else pad(sources, device)
    values = scorer.token_logprobs(TensorBatch(fed, wanted, lengths, source, source_lengths))
    table = values.float().cpu().numpy()
    rows = [table[row, : len(target)] for row, target in enumerate(targets)]
    if not all(np.isfinite(row).all() for row in rows):
        raise RecordError("the model gives no finite log-probability to a token")
    return [Score(row, float(row.sum(dtype=np.float64))) for row in rows]
