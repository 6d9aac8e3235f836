"""The output layer of models that predict tokens, with what is asked of it: loss and probabilities.

Shapes: B rows, T steps, N rows of any kind, R size of what is read out, E embedding size,
V vocabulary.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from seqtools.models.protocols import IGNORED, LossTerms
from seqtools.nn.losses import linear_cross_entropy, linear_token_logprobs


class Output(nn.Module):
    """Log-probabilities of the next token: softmax(W r + b), r projected to W's width at need.

    Tied (Press and Wolf 2017; Inan et al. 2017), W is `embedding`'s table, else a table of its own.
    """

    def __init__(self, size: int, embedding: nn.Embedding, *, tied: bool) -> None:
        super().__init__()
        vocabulary, width = embedding.weight.shape
        self.project: nn.Module = nn.Identity()
        if tied and size != width:
            self.project = nn.Linear(size, width, bias=False)
        if tied:
            self.weight = embedding.weight
        else:
            self.weight = nn.Parameter(torch.empty(vocabulary, size))
        self.bias = nn.Parameter(torch.empty(vocabulary))

    def forward(self, readout: Tensor) -> Tensor:
        """Give log P of every token: (N, R) -> (N, V) float32."""
        return self._logits(readout).float().log_softmax(1)

    def best(self, readout: Tensor) -> Tensor:
        """Give the most probable token: (N, R) -> (N,) int64."""
        return self._logits(readout).argmax(1)

    def _logits(self, readout: Tensor) -> Tensor:
        # Product and sum apart: together, torch on CPU writes V biases a row before it multiplies,
        # which took half of the time.
        product: Tensor = self.project(readout) @ self.weight.T
        return product + self.bias if product.requires_grad else product.add_(self.bias)

    def loss(self, readout: Tensor, targets: Tensor, label_smoothing: float) -> LossTerms:
        """Give the terms of `readout` (B, T, R) against `targets` (B, T), -100 not counted."""
        real, hidden, wanted = self._real(readout, targets)
        sums = linear_cross_entropy(
            hidden, self.weight, self.bias, wanted, label_smoothing=label_smoothing
        )
        count = len(real)
        if not label_smoothing:
            return LossTerms({"nll": (sums.objective, count)}, "nll")
        terms = {"nll": (sums.nll, count), "smoothed": (sums.objective, count)}
        return LossTerms(terms, "smoothed")

    @torch.no_grad()
    def token_logprobs(self, readout: Tensor, targets: Tensor) -> Tensor:
        """Give log P(target) (B, T) float32 of `readout` (B, T, R); 0 where a target is -100."""
        real, hidden, wanted = self._real(readout, targets)
        result = torch.zeros(targets.numel(), device=targets.device)
        result[real] = linear_token_logprobs(hidden, self.weight, self.bias, wanted)
        return result.view(targets.shape)

    def _real(self, readout: Tensor, targets: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Flat positions (N,) whose targets count, their projected readouts and targets."""
        targets = targets.reshape(-1)
        real = (targets != IGNORED).nonzero().squeeze(1)
        hidden = readout.reshape(-1, readout.shape[-1])
        if len(real) < len(targets):
            hidden, targets = hidden.index_select(0, real), targets[real]
        return real, self.project(hidden), targets
