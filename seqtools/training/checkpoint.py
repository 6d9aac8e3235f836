"""The best weights seen so far, kept beside the ones that are trained on."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


class Best:
    """Keeps a copy of the weights with the lowest validation loss; of equal ones the first.

    Attributes:
        loss: the lowest loss so far, infinite before the first.
        since: how many losses have been offered since without being lower.
    """

    def __init__(self) -> None:
        self.loss = math.inf
        self.since = 0
        self._weights: dict[str, Tensor] = {}

    @torch.no_grad()
    def offer(self, loss: float, model: nn.Module) -> bool:
        """Keep the weights of `model` if `loss` is the lowest; say whether it is."""
        if self._weights and not loss < self.loss:
            self.since += 1
            return False
        self.loss, self.since = loss, 0
        self._weights = {name: value.clone() for name, value in model.state_dict().items()}
        return True

    def restore(self, model: nn.Module) -> None:
        """Put the kept weights back into `model`; without any it stays as it is."""
        if self._weights:
            model.load_state_dict(self._weights)
