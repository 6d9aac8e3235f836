"""Recurrent decoders over a source, by where attention enters: before the cell, after it, nowhere.

Shapes: B rows, T steps, S source positions, E embedding size, H hidden size, K size of a source
vector, L layers, R size of what is read out for the output layer. Each decoder runs over a whole
target at once (`forward`, for training) and step by step (`step`), with the same result. A state is
a tuple of tensors with rows first: the recurrent state, what else a decoder hands on, and last, for
an attention that counts steps, the number (B,) of the next one.
"""

from __future__ import annotations

from typing import TypeAlias

import torch
from torch import Tensor, nn

from seqtools.nn.attention import Attention, Memory
from seqtools.nn.recurrent import STATES, Architecture, RecurrentStack, RecurrentState, cell, layer
from seqtools.nn.scan import can_scan, scan

DecoderState: TypeAlias = tuple[Tensor, ...]


class Decoder(nn.Module):
    """What the three have in common. `readout_size` is R."""

    readout_size: int

    def first_state(self, recurrent: RecurrentState) -> DecoderState:
        """Give the state to start from, given that of the recurrent layers, (B, L, H) each."""
        return recurrent

    def forward(self, embedded: Tensor, memory: Memory | None, state: DecoderState) -> Tensor:
        """Give the readouts (B, T, R) of a target (B, T, E) that is known."""
        raise NotImplementedError

    def step(
        self, embedded: Tensor, memory: Memory | None, state: DecoderState
    ) -> tuple[Tensor, DecoderState, Tensor | None]:
        """Feed one token a row, (B, E): readout (B, R), next state, attention weights (B, S)."""
        raise NotImplementedError


class PlainDecoder(Decoder):
    """No attention: the source is in the first state alone (Sutskever et al. 2014, equation 4)."""

    def __init__(self, stack: RecurrentStack) -> None:
        super().__init__()
        self.stack = stack
        self.readout_size = stack.hidden

    def forward(self, embedded: Tensor, memory: Memory | None, state: DecoderState) -> Tensor:
        """Give the states of the top layer."""
        return self.stack.read(embedded, state)

    def step(
        self, embedded: Tensor, memory: Memory | None, state: DecoderState
    ) -> tuple[Tensor, DecoderState, Tensor | None]:
        """Feed one token a row."""
        hidden, state = self.stack.step(embedded, state)
        return hidden, state, None


class AttentiveDecoder(Decoder):
    """What those with attention have in common."""

    def __init__(self, attention: Attention) -> None:
        super().__init__()
        self.attention = attention

    def first_state(self, recurrent: RecurrentState) -> DecoderState:
        """Add step 0 where steps count."""
        if not self.attention.counts_steps:
            return recurrent
        return (*recurrent, recurrent[0].new_zeros(len(recurrent[0]), dtype=torch.long))

    def _split(self, state: DecoderState) -> tuple[DecoderState, Tensor | None]:
        """Give the rest of the state, and the number of the step (B,) where steps count."""
        return (state[:-1], state[-1]) if self.attention.counts_steps else (state, None)

    def _joined(self, state: DecoderState, step: Tensor | None) -> DecoderState:
        """Give the state of the next step, from its rest and the number of this step."""
        return state if step is None else (*state, step + 1)


class BahdanauDecoder(AttentiveDecoder):
    """Attention before the cell (Bahdanau et al. 2015, section 3.1 and A.2.2).

    c_t attends with s_{t-1}; s_t = cell([y_{t-1}; c_t], s_{t-1}); the readout is
    tanh(W [s_t; c_t; y_{t-1}] + b), a plain layer in place of the paper's maxout. Of several layers
    the lowest attends (as in Wu et al. 2016, section 3), and s_t in the readout is the top one's.
    """

    def __init__(  # the parts and sizes of one architecture
        self,
        architecture: Architecture,
        embedding: int,
        hidden: int,
        value_size: int,
        attention: Attention,
        *,
        layers: int,
        dropout: float,
        nonlinearity: str,
        readout: int,
    ) -> None:
        super().__init__(attention)
        self.first = layer(architecture, embedding + value_size, hidden, nonlinearity)
        self.above: RecurrentStack | None = None
        if layers > 1:
            self.above = RecurrentStack(
                architecture,
                hidden,
                hidden,
                layers=layers - 1,
                dropout=dropout,
                nonlinearity=nonlinearity,
                dropout_below=True,
            )
        self.readout = nn.Linear(hidden + value_size + embedding, readout)
        self.readout_size = readout

    def forward(self, embedded: Tensor, memory: Memory | None, state: DecoderState) -> Tensor:
        """Run the first layer step by step, and all else at once."""
        assert memory is not None
        state, step = self._split(state)
        first = tuple(part[:, 0] for part in state)
        if can_scan(self.first, self.attention):
            hidden, contexts = scan(self.first, self.attention, embedded, memory, first[0])
        else:
            hidden, contexts = self._scan(embedded, memory, first, step)
        if self.above is not None:
            hidden = self.above.read(hidden, tuple(part[:, 1:] for part in state))
        return self._read_out(hidden, contexts, embedded)

    def _scan(
        self, embedded: Tensor, memory: Memory, state: RecurrentState, step: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Give states (B, T, H) and contexts (B, T, K), step by step."""
        states, contexts = [], []
        for number, token in enumerate(embedded.unbind(1)):
            context, _ = self._attend(memory, state, None if step is None else step + number)
            state = cell(self.first, torch.cat((token, context), 1), state)
            states.append(state[0])
            contexts.append(context)
        return torch.stack(states, 1), torch.stack(contexts, 1)

    def step(
        self, embedded: Tensor, memory: Memory | None, state: DecoderState
    ) -> tuple[Tensor, DecoderState, Tensor | None]:
        """Feed one token a row."""
        assert memory is not None
        state, step = self._split(state)
        first = tuple(part[:, 0] for part in state)
        context, weights = self._attend(memory, first, step)
        first = cell(self.first, torch.cat((embedded, context), 1), first)
        hidden, state_after = first[0], tuple(part.unsqueeze(1) for part in first)
        if self.above is not None:
            hidden, above = self.above.step(hidden, tuple(part[:, 1:] for part in state))
            pairs = zip(state_after, above, strict=True)
            state_after = tuple(torch.cat(pair, 1) for pair in pairs)
        readout = self._read_out(hidden, context, embedded)
        return readout, self._joined(state_after, step), weights

    def _attend(
        self, memory: Memory, state: RecurrentState, step: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        context, weights = self.attention(state[0].unsqueeze(1), memory, step)
        return context.squeeze(1), weights.squeeze(1)

    def _read_out(self, hidden: Tensor, context: Tensor, embedded: Tensor) -> Tensor:
        return torch.tanh(self.readout(torch.cat((hidden, context, embedded), -1)))


class LuongDecoder(AttentiveDecoder):
    """Attention after the cell (Luong et al. 2015, section 3).

    s_t = cell(y_{t-1}, s_{t-1}) through all layers; c_t attends with s_t; what is read out is
    s~_t = tanh(W [c_t; s_t]) (equation 5), R = H. With `input_feeding` (section 3.3) the cell reads
    [y_{t-1}; s~_{t-1}], s~_0 being 0; without it nothing waits for the attention, and all steps
    attend at once.
    """

    def __init__(
        self, stack: RecurrentStack, value_size: int, attention: Attention, *, input_feeding: bool
    ) -> None:
        super().__init__(attention)
        self.stack = stack
        self.combine = nn.Linear(value_size + stack.hidden, stack.hidden, bias=False)
        self.input_feeding = input_feeding
        self.readout_size = stack.hidden

    def first_state(self, recurrent: RecurrentState) -> DecoderState:
        """Add s~_0 = 0 where it is fed, and step 0 where steps count."""
        fed = recurrent[0].new_zeros(len(recurrent[0]), self.readout_size)
        return super().first_state((*recurrent, fed) if self.input_feeding else recurrent)

    def forward(self, embedded: Tensor, memory: Memory | None, state: DecoderState) -> Tensor:
        """Run the layers, then attend; step by step where what was attended to is fed."""
        assert memory is not None
        if not self.input_feeding:
            state, step = self._split(state)
            return self._attend(self.stack.read(embedded, state), memory, step)[0]
        readouts = []
        for token in embedded.unbind(1):
            readout, state, _ = self.step(token, memory, state)
            readouts.append(readout)
        return torch.stack(readouts, 1)

    def step(
        self, embedded: Tensor, memory: Memory | None, state: DecoderState
    ) -> tuple[Tensor, DecoderState, Tensor | None]:
        """Feed one token a row."""
        assert memory is not None
        state, step = self._split(state)
        recurrent = state
        if self.input_feeding:
            recurrent = state[: STATES[self.stack.architecture]]
            embedded = torch.cat((embedded, state[-1]), 1)
        hidden, recurrent = self.stack.step(embedded, recurrent)
        readout, weights = self._attend(hidden.unsqueeze(1), memory, step)
        readout = readout.squeeze(1)
        after = (*recurrent, readout) if self.input_feeding else recurrent
        return readout, self._joined(after, step), weights.squeeze(1)

    def _attend(self, hidden: Tensor, memory: Memory, step: Tensor | None) -> tuple[Tensor, Tensor]:
        context, weights = self.attention(hidden, memory, step)
        return torch.tanh(self.combine(torch.cat((context, hidden), 2))), weights
