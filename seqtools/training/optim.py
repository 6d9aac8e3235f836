"""Optimisers as small classes over tensors: AdamW, SGD with momentum, and clipping by global norm.

They give the same weights as their namesakes in `torch.optim`, which is not used because making any
of its optimisers loads torch's compiler, a second of start-up for nothing. Weight decay leaves out
biases, norms and other parameters of fewer than two dimensions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Protocol

import torch
from torch import Tensor
from torch.nn import Parameter

_FUSED = hasattr(torch, "_fused_adamw_")


class Optimizer(Protocol):
    """What the training loop asks of an optimiser."""

    parameters: list[Parameter]

    def step(self, lr: float) -> None:
        """Change the parameters along their gradients; those without a gradient stay."""
        ...


class AdamW:
    """Adam with decoupled weight decay (Loshchilov and Hutter 2019, algorithm 2).

    The decay of a step is lr * weight_decay, as in torch; epsilon is added to the root.

    Attributes:
        steps: how often each parameter was changed, 0-dim float32.
        means: running mean of each gradient.
        squares: running mean of each gradient squared.
    """

    def __init__(
        self,
        parameters: Iterable[Parameter],
        *,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.01,
        fused: bool = _FUSED,
    ) -> None:
        self.parameters = list(parameters)
        self.steps = [torch.zeros((), device=p.device) for p in self.parameters]
        self.means = [torch.zeros_like(p) for p in self.parameters]
        self.squares = [torch.zeros_like(p) for p in self.parameters]
        self._betas = betas
        self._eps = eps
        self._weight_decay = weight_decay
        self._update = _fused_update if fused else _plain_update

    @torch.no_grad()
    def step(self, lr: float) -> None:
        """Change the parameters along their gradients; those without a gradient stay."""
        for decays in (True, False):
            chosen = _with_gradient(self.parameters, decays=decays)
            if not chosen:
                continue
            steps = [self.steps[i] for i in chosen]
            torch._foreach_add_(steps, 1)
            self._update(
                [self.parameters[i] for i in chosen],
                [_gradient(self.parameters[i]) for i in chosen],
                [self.means[i] for i in chosen],
                [self.squares[i] for i in chosen],
                steps,
                lr=lr,
                betas=self._betas,
                weight_decay=self._weight_decay if decays else 0.0,
                eps=self._eps,
            )


class SGD:
    """Gradient descent with momentum; weight decay is added to the gradient, as in torch.

    Attributes:
        velocities: m * velocity + gradient for each parameter; empty without momentum.
    """

    def __init__(
        self, parameters: Iterable[Parameter], *, momentum: float = 0.0, weight_decay: float = 0.0
    ) -> None:
        self.parameters = list(parameters)
        self.velocities = [torch.zeros_like(p) for p in self.parameters] if momentum else []
        self._momentum = momentum
        self._weight_decay = weight_decay

    @torch.no_grad()
    def step(self, lr: float) -> None:
        """Change the parameters along their gradients; those without a gradient stay."""
        for decays in (True, False):
            chosen = _with_gradient(self.parameters, decays=decays)
            if not chosen:
                continue
            parameters: list[Tensor] = [self.parameters[i] for i in chosen]
            directions = [_gradient(p) for p in parameters]
            if decays and self._weight_decay:
                directions = list(
                    torch._foreach_add(directions, parameters, alpha=self._weight_decay)
                )
            if self.velocities:
                velocities = [self.velocities[i] for i in chosen]
                torch._foreach_mul_(velocities, self._momentum)
                torch._foreach_add_(velocities, directions)
                directions = velocities
            torch._foreach_add_(parameters, directions, alpha=-lr)


@torch.no_grad()
def clip_gradients(
    parameters: Iterable[Parameter], max_norm: float | None, *, scale: float = 1.0
) -> Tensor:
    """Scale all gradients so that their global norm is at most `max_norm`, None for no limit.

    Before that they are multiplied by `scale`, which makes means of sums. Nothing here waits for
    the device: the factor stays a tensor (Pascanu et al. 2013, algorithm 1).

    Returns:
        The norm before clipping, 0-dim.
    """
    gradients = [p.grad for p in parameters if p.grad is not None]
    if not gradients:
        return torch.zeros(())
    norms = torch._foreach_norm(gradients)
    norm: Tensor = torch.linalg.vector_norm(torch.stack(norms)) * scale
    if max_norm is not None:
        factor = scale * torch.clamp(max_norm / (norm + 1e-6), max=1.0)
        torch._foreach_mul_(gradients, factor)
    elif scale != 1.0:
        torch._foreach_mul_(gradients, scale)
    return norm


def _with_gradient(parameters: Sequence[Parameter], *, decays: bool) -> list[int]:
    return [i for i, p in enumerate(parameters) if p.grad is not None and (p.dim() >= 2) is decays]


def _gradient(parameter: Tensor) -> Tensor:
    assert parameter.grad is not None
    return parameter.grad


# Both updates take the five lists and the constants of the formula, one argument each.
def _fused_update(
    parameters: list[Tensor],
    gradients: list[Tensor],
    means: list[Tensor],
    squares: list[Tensor],
    steps: list[Tensor],
    *,
    lr: float,
    betas: tuple[float, float],
    weight_decay: float,
    eps: float,
) -> None:
    torch._fused_adamw_(
        parameters,
        gradients,
        means,
        squares,
        [],
        steps,
        lr=lr,
        beta1=betas[0],
        beta2=betas[1],
        weight_decay=weight_decay,
        eps=eps,
        amsgrad=False,
        maximize=False,
    )


def _plain_update(
    parameters: list[Tensor],
    gradients: list[Tensor],
    means: list[Tensor],
    squares: list[Tensor],
    steps: list[Tensor],
    *,
    lr: float,
    betas: tuple[float, float],
    weight_decay: float,
    eps: float,
) -> None:
    counts = [step.item() for step in steps]
    torch._foreach_mul_(parameters, 1 - lr * weight_decay)
    torch._foreach_lerp_(means, gradients, 1 - betas[0])
    torch._foreach_mul_(squares, betas[1])
    torch._foreach_addcmul_(squares, gradients, gradients, 1 - betas[1])
    roots = torch._foreach_sqrt(squares)
    torch._foreach_div_(roots, [math.sqrt(1 - betas[1] ** n) for n in counts])
    torch._foreach_add_(roots, eps)
    torch._foreach_addcdiv_(parameters, means, roots, [-lr / (1 - betas[0] ** n) for n in counts])
