"""Masked tokens predicted from both sides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from seqtools.decoding.attended import within_texts
from seqtools.decoding.extensions import top
from seqtools.decoding.hypothesis import Weights, pad, refuse_hopeless
from seqtools.models.protocols import Fills, TensorBatch


@dataclass(frozen=True)
class Filled:
    """What is likely to stand in the gaps of one record.

    Attributes:
        candidates: for each gap, pairs of id and log P, the likeliest first, of equals the lowest
            id; fewer than asked for where fewer are possible.
        attention: "encoder" (L, H, T, T); None if not collected, or the model has none.
    """

    candidates: list[list[tuple[int, float]]]
    attention: Weights | None = None


@torch.inference_mode()
def fill(
    filler: Fills,
    inputs: Sequence[Sequence[int]],
    gaps: Sequence[Sequence[int]],
    count: int,
    *,
    segments: Sequence[Sequence[int]] | None = None,
    banned: Sequence[int] = (),
    attention: bool = False,
    device: torch.device | str = "cpu",
) -> list[Filled]:  # as many arguments as the model and the question have parts
    """Give the `count` likeliest tokens of each gap, every gap seeing the others as gaps.

    Args:
        filler: the model.
        inputs: B rows of ids, with the mask's id in the gaps.
        gaps: the places of each row's gaps.
        count: how many tokens.
        segments: 0 or 1 for each input; None for 0.
        banned: ids that are never proposed; nothing is renormalised for them.
        attention: collect it.
        device: where the model is.

    Raises:
        RecordError: the model gives no finite log-probability to any token.
    """
    ids, lengths = pad(inputs, device)
    batch = TensorBatch(ids, ids, lengths)
    if segments is not None:
        batch.segments = pad(segments, device)[0]
    places = [row * ids.shape[1] + gap for row, own in enumerate(gaps) for gap in own]
    flat = torch.tensor(places, dtype=torch.long, device=device)
    logprobs, weights = filler.fill_logprobs(batch, flat, attention=attention)
    pairs = likeliest(logprobs, count, banned)
    attended = within_texts(weights, [len(row) for row in inputs])
    result = []
    for own, one in zip(gaps, attended, strict=True):
        result.append(Filled(pairs[: len(own)], one))
        pairs = pairs[len(own) :]
    return result


def likeliest(
    logprobs: torch.Tensor, count: int, banned: Sequence[int] = ()
) -> list[list[tuple[int, float]]]:
    """The `count` likeliest ids of each row (N, V) with their log P, without those banned.

    Raises:
        RecordError: a row has no finite log-probability.
    """
    if not len(logprobs):
        return []
    refuse_hopeless(logprobs.amax(dim=1))
    values, ids = top(logprobs, count + len(banned))
    allowed = np.isfinite(values) & ~np.isin(ids, banned)
    return [
        list(zip(row_ids[kept].tolist(), row[kept].tolist(), strict=True))[:count]
        for row, row_ids, kept in zip(values, ids, allowed, strict=True)
    ]
