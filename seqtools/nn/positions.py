"""Where a token stands, told to a Transformer at its input or in its attention.

Shapes: B rows, T queries, S keys, E hidden size, H heads, D size of a head. Positions are int64 and
count from 0: (T,) for all rows alike, (B, T) for rows of their own. Nothing derived is saved with
a model: sines, slopes and buckets are computed in float64 or whole numbers, then cast.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from seqtools.errors import ConfigError
from seqtools.nn.layers import Embedding

BASE = 10000.0  # of the wavelengths (Vaswani et al. 2017, section 3.5; Su et al. 2021, equation 15)
FARTHEST_VECTOR = 16  # k of Shaw et al. 2018, table 1
BUCKETS, FARTHEST_BUCKET = 32, 128  # Raffel et al. 2020, section 2.1


class InputPositions(nn.Module):
    """What is added to the embeddings of the tokens; of this base class nothing.

    The embeddings are expected at a variance of about 1.
    """

    def __init__(self, hidden: int, max_positions: int | None) -> None:
        super().__init__()
        self.hidden = hidden

    def forward(self, embedded: Tensor, positions: Tensor) -> Tensor:
        """Give `embedded` (B, T, E) with its `positions` (T,) or (B, T) in it."""
        return embedded


class SinusoidalPositions(InputPositions):
    """`sinusoidal`: sin(p / 10000^(2i/E)) at 2i, the cosine at 2i + 1.

    Vaswani et al. 2017, section 3.5.
    """

    def forward(self, embedded: Tensor, positions: Tensor) -> Tensor:
        """Add the sines and cosines."""
        angles = _angles(positions, self.hidden)
        waves = torch.stack((angles.sin(), angles.cos()), -1).flatten(-2)
        return embedded + waves[..., : self.hidden].to(embedded.dtype)


class LearnedPositions(InputPositions):
    """`learned`: a vector for each of the first `max_positions` (Gehring et al. 2017, section 3.1).

    Raises ConfigError without `max_positions`.
    """

    def __init__(self, hidden: int, max_positions: int | None) -> None:
        super().__init__(hidden, max_positions)
        if max_positions is None or max_positions < 1:
            raise ConfigError(f"learned positions need max positions of 1 up, got {max_positions}")
        self.embedding = Embedding(max_positions, hidden)

    def forward(self, embedded: Tensor, positions: Tensor) -> Tensor:
        """Add the vectors.

        Raises ConfigError for a position past the last.
        """
        length = int(positions.max()) + 1 if positions.numel() else 0
        if length > self.embedding.num_embeddings:
            raise ConfigError(
                f"an input of {length} positions is longer than "
                f"the model's {self.embedding.num_embeddings} (max positions)"
            )
        vectors: Tensor = self.embedding(positions)
        return embedded + vectors


class AttentionPositions(nn.Module):
    """What a layer's attention knows of where queries and keys stand; of this base class nothing.

    `queries` are positions (T,) or (B, T), `keys` (S,) or (B, S). Scores are
    (q . k + key_scores) / sqrt(D) + bias, with q and k rotated; a context is the weighted mean of
    the values, and what `values` gives. `has_bias` and `has_vectors` tell which of these there are.
    """

    has_bias = False
    has_vectors = False
    shared = True  # one object serves all layers

    def __init__(self, heads: int = 1, head_size: int = 1, *, causal: bool = False) -> None:
        super().__init__()
        self.heads = heads

    def rotate(self, x: Tensor, positions: Tensor) -> Tensor:
        """Give queries or keys `x` (B, H, T, D) as they are multiplied."""
        return x

    def bias(self, queries: Tensor, keys: Tensor) -> Tensor | None:
        """Give what is added to the scores: (H, T, S), or (B, H, T, S) for rows of their own."""
        return None

    def key_scores(self, query: Tensor, queries: Tensor, keys: Tensor) -> Tensor | None:
        """Give what is added to q . k before scaling, (B, H, T, S), for `query` (B, H, T, D)."""
        return None

    def values(self, weights: Tensor, queries: Tensor, keys: Tensor) -> Tensor | None:
        """Give what is added to the context, (B, H, T, D), for `weights` (B, H, T, S)."""
        return None


class RotaryPositions(AttentionPositions):
    """`rotary`: pair i of a query or key turned by p 10000^(-2i/D) (Su et al. 2021, equation 34).

    Raises ConfigError for heads of odd size.
    """

    def __init__(self, heads: int, head_size: int, *, causal: bool) -> None:
        super().__init__(heads, head_size, causal=causal)
        if head_size % 2:
            raise ConfigError(f"rotary positions need heads of even size, got {head_size}")

    def rotate(self, x: Tensor, positions: Tensor) -> Tensor:
        """Turn each pair of neighbours; in float32 or wider, and as `x` is after that."""
        wide = torch.promote_types(x.dtype, torch.float32)
        angles = _angles(positions, x.shape[-1]).unsqueeze(-3)  # (1, T, D/2) or (B, 1, T, D/2)
        turns = torch.polar(torch.ones_like(angles), angles).to(wide.to_complex())
        # A pair as one complex number takes CPUs a fifth of the time of its two halves.
        pairs = torch.view_as_complex(x.to(wide).view(*x.shape[:-1], x.shape[-1] // 2, 2))
        return torch.view_as_real(pairs * turns).flatten(-2).to(x.dtype)


class AlibiPositions(AttentionPositions):
    """`alibi`: -m |i - j|, m = 2^(-8h/H) for head h from 1 (Press et al. 2022, section 3).

    The paper's is causal, where j > i is masked; encoders take the same slope to both sides.
    """

    has_bias = True

    def __init__(self, heads: int, head_size: int, *, causal: bool) -> None:
        super().__init__(heads, head_size, causal=causal)
        # Empty: knows the type and device of the model, and nothing else.
        self.register_buffer("like", torch.empty(0), persistent=False)
        self.like: Tensor

    def bias(self, queries: Tensor, keys: Tensor) -> Tensor:
        """Give the penalty of the distance."""
        heads = torch.arange(1, self.heads + 1, device=queries.device, dtype=torch.float64)
        slopes = torch.exp2(heads * (-8 / self.heads)).to(self.like.dtype)
        distances = _offsets(queries, keys).abs().unsqueeze(-3)
        return distances * -slopes.view(-1, 1, 1)


class T5Positions(AttentionPositions):
    """`t5`: a number a head for the bucket of j - i (Raffel et al. 2020, section 2.1)."""

    has_bias = True

    def __init__(self, heads: int, head_size: int, *, causal: bool) -> None:
        super().__init__(heads, head_size, causal=causal)
        self.table = nn.Parameter(torch.empty(heads, BUCKETS))
        offsets = range(-FARTHEST_BUCKET, FARTHEST_BUCKET + 1)
        buckets = torch.tensor([t5_bucket(offset, causal=causal) for offset in offsets])
        self.register_buffer("buckets", buckets, persistent=False)
        self.buckets: Tensor

    def bias(self, queries: Tensor, keys: Tensor) -> Tensor:
        """Give the numbers of the buckets."""
        places = _clipped(_offsets(queries, keys), FARTHEST_BUCKET)
        by_offset = self.table.index_select(1, self.buckets)  # (H, offsets)
        bias = by_offset.index_select(1, places.flatten()).view(self.heads, *places.shape)
        return bias.movedim(0, -3)


def t5_bucket(offset: int, *, causal: bool) -> int:
    """Bucket of an `offset` key - query: one each for small distances, then wider and wider.

    With b buckets for a direction, of which e = b/2 are for one distance each, a distance d of e
    or more is in bucket e + floor(log(d/e) / log(128/e) * (b - e)), and the last from 128 on.
    Causal attention has 32 buckets for what lies before, and no other; else there are 16 a side.
    """
    size = BUCKETS if causal else BUCKETS // 2
    first = size if offset > 0 and not causal else 0
    distance = max(-offset, 0) if causal else abs(offset)
    exact = size // 2
    if distance < exact:
        return first + distance
    steps = size - exact
    # In whole numbers, as logarithms round at the limits: (d/e)^steps >= (128/e)^step.
    reached = (
        step
        for step in range(steps)
        if distance**steps * exact**step >= FARTHEST_BUCKET**step * exact**steps
    )
    return first + exact + max(reached)


class ShawPositions(AttentionPositions):
    """`shaw`: vectors for j - i, clipped at 16, beside keys and values (Shaw et al. 2018, 3.1-3.2).

    The heads of a layer share them. No (T, S, D) exists: a query meets the 33 vectors first, and
    the weights are summed by offset before they meet theirs.
    """

    has_vectors = True
    shared = False

    def __init__(self, heads: int, head_size: int, *, causal: bool) -> None:
        super().__init__(heads, head_size, causal=causal)
        self.key_table = nn.Parameter(torch.empty(2 * FARTHEST_VECTOR + 1, head_size))
        self.value_table = nn.Parameter(torch.empty(2 * FARTHEST_VECTOR + 1, head_size))

    def key_scores(self, query: Tensor, queries: Tensor, keys: Tensor) -> Tensor:
        """Give q . a^K of the offset (equation 4's second part)."""
        return (query @ self.key_table.T).gather(-1, self._places(query, queries, keys))

    def values(self, weights: Tensor, queries: Tensor, keys: Tensor) -> Tensor:
        """Give the weighted sum of a^V of the offsets (equation 3's second part)."""
        sums = weights.new_zeros(*weights.shape[:-1], len(self.value_table))
        sums = sums.scatter_add(-1, self._places(weights, queries, keys), weights)
        return sums @ self.value_table

    def _places(self, like: Tensor, queries: Tensor, keys: Tensor) -> Tensor:
        places = _clipped(_offsets(queries, keys), FARTHEST_VECTOR).unsqueeze(-3)
        return places.expand(*like.shape[:3], places.shape[-1])


POSITIONS: dict[str, tuple[type[InputPositions], type[AttentionPositions]]] = {
    "sinusoidal": (SinusoidalPositions, AttentionPositions),
    "learned": (LearnedPositions, AttentionPositions),
    "shaw": (InputPositions, ShawPositions),
    "t5": (InputPositions, T5Positions),
    "rotary": (InputPositions, RotaryPositions),
    "alibi": (InputPositions, AlibiPositions),
    "none": (InputPositions, AttentionPositions),
}


def make_positions(
    name: str,
    *,
    hidden: int,
    heads: int,
    layers: int,
    causal: bool,
    max_positions: int | None = None,
) -> tuple[InputPositions, list[AttentionPositions]]:
    """Make the positions of that name for a stack: its input's, and those of each layer.

    Layers that share theirs get the same object, whose bias a stack may ask for once.
    `max_positions` is for learned ones.

    Raises ConfigError for an unknown name, for learned ones without `max_positions`, for rotary
    ones in heads of odd size.
    """
    if name not in POSITIONS:
        raise ConfigError(f"unknown positions {name!r}: choose from {', '.join(POSITIONS)}")
    at_input, at_attention = POSITIONS[name]
    count = 1 if at_attention.shared else layers
    made = [at_attention(heads, hidden // heads, causal=causal) for _ in range(count)]
    return at_input(hidden, max_positions), made * (layers // count)


def _angles(positions: Tensor, size: int) -> Tensor:
    """Give position * 10000^(-2i/size) for each pair i: (..., ceil(size / 2)) float64."""
    pairs = torch.arange(0, size, 2, device=positions.device, dtype=torch.float64)
    return positions.unsqueeze(-1) * BASE ** (-pairs / size)


def _offsets(queries: Tensor, keys: Tensor) -> Tensor:
    """Give key - query: (T, S), or (B, T, S) where either has rows of its own."""
    return keys.unsqueeze(-2) - queries.unsqueeze(-1)


def _clipped(offsets: Tensor, farthest: int) -> Tensor:
    """Give each offset's place among -farthest .. farthest, from 0."""
    return offsets.clamp(-farthest, farthest) + farthest
