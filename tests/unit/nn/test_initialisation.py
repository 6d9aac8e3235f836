"""First weights by their variances."""

import pytest
import torch
from torch import nn

from seqtools.nn.initialisation import initialise
from seqtools.nn.layers import StackedLinear


class Model(nn.Module):
    def __init__(self, tied: bool) -> None:
        super().__init__()
        self.embedding = nn.Embedding(2000, 64)
        self.output = nn.Module()
        self.output.weight = self.embedding.weight if tied else nn.Parameter(torch.empty(2000, 64))
        self.output.bias = nn.Parameter(torch.empty(2000))
        self.query = nn.Parameter(torch.empty(999))


def made(tied: bool, seed: int = 0) -> Model:
    model = Model(tied)
    initialise(model, torch.Generator().manual_seed(seed))
    return model


def test_embeddings_have_variance_one_unless_they_are_the_output_layer_too() -> None:
    assert abs(made(tied=False).embedding.weight.var().item() - 1) < 0.02
    assert abs(made(tied=True).embedding.weight.var().item() - 1 / 64) < 0.001


def test_lone_matrices_and_vectors_follow_glorot() -> None:
    model = made(tied=False)
    assert abs(model.output.weight.var().item() - 2 / (2000 + 64)) < 2e-5
    assert abs(model.query.var().item() - 2 / (999 + 1)) < 3e-4
    assert not model.output.bias.any()


def test_the_generator_decides() -> None:
    first, again, other = made(True, 1), made(True, 1), made(True, 2)
    assert torch.equal(first.embedding.weight, again.embedding.weight)
    assert not torch.equal(first.embedding.weight, other.embedding.weight)


def test_each_part_of_a_stacked_layer_follows_glorot_by_itself() -> None:
    layer = StackedLinear(200, 100, 3)
    initialise(layer, torch.Generator().manual_seed(0))
    for part in layer.weight.chunk(3):
        assert abs(part.var().item() * (200 + 100) / 2 - 1) < 0.02
    assert not layer.bias.any()


@pytest.mark.parametrize(("kind", "gates"), [(nn.LSTM, 4), (nn.GRU, 3), (nn.RNN, 1)])
def test_recurrent_layers_gate_by_gate(kind: type[nn.RNNBase], gates: int) -> None:
    layer = kind(150, 50)
    initialise(layer, torch.Generator().manual_seed(0))
    weights = dict(layer.named_parameters())
    for gate in weights["weight_ih_l0"].chunk(gates):
        assert abs(gate.var().item() * (150 + 50) / 2 - 1) < 0.04
    for gate in weights["weight_hh_l0"].chunk(gates):
        torch.testing.assert_close(gate @ gate.T, torch.eye(50), atol=1e-5, rtol=0)
    expected = torch.zeros(gates * 50)
    if kind is nn.LSTM:  # torch has the forget gate second
        expected[50:100] = 1
    assert torch.equal(weights["bias_ih_l0"] + weights["bias_hh_l0"], expected)
