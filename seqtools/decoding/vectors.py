"""Vectors of texts: the top layer's states, one for each position or pooled into one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from seqtools.decoding.attended import within_texts
from seqtools.decoding.hypothesis import Array, Weights, pad
from seqtools.errors import RecordError
from seqtools.models.protocols import Encodes, TensorBatch

POOLS = ("mean", "cls", "last", "none")


@dataclass(frozen=True)
class Vectors:
    """What one record became.

    Attributes:
        values: (E,) float32, or (places, E) where nothing is pooled.
        attention: weights by kind, (L, H, T, T): "encoder", or "decoder" of an lm; None if not
            collected, or the model has none.
    """

    values: Array
    attention: Weights | None = None


@torch.inference_mode()
def vectors(
    encoder: Encodes,
    inputs: Sequence[Sequence[int]],
    *,
    pool: str = "mean",
    places: Sequence[Sequence[int]] | None = None,
    segments: Sequence[Sequence[int]] | None = None,
    attention: bool = False,
    device: torch.device | str = "cpu",
) -> list[Vectors]:
    """Give the vectors of B rows.

    Args:
        encoder: the model.
        inputs: rows of ids.
        pool: `mean` over the places, `last` of them, `cls`: the first input, or `none`: all places.
        places: which inputs of each row count; None for all.
        segments: 0 or 1 for each input; None for 0.
        attention: collect it.
        device: where the model is.

    Raises:
        RecordError: a row is empty, or has no place to take a vector from.
        ValueError: there is no such pool.
    """
    if pool not in POOLS:
        raise ValueError(f"pool must be one of {', '.join(POOLS)}, got {pool}")
    if not all(inputs):
        raise RecordError("there is nothing to make a vector of")
    ids, lengths = pad(inputs, device)
    batch = TensorBatch(ids, ids, lengths)
    if segments is not None:
        batch.segments = pad(segments, device)[0]
    hidden, weights = encoder.encode(batch, attention=attention)
    states = hidden.float().cpu().numpy()
    attended = within_texts(weights, [len(row) for row in inputs])
    result = []
    for row, (given, one) in enumerate(zip(inputs, attended, strict=True)):
        counted = range(len(given)) if places is None else places[row]
        found = states[row, [0] if pool == "cls" else list(counted)]
        if pool != "none":
            if not len(found):
                raise RecordError("there is no token to make a vector of")
            found = found.mean(axis=0) if pool == "mean" else found[-1]
        result.append(Vectors(found, one))
    return result
