"""What training and decoding ask of a model, and the data they exchange.

Shapes: B rows of a batch, T target steps, S source positions, P prefix tokens, V vocabulary,
L attention layers, H heads, E hidden size. Logarithms are natural. Every sequence here is padded
on the right.
A state is a value with rows first: stepping makes a new one, nothing is hidden on a module.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Protocol, TypeAlias

import torch
from torch import Tensor

IGNORED = -100  # the target of a position that does not count

State: TypeAlias = Any  # a tensor, or a tuple or dataclass of tensors; opaque outside the model
Attention: TypeAlias = dict[str, Tensor]
"""Weights by what is attended to: "cross" the source, "encoder" the source from the source,
"decoder" the inputs fed so far. The last axis sums to 1, or to less for an attention that weighs
positions by more than a softmax (`local`, where a window's centre is predicted). It means nothing
where a source has no token, and kinds that a model does not have are absent."""


@dataclass
class TensorBatch:
    """One batch as tensors, all int64 on one device.

    `inputs` (B, T) are fed, `targets` (B, T) are predicted (-100 where nothing is), `lengths` (B,)
    counts the real inputs of each row. `source` (B, S) and `source_lengths` (B,) belong to
    sequence-to-sequence tasks. `carry` says that row i continues row i of the batch before. For
    mlm, `segments` (B, T) is 1 in the second text of a pair and 0 elsewhere (None: 0 everywhere),
    and `next_sentence` (B,) is 1 where that text follows the first one in its source, 0 where it
    does not.
    """

    inputs: Tensor
    targets: Tensor
    lengths: Tensor
    source: Tensor | None = None
    source_lengths: Tensor | None = None
    carry: bool = False
    segments: Tensor | None = None
    next_sentence: Tensor | None = None

    def to(self, device: torch.device | str) -> TensorBatch:
        """Give the same batch on `device`."""
        parts: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(self)}
        for name, part in parts.items():
            if isinstance(part, Tensor):
                parts[name] = part.to(device)
        return TensorBatch(**parts)


@dataclass(frozen=True)
class LossTerms:
    """Sums over the targets of one batch, by name: name -> (0-dim sum in nats, count of targets).

    `objective` names the term that is optimised. "nll" is always present: the negative log
    likelihood without smoothing, from which loss and perplexity are reported.
    """

    terms: dict[str, tuple[Tensor, int]]
    objective: str


class Loss(Protocol):
    """A model that can be trained."""

    def loss(self, batch: TensorBatch, state: State | None) -> tuple[LossTerms, State | None]:
        """Give the loss of `batch` and the state the next batch may carry on from (detached).

        `state` is what the call before returned; it is used only where `batch.carry` holds.
        """
        ...


class Scorer(Protocol):
    """A model that gives the probability of a given sequence."""

    def token_logprobs(self, batch: TensorBatch) -> Tensor:
        """Give log P(target) under forced decoding, (B, T) float32; 0 where targets are -100."""
        ...


class Stepper(Protocol):
    """A model that is asked for one token after another; all searches are written against it."""

    vocabulary_size: int

    def start(
        self,
        source: Tensor | None,
        source_lengths: Tensor | None,
        prefix: Tensor,
        prefix_lengths: Tensor,
        *,
        attention: bool = False,
    ) -> State:
        """Take in the source and all but each row's last prefix token.

        `source` (B, S) with `source_lengths` (B,), or both None; `prefix` (B, P) with
        `prefix_lengths` (B,), each at least 1. The last prefix token is the first one to step on.
        `attention` asks for it where it costs extra; where not, it comes in any case.
        """
        ...

    def attended(self, state: State) -> Attention:
        """Give what `start` attended to, from the state it gave, and only from that.

        "encoder" (B, L, H, S, S), and "decoder" (B, L, H, F, F), F being the longest prefix less
        one; `{}` where there is none.
        """
        ...

    def step(self, last_ids: Tensor, state: State) -> tuple[Tensor, State, Attention | None]:
        """Feed `last_ids` (B,): log P of the next token (B, V) float32, new state, attention.

        The attention is that of this step, or None where there is none: "cross" (B, L, H, S), and
        "decoder" (B, L, H, C), where column c is the row's input number c, C >= all that were fed.
        """
        ...

    def select(self, state: State, rows: Tensor) -> State:
        """Give the state whose row i is row `rows[i]` of `state`; `rows` (N,) int64."""
        ...


class Encodes(Protocol):
    """A model that gives a vector for each position."""

    def encode(self, batch: TensorBatch, *, attention: bool = False) -> tuple[Tensor, Attention]:
        """Give the states (B, T, E) of the top layer, without meaning past a row's length.

        With `attention`, (B, L, H, T, T) under "encoder", or under "decoder" from a model that
        reads from left to right, else `{}`; `batch.targets` is not looked at.
        """
        ...


class Fills(Protocol):
    """A model that predicts masked tokens from both sides."""

    def fill_logprobs(
        self, batch: TensorBatch, places: Tensor, *, attention: bool = False
    ) -> tuple[Tensor, Attention]:
        """Give log P of every token, (N, V) float32, at `places` (N,) = row * T + column.

        With `attention`, "encoder" (B, L, H, T, T), else `{}`; `batch.targets` is not looked at.
        """
        ...
