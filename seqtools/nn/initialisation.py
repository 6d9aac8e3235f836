"""First weights, from a generator that is passed in: no global seed is read or changed."""

from __future__ import annotations

from collections import Counter

import torch
from torch import Tensor, nn

from seqtools.nn.recurrent import cell_weights


def initialise(model: nn.Module, generator: torch.Generator) -> None:
    """Give all parameters of `model` their first values, in the order in which they are registered.

    Linear layers, part by part, and the input weights of recurrent layers, gate by gate: uniform
    with variance 2 / (in + out) (Glorot and Bengio 2010, equation 16). Recurrent weights, gate by
    gate: orthogonal (Saxe et al. 2014, section 3). Embeddings: standard normal, so that layers
    above see inputs of variance 1; with variance 1 / size where another module shares the table,
    which then serves as an output layer too. Norms: scale 1. Biases: 0, but 1 for the forget gate
    of an LSTM (Gers et al. 2000, section 3; Jozefowicz et al. 2015, section 5). Lone matrices: as
    linear layers; lone vectors: as a row of one.
    """
    shared = _shared(model)
    done: set[int] = set()
    for module in model.modules():
        if isinstance(module, nn.RNNBase):
            _recurrent(module, generator)
        elif isinstance(module, nn.Linear):
            for part in module.weight.chunk(getattr(module, "parts", 1)):
                nn.init.xavier_uniform_(part, generator=generator)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, nn.LayerNorm | nn.RMSNorm):
            module.reset_parameters()
        elif isinstance(module, nn.Embedding):
            tied = id(module.weight) in shared
            std = module.embedding_dim**-0.5 if tied else 1.0
            nn.init.normal_(module.weight, std=std, generator=generator)
        else:
            continue
        done.update(id(parameter) for parameter in module.parameters(recurse=False))
    for name, parameter in model.named_parameters():
        if id(parameter) not in done and name.endswith("bias"):
            nn.init.zeros_(parameter)
        elif id(parameter) not in done:
            matrix = parameter if parameter.dim() > 1 else parameter.view(1, -1)
            nn.init.xavier_uniform_(matrix, generator=generator)


def _shared(model: nn.Module) -> set[int]:
    """Identities of the parameters that more than one module has."""
    seen = Counter(
        id(parameter)
        for module in model.modules()
        for parameter in module.parameters(recurse=False)
    )
    return {parameter for parameter, count in seen.items() if count > 1}


@torch.no_grad()
def _recurrent(module: nn.RNNBase, generator: torch.Generator) -> None:
    input_weight, recurrent_weight, input_bias, recurrent_bias = cell_weights(module)
    for gate in _gates(input_weight, module.hidden_size):
        nn.init.xavier_uniform_(gate, generator=generator)
    for gate in _gates(recurrent_weight, module.hidden_size):
        nn.init.orthogonal_(gate, generator=generator)
    nn.init.zeros_(input_bias)
    nn.init.zeros_(recurrent_bias)
    if isinstance(module, nn.LSTM):
        _gates(input_bias, module.hidden_size)[1].fill_(1.0)


def _gates(weight: Tensor, hidden: int) -> list[Tensor]:
    return [weight[first : first + hidden] for first in range(0, len(weight), hidden)]
