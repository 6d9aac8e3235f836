"""The Transformer as a language model, a GPT (Radford et al. 2018, 2019), for the task lm.

Shapes: B rows, T steps, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from seqtools.models.config import configure
from seqtools.models.protocols import Attention, LossTerms, State, TensorBatch
from seqtools.models.transformer import DecoderState, TokenDecoder, TransformerConfig
from seqtools.nn.initialisation import initialise
from seqtools.nn.layers import Embedding
from seqtools.text.vocab import Vocabulary


@dataclass(frozen=True)
class TransformerLmConfig(TransformerConfig):
    """Sizes and choices."""


class TransformerLm(nn.Module):
    """A decoder without a source. Implements Loss, Scorer, Stepper and Encodes.

    A window of training sees nothing before its beginning, also where it continues another.
    """

    def __init__(self, config: TransformerLmConfig, vocabulary_size: int, *, seed: int = 0) -> None:
        super().__init__()
        self.config = config
        self.vocabulary_size = vocabulary_size
        embedding = Embedding(vocabulary_size, config.hidden)
        self.decoder = TokenDecoder(config, config.layers, embedding, cross=False)
        initialise(self, torch.Generator().manual_seed(seed))
        if config.norm == "pre":
            self.decoder.stack.scale_residuals()

    @classmethod
    def build(
        cls,
        architecture: str,
        options: Mapping[str, Any],
        vocabularies: Mapping[str, Vocabulary],
        *,
        seed: int = 0,
    ) -> TransformerLm:
        """Make the model that `options` describe over the vocabulary "tokens"."""
        config = configure(TransformerLmConfig, architecture, "lm", options)
        return cls(config, len(vocabularies["tokens"]), seed=seed)

    def loss(
        self, batch: TensorBatch, state: State | None = None
    ) -> tuple[LossTerms, State | None]:
        """See `Loss`; nothing carries on from one batch to the next."""
        smoothing = self.config.label_smoothing if self.training else 0.0
        readout = self.decoder.read(batch.inputs)
        return self.decoder.output.loss(readout, batch.targets, smoothing), None

    def token_logprobs(self, batch: TensorBatch) -> Tensor:
        """See `Scorer`."""
        return self.decoder.output.token_logprobs(self.decoder.read(batch.inputs), batch.targets)

    def encode(self, batch: TensorBatch, *, attention: bool = False) -> tuple[Tensor, Attention]:
        """See `Encodes`; a position has seen what stands before it alone."""
        embedded = self.decoder.embedded(batch.inputs)
        states, _, attended = self.decoder.stack(embedded, weights=attention)
        return states, {} if attended.own is None else {"decoder": attended.own}

    def start(
        self,
        source: Tensor | None,
        source_lengths: Tensor | None,
        prefix: Tensor,
        prefix_lengths: Tensor,
        *,
        attention: bool = False,
    ) -> DecoderState:
        """See `Stepper`; there is no source."""
        state = DecoderState((), 0, attention=attention)
        return self.decoder.start(prefix, prefix_lengths, state)

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
