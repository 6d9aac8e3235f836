"""A bigram table as a trainable model: its losses and gradients can be worked out by hand."""

import torch
from torch import nn

from seqtools.models.protocols import IGNORED, LossTerms, TensorBatch


class Bigram(nn.Module):
    """P(next | last) from a table of logits (V, V), all zero at first, so every loss is ln V.

    Attributes:
        seen: the state that each call got; the state given back is the number of calls.
        smoothing: above 0, the objective is the label-smoothed loss, under the name `smoothed`.
    """

    def __init__(self, size=4, *, smoothing=0.0):
        super().__init__()
        self.table = nn.Parameter(torch.zeros(size, size))
        self.smoothing = smoothing
        self.seen = []

    def loss(self, batch, state):
        self.seen.append(state)
        logprobs = self.table[batch.inputs].log_softmax(-1)
        count = int((batch.targets != IGNORED).sum())
        flat, targets = logprobs.flatten(0, 1), batch.targets.flatten()
        nll = nn.functional.nll_loss(flat, targets, ignore_index=IGNORED, reduction="sum")
        terms = {"nll": (nll, count)}
        if self.smoothing:
            uniform = -(flat.mean(-1) * (targets != IGNORED)).sum()
            mixed = (1 - self.smoothing) * nll + self.smoothing * uniform
            terms["smoothed"] = (mixed, count)
        return LossTerms(terms, "smoothed" if self.smoothing else "nll"), len(self.seen)


def make_batch(*rows, width=None, carry=False):
    """Rows of ids as a language model's batch, padded with id 0 to `width`."""
    width = width or max(len(row) - 1 for row in rows)
    inputs = torch.zeros(len(rows), width, dtype=torch.int64)
    targets = torch.full((len(rows), width), IGNORED)
    for i, row in enumerate(rows):
        inputs[i, : len(row) - 1] = torch.tensor(row[:-1], dtype=torch.int64)
        targets[i, : len(row) - 1] = torch.tensor(row[1:], dtype=torch.int64)
    lengths = torch.tensor([max(1, len(row) - 1) for row in rows])
    return TensorBatch(inputs, targets, lengths, carry=carry)


def in_epochs(*epochs):
    """Pairs of epoch and batch from one list of batches for each epoch."""
    return [(number, batch) for number, epoch in enumerate(epochs, 1) for batch in epoch]


class Clock:
    """A clock that moves by `tick` seconds at every look."""

    def __init__(self, tick=1.0):
        self.now, self.tick = 0.0, tick

    def __call__(self):
        self.now += self.tick
        return self.now
