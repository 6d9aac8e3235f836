"""Attention of a decoder's queries over a source, by any of the scores the literature has.

Shapes: B rows, T queries of each row, S source positions, Q query size, K size of a source vector,
A size of the attention's own layer. What depends on the source alone is computed once, as keys.
Masks are True for a real position. A row without real positions gets weights 0 and context 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from seqtools.errors import ConfigError
from seqtools.nn.sharing import regroup


class Score(nn.Module):
    """How well each query fits each source position."""

    def keys(self, values: Tensor) -> Tensor:
        """Give what `forward` needs of the source: (B, S, K) -> (B, S, any size)."""
        return values

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        """Give the scores (B, T, S) of `query` (B, T, Q) on `keys`."""
        raise NotImplementedError


class DotScore(Score):
    """`dot`: q . k (Luong et al. 2015, section 3.1).

    `scaled-dot`: q . k / sqrt(Q) (Vaswani et al. 2017, equation 1).

    Raises ConfigError where queries and source vectors differ in size.
    """

    def __init__(self, query_size: int, value_size: int, *, scaled: bool = False) -> None:
        super().__init__()
        if query_size != value_size:
            raise ConfigError(
                f"dot products need queries and source vectors of one size, got {query_size} and "
                f"{value_size} (general attention, or merge sum or mean, brings them together)"
            )
        self.factor = 1 / math.sqrt(query_size) if scaled else 1.0

    def keys(self, values: Tensor) -> Tensor:
        """Give the source vectors, scaled."""
        return values * self.factor if self.factor != 1.0 else values

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        """Give q . k."""
        return query @ keys.transpose(1, 2)


class GeneralScore(Score):
    """`general`: q . W k (Luong et al. 2015, section 3.1)."""

    def __init__(self, query_size: int, value_size: int) -> None:
        super().__init__()
        self.key = nn.Linear(value_size, query_size, bias=False)

    def keys(self, values: Tensor) -> Tensor:
        """Give W k, (B, S, Q)."""
        keys: Tensor = self.key(values)
        return keys

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        """Give q . W k."""
        return query @ keys.transpose(1, 2)


class AdditiveScore(Score):
    """`additive`: v . tanh(W_q q + W_k k) (Bahdanau et al. 2015, section A.1.2)."""

    def __init__(self, query_size: int, value_size: int, attention_size: int) -> None:
        super().__init__()
        self.query = nn.Linear(query_size, attention_size, bias=False)
        self.key = nn.Linear(value_size, attention_size, bias=False)
        self.energy = nn.Parameter(torch.empty(attention_size))

    def keys(self, values: Tensor) -> Tensor:
        """Give 2 W_k k, (B, S, A)."""
        return _doubled(self.key(values))

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        """Give v . tanh(W_q q + W_k k)."""
        return tanh_scores(_doubled(self.query(query)), keys, self.energy)


class TanhSumScore(Score):
    """`tanh-sum`: the sum of tanh(W [q; k] + b); as `additive` with a bias and with v all ones."""

    def __init__(self, query_size: int, value_size: int, attention_size: int) -> None:
        super().__init__()
        self.query = nn.Linear(query_size, attention_size, bias=False)
        self.key = nn.Linear(value_size, attention_size)

    def keys(self, values: Tensor) -> Tensor:
        """Give 2 (W_k k + b), (B, S, A), W_k being the columns of W that meet k."""
        return _doubled(self.key(values))

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        """Give the sum of tanh(W_q q + W_k k + b)."""
        return tanh_scores(_doubled(self.query(query)), keys, keys.new_ones(keys.shape[2]))


class ConcatScore(Score):
    """`concat`: w . [q; k] + b, a linear layer on the pair without tanh.

    The query's part is the same at every position, so the softmax does not see it: such attention
    looks at the source alone, the same way in every step.
    """

    def __init__(self, query_size: int, value_size: int) -> None:
        super().__init__()
        self.query = nn.Linear(query_size, 1)
        self.key = nn.Linear(value_size, 1, bias=False)

    def keys(self, values: Tensor) -> Tensor:
        """Give the source's part of the score, (B, S, 1)."""
        keys: Tensor = self.key(values)
        return keys

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        """Give the sum of both parts."""
        query_part: Tensor = self.query(query)
        return query_part + keys.transpose(1, 2)


class LocationScore(Score):
    """`location`: W q + b, one number a source position (Luong et al. 2015, equation 8).

    The source's content plays no part, and a source may have `max_source` positions at most.
    """

    def __init__(self, query_size: int, max_source: int) -> None:
        super().__init__()
        self.max_source = max_source
        self.query = nn.Linear(query_size, max_source)

    def keys(self, values: Tensor) -> Tensor:
        """Give nothing but the number of positions, (B, S, 0).

        Raises ConfigError for a source longer than `max_source`.
        """
        if values.shape[1] > self.max_source:
            raise ConfigError(
                f"a source of {values.shape[1]} positions is longer than "
                f"the {self.max_source} of this location attention (max source)"
            )
        return values[:, :, :0]

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        """Give the first S of the scores."""
        scores: Tensor = self.query(query)
        return scores[:, :, : keys.shape[1]]


SCORES = ("dot", "scaled-dot", "general", "additive", "concat", "tanh-sum", "location")


def make_score(
    name: str,
    query_size: int,
    value_size: int,
    *,
    attention_size: int | None = None,
    max_source: int | None = None,
) -> Score:
    """Make the score of that name; `attention_size` A is Q if None, `max_source` is for location.

    Raises ConfigError for an unknown name, for sizes that do not fit, for location without
    `max_source`.
    """
    size = query_size if attention_size is None else attention_size
    if name in ("dot", "scaled-dot"):
        return DotScore(query_size, value_size, scaled=name == "scaled-dot")
    if name == "general":
        return GeneralScore(query_size, value_size)
    if name == "additive":
        return AdditiveScore(query_size, value_size, size)
    if name == "concat":
        return ConcatScore(query_size, value_size)
    if name == "tanh-sum":
        return TanhSumScore(query_size, value_size, size)
    if name != "location":
        raise ConfigError(f"unknown attention {name!r}: choose from {', '.join(SCORES)}")
    if max_source is None or max_source < 1:
        raise ConfigError(f"location attention needs a max source of at least 1, got {max_source}")
    return LocationScore(query_size, max_source)


def tanh_scores(query: Tensor, keys: Tensor, energy: Tensor) -> Tensor:
    """Give energy . tanh((query + key) / 2): (B, T, A), (B, S, A), (A,) -> (B, T, S).

    tanh(x / 2) is 2 sigmoid(x) - 1, which on CPU takes torch a fifth of the time of tanh. Of all
    (B, T, S, A) values only those of one step exist at once; the gradient makes them again.
    """
    return _TanhScores.apply(query, keys, energy)  # type: ignore[no-any-return,no-untyped-call]


class _TanhScores(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, query: Tensor, keys: Tensor, energy: Tensor) -> Tensor:
        ctx.save_for_backward(query, keys, energy)
        scores = keys.new_empty(query.shape[0], query.shape[1], keys.shape[1])
        hidden = torch.empty_like(keys)
        for step, part in enumerate(query.unbind(1)):
            torch.add(part.unsqueeze(1), keys, out=hidden).sigmoid_()
            scores[:, step] = hidden @ energy
        return scores.mul_(2.0).sub_(energy.sum())

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        query, keys, energy = ctx.saved_tensors
        d_query, d_keys = torch.empty_like(query), torch.zeros_like(keys)
        d_energy = torch.zeros_like(energy)
        hidden, d_hidden = torch.empty_like(keys), torch.empty_like(keys)
        for step, part in enumerate(query.unbind(1)):
            torch.add(part.unsqueeze(1), keys, out=hidden).sigmoid_()
            d_scores = grad[:, step].unsqueeze(2) * 2.0  # (B, S, 1)
            d_energy += (hidden.flatten(0, 1).T @ d_scores.flatten()) - 0.5 * d_scores.sum()
            torch.mul(d_scores, energy, out=d_hidden)
            torch.ops.aten.sigmoid_backward.grad_input(d_hidden, hidden, grad_input=d_hidden)
            torch.sum(d_hidden, 1, out=d_query[:, step])
            d_keys += d_hidden
        return d_query, d_keys, d_energy


def _doubled(projected: Tensor) -> Tensor:
    return projected.float().mul(2.0) if projected.dtype == torch.bfloat16 else projected * 2.0


def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """Softmax over the last dimension of `scores` (B, T, S), where `mask` is True.

    The mask is (B, S), or (B, T, S) where it differs by query. Gives exactly 0 where it is False; a
    row that is False throughout gives 0 everywhere, and a gradient of 0. The weights are float32 or
    wider, so that they sum to 1 under autocast too.
    """
    mask = mask.unsqueeze(1) if mask.dim() == 2 else mask
    # A row of minus infinities would be NaN, in its gradient too; it is taken out beforehand.
    empty = ~mask.any(2, keepdim=True)
    scores = scores.masked_fill(~(mask | empty), -math.inf)
    wide = torch.promote_types(scores.dtype, torch.float32)
    return torch.softmax(scores, 2, dtype=wide).masked_fill(empty, 0.0)


@dataclass(frozen=True)
class Memory:
    """A source, ready to be attended to: `values` (M, S, K), `keys` of them, `mask` (M, S) bool.

    Each of the M sources serves `share` queries' rows that follow one another, so that the
    hypotheses of a beam need no copies of it.
    """

    values: Tensor
    keys: Tensor
    mask: Tensor
    share: int = 1

    @property
    def rows(self) -> int:
        """How many rows it serves, M * share."""
        return len(self.values) * self.share

    def select(self, rows: Tensor) -> Memory:
        """Give the memory that serves row `rows[i]` of this one in its row i; `rows` (N,)."""
        kept, share = regroup(rows, len(self.values), self.share)
        if kept is None:
            return Memory(self.values, self.keys, self.mask, share)
        values, keys = self.values.index_select(0, kept), self.keys.index_select(0, kept)
        return Memory(values, keys, self.mask.index_select(0, kept), share)


class Attention(nn.Module):
    """Softmax of a score over the real source positions, and the mean of the source by it."""

    counts_steps = False  # the weights depend on the number of the step

    def __init__(self, score: Score) -> None:
        super().__init__()
        self.score = score

    def memory(self, values: Tensor, mask: Tensor) -> Memory:
        """Prepare the source `values` (B, S, K) with `mask` (B, S)."""
        return Memory(values, self.score.keys(values), mask)

    def weigh(self, query: Tensor, scores: Tensor, mask: Tensor, steps: Tensor | None) -> Tensor:
        """Give the weights (M, R, S), of R queries of each source in all its rows.

        `query` (M, R, Q), their `scores` (M, R, S), `mask` (M, S), the numbers of their `steps`
        (M, R) where they count.
        """
        return masked_softmax(scores, mask)

    def forward(
        self, query: Tensor, memory: Memory, first: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Give contexts (N, T, K) and weights (N, T, S) of `query` (N, T, Q); N = memory.rows.

        `first` (N,), where steps count, is the number of each row's first query, from 0.
        """
        rows, length, size = query.shape
        if rows != memory.rows:
            raise ValueError(f"{rows} rows of queries, but a memory for {memory.rows}")
        sources, steps = len(memory.values), None
        if first is not None:
            numbers = first[:, None] + torch.arange(length, device=first.device)
            steps = numbers.view(sources, memory.share * length)
        query = query.reshape(sources, memory.share * length, size)
        weights = self.weigh(query, self.score(query, memory.keys), memory.mask, steps)
        context = weights @ memory.values
        return (
            context.view(rows, length, context.shape[2]),
            weights.view(rows, length, weights.shape[2]),
        )
