"""Forced decoding: what a model says of sequences that are given, and of the next token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from seqtools.decoding.beam import top
from seqtools.decoding.greedy import generate
from seqtools.decoding.hypothesis import Array, Constraints, Prompts, pad
from seqtools.errors import RecordError
from seqtools.models.protocols import IGNORED, Scorer, Stepper, TensorBatch


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


def attend(
    stepper: Stepper, prompts: Prompts, targets: Sequence[Sequence[int]]
) -> list[Array | None]:
    """The attention while given targets are produced, step by step.

    Args:
        stepper: the model.
        prompts: B records.
        targets: what each step produces, the end included; none of them empty.

    Returns:
        (L, H, T, S) for each record, or None where the model has no attention.
    """
    wanted, _ = pad(targets, prompts.prefix.device)
    step = 0

    def choose(logprobs: torch.Tensor, rows: Array) -> torch.Tensor:
        nonlocal step
        step += 1
        return wanted[torch.from_numpy(rows).to(wanted.device), step - 1]

    constraints = Constraints(eos=None, max_lengths=[len(target) for target in targets])
    made = generate(stepper, prompts, constraints, choose, attention=True)
    return [hypothesis.attention for hypothesis in made]


@torch.inference_mode()
def next_tokens(
    stepper: Stepper, prompts: Prompts, count: int, *, banned: Sequence[int] = ()
) -> list[list[tuple[int, float]]]:
    """The `count` likeliest next tokens after each prompt.

    Returns:
        For each record pairs of id and log P, the likeliest first, of equals the lowest id; fewer
        where fewer are possible. Nothing is renormalised for what is banned.

    Raises:
        RecordError: the model gives no finite log-probability to any token.
    """
    last, state = prompts.begin(stepper)
    logprobs, _, _ = stepper.step(last, state)
    values, ids = top(logprobs, count + len(banned))
    allowed = np.isfinite(values) & ~np.isin(ids, banned)
    return [
        list(zip(row_ids[kept].tolist(), row[kept].tolist(), strict=True))[:count]
        for row, row_ids, kept in zip(values, ids, allowed, strict=True)
    ]
