"""Recurrent language models: rnn, lstm and gru for the task lm.

Mikolov et al. 2010; with dropout on what enters and leaves each layer, never on the recurrence, as
Zaremba et al. 2014 have it. Shapes: B rows, T steps, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from seqtools.errors import ConfigError
from seqtools.models.config import check_shares, check_sizes, configure
from seqtools.models.output import Output
from seqtools.models.protocols import Attention, LossTerms, TensorBatch
from seqtools.nn.initialisation import initialise
from seqtools.nn.layers import Dropout, Embedding
from seqtools.nn.recurrent import Architecture, RecurrentStack, RecurrentState
from seqtools.text.vocab import Vocabulary


@dataclass(frozen=True)
class RecurrentLmConfig:
    """Sizes and choices; `embedding` is `hidden` if None.

    Raises ConfigError for what cannot be.
    """

    architecture: Architecture
    hidden: int = 256
    embedding: int | None = None
    layers: int = 1
    dropout: float = 0.0
    nonlinearity: str = "tanh"
    tied: bool = False
    bidirectional: bool = False
    label_smoothing: float = 0.0

    def __post_init__(self) -> None:
        if self.embedding is None:
            object.__setattr__(self, "embedding", self.hidden)
        check_sizes(self, "hidden", "embedding", "layers")
        check_shares(self, "dropout", "label_smoothing")
        if self.bidirectional:
            raise ConfigError("a language model cannot be bidirectional: it would see the future")


class RecurrentLm(nn.Module):
    """Embedding, recurrent stack, output layer. Implements Loss, Scorer, Stepper and Encodes."""

    def __init__(self, config: RecurrentLmConfig, vocabulary_size: int, *, seed: int = 0) -> None:
        super().__init__()
        assert config.embedding is not None  # filled in by the configuration itself
        self.config = config
        self.vocabulary_size = vocabulary_size
        self.embedding = Embedding(vocabulary_size, config.embedding)
        self.stack = RecurrentStack(
            config.architecture,
            config.embedding,
            config.hidden,
            layers=config.layers,
            dropout=config.dropout,
            nonlinearity=config.nonlinearity,
        )
        self.output = Output(config.hidden, self.embedding, tied=config.tied)
        self.dropout = Dropout(config.dropout)
        initialise(self, torch.Generator().manual_seed(seed))

    @classmethod
    def build(
        cls,
        architecture: str,
        options: Mapping[str, Any],
        vocabularies: Mapping[str, Vocabulary],
        *,
        seed: int = 0,
    ) -> RecurrentLm:
        """Make the model that `options` describe over the vocabulary "tokens"."""
        config = configure(RecurrentLmConfig, architecture, "lm", options)
        return cls(config, len(vocabularies["tokens"]), seed=seed)

    def loss(
        self, batch: TensorBatch, state: RecurrentState | None = None
    ) -> tuple[LossTerms, RecurrentState]:
        """See `Loss`; what carries on is the state after each row's last real token."""
        readout, last = self._read(batch, state if batch.carry else None)
        smoothing = self.config.label_smoothing if self.training else 0.0
        terms = self.output.loss(readout, batch.targets, smoothing)
        return terms, tuple(part.detach() for part in last)

    def token_logprobs(self, batch: TensorBatch) -> Tensor:
        """See `Scorer`."""
        return self.output.token_logprobs(self._read(batch, None)[0], batch.targets)

    def encode(self, batch: TensorBatch, *, attention: bool = False) -> tuple[Tensor, Attention]:
        """See `Encodes`; a position has seen what stands before it alone."""
        states, _ = self.stack(self.dropout(self.embedding(batch.inputs)), batch.lengths)
        return states, {}

    def start(
        self,
        source: Tensor | None,
        source_lengths: Tensor | None,
        prefix: Tensor,
        prefix_lengths: Tensor,
        *,
        attention: bool = False,
    ) -> RecurrentState:
        """See `Stepper`; there is no source."""
        read = self.dropout(self.embedding(prefix[:, :-1]))
        _, state = self.stack(read, prefix_lengths - 1)
        return tuple(state)

    def attended(self, state: RecurrentState) -> Attention:
        """See `Stepper`; nothing."""
        return {}

    def step(
        self, last_ids: Tensor, state: RecurrentState
    ) -> tuple[Tensor, RecurrentState, Attention | None]:
        """See `Stepper`."""
        hidden, state = self.stack.step(self.dropout(self.embedding(last_ids)), state)
        return self.output(self.dropout(hidden)), state, None

    def select(self, state: RecurrentState, rows: Tensor) -> RecurrentState:
        """See `Stepper`."""
        return tuple(part.index_select(0, rows) for part in state)

    def _read(
        self, batch: TensorBatch, state: RecurrentState | None
    ) -> tuple[Tensor, RecurrentState]:
        if state is not None and len(state[0]) != len(batch.inputs):
            rows = f"got {len(batch.inputs)} after {len(state[0])}"
            raise ValueError(
                f"a batch that carries on must have the rows of the one before, {rows}"
            )
        embedded = self.dropout(self.embedding(batch.inputs))
        outputs, last = self.stack(embedded, batch.lengths, state)
        return self.dropout(outputs), last
