"""Stacks of recurrent layers over sequences padded on the right.

Shapes: B rows, T steps, I input size, H hidden size, D directions (1 or 2), L layers.
The recurrences are torch's own: the tanh or relu network of Elman 1990; the LSTM of Hochreiter and
Schmidhuber 1997 with the forget gate of Gers et al. 2000, without peepholes; the GRU of Cho et al.
2014 as cuDNN has it: h_t = z * h_{t-1} + (1 - z) * n_t, n_t = tanh(W x + b + r * (U h_{t-1} + c)).
"""

from __future__ import annotations

from typing import Literal, TypeAlias, cast

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from seqtools.errors import ConfigError
from seqtools.nn.layers import Dropout
from seqtools.nn.masks import reversal

Architecture: TypeAlias = Literal["rnn", "lstm", "gru"]
# One tensor (B, L * D, H) for rnn and gru; two, hidden and cell, for lstm. Rows first.
RecurrentState: TypeAlias = tuple[Tensor, ...]

STATES = {"rnn": 1, "lstm": 2, "gru": 1}
MERGES = ("concat", "sum", "mean")
NONLINEARITIES = ("tanh", "relu")


class RecurrentStack(nn.Module):
    """`layers` recurrent layers, each reading the one below, with dropout between them.

    A bidirectional layer (Schuster and Paliwal 1997) reads each row from its first real token on
    and from its last real token back, and merges the two outputs by `merge`: concat (size 2H), sum
    or mean (size H). The layer above reads the merged output. With `dropout_below` there is dropout
    on what the lowest layer reads, too, for a stack upon another.

    Raises ConfigError for sizes below 1 or an unknown name.
    """

    def __init__(  # one argument a choice of the user
        self,
        architecture: Architecture,
        input_size: int,
        hidden: int,
        *,
        layers: int = 1,
        dropout: float = 0.0,
        bidirectional: bool = False,
        merge: str = "concat",
        nonlinearity: str = "tanh",
        dropout_below: bool = False,
    ) -> None:
        super().__init__()
        _check_names(architecture, merge, nonlinearity)
        if min(input_size, hidden, layers) < 1:
            given = f"got {input_size}, {hidden} and {layers}"
            raise ConfigError(f"input size, hidden size and layers must be at least 1, {given}")
        self.architecture = architecture
        self.hidden = hidden
        self.bidirectional = bidirectional
        self.merge = merge
        self.output_size = hidden * 2 if bidirectional and merge == "concat" else hidden
        self.forward_layers = nn.ModuleList()
        self.backward_layers = nn.ModuleList()
        for number in range(layers):
            size = self.output_size if number else input_size
            self.forward_layers.append(layer(architecture, size, hidden, nonlinearity))
            if bidirectional:
                self.backward_layers.append(layer(architecture, size, hidden, nonlinearity))
        self.dropout = Dropout(dropout)
        self.dropout_below = dropout_below

    @property
    def directions(self) -> int:
        """1, or 2 if bidirectional."""
        return 2 if self.bidirectional else 1

    def initial_state(self, rows: int) -> RecurrentState:
        """Give zeros, (rows, L * D, H) each."""
        weight = next(self.parameters())
        size = (rows, len(self.forward_layers) * self.directions, self.hidden)
        return tuple(weight.new_zeros(size) for _ in range(STATES[self.architecture]))

    def forward(
        self, inputs: Tensor, lengths: Tensor | None = None, state: RecurrentState | None = None
    ) -> tuple[Tensor, RecurrentState]:
        """Read `inputs` (B, T, I), of which `lengths` (B,) are real (all if None).

        Gives the outputs (B, T, output_size), without meaning past a row's length, and the state
        after each row's last real token, forward then backward for each layer. A row of length 0
        keeps its first state. `state` is that first state, zeros if None.
        """
        rows, steps = inputs.shape[:2]
        state = self.initial_state(rows) if state is None else state
        if steps == 0:
            return inputs.new_zeros(rows, 0, self.output_size), state
        if lengths is not None and bool((lengths == steps).all()):
            lengths = None
        positions = None if lengths is None else reversal(lengths, steps)
        last: list[RecurrentState] = []
        outputs = inputs
        for number, module in enumerate(_modules(self.forward_layers)):
            inputs = self.dropout(outputs) if number or self.dropout_below else inputs
            first = _at(state, number * self.directions)
            outputs, after = _run(module, inputs, lengths, first)
            last.append(after)
            if self.bidirectional:
                first = _at(state, number * 2 + 1)
                module = _modules(self.backward_layers)[number]
                behind, after = _run(module, _reverse(inputs, positions), lengths, first)
                last.append(after)
                outputs = self._merged(outputs, _reverse(behind, positions))
        return outputs, tuple(torch.stack(part, 1) for part in zip(*last, strict=True))

    def read(self, inputs: Tensor, state: RecurrentState | None = None) -> Tensor:
        """Give the outputs alone, every input being taken for real."""
        outputs, _ = self.forward(inputs, None, state)
        return outputs

    def step(self, inputs: Tensor, state: RecurrentState) -> tuple[Tensor, RecurrentState]:
        """Read one token a row: `inputs` (B, I) and a state give outputs (B, H) and the next state.

        Only for one direction.
        """
        if self.bidirectional:
            raise ValueError("a bidirectional stack cannot be stepped: it reads from both ends")
        last = []
        for number, module in enumerate(_modules(self.forward_layers)):
            inputs = self.dropout(inputs) if number or self.dropout_below else inputs
            after = cell(module, inputs, _at(state, number))
            last.append(after)
            inputs = after[0]
        return inputs, tuple(torch.stack(part, 1) for part in zip(*last, strict=True))

    def _merged(self, ahead: Tensor, behind: Tensor) -> Tensor:
        if self.merge == "concat":
            return torch.cat((ahead, behind), -1)
        return ahead + behind if self.merge == "sum" else (ahead + behind) / 2


def cell(module: nn.RNNBase, inputs: Tensor, state: RecurrentState) -> RecurrentState:
    """Do one step of a one-layer torch module: inputs (B, I), state of (B, H) each, next state."""
    weights = cell_weights(module)
    if isinstance(module, nn.LSTM):
        return torch.lstm_cell(inputs, state, *weights)
    if isinstance(module, nn.GRU):
        return (torch.gru_cell(inputs, state[0], *weights),)
    if module.mode == "RNN_TANH":
        return (torch.rnn_tanh_cell(inputs, state[0], *weights),)
    return (torch.rnn_relu_cell(inputs, state[0], *weights),)


def cell_weights(module: nn.RNNBase) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Give input weight (G, I), recurrent weight (G, H) and their biases of a one-layer module.

    G is H times the number of gates, in torch's order: r z n for gru, i f g o for lstm.
    """
    names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
    return cast("tuple[Tensor, Tensor, Tensor, Tensor]", tuple(getattr(module, n) for n in names))


def _modules(layers: nn.ModuleList) -> list[nn.RNNBase]:
    return cast("list[nn.RNNBase]", list(layers))


def layer(architecture: str, size: int, hidden: int, nonlinearity: str) -> nn.RNNBase:
    """Make one layer in one direction, with batches first."""
    if architecture == "rnn":
        return nn.RNN(size, hidden, nonlinearity=nonlinearity, batch_first=True)
    module = nn.LSTM if architecture == "lstm" else nn.GRU
    return module(size, hidden, batch_first=True)


def _check_names(architecture: str, merge: str, nonlinearity: str) -> None:
    choices = (
        ("architecture", architecture, tuple(STATES)),
        ("merge", merge, MERGES),
        ("nonlinearity", nonlinearity, NONLINEARITIES),
    )
    for what, name, names in choices:
        if name not in names:
            raise ConfigError(f"unknown {what} {name!r}: choose from {', '.join(names)}")
    if nonlinearity != "tanh" and architecture != "rnn":
        raise ConfigError(f"the nonlinearity is a choice of rnn, {architecture} has its own")


def _at(state: RecurrentState, index: int) -> RecurrentState:
    return tuple(part[:, index] for part in state)


def _reverse(inputs: Tensor, positions: Tensor | None) -> Tensor:
    """Reorder the steps of `inputs` (B, T, I) by `positions` (B, T); plain reversal if None."""
    if positions is None:
        return inputs.flip(1)
    rows, steps, size = inputs.shape
    flat = positions + steps * torch.arange(rows, device=inputs.device)[:, None]
    return inputs.reshape(-1, size).index_select(0, flat.view(-1)).view(rows, steps, size)


def _run(
    module: nn.RNNBase, inputs: Tensor, lengths: Tensor | None, first: RecurrentState
) -> tuple[Tensor, RecurrentState]:
    """Run one layer: outputs (B, T, H) and the state (B, H) after each row's last real token.

    Padding is simply run over, which is quicker than packing, and the state is then the output at
    the last real token. Only the cell of an LSTM is not among its outputs, so it is packed.
    """
    if lengths is not None and isinstance(module, nn.LSTM):
        return _run_packed(module, inputs, lengths, first)
    hidden = tuple(part.unsqueeze(0).contiguous() for part in first)
    outputs, after = module(inputs, hidden if isinstance(module, nn.LSTM) else hidden[0])
    if lengths is None:
        return outputs, tuple(part[0] for part in (after if len(first) > 1 else (after,)))
    index = (lengths - 1).clamp(min=0)[:, None, None].expand(-1, 1, outputs.shape[2])
    last = outputs.gather(1, index).squeeze(1)
    return outputs, (torch.where(lengths[:, None] > 0, last, first[0]),)


def _run_packed(
    module: nn.RNNBase, inputs: Tensor, lengths: Tensor, first: RecurrentState
) -> tuple[Tensor, RecurrentState]:
    # Packing refuses length 0: such rows read one token, and then keep their first state.
    packed = pack_padded_sequence(
        inputs, lengths.clamp(min=1).cpu(), batch_first=True, enforce_sorted=False
    )
    packed_outputs, after = module(packed, tuple(part.unsqueeze(0).contiguous() for part in first))
    outputs, _ = pad_packed_sequence(packed_outputs, batch_first=True, total_length=inputs.shape[1])
    real = lengths[:, None] > 0
    pairs = zip(after, first, strict=True)
    return outputs, tuple(torch.where(real, part[0], start) for part, start in pairs)
