"""A plain torch loop that trains an LSTM language model on tensors already in memory.

The other side of the benchmark of `seq-train`: the same sizes, nn.LSTM, a linear layer, cross
entropy over all logits, torch.optim.AdamW, clipping. Prints tokens per second, start-up apart.
"""

import argparse
import time

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, vocabulary: int, width: int, layers: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.lstm = nn.LSTM(width, width, layers, batch_first=True)
        self.output = nn.Linear(width, vocabulary)

    def forward(self, inputs, state):
        hidden, state = self.lstm(self.embedding(inputs), state)
        return self.output(hidden), state


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--vocabulary", type=int, required=True)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--steps", type=int, default=35)
    parser.add_argument("--batches", type=int, default=20)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    shape = (options.batches + 2, options.batch_size, options.steps + 1)
    data = torch.randint(4, options.vocabulary, shape)
    model = Model(options.vocabulary, options.width, options.layers)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    state, start = None, 0.0
    for number, rows in enumerate(data):
        if number == 2:
            start = time.perf_counter()
        inputs, targets = rows[:, :-1], rows[:, 1:]
        if state is not None:
            state = tuple(part.detach() for part in state)
        logits, state = model(inputs, state)
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        loss.item()
    tokens = options.batches * options.batch_size * options.steps
    print(tokens / (time.perf_counter() - start))


if __name__ == "__main__":
    main()
