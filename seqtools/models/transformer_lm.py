"""The Transformer as a language model, a GPT (Radford et al. 2018, 2019), for the task lm.

Shapes: B rows, T steps, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from seqtools.models.config import configure
from seqtools.models.protocols import Attention, LossTerms, State, TensorBatch
from seqtools.models.transformer import (
    DecoderState,
    Decodes,
    TokenDecoder,
    TransformerConfig,
    first_weights,
)
from seqtools.nn.layers import Embedding
from seqtools.text.vocab import Vocabulary


@dataclass(frozen=True)
class TransformerLmConfig(TransformerConfig):
    """Sizes and choices."""


class TransformerLm(Decodes):
    """A decoder without a source. Implements Loss, Scorer, Stepper and Encodes.

    A window of training sees nothing before its beginning, also where it continues another.
    """

    def __init__(self, config: TransformerLmConfig, vocabulary_size: int, *, seed: int = 0) -> None:
        super().__init__()
        self.config = config
        self.vocabulary_size = vocabulary_size
        embedding = Embedding(vocabulary_size, config.hidden)
        self.decoder = TokenDecoder(config, config.layers, embedding, cross=False)
        first_weights(self, config, seed)

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
