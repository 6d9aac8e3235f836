"""Output layer and cross entropy in one step, a chunk of rows at a time.

With a vocabulary of ten thousand, the logits of one batch are the largest tensor of a training
step, and they are read and written several times. Here they exist for a few hundred rows only, and
the gradient is made from them at once, in the forward pass.

Shapes: N positions (real ones only: select them first), H hidden size, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

# Logits alive at once; on CPU the fastest of 2^19 to 2^24.
_CHUNK_ELEMENTS = {"cpu": 1 << 22, "cuda": 1 << 26}


class CrossEntropy(NamedTuple):
    """Sums over N positions, in nats, 0-dim: `objective` has a gradient, `nll` has none."""

    objective: Tensor
    nll: Tensor


def linear_cross_entropy(
    hidden: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    targets: Tensor,
    *,
    label_smoothing: float = 0.0,
) -> CrossEntropy:
    """Sum the cross entropy of softmax(`hidden` @ `weight`.T + `bias`) against `targets`.

    `hidden` (N, H), `weight` (V, H), `bias` (V,) or None, `targets` (N,) int64, each in 0..V-1.
    `label_smoothing` e is torch's (Szegedy et al. 2016, section 7): the target distribution is
    (1 - e) on the target plus e / V everywhere; `nll` is always without it.
    Under autocast, the products are in its type and the sums in float32.

    Raises ValueError where sizes do not match.
    """
    _check(hidden, weight, bias, targets)
    dtype = _product_dtype(hidden)
    inputs = (hidden, weight) if bias is None else (hidden, weight, bias)
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in inputs):
        sums = _LinearCrossEntropy.apply(hidden, weight, bias, targets, label_smoothing, dtype)  # type: ignore[no-untyped-call]
    else:
        none = (False, False, False)
        sums = _sums(hidden, weight, bias, targets, label_smoothing, dtype, none)[:2]
    return CrossEntropy(*sums)


@torch.no_grad()
def linear_token_logprobs(
    hidden: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor
) -> Tensor:
    """Give log P(target) of each position, (N,) float32; arguments as `linear_cross_entropy`."""
    _check(hidden, weight, bias, targets)
    dtype = _product_dtype(hidden)
    result = hidden.new_empty(len(targets), dtype=torch.promote_types(hidden.dtype, torch.float32))
    with torch.autocast(hidden.device.type, enabled=False):
        for rows, logits in _chunks(hidden, weight, bias, dtype):
            target = logits.gather(1, targets[rows, None]).squeeze(1)
            result[rows] = target - logits.logsumexp(1)
    return result.float()


def _check(hidden: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor) -> None:
    if hidden.dim() != 2 or weight.dim() != 2 or hidden.shape[1] != weight.shape[1]:
        shapes = f"{tuple(hidden.shape)} and {tuple(weight.shape)}"
        raise ValueError(f"hidden (N, H) and weight (V, H) must agree in H, got {shapes}")
    if bias is not None and bias.shape != weight.shape[:1]:
        raise ValueError(f"bias must be ({weight.shape[0]},), got {tuple(bias.shape)}")
    if targets.shape != hidden.shape[:1]:
        raise ValueError(f"targets must be ({hidden.shape[0]},), got {tuple(targets.shape)}")


def _product_dtype(hidden: Tensor) -> torch.dtype:
    device = hidden.device.type
    if torch.is_autocast_enabled(device):
        return torch.get_autocast_dtype(device)
    return hidden.dtype


def _chunks(
    hidden: Tensor, weight: Tensor, bias: Tensor | None, dtype: torch.dtype
) -> Iterator[tuple[slice, Tensor]]:
    """Yield slices of rows with their logits (n, V), float32 or wider, to be overwritten freely."""
    size = max(16, _CHUNK_ELEMENTS.get(hidden.device.type, 1 << 22) // weight.shape[0])
    hidden, weight = hidden.to(dtype), weight.to(dtype)
    wide = torch.promote_types(dtype, torch.float32)
    for first in range(0, len(hidden), size):
        rows = slice(first, first + size)
        logits = (hidden[rows] @ weight.T).to(wide)
        yield rows, logits if bias is None else logits.add_(bias)


@torch.no_grad()
def _sums(
    hidden: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    targets: Tensor,
    label_smoothing: float,
    dtype: torch.dtype,
    needed: tuple[bool, ...],
) -> tuple[Tensor, Tensor, list[Tensor | None]]:
    """Sums of objective and nll, and the gradients asked for (of hidden, weight, bias).

    With logits l, target t and smoothing e: objective = logsumexp(l) - (1-e) l_t - e/V sum(l), and
    its gradient in l is softmax(l) - (1-e) onehot(t) - e/V. What has e/V needs no logits. The rest
    is nll + e l_t, where the nll of each position is taken from logits below their highest: no
    large sums are subtracted, and it is never negative.
    """
    wide = torch.promote_types(dtype, torch.float32)
    on_target = 1.0 - label_smoothing
    nll, target_logits = (hidden.new_zeros((), dtype=wide) for _ in range(2))
    d_hidden = torch.empty_like(hidden) if needed[0] else None
    d_weight = torch.zeros_like(weight) if needed[1] else None
    d_bias = torch.zeros_like(bias) if needed[2] and bias is not None else None
    gradients = [d_hidden, d_weight, d_bias]

    with torch.autocast(hidden.device.type, enabled=False):
        narrow_hidden, narrow_weight = hidden.to(dtype), weight.to(dtype)
        for rows, logits in _chunks(narrow_hidden, narrow_weight, bias, dtype):
            index = targets[rows, None]
            highest = logits.amax(1, keepdim=True)
            below = logits.sub_(highest).gather(1, index)
            target_logits += (below + highest).sum()
            partition = logits.exp_().sum(1, keepdim=True)
            nll += (partition.log() - below).sum()
            if not any(needed):
                continue
            d_logits = logits.div_(partition)
            d_logits.scatter_add_(1, index, d_logits.new_full(index.shape, -on_target))
            if d_bias is not None:
                d_bias += d_logits.sum(0)
            d_logits = d_logits.to(dtype)
            if d_hidden is not None:
                d_hidden[rows] = d_logits @ narrow_weight
            if d_weight is not None and d_weight.dtype == dtype:
                d_weight.addmm_(d_logits.T, narrow_hidden[rows])
            elif d_weight is not None:
                d_weight += d_logits.T @ narrow_hidden[rows]
        objective = nll.clone()
        if label_smoothing:
            uniform = _smooth(hidden, weight, bias, label_smoothing, gradients)
            objective += label_smoothing * target_logits - uniform
    return objective, nll, gradients


def _smooth(
    hidden: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    label_smoothing: float,
    gradients: list[Tensor | None],
) -> Tensor:
    """Give e/V times the sum of all logits, and take its gradient from `gradients` in place."""
    share = label_smoothing / weight.shape[0]
    weight_sum, hidden_sum = weight.sum(0), hidden.sum(0)
    d_hidden, d_weight, d_bias = gradients
    if d_hidden is not None:
        d_hidden -= share * weight_sum
    if d_weight is not None:
        d_weight -= share * hidden_sum
    if d_bias is not None:
        d_bias -= share * len(hidden)
    total = (hidden_sum * weight_sum).sum()
    return share * (total if bias is None else total + len(hidden) * bias.sum())


class _LinearCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(  # one argument for each input of the graph node
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        targets: Tensor,
        label_smoothing: float,
        dtype: torch.dtype,
    ) -> tuple[Tensor, Tensor]:
        objective, nll, gradients = _sums(
            hidden, weight, bias, targets, label_smoothing, dtype, ctx.needs_input_grad[:3]
        )
        ctx.save_for_backward(*gradients)
        ctx.mark_non_differentiable(nll)
        return objective, nll

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        scaled = [None if tensor is None else tensor * grad for tensor in ctx.saved_tensors]
        return (*scaled, None, None, None)
