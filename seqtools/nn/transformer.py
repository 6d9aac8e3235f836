"""Stacks of Transformer layers (Vaswani et al. 2017): encoder, decoder with or without a source.

Shapes: B rows, T steps, S source positions, E hidden size, H heads, L layers, F inner size. A stack
runs over whole sequences at once (`forward`, for training and for prompts) and step by step upon
its caches (`step`), with the same result. Padding stands on the right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from seqtools.errors import ConfigError
from seqtools.lazy import unknown
from seqtools.nn.cache import Cache
from seqtools.nn.layers import Dropout, StackedLinear
from seqtools.nn.masks import causal_bias
from seqtools.nn.multihead import KeyValues, MultiHeadAttention
from seqtools.nn.positions import AttentionPositions

ACTIVATIONS = ("relu", "gelu", "swiglu", "geglu")
NORMS = ("pre", "post")
_EPSILON = 1e-6  # of RMSNorm: added to the mean square


@dataclass(frozen=True)
class Shape:
    """What all layers of a stack have in common.

    Attributes:
        hidden: E.
        heads: H.
        feedforward: F.
        dropout: on what each sublayer gives.
        attention_dropout: on attention weights.
        activation: one of `ACTIVATIONS`; the last two are gated (Shazeer 2020).
        norm: `pre`, before each sublayer and once at the end (Xiong et al. 2020), or `post`, after
            each residual sum, as in the paper.
        rms_norm: RMSNorm (Zhang and Sennrich 2019) instead of LayerNorm (Ba et al. 2016).

    Raises ConfigError for an unknown name.
    """

    hidden: int
    heads: int
    feedforward: int
    dropout: float = 0.0
    attention_dropout: float = 0.0
    activation: str = "gelu"
    norm: str = "pre"
    rms_norm: bool = False

    def __post_init__(self) -> None:
        if self.activation not in ACTIVATIONS:
            raise ConfigError(unknown(self.activation, ACTIVATIONS, "activation"))
        if self.norm not in NORMS:
            raise ConfigError(unknown(self.norm, NORMS, "norm"))

    def make_norm(self) -> nn.Module:
        """Make one norm over E."""
        # torch's own epsilon of RMSNorm is that of the input's type, 0.008 in bfloat16.
        return nn.RMSNorm(self.hidden, _EPSILON) if self.rms_norm else nn.LayerNorm(self.hidden)


class FeedForward(nn.Module):
    """W_2 f(W_1 x) (section 3.3), or gated W_2 (f(W_1 x) * V x) (Shazeer 2020, equation 6)."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.activation = shape.activation
        self.gated = shape.activation in ("swiglu", "geglu")
        parts = 2 if self.gated else 1
        self.inner = StackedLinear(shape.hidden, shape.feedforward, parts)
        self.output = nn.Linear(shape.feedforward, shape.hidden)

    def forward(self, inputs: Tensor) -> Tensor:
        """Give (..., E) of `inputs` (..., E)."""
        inner: Tensor = self.inner(inputs)
        if self.activation == "relu":
            inner = F.relu(inner)
        elif self.activation == "gelu":
            inner = F.gelu(inner)
        else:
            gate, inner = inner.chunk(2, -1)
            inner = inner * (F.silu(gate) if self.activation == "swiglu" else F.gelu(gate))
        result: Tensor = self.output(inner)
        return result


class Attended(NamedTuple):
    """Attention weights of a stack, (B, L, H, T, S) each; None where they were not asked for."""

    own: Tensor | None
    cross: Tensor | None


class TransformerLayer(nn.Module):
    """Self-attention, attention to a source if `cross`, and feed-forward, each with a residual."""

    def __init__(self, shape: Shape, positions: AttentionPositions, *, cross: bool) -> None:
        super().__init__()
        self.pre = shape.norm == "pre"
        self.own = MultiHeadAttention(
            shape.hidden, shape.heads, positions, dropout=shape.attention_dropout
        )
        self.own_norm = shape.make_norm()
        self.cross: MultiHeadAttention | None = None
        if cross:  # a source has its own positions in it already: none are added here
            none = AttentionPositions(shape.heads, shape.hidden // shape.heads, causal=False)
            self.cross = MultiHeadAttention(
                shape.hidden, shape.heads, none, dropout=shape.attention_dropout
            )
            self.cross_norm = shape.make_norm()
        self.feedforward = FeedForward(shape)
        self.feedforward_norm = shape.make_norm()
        self.dropout = Dropout(shape.dropout)

    def forward(
        self,
        inputs: Tensor,
        places: Tensor,
        memory: KeyValues | Cache | None,
        bias: Tensor | None,
        source: KeyValues | None,
        source_bias: Tensor | None,
        *,
        weights: bool,
    ) -> tuple[Tensor, KeyValues | Cache, tuple[Tensor | None, Tensor | None]]:
        """Run over `inputs` (B, T, E), which stand at `places`.

        Args:
            inputs: what the layer below gives.
            places: their positions, (T,) or (B, T).
            memory: what was fed before, T being 1; None for none.
            bias: of the self-attention.
            source: keys and values of the source, for `cross`.
            source_bias: of the attention to it.
            weights: give both kinds of attention weights.

        Returns:
            (B, T, E), what was attended to here, and the weights.
        """
        normed = self.own_norm(inputs) if self.pre else inputs
        fresh = self.own.project(normed, places)
        known: KeyValues | Cache = fresh
        attended = fresh
        if isinstance(memory, Cache):
            uneven = places[:, 0] if places.dim() == 2 else None
            known = memory.append(fresh.keys, fresh.values, uneven)
            columns = torch.arange(known.columns, device=inputs.device)
            attended = KeyValues(*known.used, columns)
        found, own = self.own(normed, places, attended, bias, weights=weights)
        inputs = self._add(inputs, found, self.own_norm)
        across = None
        if self.cross is not None:
            assert source is not None
            normed = self.cross_norm(inputs) if self.pre else inputs
            found, across = self.cross(normed, places, source, source_bias, weights=weights)
            inputs = self._add(inputs, found, self.cross_norm)
        normed = self.feedforward_norm(inputs) if self.pre else inputs
        inputs = self._add(inputs, self.feedforward(normed), self.feedforward_norm)
        return inputs, known, (own, across)

    def _add(self, inputs: Tensor, found: Tensor, norm: nn.Module) -> Tensor:
        summed: Tensor = inputs + self.dropout(found)
        return summed if self.pre else norm(summed)


class TransformerStack(nn.Module):
    """Layers one upon another; `causal` ones see nothing behind a position.

    Args:
        shape: of the layers.
        positions: how positions enter each layer's self-attention; the length is L.
        causal: a decoder.
        cross: it attends to a source, too.
    """

    def __init__(
        self, shape: Shape, positions: Sequence[AttentionPositions], *, causal: bool, cross: bool
    ) -> None:
        super().__init__()
        self.causal = causal
        self.layers = nn.ModuleList(TransformerLayer(shape, p, cross=cross) for p in positions)
        self.last_norm = shape.make_norm() if shape.norm == "pre" else nn.Identity()

    @torch.no_grad()
    def scale_residuals(self) -> None:
        """Scale the weights that end each sublayer by 1 / sqrt(their number).

        For `pre`, where nothing else keeps the sum of all from growing with the layers (Radford et
        al. 2019, section 2.3).
        """
        layers = self._layers()
        last = [m for layer in layers for m in (layer.own, layer.cross, layer.feedforward) if m]
        for module in last:
            module.output.weight.mul_(len(last) ** -0.5)

    def sources(self, values: Tensor) -> list[KeyValues]:
        """Make what each layer attends to of a source `values` (B, S, E)."""
        places = torch.arange(values.shape[1], device=values.device)
        found = []
        for layer in self._layers():
            assert layer.cross is not None
            found.append(layer.cross.project(values, places))
        return found

    def forward(
        self,
        inputs: Tensor,
        bias: Tensor | None = None,
        sources: Sequence[KeyValues] | None = None,
        source_bias: Tensor | None = None,
        *,
        weights: bool = False,
    ) -> tuple[Tensor, list[KeyValues], Attended]:
        """Run over whole sequences `inputs` (B, T, E).

        Args:
            inputs: embedded, positions added.
            bias: what closes padding, for what is not causal (`masks.padding_bias`).
            sources: of `sources`.
            source_bias: what closes padding there.
            weights: give the attention weights.

        Returns:
            (B, T, E); what each layer attended to, to go on from; the weights.
        """
        steps = inputs.shape[1]
        places = torch.arange(steps, device=inputs.device)
        if self.causal:
            bias = causal_bias(steps, device=inputs.device)
        known, found = [], []
        biases = self._biases(places, places, bias)
        for number, layer in enumerate(self._layers()):
            source = None if sources is None else sources[number]
            inputs, memory, pair = layer(
                inputs, places, None, biases[number], source, source_bias, weights=weights
            )
            known.append(memory)
            found.append(pair)
        return self.last_norm(inputs), known, _stacked(found)

    def step(
        self,
        inputs: Tensor,
        lengths: int | Tensor,
        caches: Sequence[Cache],
        sources: Sequence[KeyValues] | None = None,
        source_bias: Tensor | None = None,
        *,
        weights: bool = False,
    ) -> tuple[Tensor, list[Cache], Attended]:
        """Feed one input a row, (B, E), behind the `lengths` fed before: one number, or (B,).

        One number must be that of the columns in the caches. Gives (B, E), the caches with it, and
        the weights, of T = 1 and one column more than there were, 0 past a row's own.
        """
        device = inputs.device
        columns = torch.arange(caches[0].columns + 1, device=device)
        bias = None
        if isinstance(lengths, int):
            places = columns[lengths:]
        else:
            places = lengths[:, None]
            bias = torch.zeros(len(inputs), len(columns), device=device)
            bias = bias.masked_fill_(columns > places, -torch.inf)[:, None, None]
        outputs, known, found = inputs[:, None], [], []
        biases = self._biases(places, columns, bias)
        for number, layer in enumerate(self._layers()):
            source = None if sources is None else sources[number]
            outputs, cache, pair = layer(
                outputs, places, caches[number], biases[number], source, source_bias,
                weights=weights,
            )  # fmt: skip
            known.append(cache)
            found.append(pair)
        return self.last_norm(outputs)[:, 0], known, _stacked(found)

    def _layers(self) -> list[TransformerLayer]:
        return cast("list[TransformerLayer]", list(self.layers))

    def _biases(self, queries: Tensor, keys: Tensor, bias: Tensor | None) -> list[Tensor | None]:
        """What is added to the scores of each layer: `bias`, and that of the positions."""
        made: dict[int, Tensor | None] = {}  # layers that share a position method share its bias
        for layer in self._layers():
            positions = layer.own.positions
            if id(positions) in made:
                continue
            added = positions.bias(queries, keys) if positions.has_bias else None
            if added is None:
                made[id(positions)] = bias
            else:
                added = added.unsqueeze(0) if added.dim() == 3 else added
                made[id(positions)] = added if bias is None else added + bias
        return [made[id(layer.own.positions)] for layer in self._layers()]


def _stacked(found: Sequence[tuple[Tensor | None, Tensor | None]]) -> Attended:
    """The weights of all layers as one tensor for each kind."""
    kinds = []
    for parts in zip(*found, strict=True):
        kept = [part for part in parts if part is not None]
        kinds.append(torch.stack(kept, 1) if kept else None)
    return Attended(*kinds)
