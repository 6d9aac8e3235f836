"""First weights, from a generator that is passed in: no global seed is read or changed."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from seqtools.nn.recurrent import cell_weights


def initialise(model: nn.Module, generator: torch.Generator) -> None:
    """Give all parameters of `model` their first values, in the order in which they are registered.

    Linear layers and the input weights of recurrent layers, gate by gate: uniform with variance
    2 / (in + out) (Glorot and Bengio 2010, equation 16). Recurrent weights, gate by gate:
    orthogonal (Saxe et al. 2014, section 3). Embeddings: normal with variance 1 / size, so that
    they can serve as an output layer. Biases: 0, but 1 for the forget gate of an LSTM (Gers et al.
    2000, section 3; Jozefowicz et al. 2015, section 5). Lone vectors: as a row of a linear layer.
    """
    done: set[int] = set()
    for module in model.modules():
        if isinstance(module, nn.RNNBase):
            _recurrent(module, generator)
        elif isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight, generator=generator)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight, std=module.embedding_dim**-0.5, generator=generator)
        else:
            continue
        done.update(id(parameter) for parameter in module.parameters(recurse=False))
    for name, parameter in model.named_parameters():
        if id(parameter) not in done and name.endswith("bias"):
            nn.init.zeros_(parameter)
        elif id(parameter) not in done:
            nn.init.xavier_uniform_(parameter.view(1, -1), generator=generator)


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
