"""A GRU that attends before each step, over a whole target at once, with its gradient by hand.

It does what `BahdanauDecoder` does step by step, and exists for speed: autograd would keep and add
up, at each step, what here is one product over all steps after the loop, in buffers made once.

Shapes: B rows, T steps, S source positions, E embedding size, H hidden size, K size of a source
vector, A size of the attention's layer. What is kept for all steps has time first.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from seqtools.nn.attention import (
    AdditiveScore,
    Attention,
    DotScore,
    GeneralScore,
    Memory,
    TanhSumScore,
)
from seqtools.nn.recurrent import cell_weights


def can_scan(cell: nn.RNNBase, attention: Attention) -> bool:
    """Say whether `scan` knows the gradient of this cell and this attention."""
    known = AdditiveScore | TanhSumScore | DotScore | GeneralScore
    plain = type(attention) is Attention and isinstance(attention.score, known)
    return isinstance(cell, nn.GRU) and plain


def scan(
    cell: nn.RNNBase, attention: Attention, embedded: Tensor, memory: Memory, state: Tensor
) -> tuple[Tensor, Tensor]:
    """Give states (B, T, H) and contexts (B, T, K) for inputs `embedded` (B, T, E).

    c_t attends with s_{t-1}; s_t = cell([embedded_t; c_t], s_{t-1}); `state` (B, H) is s_0.
    """
    size = embedded.shape[2]
    input_weight, state_weight, input_bias, state_bias = cell_weights(cell)
    gates = F.linear(embedded, input_weight[:, :size], input_bias)
    score, energy = attention.score, None
    if isinstance(score, AdditiveScore | TanhSumScore):
        # The query is projected together with the gates; doubled, as `tanh_scores` wants it.
        state_weight = torch.cat((state_weight, 2.0 * score.query.weight))
        state_bias = F.pad(state_bias, (0, memory.keys.shape[2]))
        ones = memory.keys.new_ones(memory.keys.shape[2])
        energy = score.energy if isinstance(score, AdditiveScore) else ones
    dtype, device = gates.dtype, gates.device.type
    if torch.is_autocast_enabled(device):
        dtype = torch.get_autocast_dtype(device)
    with torch.autocast(device, enabled=False):
        wide = torch.promote_types(dtype, torch.float32)
        inputs = (gates, state, memory.values, memory.keys)
        states, contexts = _Scan.apply(  # type: ignore[no-untyped-call]
            *(part.to(wide) for part in inputs), memory.mask,
            input_weight[:, size:], state_weight, state_bias, energy, dtype,
        )  # fmt: skip
    return states.transpose(0, 1), contexts.transpose(0, 1)


class _Scan(torch.autograd.Function):
    @staticmethod
    def forward(  # one argument for each input of the graph node
        ctx: Any,
        gates: Tensor,  # (B, T, 3H), the part of the embeddings
        state: Tensor,  # (B, H)
        values: Tensor,  # (B, S, K)
        keys: Tensor,  # (B, S, A), or (B, S, H) for products of query and key
        mask: Tensor,  # (B, S)
        context_weight: Tensor,  # (3H, K)
        state_weight: Tensor,  # (3H + A, H), to the gates and the query, or (3H, H)
        state_bias: Tensor,  # (3H + A,)
        energy: Tensor | None,  # (A,)
        dtype: torch.dtype,  # of the factors of products with weights
    ) -> tuple[Tensor, Tensor]:
        rows, steps, triple = gates.shape
        to_gates, to_both = context_weight.to(dtype), state_weight.to(dtype)
        states = gates.new_empty(steps + 1, rows, triple // 3)
        contexts = gates.new_empty(steps, rows, values.shape[2])
        weights = gates.new_empty(steps, rows, values.shape[1])
        projected = gates.new_empty(steps, rows, len(state_weight))
        active = gates.new_empty(steps, rows, triple)  # reset, update and new state
        scores = _make_scores(keys, energy)
        empty = ~mask.any(1, keepdim=True)
        barred = mask.new_zeros(mask.shape, dtype=gates.dtype)
        barred.masked_fill_(~(mask | empty), -torch.inf)
        states[0] = state
        for step in range(steps):
            before = states[step]
            torch.add(_product(before, to_both), state_bias, out=projected[step])
            query = before if energy is None else projected[step][:, triple:]
            found = torch.softmax(scores.forward(query) + barred, 1)
            weights[step] = found.masked_fill_(empty, 0.0)
            torch.bmm(weights[step].unsqueeze(1), values, out=contexts[step].unsqueeze(1))
            gate = gates[:, step] + _product(contexts[step], to_gates)
            _gru(gate, projected[step], before, active[step], states[step + 1])
        ctx.dtype = dtype
        ctx.save_for_backward(
            values, keys, context_weight, state_weight, energy,
            states, contexts, weights, projected, active,
        )  # fmt: skip
        return states[1:], contexts

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_states: Tensor, d_contexts: Tensor) -> tuple[Tensor | None, ...]:
        (
            values, keys, context_weight, state_weight, energy,
            states, contexts, weights, projected, active,
        ) = ctx.saved_tensors  # fmt: skip
        from_gates, from_both = context_weight.to(ctx.dtype).T, state_weight.to(ctx.dtype).T
        triple = active.shape[2]
        d_gates, d_projected = torch.empty_like(active), torch.empty_like(projected)
        d_context = torch.empty_like(contexts)
        d_state = torch.zeros_like(states[0])
        scores = _make_scores(keys, energy)
        for step in reversed(range(len(active))):
            before = states[step]
            d_state += d_states[step]
            d_state = _gru_gradient(
                d_state, projected[step], before, active[step], d_gates[step], d_projected[step]
            )
            torch.add(d_contexts[step], _product(d_gates[step], from_gates), out=d_context[step])
            d_scores = torch.mul(values, d_context[step].unsqueeze(1)).sum(2)
            d_scores -= (weights[step] * d_scores).sum(1, keepdim=True)
            d_scores *= weights[step]
            if energy is None:
                d_state += scores.backward(before, d_scores)
            else:
                query = projected[step][:, triple:]
                d_projected[step][:, triple:] = scores.backward(query, d_scores)
            d_state += _product(d_projected[step], from_both)
        d_values = torch.bmm(weights.permute(1, 2, 0), d_context.transpose(0, 1))
        return (
            d_gates.transpose(0, 1), d_state, d_values, scores.d_keys, None,
            _outer(d_gates, contexts, ctx.dtype), _outer(d_projected, states[:-1], ctx.dtype),
            d_projected.sum((0, 1)), scores.d_energy, None,
        )  # fmt: skip


class _TanhScores:
    """energy . tanh((query + key) / 2) but for a constant, which the softmax does not see."""

    def __init__(self, keys: Tensor, energy: Tensor) -> None:
        self.keys, self.energy = keys, energy
        self.d_keys, self.d_energy = torch.zeros_like(keys), torch.zeros_like(energy)
        self._hidden, self._d_hidden = torch.empty_like(keys), torch.empty_like(keys)

    def forward(self, query: Tensor) -> Tensor:
        """Give scores (B, S) of queries (B, A)."""
        hidden = torch.add(query.unsqueeze(1), self.keys, out=self._hidden).sigmoid_()
        return (hidden @ self.energy).mul_(2.0)

    def backward(self, query: Tensor, d_scores: Tensor) -> Tensor:
        """Give the gradient of the queries, adding to those of keys and energy."""
        hidden = torch.add(query.unsqueeze(1), self.keys, out=self._hidden).sigmoid_()
        d_scores = d_scores * 2.0
        self.d_energy += (d_scores.view(1, -1) @ hidden.flatten(0, 1)).squeeze(0)
        d_hidden = torch.mul(d_scores.unsqueeze(2), self.energy, out=self._d_hidden)
        torch.ops.aten.sigmoid_backward.grad_input(d_hidden, hidden, grad_input=d_hidden)
        self.d_keys += d_hidden
        return d_hidden.sum(1)


class _DotScores:
    """query . key."""

    d_energy = None

    def __init__(self, keys: Tensor) -> None:
        self.keys = keys
        self.d_keys = torch.zeros_like(keys)

    def forward(self, query: Tensor) -> Tensor:
        """Give scores (B, S) of queries (B, H)."""
        return torch.bmm(self.keys, query.unsqueeze(2)).squeeze(2)

    def backward(self, query: Tensor, d_scores: Tensor) -> Tensor:
        """Give the gradient of the queries, adding to that of the keys."""
        self.d_keys.baddbmm_(d_scores.unsqueeze(2), query.unsqueeze(1))
        return torch.bmm(d_scores.unsqueeze(1), self.keys).squeeze(1)


def _make_scores(keys: Tensor, energy: Tensor | None) -> _TanhScores | _DotScores:
    return _DotScores(keys) if energy is None else _TanhScores(keys, energy)


def _gru(gate: Tensor, projected: Tensor, before: Tensor, active: Tensor, after: Tensor) -> None:
    """One step: r, z = sigmoid(x + u), n = tanh(x + r * u), s' = n + z * (s - n).

    x is `gate` (B, 3H), u the first 3H columns of `projected`; r, z, n go to `active` (B, 3H), s'
    to `after` (B, H).
    """
    size = before.shape[1]
    torch.add(gate[:, : 2 * size], projected[:, : 2 * size], out=active[:, : 2 * size])
    reset, update = active[:, : 2 * size].sigmoid_().chunk(2, 1)
    recurrent, new = projected[:, 2 * size : 3 * size], active[:, 2 * size :]
    torch.addcmul(gate[:, 2 * size :], reset, recurrent, out=new).tanh_()
    torch.lerp(new, before, update, out=after)


def _gru_gradient(
    d_after: Tensor,
    projected: Tensor,
    before: Tensor,
    active: Tensor,
    d_gate: Tensor,
    d_projected: Tensor,
) -> Tensor:
    """Put the gradients of x and u of `_gru` in `d_gate` and `d_projected`; give that of s."""
    size = before.shape[1]
    reset, update, new = active.chunk(3, 1)
    d_reset, d_update, d_new = d_gate.chunk(3, 1)
    recurrent = projected[:, 2 * size : 3 * size]
    torch.mul(d_after, before - new, out=d_update).mul_(update).mul_(1.0 - update)
    d_before = d_after * update
    torch.mul(d_after - d_before, 1.0 - new * new, out=d_new)
    torch.mul(d_new, recurrent, out=d_reset).mul_(reset).mul_(1.0 - reset)
    d_projected[:, : 2 * size] = d_gate[:, : 2 * size]
    torch.mul(d_new, reset, out=d_projected[:, 2 * size : 3 * size])
    return d_before


def _product(inputs: Tensor, weight: Tensor) -> Tensor:
    """Multiply (N, I) with the transpose of (O, I) in the type of `weight`, to that of `inputs`."""
    return (inputs.to(weight.dtype) @ weight.T).to(inputs.dtype)


def _outer(d_outputs: Tensor, inputs: Tensor, dtype: torch.dtype) -> Tensor:
    """Give the gradient (O, I) of a weight from (T, B, O) and (T, B, I), over all steps at once."""
    d_outputs, flat = d_outputs.flatten(0, 1), inputs.flatten(0, 1)
    return (d_outputs.T.to(dtype) @ flat.to(dtype)).to(inputs.dtype)
