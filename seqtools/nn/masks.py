"""Masks over padded positions: boolean, True for a real token. Made here and nowhere else."""

from __future__ import annotations

import torch
from torch import Tensor


def length_mask(lengths: Tensor, size: int) -> Tensor:
    """Mark the first `lengths[i]` of `size` positions of each row: (B,) -> (B, size) bool."""
    return torch.arange(size, device=lengths.device) < lengths[:, None]


def reversal(lengths: Tensor, size: int) -> Tensor:
    """Give positions (B, size) that read each row's real tokens backwards and padding as it lies.

    Applied twice they give the row again, so the same positions undo the reversal.
    """
    positions = torch.arange(size, device=lengths.device).expand(len(lengths), size)
    return torch.where(positions < lengths[:, None], lengths[:, None] - 1 - positions, positions)


def causal_bias(steps: int, *, device: torch.device | None = None) -> Tensor:
    """Give what keeps each of `steps` positions from those behind it: (T, T), 0 or -inf.

    >>> causal_bias(2)
    tensor([[0., -inf],
            [0., 0.]])
    """
    return torch.full((steps, steps), -torch.inf, device=device).triu_(1)


def padding_bias(mask: Tensor) -> Tensor:
    """Give what keeps all queries from padding: (B, S) bool -> (B, 1, 1, S), 0 or -inf.

    A row without a real position would have no softmax; it is left open, and what it attends to
    means nothing.
    """
    closed = ~mask & mask.any(1, keepdim=True)
    bias = torch.zeros(mask.shape, device=mask.device)
    return bias.masked_fill_(closed, -torch.inf)[:, None, None]
