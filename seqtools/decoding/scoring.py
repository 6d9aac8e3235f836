"""Forced decoding: what a model says of sequences that are given, and of the next token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from seqtools.decoding.constraints import Constraints
from seqtools.decoding.fill import likeliest
from seqtools.decoding.greedy import generate
from seqtools.decoding.hypothesis import Array, Prompts, Weights, pad
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
    """Score each of B target sequences; one without targets has the logprob 0.

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
    _refuse_uneven(inputs, targets)
    result = [Score(np.zeros(0, dtype=np.float32), 0.0)] * len(targets)
    scored = [row for row, target in enumerate(targets) if target]
    if not scored:
        return result
    fed, lengths = pad([inputs[row] for row in scored], device)
    wanted, _ = pad([targets[row] for row in scored], device)
    positions = torch.arange(wanted.shape[1], device=device)
    wanted = wanted.masked_fill(positions >= lengths[:, None], IGNORED)
    batch = TensorBatch(fed, wanted, lengths)
    if sources is not None:
        batch.source, batch.source_lengths = pad([sources[row] for row in scored], device)
    table = scorer.token_logprobs(batch).float().cpu().numpy()
    for row, values in zip(scored, table, strict=True):
        values = values[: len(targets[row])]
        if not np.isfinite(values).all():
            raise RecordError("the model gives no finite log-probability to a token")
        result[row] = Score(values, float(values.sum(dtype=np.float64)))
    return result


def score_windows(
    scorer: Scorer,
    inputs: Sequence[Sequence[int]],
    targets: Sequence[Sequence[int]],
    sources: Sequence[Sequence[int]] | None = None,
    *,
    window: int,
    stride: int,
    device: torch.device | str = "cpu",
    batch_size: int = 16,
) -> list[Score]:  # one more than seven: the arguments of `score`, and how to cut
    """Score sequences of any length with a model that takes in `window` tokens at most.

    Windows begin at every `stride`-th input. Each target is scored once, in the first window that
    reaches it: with all before it where that is less than `window`, else with `window - stride`
    inputs or more before its own.

    Args:
        scorer: the model.
        inputs: what is fed, as long as its target.
        targets: what is predicted.
        sources: the source of each, for a model that has one; whole in every window.
        window: inputs at a time.
        stride: from 1 to `window`.
        device: where the model is.
        batch_size: windows at a time.

    Raises:
        RecordError: a log-probability is not finite.
        ValueError: an input is not as long as its target, or a number is out of its range.
    """
    if not 1 <= stride <= window:
        raise ValueError(f"stride must be from 1 to the window of {window}, got {stride}")
    if batch_size < 1:
        raise ValueError(f"batch_size must be at least 1, got {batch_size}")
    _refuse_uneven(inputs, targets)
    cuts = [
        (row, first, first + window)
        for row, target in enumerate(targets)
        for first in range(0, max(len(target) - window + stride, 1), stride)
    ]
    parts: list[list[Array]] = [[] for _ in targets]
    for start in range(0, len(cuts), batch_size):
        some = cuts[start : start + batch_size]
        found = score(
            scorer,
            [inputs[row][first:end] for row, first, end in some],
            [targets[row][first:end] for row, first, end in some],
            None if sources is None else [sources[row] for row, _, _ in some],
            device=device,
        )
        for (row, first, _), one in zip(some, found, strict=True):
            known = window - stride if first else 0
            parts[row].append(one.token_logprobs[known:])
    values = [np.concatenate(part) for part in parts]
    return [Score(one, float(one.sum(dtype=np.float64))) for one in values]


def _refuse_uneven(inputs: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> None:
    if [len(row) for row in inputs] != [len(row) for row in targets]:
        raise ValueError("each input must be as long as its target")


def attend(
    stepper: Stepper, prompts: Prompts, targets: Sequence[Sequence[int]]
) -> list[Weights | None]:
    """The attention while given targets are produced, step by step.

    Args:
        stepper: the model.
        prompts: B records.
        targets: what each step produces, the end included.

    Returns:
        Weights by kind for each record, as in `Hypothesis`; None where the model has none or T
        is 0.
    """
    wanted, _ = pad([[*target, 0] for target in targets], prompts.prefix.device)
    step = 0

    def choose(logprobs: torch.Tensor, rows: Array) -> torch.Tensor:
        nonlocal step
        step += 1
        return wanted[torch.from_numpy(rows).to(wanted.device), step - 1]

    # where there is nothing to produce one step is taken all the same, and forgotten
    constraints = Constraints(eos=None, max_lengths=[len(target) or 1 for target in targets])
    made = generate(stepper, prompts, constraints, choose, attention=True)
    return [
        hypothesis.attention if target else None
        for hypothesis, target in zip(made, targets, strict=True)
    ]


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
    return likeliest(logprobs, count, banned)
