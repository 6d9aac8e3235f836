"""Weights of a run worth keeping: the best ones, and those of several validations to average."""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
from torch import Tensor, nn

from seqtools.errors import ConfigError
from seqtools.lazy import unknown

AVERAGES = ("last", "best")


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

    def offer(self, loss: float, model: nn.Module, *, or_equal: bool = False) -> bool:
        """Keep the weights of `model` if `loss` is the lowest; say whether it is.

        With `or_equal`, it may be as high as the lowest so far.
        """
        better = loss < self.loss or (or_equal and loss == self.loss)
        if self._weights and not better:
            self.since += 1
            return False
        self.loss, self.since = loss, 0
        self._weights = _copy(model)
        return True

    @torch.no_grad()
    def restore(self, model: nn.Module) -> None:
        """Put the kept weights back into `model`; without any it stays as it is."""
        for name, parameter in model.named_parameters() if self._weights else ():
            parameter.copy_(self._weights[name])


class Average:
    """Keeps the weights of several validations, in the host's memory, for their mean.

    Polyak and Juditsky 1992; over checkpoints, as here, Vaswani et al. 2017, section 6.1.

    Args:
        kind: one of `AVERAGES`: the last ones, or those with the lowest losses, of equal ones the
            first.
        keep: how many, at least 2.

    Raises ConfigError for an unknown kind or nothing to average.
    """

    def __init__(self, kind: str, keep: int) -> None:
        if kind not in AVERAGES:
            raise ConfigError(unknown(kind, AVERAGES, "average"))
        if keep < 2:
            raise ConfigError(f"an average needs at least 2 to keep, got {keep}")
        self._kind, self._keep = kind, keep
        self._kept: list[tuple[float, dict[str, Tensor]]] = []

    def __len__(self) -> int:
        return len(self._kept)

    def offer(self, loss: float, model: nn.Module) -> None:
        """Keep the weights of `model`, and forget others for them, if they are wanted."""
        if len(self._kept) == self._keep:
            losses = [kept for kept, _ in self._kept]
            highest = len(losses) - 1 - losses[::-1].index(max(losses))
            if self._kind == "best" and not loss < losses[highest]:
                return
            del self._kept[highest if self._kind == "best" else 0]
        self._kept.append((loss, _copy(model, "cpu")))

    @torch.no_grad()
    def put(self, model: nn.Module) -> None:
        """Give `model` the mean of the weights kept."""
        for name, parameter in model.named_parameters():
            parameter.copy_(_mean(weights[name] for _, weights in self._kept))


def _copy(model: nn.Module, device: str | None = None) -> dict[str, Tensor]:
    parameters = model.named_parameters()
    return {name: p.detach().to(device or p.device, copy=True) for name, p in parameters}


def _mean(tensors: Iterable[Tensor]) -> Tensor:
    stacked = torch.stack(list(tensors))
    return stacked.double().mean(0)
