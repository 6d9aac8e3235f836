"""First weights by their variances."""

import torch
from torch import nn

from seqtools.nn.initialisation import initialise


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
