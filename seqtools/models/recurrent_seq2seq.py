"""Recurrent encoder-decoders with attention: rnn, lstm and gru for the task seq2seq.

Shapes: B rows, S source positions, T target steps, E embedding size, H hidden size, K size of what
the encoder gives a position, D directions, L layers.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from seqtools.errors import ConfigError
from seqtools.models.config import check_shares, check_sizes, configure
from seqtools.models.output import Output
from seqtools.models.protocols import Attention as StepAttention
from seqtools.models.protocols import LossTerms, State, TensorBatch
from seqtools.nn.attention import SCORES, Attention, Memory, make_score
from seqtools.nn.decoders import (
    AttentiveDecoder,
    BahdanauDecoder,
    Decoder,
    DecoderState,
    LuongDecoder,
    PlainDecoder,
)
from seqtools.nn.initialisation import initialise
from seqtools.nn.layers import Dropout, Embedding
from seqtools.nn.local import LOCAL, HardAttention
from seqtools.nn.masks import length_mask
from seqtools.nn.recurrent import STATES, Architecture, RecurrentStack, RecurrentState
from seqtools.text.vocab import Vocabulary

WIRINGS = ("bahdanau", "luong")
WRAPPERS = {"local": "general", "hard": "additive"}  # attentions over a score, and their default


@dataclass(frozen=True)
class RecurrentSeq2SeqConfig:
    """Sizes and choices; `embedding` is `hidden` if None.

    `bidirectional` and `merge` are the encoder's, `tied` binds output layer and target embeddings.
    `teacher_forcing` is the probability that a step of training is fed the true token before it and
    not the one the model found most probable (Bengio et al. 2015, one draw a token).
    `attention_score` is what attention `local` (if None, general) or `hard` (additive) wraps.
    `attention_window` is the D of `local` to both sides of its centre (10), and `local` whether
    the centre is the step, "monotonic", or "predictive" (the default).

    Raises ConfigError for what cannot be.
    """

    architecture: Architecture
    hidden: int = 256
    embedding: int | None = None
    layers: int = 1
    dropout: float = 0.0
    bidirectional: bool = False
    merge: str = "concat"
    nonlinearity: str = "tanh"
    attention: str = "additive"
    wiring: str = "bahdanau"
    input_feeding: bool = False
    max_source: int | None = None
    tied: bool = False
    label_smoothing: float = 0.0
    teacher_forcing: float = 1.0
    attention_score: str | None = None
    attention_window: int | None = None
    local: str | None = None

    def __post_init__(self) -> None:
        self._default("embedding", self.hidden)
        check_sizes(self, "hidden", "embedding", "layers")
        check_shares(self, "dropout", "label_smoothing")
        if not 0.0 <= self.teacher_forcing <= 1.0:
            raise ConfigError(f"teacher forcing must be from 0 to 1, got {self.teacher_forcing}")
        self._check_attention()
        _check_choice("wiring", self.wiring, WIRINGS)
        if self.attention == "none" and self.wiring != "bahdanau":
            raise ConfigError(f"without attention there is nothing to wire, got {self.wiring}")
        if self.input_feeding and self.wiring != "luong":
            raise ConfigError(f"input feeding belongs to luong wiring, got {self.wiring}")
        if self.max_source is not None and self.score != "location":
            raise ConfigError(f"a max source belongs to location attention, got {self.score}")

    def _check_attention(self) -> None:
        """Fill in what local and hard attention need, and refuse it with any other."""
        _check_choice("attention", self.attention, ("none", *SCORES, *WRAPPERS))
        if self.attention in WRAPPERS:
            self._default("attention_score", WRAPPERS[self.attention])
            _check_choice("attention score", self.attention_score, SCORES)
        elif self.attention_score is not None:
            raise ConfigError(
                f"an attention score belongs to local or hard attention, got {self.attention}"
            )
        if self.attention == "local":
            self._default("attention_window", 10)
            self._default("local", "predictive")
            check_sizes(self, "attention_window")
            _check_choice("kind of local attention", self.local, LOCAL)
        elif self.attention_window is not None or self.local is not None:
            what = "a kind of window" if self.attention_window is None else "an attention window"
            raise ConfigError(f"{what} belongs to local attention, got {self.attention}")

    def _default(self, name: str, value: object) -> None:
        if getattr(self, name) is None:
            object.__setattr__(self, name, value)

    @property
    def score(self) -> str:
        """The name of the score that attention is made of; "none" without attention."""
        return self.attention_score or self.attention


@dataclass(frozen=True)
class Seq2SeqState:
    """What is known before the next token: the decoder's state, and the source if attended to."""

    decoder: DecoderState
    memory: Memory | None


class Bridge(nn.Module):
    """The decoder's first state from the encoder's last, layer by layer.

    From one direction it is taken over as it is (Sutskever et al. 2014; Luong et al. 2015). From
    two, the hidden state is tanh(W [forward; backward] + b), after Bahdanau et al. 2015, section
    A.2.2, and an LSTM's cell the same without tanh.
    """

    def __init__(self, architecture: Architecture, hidden: int, layers: int, directions: int):
        super().__init__()
        self.directions = directions
        self.parts = nn.ModuleList()
        for _ in range(STATES[architecture] if directions > 1 else 0):
            self.parts.append(
                nn.ModuleList(nn.Linear(hidden * directions, hidden) for _ in range(layers))
            )

    def forward(self, state: RecurrentState) -> RecurrentState:
        """Give (B, L, H) each for (B, L * D, H) each."""
        if self.directions == 1:
            return state
        rows, _, hidden = state[0].shape
        bridged = []
        for number, (part, layers) in enumerate(zip(state, self.parts, strict=True)):
            both = part.view(rows, -1, self.directions * hidden).unbind(1)
            assert isinstance(layers, nn.ModuleList)
            result = torch.stack([layer(x) for layer, x in zip(layers, both, strict=True)], 1)
            bridged.append(result if number else torch.tanh(result))
        return tuple(bridged)


class RecurrentSeq2Seq(nn.Module):
    """Encoder, bridge, decoder, output layer. Implements Loss, Scorer and Stepper.

    There is dropout on both embeddings, between layers, and on what is read out.
    """

    def __init__(
        self,
        config: RecurrentSeq2SeqConfig,
        source_vocabulary_size: int,
        vocabulary_size: int,
        *,
        seed: int = 0,
    ) -> None:
        super().__init__()
        assert config.embedding is not None  # filled in by the configuration itself
        self.config = config
        self.vocabulary_size = vocabulary_size
        self.source_embedding = Embedding(source_vocabulary_size, config.embedding)
        self.target_embedding = Embedding(vocabulary_size, config.embedding)
        self.encoder = RecurrentStack(
            config.architecture,
            config.embedding,
            config.hidden,
            layers=config.layers,
            dropout=config.dropout,
            bidirectional=config.bidirectional,
            merge=config.merge,
            nonlinearity=config.nonlinearity,
        )
        directions = self.encoder.directions
        self.bridge = Bridge(config.architecture, config.hidden, config.layers, directions)
        self.decoder = _make_decoder(config, config.embedding, self.encoder.output_size)
        self.output = Output(self.decoder.readout_size, self.target_embedding, tied=config.tied)
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
    ) -> RecurrentSeq2Seq:
        """Make the model that `options` describe over the vocabularies "source" and "target"."""
        config = configure(RecurrentSeq2SeqConfig, architecture, "seq2seq", options)
        sizes = len(vocabularies["source"]), len(vocabularies["target"])
        return cls(config, *sizes, seed=seed)

    def loss(
        self, batch: TensorBatch, state: State | None = None
    ) -> tuple[LossTerms, State | None]:
        """See `Loss`; nothing carries on from one batch to the next."""
        start = self._encode(batch.source, batch.source_lengths)
        inputs = batch.inputs
        if self.training and self.config.teacher_forcing < 1.0:
            inputs = self._mixed_inputs(inputs, start)
        smoothing = self.config.label_smoothing if self.training else 0.0
        return self.output.loss(self._read(inputs, start), batch.targets, smoothing), None

    def token_logprobs(self, batch: TensorBatch) -> Tensor:
        """See `Scorer`."""
        start = self._encode(batch.source, batch.source_lengths)
        return self.output.token_logprobs(self._read(batch.inputs, start), batch.targets)

    def start(
        self,
        source: Tensor | None,
        source_lengths: Tensor | None,
        prefix: Tensor,
        prefix_lengths: Tensor,
        *,
        attention: bool = False,
    ) -> Seq2SeqState:
        """See `Stepper`."""
        start = self._encode(source, source_lengths)
        state = start.decoder
        for step in range(prefix.shape[1] - 1):
            _, after, _ = self._step(prefix[:, step], start.memory, state)
            going = step < prefix_lengths - 1
            pairs = zip(after, state, strict=True)
            state = tuple(torch.where(_along(going, new), new, old) for new, old in pairs)
        return Seq2SeqState(state, start.memory)

    def attended(self, state: Seq2SeqState) -> StepAttention:
        """See `Stepper`; nothing."""
        return {}

    def step(
        self, last_ids: Tensor, state: Seq2SeqState
    ) -> tuple[Tensor, Seq2SeqState, StepAttention | None]:
        """See `Stepper`; one layer and one head of attention."""
        readout, after, weights = self._step(last_ids, state.memory, state.decoder)
        attention = None if weights is None else {"cross": weights[:, None, None]}
        return self.output(readout), Seq2SeqState(after, state.memory), attention

    def select(self, state: Seq2SeqState, rows: Tensor) -> Seq2SeqState:
        """See `Stepper`."""
        memory = None if state.memory is None else state.memory.select(rows)
        return Seq2SeqState(tuple(part.index_select(0, rows) for part in state.decoder), memory)

    def _encode(self, source: Tensor | None, lengths: Tensor | None) -> Seq2SeqState:
        if source is None or lengths is None:
            raise ValueError("a sequence-to-sequence model needs a source and its lengths")
        embedded = self.dropout(self.source_embedding(source))
        values, last = self.encoder(embedded, lengths)
        memory = None
        if isinstance(self.decoder, AttentiveDecoder):
            memory = self.decoder.attention.memory(values, length_mask(lengths, source.shape[1]))
        return Seq2SeqState(self.decoder.first_state(self.bridge(last)), memory)

    def _read(self, inputs: Tensor, start: Seq2SeqState) -> Tensor:
        """Give the readouts (B, T, R) of known inputs (B, T)."""
        embedded = self.dropout(self.target_embedding(inputs))
        dropped: Tensor = self.dropout(self.decoder(embedded, start.memory, start.decoder))
        return dropped

    def _step(
        self, ids: Tensor, memory: Memory | None, state: DecoderState
    ) -> tuple[Tensor, DecoderState, Tensor | None]:
        embedded = self.dropout(self.target_embedding(ids))
        readout, state, weights = self.decoder.step(embedded, memory, state)
        return self.dropout(readout), state, weights

    @torch.no_grad()
    def _mixed_inputs(self, inputs: Tensor, start: Seq2SeqState) -> Tensor:
        """Give `inputs` (B, T) with tokens of the model's own at the steps that are not forced.

        They are found in a run without gradients, step by step; the loss is then that of the mixed
        inputs, all at once. No gradient would flow through the choice of a token anyway.
        """
        forced = torch.rand(inputs.shape, device=inputs.device) < self.config.teacher_forcing
        forced[:, 0] = True
        state, columns = start.decoder, [inputs[:, 0]]
        for step in range(1, inputs.shape[1]):
            readout, state, _ = self._step(columns[-1], start.memory, state)
            own = self.output.best(readout)
            columns.append(torch.where(forced[:, step], inputs[:, step], own))
        # What autocast made of the weights here has no gradient, and older versions of torch would
        # use it again.
        torch.clear_autocast_cache()
        return torch.stack(columns, 1)


def _check_choice(what: str, name: str | None, names: Collection[str]) -> None:
    if name not in names:
        raise ConfigError(f"unknown {what} {name!r}: choose from {', '.join(names)}")


def _make_decoder(config: RecurrentSeq2SeqConfig, embedding: int, value_size: int) -> Decoder:
    feeding = config.hidden if config.input_feeding else 0
    if config.attention == "none" or config.wiring == "luong":
        stack = RecurrentStack(
            config.architecture,
            embedding + feeding,
            config.hidden,
            layers=config.layers,
            dropout=config.dropout,
            nonlinearity=config.nonlinearity,
        )
    if config.attention == "none":
        return PlainDecoder(stack)
    attention = _make_attention(config, value_size)
    if config.wiring == "luong":
        return LuongDecoder(stack, value_size, attention, input_feeding=config.input_feeding)
    return BahdanauDecoder(
        config.architecture,
        embedding,
        config.hidden,
        value_size,
        attention,
        layers=config.layers,
        dropout=config.dropout,
        nonlinearity=config.nonlinearity,
        readout=embedding,
    )


def _make_attention(config: RecurrentSeq2SeqConfig, value_size: int) -> Attention:
    score = make_score(config.score, config.hidden, value_size, max_source=config.max_source)
    if config.attention == "hard":
        return HardAttention(score)
    if config.local is None or config.attention_window is None:
        return Attention(score)
    return LOCAL[config.local](score, config.hidden, config.attention_window)


def _along(flags: Tensor, part: Tensor) -> Tensor:
    """Shape `flags` (B,) so that they choose among rows of `part`."""
    return flags.view(-1, *[1] * (part.dim() - 1))
