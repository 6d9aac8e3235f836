"""Multi-head attention (Vaswani et al. 2017, section 3.2), written once for self and cross.

Shapes: B rows, T queries of each, S positions attended to, E hidden size, H heads, D = E / H.
Keys and values are made apart from the queries, so that a source is projected once for a whole
search and what was fed before is kept (see `nn.cache`).

Two ways lead to the same context: the explicit one, which can give the weights, and torch's
`scaled_dot_product_attention`. On a CPU the explicit way is the quicker one up to several hundred
positions (16 times at 16, level at 700 in training), so it is taken there even where no weights
are asked for.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from seqtools.errors import ConfigError
from seqtools.nn.layers import Dropout, StackedLinear
from seqtools.nn.positions import AttentionPositions

_EXPLICIT = 512  # positions attended to, up to which a CPU takes the explicit way


class KeyValues(NamedTuple):
    """What is attended to: keys and values (B, H, S, D), and their positions (S,) int64."""

    keys: Tensor
    values: Tensor
    places: Tensor


class MultiHeadAttention(nn.Module):
    """softmax(q k / sqrt(D) + bias) v in H heads, between linear layers.

    `dropout` is on the weights, in training; `positions` says how they enter the scores.

    Raises ConfigError where the heads do not divide the hidden size.
    """

    def __init__(
        self, hidden: int, heads: int, positions: AttentionPositions, *, dropout: float = 0.0
    ) -> None:
        super().__init__()
        if hidden % heads:
            raise ConfigError(f"{heads} heads do not divide a hidden size of {hidden}")
        self.heads = heads
        self.query = nn.Linear(hidden, hidden)
        self.key_value = StackedLinear(hidden, hidden, 2)
        self.output = nn.Linear(hidden, hidden)
        self.positions = positions
        self.dropout = Dropout(dropout)

    def project(self, inputs: Tensor, places: Tensor) -> KeyValues:
        """Make keys and values of `inputs` (B, S, E) at the positions `places` (S,) or (B, S)."""
        keys, values = self.key_value(inputs).chunk(2, -1)
        keys = self.positions.rotate(self._split(keys), places)
        # Heads first in memory, too, once for all the queries that come.
        return KeyValues(keys.contiguous(), self._split(values).contiguous(), places)

    def forward(
        self,
        inputs: Tensor,
        places: Tensor,
        memory: KeyValues,
        bias: Tensor | None = None,
        *,
        weights: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Attend from `inputs` (B, T, E), at the positions `places` (T,) or (B, T).

        Args:
            inputs: what the queries are made of; B may be a multiple m of the memory's rows, of
                which each then serves m rows that follow one another.
            places: where they stand.
            memory: what is attended to.
            bias: added to the scores, broadcastable to (B, H, T, S): minus infinity where nothing
                may be attended to, and what the position method adds (its `bias`).
            weights: give them, (B, H, T, S) float32 or wider, as they are before dropout.

        Returns:
            (B, T, E), and the weights or None.
        """
        query = self.positions.rotate(self._split(self.query(inputs)), places)
        rows, heads, steps, size = query.shape
        share = rows // len(memory.keys)
        if share > 1:  # the rows of one source as so many queries of one row
            query = _fold(query, share)
        context, found = self._attend(query, places, memory, bias, weights=weights)
        if share > 1:
            context = _unfold(context, share)
            found = None if found is None else _unfold(found, share)
        joined = context.transpose(1, 2).reshape(rows, steps, heads * size)
        result: Tensor = self.output(joined)
        return result, found

    def _split(self, inputs: Tensor) -> Tensor:
        """(B, T, E) -> (B, H, T, D)."""
        rows, steps, hidden = inputs.shape
        return inputs.view(rows, steps, self.heads, hidden // self.heads).transpose(1, 2)

    def _attend(
        self,
        query: Tensor,
        places: Tensor,
        memory: KeyValues,
        bias: Tensor | None,
        *,
        weights: bool,
    ) -> tuple[Tensor, Tensor | None]:
        """Context (B, H, T, D) of `query` (B, H, T, D), and the weights if they are wanted."""
        keys, values = memory.keys, memory.values
        short = query.device.type == "cpu" and keys.shape[2] <= _EXPLICIT
        if not (weights or short or self.positions.has_vectors):
            dropout = self.dropout.p if self.training else 0.0
            mask = None if bias is None else bias.to(query.dtype)
            fused = F.scaled_dot_product_attention(
                query, keys, values, attn_mask=mask, dropout_p=dropout
            )
            return fused, None
        scores = self._scores(query, places, memory, bias)
        wide = torch.promote_types(scores.dtype, torch.float32)
        found = torch.softmax(scores, -1, dtype=wide)
        dropped = self.dropout(found)
        shares = dropped.to(values.dtype).flatten(0, 1)
        context = torch.bmm(shares, values.flatten(0, 1)).view(query.shape)
        added = self.positions.values(dropped, places, memory.places)
        if added is not None:
            context = context + added
        return context, found if weights else None

    def _scores(
        self, query: Tensor, places: Tensor, memory: KeyValues, bias: Tensor | None
    ) -> Tensor:
        """(q k + what positions add) / sqrt(D) + bias, (B, H, T, S)."""
        rows, heads, steps, size = query.shape
        length = memory.keys.shape[2]
        factor = 1 / math.sqrt(size)
        extra = self.positions.key_scores(query, places, memory.places)
        flat = rows * heads
        queries, keys = query.reshape(flat, steps, size), memory.keys.reshape(flat, length, size)
        if extra is None and bias is not None and bias.dim() == 2:  # (T, S): added on the way
            added = bias.to(queries.dtype).expand(flat, steps, length)
            scores = torch.baddbmm(added, queries, keys.transpose(1, 2), alpha=factor)
            return scores.view(rows, heads, steps, length)
        scores = torch.bmm(queries * factor, keys.transpose(1, 2))
        scores = scores.view(rows, heads, steps, length)
        if extra is not None:
            scores = scores + extra * factor
        return scores if bias is None else scores + bias


def _fold(query: Tensor, share: int) -> Tensor:
    """(M * share, H, T, D) -> (M, H, share * T, D)."""
    rows, heads, steps, size = query.shape
    folded = query.view(rows // share, share, heads, steps, size).transpose(1, 2)
    return folded.reshape(rows // share, heads, share * steps, size)


def _unfold(folded: Tensor, share: int) -> Tensor:
    """(M, H, share * T, X) -> (M * share, H, T, X)."""
    sources, heads, steps, size = folded.shape
    rows = folded.view(sources, heads, share, steps // share, size).transpose(1, 2)
    return rows.reshape(sources * share, heads, steps // share, size)
