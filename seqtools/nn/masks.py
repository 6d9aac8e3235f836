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
