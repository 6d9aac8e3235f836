"""What the Transformers of all tasks share: their options, embeddings, and a decoder of tokens.

Shapes: B rows, T steps, S source positions, P prefix tokens, V vocabulary, E hidden size, L layers,
H heads; M sources, of which each may serve several rows of a search.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor, nn

from seqtools.errors import ConfigError
from seqtools.models.config import check_shares, check_sizes
from seqtools.models.output import Output
from seqtools.models.protocols import Attention
from seqtools.nn.cache import Cache
from seqtools.nn.initialisation import initialise
from seqtools.nn.layers import Dropout, Embedding
from seqtools.nn.masks import padding_bias
from seqtools.nn.multihead import KeyValues
from seqtools.nn.positions import InputPositions, make_positions
from seqtools.nn.sharing import regroup
from seqtools.nn.transformer import Shape, TransformerStack

MAX_POSITIONS = 512  # of learned positions, where nothing else is said


@dataclass(frozen=True)
class TransformerConfig:
    """Sizes and choices that the Transformers of all tasks have.

    `feedforward` is 4 * `hidden` if None. `max_positions`, the longest input, is of learned
    positions alone. `tied` binds output layer and input embeddings.

    Raises ConfigError for what cannot be.
    """

    architecture: str = "transformer"
    layers: int = 4
    hidden: int = 256
    heads: int = 4
    feedforward: int | None = None
    dropout: float = 0.1
    attention_dropout: float = 0.0
    activation: str = "gelu"
    norm: str = "pre"
    rms_norm: bool = False
    position: str = "learned"
    max_positions: int | None = None
    tied: bool = False
    label_smoothing: float = 0.0

    def __post_init__(self) -> None:
        check_sizes(self, "layers", "hidden", "heads")
        if self.feedforward is None:
            object.__setattr__(self, "feedforward", 4 * self.hidden)
        check_sizes(self, "feedforward")
        check_shares(self, "dropout", "attention_dropout", "label_smoothing")
        if self.position == "learned":
            if self.max_positions is None:
                object.__setattr__(self, "max_positions", MAX_POSITIONS)
            check_sizes(self, "max_positions")
        elif self.max_positions is not None:
            raise ConfigError(f"max positions belong to learned positions, got {self.position}")
        self.shape()

    def shape(self) -> Shape:
        """Give what the layers have in common."""
        assert self.feedforward is not None  # filled in by the configuration itself
        return Shape(
            self.hidden,
            self.heads,
            self.feedforward,
            dropout=self.dropout,
            attention_dropout=self.attention_dropout,
            activation=self.activation,
            norm=self.norm,
            rms_norm=self.rms_norm,
        )

    def make_stack(
        self, layers: int, *, causal: bool, cross: bool
    ) -> tuple[InputPositions, TransformerStack]:
        """Make a stack of so many layers, and the positions of its input."""
        at_input, positions = make_positions(
            self.position,
            hidden=self.hidden,
            heads=self.heads,
            layers=layers,
            causal=causal,
            max_positions=self.max_positions,
        )
        return at_input, TransformerStack(self.shape(), positions, causal=causal, cross=cross)


def first_weights(model: nn.Module, config: TransformerConfig, seed: int) -> None:
    """Initialise `model` from `seed`; where norms stand before sublayers, scale what ends these."""
    initialise(model, torch.Generator().manual_seed(seed))
    for module in model.modules() if config.norm == "pre" else ():
        if isinstance(module, TransformerStack):
            module.scale_residuals()


class Embedded(nn.Module):
    """Ids as vectors with their positions, ready for a stack.

    A table that the output layer shares has entries of variance 1 / E, and what is looked up there
    is scaled by sqrt(E) (Vaswani et al. 2017, section 3.4).
    """

    def __init__(
        self, embedding: Embedding, positions: InputPositions, dropout: float, *, scaled: bool
    ) -> None:
        super().__init__()
        self.embedding = embedding
        self.positions = positions
        self.dropout = Dropout(dropout)
        self.factor = math.sqrt(embedding.embedding_dim) if scaled else 1.0

    def forward(
        self, ids: Tensor, places: Tensor | None = None, added: Tensor | None = None
    ) -> Tensor:
        """Give (B, T, E) of `ids` (B, T) at `places` (T,) or (B, T), from 0 if None.

        `added` (B, T, E) is what else is told of each position.
        """
        vectors = self.embedding(ids)
        if self.factor != 1.0:
            vectors = vectors * self.factor
        if places is None:
            places = torch.arange(ids.shape[1], device=ids.device)
        vectors = self.positions(vectors, places)
        result: Tensor = self.dropout(vectors if added is None else vectors + added)
        return result


@dataclass(frozen=True)
class DecoderState:
    """What a decoder was fed, and what it attends to.

    Attributes:
        caches: of each layer, rows first.
        lengths: how many inputs each row was fed; one number where they are equally many.
        sources: keys and values of the source of each layer, (M, H, S, D); none without a source.
        mask: (M, S), its real positions.
        attention: the steps are to give it.
        first: what was attended to while the source and the prefix were taken in.
    """

    caches: tuple[Cache, ...]
    lengths: int | Tensor
    sources: tuple[KeyValues, ...] = ()
    mask: Tensor | None = None
    attention: bool = False
    first: Attention = field(default_factory=dict)

    def select(self, rows: Tensor) -> DecoderState:
        """Give the state whose row i is row `rows[i]` of this one."""
        caches = tuple(cache.select(rows) for cache in self.caches)
        lengths = self.lengths if isinstance(self.lengths, int) else self.lengths[rows]
        sources, mask = self.sources, self.mask
        if mask is not None:
            kept, _ = regroup(rows, len(mask), len(self.caches[0].keys) // len(mask))
            if kept is not None:
                mask = mask[kept]
                sources = tuple(
                    KeyValues(s.keys[kept], s.values[kept], s.places) for s in self.sources
                )
        return replace(self, caches=caches, lengths=lengths, sources=sources, mask=mask, first={})


class TokenDecoder(nn.Module):
    """Embeddings, a causal stack, output layer: one token after another, upon a source or not."""

    def __init__(
        self,
        config: TransformerConfig,
        layers: int,
        embedding: Embedding,
        *,
        cross: bool,
    ) -> None:
        super().__init__()
        positions, self.stack = config.make_stack(layers, causal=True, cross=cross)
        self.embedded = Embedded(embedding, positions, config.dropout, scaled=config.tied)
        self.output = Output(config.hidden, embedding, tied=config.tied)

    def read(
        self, inputs: Tensor, sources: Sequence[KeyValues] = (), mask: Tensor | None = None
    ) -> Tensor:
        """Give the readouts (B, T, E) of known `inputs` (B, T)."""
        bias = None if mask is None else padding_bias(mask)
        return self.stack(self.embedded(inputs), None, sources or None, bias)[0]  # type: ignore[no-any-return]

    def start(self, prefix: Tensor, prefix_lengths: Tensor, state: DecoderState) -> DecoderState:
        """Take in all but the last prefix token of each row; `state` holds the source alone."""
        bias = None if state.mask is None else padding_bias(state.mask)
        fed = prefix_lengths - 1
        shortest, longest = (int(number) for number in fed.aminmax())
        _, known, attended = self.stack(
            self.embedded(prefix[:, :longest]),
            None,
            state.sources or None,
            bias,
            weights=state.attention,
        )
        own = {} if attended.own is None else {"decoder": attended.own}
        return replace(
            state,
            caches=tuple(Cache.of(memory.keys, memory.values) for memory in known),
            lengths=longest if shortest == longest else fed,
            first=state.first | own,
        )

    def step(
        self, last_ids: Tensor, state: DecoderState
    ) -> tuple[Tensor, DecoderState, Attention | None]:
        """See `Stepper`."""
        lengths = state.lengths
        device = last_ids.device
        if isinstance(lengths, int):
            places = torch.arange(lengths, lengths + 1, device=device)
        else:
            places = lengths[:, None]
        hidden, caches, attended = self.stack.step(
            self.embedded(last_ids[:, None], places)[:, 0],
            lengths,
            state.caches,
            state.sources or None,
            None if state.mask is None else padding_bias(state.mask),
            weights=state.attention,
        )
        after = replace(state, caches=tuple(caches), lengths=lengths + 1, first={})
        kinds = {"decoder": attended.own, "cross": attended.cross}
        found = {name: part.squeeze(3) for name, part in kinds.items() if part is not None}
        return self.output(hidden), after, found or None


class Decodes(nn.Module):
    """What `Stepper` asks for once a search has started, of a model with a `TokenDecoder`."""

    decoder: TokenDecoder

    def attended(self, state: DecoderState) -> Attention:
        """See `Stepper`."""
        return state.first

    def step(
        self, last_ids: Tensor, state: DecoderState
    ) -> tuple[Tensor, DecoderState, Attention | None]:
        """See `Stepper`."""
        return self.decoder.step(last_ids, state)

    def select(self, state: DecoderState, rows: Tensor) -> DecoderState:
        """See `Stepper`."""
        return state.select(rows)
