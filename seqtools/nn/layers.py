"""Dropout and embedding: torch's definitions, made of operations that are quick on CPU too."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Dropout(nn.Module):
    """Zero each element with probability `p` in training and scale the rest by 1 / (1 - p).

    Srivastava et al. 2014, inverted. The mask comes from uniform numbers of torch's generator of
    the input's device, which on CPU takes a fifth of the time of Bernoulli ones.
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        if not 0.0 <= p < 1.0:
            raise ValueError(f"dropout must be at least 0 and below 1, got {p}")
        self.p = p

    def forward(self, inputs: Tensor) -> Tensor:
        """Give `inputs` (any shape) with elements dropped; as they are outside training."""
        if not self.training or self.p == 0.0:
            return inputs
        # bfloat16 has 256 uniform numbers, too few for the share to be right.
        wide = torch.promote_types(inputs.dtype, torch.float32)
        keep = inputs.new_empty(inputs.shape, dtype=wide).uniform_() >= self.p
        return inputs * keep.to(inputs.dtype).div_(1.0 - self.p)

    def extra_repr(self) -> str:
        """Show the probability."""
        return f"p={self.p}"


class Embedding(nn.Embedding):
    """A table of vectors, (V, E); ids of any shape give vectors of that shape and E."""

    def forward(self, ids: Tensor) -> Tensor:
        """Look `ids` up; by index_select, whose gradient is quicker on CPU than torch's own."""
        return self.weight.index_select(0, ids.reshape(-1)).view(*ids.shape, self.weight.shape[1])


class StackedLinear(nn.Linear):
    """`parts` linear layers of one input as one product; their outputs stand side by side."""

    def __init__(self, inputs: int, outputs: int, parts: int, *, bias: bool = True) -> None:
        super().__init__(inputs, outputs * parts, bias=bias)
        self.parts = parts
