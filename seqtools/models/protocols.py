"""What training and decoding ask of a model: Loss, Scorer and Stepper, and the data they exchange.

Shapes: B rows of a batch, T target steps, S source positions, P prefix tokens, V vocabulary,
L attention layers, H heads. Logarithms are natural. Every sequence here is padded on the right.
A state is a value with rows first: stepping makes a new one, nothing is hidden on a module.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import torch
from torch import Tensor

IGNORED = -100  # the target of a position that does not count

State: TypeAlias = Any  # a tensor, or a tuple or dataclass of tensors; opaque outside the model
Attention: TypeAlias = dict[str, Tensor]  # "cross": (B, L, H, S), each row sums to 1 (0 if S is 0)


@dataclass
class TensorBatch:
    """One batch as tensors, all int64 on one device.

    `inputs` (B, T) are fed, `targets` (B, T) are predicted (-100 where nothing is), `lengths` (B,)
    counts the real inputs of each row. `source` (B, S) and `source_lengths` (B,) belong to
    sequence-to-sequence tasks. `carry` says that row i continues row i of the batch before.
    """

    inputs: Tensor
    targets: Tensor
    lengths: Tensor
    source: Tensor | None = None
    source_lengths: Tensor | None = None
    carry: bool = False

    def to(self, device: torch.device | str) -> TensorBatch:
        """Give the same batch on `device`."""
        return TensorBatch(
            inputs=self.inputs.to(device),
            targets=self.targets.to(device),
            lengths=self.lengths.to(device),
            source=None if self.source is None else self.source.to(device),
            source_lengths=None if self.source_lengths is None else self.source_lengths.to(device),
            carry=self.carry,
        )


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
    ) -> State:
        """Take in the source and all but each row's last prefix token.

        `source` (B, S) with `source_lengths` (B,), or both None; `prefix` (B, P) with
        `prefix_lengths` (B,), each at least 1. The last prefix token is the first one to step on.
        """
        ...

    def step(self, last_ids: Tensor, state: State) -> tuple[Tensor, State, Attention | None]:
        """Feed `last_ids` (B,): log P of the next token (B, V) float32, new state, attention.

        The attention is that of this step, or None where the model has none.
        """
        ...

    def select(self, state: State, rows: Tensor) -> State:
        """Give the state whose row i is row `rows[i]` of `state`; `rows` (N,) int64."""
        ...
