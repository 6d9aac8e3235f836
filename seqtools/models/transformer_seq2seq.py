"""The Transformer of Vaswani et al. 2017, encoder and decoder, for the task seq2seq.

Shapes: B rows, S source positions, T target steps, V vocabulary, E hidden size.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from seqtools.errors import ConfigError
from seqtools.models.config import check_sizes, configure
from seqtools.models.protocols import LossTerms, State, TensorBatch
from seqtools.models.transformer import (
    DecoderState,
    Decodes,
    Embedded,
    TokenDecoder,
    TransformerConfig,
    first_weights,
)
from seqtools.nn.layers import Embedding
from seqtools.nn.masks import length_mask, padding_bias
from seqtools.text.vocab import Vocabulary


@dataclass(frozen=True)
class TransformerSeq2SeqConfig(TransformerConfig):
    """Sizes and choices; `decoder_layers` is `layers` if None.

    `tied` binds output layer and target embeddings; `share_embeddings` those of source and target,
    over one joint vocabulary.

    Raises ConfigError for what cannot be.
    """

    position: str = "sinusoidal"
    decoder_layers: int | None = None
    share_embeddings: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.decoder_layers is None:
            object.__setattr__(self, "decoder_layers", self.layers)
        check_sizes(self, "decoder_layers")


class TransformerSeq2Seq(Decodes):
    """Encoder and decoder. Implements Loss, Scorer and Stepper.

    Raises ConfigError where embeddings are to be shared by vocabularies of different sizes.
    """

    def __init__(
        self,
        config: TransformerSeq2SeqConfig,
        source_vocabulary_size: int,
        vocabulary_size: int,
        *,
        seed: int = 0,
    ) -> None:
        super().__init__()
        assert config.decoder_layers is not None  # filled in by the configuration itself
        self.config = config
        self.vocabulary_size = vocabulary_size
        source_embedding = Embedding(source_vocabulary_size, config.hidden)
        target_embedding = source_embedding
        if not config.share_embeddings:
            target_embedding = Embedding(vocabulary_size, config.hidden)
        elif source_vocabulary_size != vocabulary_size:
            raise ConfigError(
                "embeddings can be shared only over one joint vocabulary, got "
                f"{source_vocabulary_size} and {vocabulary_size} entries"
            )
        positions, self.encoder = config.make_stack(config.layers, causal=False, cross=False)
        self.source = Embedded(
            source_embedding,
            positions,
            config.dropout,
            scaled=config.tied and config.share_embeddings,
        )
        self.decoder = TokenDecoder(config, config.decoder_layers, target_embedding, cross=True)
        first_weights(self, config, seed)

    @classmethod
    def build(
        cls,
        architecture: str,
        options: Mapping[str, Any],
        vocabularies: Mapping[str, Vocabulary],
        *,
        seed: int = 0,
    ) -> TransformerSeq2Seq:
        """Make the model that `options` describe over the vocabularies "source" and "target"."""
        config = configure(TransformerSeq2SeqConfig, architecture, "seq2seq", options)
        source, target = vocabularies["source"], vocabularies["target"]
        if config.share_embeddings and source.tokens != target.tokens:
            raise ConfigError("embeddings can be shared only over one joint vocabulary")
        return cls(config, len(source), len(target), seed=seed)

    def loss(
        self, batch: TensorBatch, state: State | None = None
    ) -> tuple[LossTerms, State | None]:
        """See `Loss`; nothing carries on from one batch to the next."""
        smoothing = self.config.label_smoothing if self.training else 0.0
        return self.decoder.output.loss(self._read(batch), batch.targets, smoothing), None

    def token_logprobs(self, batch: TensorBatch) -> Tensor:
        """See `Scorer`."""
        return self.decoder.output.token_logprobs(self._read(batch), batch.targets)

    def start(
        self,
        source: Tensor | None,
        source_lengths: Tensor | None,
        prefix: Tensor,
        prefix_lengths: Tensor,
        *,
        attention: bool = False,
    ) -> DecoderState:
        """See `Stepper`."""
        state = self._encode(source, source_lengths, attention=attention)
        return self.decoder.start(prefix, prefix_lengths, state)

    def _encode(
        self, source: Tensor | None, lengths: Tensor | None, *, attention: bool = False
    ) -> DecoderState:
        if source is None or lengths is None:
            raise ValueError("a sequence-to-sequence model needs a source and its lengths")
        mask = length_mask(lengths, source.shape[1])
        values, _, attended = self.encoder(
            self.source(source), padding_bias(mask), weights=attention
        )
        sources = tuple(self.decoder.stack.sources(values))
        first = {} if attended.own is None else {"encoder": attended.own}
        return DecoderState((), 0, sources, mask, attention, first)

    def _read(self, batch: TensorBatch) -> Tensor:
        """Give the readouts (B, T, E) of known inputs (B, T)."""
        state = self._encode(batch.source, batch.source_lengths)
        return self.decoder.read(batch.inputs, state.sources, state.mask)
