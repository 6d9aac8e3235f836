"""The Transformer that fills gaps, a BERT (Devlin et al. 2019), for the task mlm.

Shapes: B rows, T positions, V vocabulary, E hidden size, N positions to be predicted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from seqtools.models.config import configure
from seqtools.models.output import Output
from seqtools.models.protocols import Attention, LossTerms, State, TensorBatch
from seqtools.models.transformer import Embedded, TransformerConfig, first_weights
from seqtools.nn.layers import Embedding
from seqtools.nn.masks import length_mask, padding_bias
from seqtools.text.vocab import Vocabulary


@dataclass(frozen=True)
class TransformerMlmConfig(TransformerConfig):
    """Sizes and choices; the output layer and the embeddings are tied, as in the paper."""

    tied: bool = True


class TransformerMlm(nn.Module):
    """An encoder with two heads: masked tokens, and whether the second text follows the first.

    Implements Loss, Encodes and Fills. The head for masked tokens is linear, GELU, norm, output
    layer; that for pairs is a linear layer with tanh upon the first position, and one to two
    classes, trained only by batches that have such labels. Otherwise than in the paper, no norm
    stands upon the embeddings.
    """

    def __init__(
        self, config: TransformerMlmConfig, vocabulary_size: int, *, seed: int = 0
    ) -> None:
        super().__init__()
        self.config = config
        self.vocabulary_size = vocabulary_size
        embedding = Embedding(vocabulary_size, config.hidden)
        positions, self.encoder = config.make_stack(config.layers, causal=False, cross=False)
        self.embedded = Embedded(embedding, positions, config.dropout, scaled=config.tied)
        self.segments = Embedding(2, config.hidden)
        self.transform = nn.Linear(config.hidden, config.hidden)
        self.norm = config.shape().make_norm()
        self.output = Output(config.hidden, embedding, tied=config.tied)
        self.pooler = nn.Linear(config.hidden, config.hidden)
        self.follows = nn.Linear(config.hidden, 2)
        first_weights(self, config, seed)

    @classmethod
    def build(
        cls,
        architecture: str,
        options: Mapping[str, Any],
        vocabularies: Mapping[str, Vocabulary],
        *,
        seed: int = 0,
    ) -> TransformerMlm:
        """Make the model that `options` describe over the vocabulary "tokens"."""
        config = configure(TransformerMlmConfig, architecture, "mlm", options)
        return cls(config, len(vocabularies["tokens"]), seed=seed)

    def loss(
        self, batch: TensorBatch, state: State | None = None
    ) -> tuple[LossTerms, State | None]:
        """See `Loss`; with labels of pairs, `objective` is the sum of both mean losses.

        That sum counts for as many targets as there are masked tokens.
        """
        states, _ = self.encode(batch)
        smoothing = self.config.label_smoothing if self.training else 0.0
        places = (batch.targets.reshape(-1) >= 0).nonzero().squeeze(1)
        wanted = batch.targets.reshape(-1)[places]
        found = self.output.loss(self._transformed(states, places)[None], wanted[None], smoothing)
        if batch.next_sentence is None:
            return found, None
        pairs = self.follows(torch.tanh(self.pooler(states[:, 0])))
        second = F.cross_entropy(pairs.float(), batch.next_sentence, reduction="sum")
        first, count = found.terms[found.objective]
        rows = len(batch.next_sentence)
        terms = found.terms | {
            "next_sentence": (second, rows),
            "both": (first + second * (count / rows), count),
        }
        return LossTerms(terms, "both"), None

    def encode(self, batch: TensorBatch, *, attention: bool = False) -> tuple[Tensor, Attention]:
        """See `Encodes`."""
        segments = torch.zeros_like(batch.inputs) if batch.segments is None else batch.segments
        embedded = self.embedded(batch.inputs, added=self.segments(segments))
        bias = padding_bias(length_mask(batch.lengths, batch.inputs.shape[1]))
        states, _, attended = self.encoder(embedded, bias, weights=attention)
        return states, {} if attended.own is None else {"encoder": attended.own}

    def fill_logprobs(
        self, batch: TensorBatch, places: Tensor, *, attention: bool = False
    ) -> tuple[Tensor, Attention]:
        """See `Fills`."""
        states, attended = self.encode(batch, attention=attention)
        return self.output(self._transformed(states, places)), attended

    def _transformed(self, states: Tensor, places: Tensor) -> Tensor:
        """What the output layer reads, (N, E), of `states` (B, T, E) at flat positions (N,)."""
        hidden = states.reshape(-1, states.shape[-1]).index_select(0, places)
        wide = self.transform.weight.dtype  # also under autocast: norms are exact, as in the layers
        result: Tensor = self.norm(F.gelu(self.transform(hidden)).to(wide))
        return result
