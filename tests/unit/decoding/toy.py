"""Tiny models whose every probability is known, for testing searches."""

from __future__ import annotations

from itertools import product

import torch
from torch import Tensor

from seqtools.models.protocols import Attention, TensorBatch

PAD, UNK, BOS, EOS, A, B = range(6)
NAMES = ["<pad>", "<unk>", "<s>", "</s>", "a", "b"]
NEVER = (PAD, BOS)

# shared/cases, toy2.arpa, as plain probabilities of the next token
TOY2 = {
    BOS: {A: 0.75, B: 0.125, EOS: 0.1, UNK: 0.025},
    A: {A: 0.4 / 2.2, B: 0.5, EOS: 0.3, UNK: 0.04 / 2.2},
    B: {A: 0.3125, B: 0.15625, EOS: 0.5, UNK: 0.03125},
    UNK: {A: 0.5, B: 0.25, EOS: 0.2, UNK: 0.05},
}


class Bigram:
    """The next token depends on the last one. Attention, if wanted, names the step it came from."""

    def __init__(self, logprobs: Tensor, *, attends: bool = False) -> None:
        self.logprobs = logprobs
        self.vocabulary_size = logprobs.shape[1]
        self.attends = attends
        self.batch_sizes: list[int] = []

    def start(self, source, source_lengths, prefix, prefix_lengths, *, attention=False):
        sums = torch.zeros(len(prefix)) if source is None else source.sum(1).float()
        return sums, torch.zeros(len(prefix)), prefix_lengths.clone()

    def attended(self, state) -> Attention:
        return {}

    def step(self, last_ids: Tensor, state) -> tuple[Tensor, object, Attention | None]:
        sums, path, count = state
        self.batch_sizes.append(len(last_ids))
        path = path * 10 + last_ids  # the ids fed, as decimal digits
        attention = None
        if self.attends:
            both = torch.stack([sums, path], dim=1)
            attention = {"cross": both[:, None, None, :].expand(-1, 2, 1, -1)}
        return self.logprobs[last_ids], (sums, path, count + 1), attention

    def select(self, state, rows: Tensor):
        return tuple(part[rows] for part in state)

    def token_logprobs(self, batch: TensorBatch) -> Tensor:
        known = batch.targets.clamp(min=0)
        values = self.logprobs[batch.inputs].gather(2, known[..., None]).squeeze(2)
        return values.masked_fill(batch.targets < 0, 0.0)


def toy2(**options: bool) -> Bigram:
    table = torch.full((6, 6), -torch.inf)
    for last, row in TOY2.items():
        for following, probability in row.items():
            table[last, following] = torch.tensor(probability, dtype=torch.float64).log()
    return Bigram(table, **options)


class Tree:
    """The next token depends on everything before it: one random table row for each prefix.

    Token 0 is the start (never seen again), token 1 the end.
    """

    eos = 1

    def __init__(self, size: int, depth: int, seed: int, levels: int | None = None) -> None:
        self.vocabulary_size = size
        generator = torch.Generator().manual_seed(seed)
        nodes = sum(size**level for level in range(depth + 1))
        scores = torch.randn(nodes, size, generator=generator) * 2
        if levels is not None:  # few different values, so that many sequences are equal
            scores = (torch.rand(nodes, size, generator=generator) * levels).floor()
        self.table = scores.log_softmax(1)

    def start(self, source, source_lengths, prefix, prefix_lengths, *, attention=False):
        return torch.full((len(prefix),), -1)

    def step(self, last_ids, state):
        node = torch.where(state < 0, 0, state * self.vocabulary_size + last_ids + 1)
        return self.table[node], node, None

    def select(self, state, rows):
        return state[rows]

    def sequences(self, longest: int, banned=(0,)) -> list[tuple[list[int], float, bool]]:
        """Every sequence: tokens with the end if it has one, log P, finished; in the search's order
        of equals: shorter first, then token by token."""
        others = [i for i in range(self.vocabulary_size) if i != self.eos and i not in banned]
        found = []
        for length in range(1, longest + 1):
            for start in product(others, repeat=length - 1):
                last = sorted([self.eos, *others]) if length == longest else [self.eos]
                for end in last:
                    tokens = [*start, end]
                    found.append((tokens, self.logprob(tokens), end == self.eos))
        return found

    def logprob(self, tokens: list[int]) -> float:
        node, total = 0, 0.0
        for token in tokens:
            total += float(self.table[node, token])
            node = node * self.vocabulary_size + token + 1
        return total


class Attentive(Bigram):
    """A bigram whose attention says what it is: the id attended to, 2 layers, 1 head.

    In the second layer, that and a hundred times the id it is attended to from.
    """

    def start(self, source, source_lengths, prefix, prefix_lengths, *, attention=False):
        before = prefix.shape[1] - 1
        inputs = torch.cat([prefix[:, :before], torch.zeros(len(prefix), 20, dtype=torch.long)], 1)
        return source, inputs, prefix_lengths - 1, attention

    def attended(self, state) -> Attention:
        source, inputs, _, asked = state
        assert asked
        inputs = inputs[:, :-20]
        found = {"decoder": _named(inputs, inputs)}
        if source is not None:
            found["encoder"] = _named(source, source)
        return found

    def step(self, last_ids, state):
        source, inputs, counts, asked = state
        inputs = inputs.scatter(1, counts[:, None], last_ids[:, None])
        found = {"decoder": _named(last_ids[:, None], inputs)[..., 0, :]}
        if source is not None:
            found["cross"] = _named(last_ids[:, None], source)[..., 0, :]
        state = source, inputs, counts + 1, asked
        return self.logprobs[last_ids], state, found if asked else None

    def select(self, state, rows):
        source, inputs, counts, asked = state
        return None if source is None else source[rows], inputs[rows], counts[rows], asked


def _named(froms: Tensor, tos: Tensor) -> Tensor:
    """(B, I) and (B, J) ids as attention, (B, 2, 1, I, J)."""
    to = tos[:, None, None, None, :].expand(-1, 1, 1, froms.shape[1], -1)
    return torch.cat([to, to + 100 * froms[:, None, None, :, None]], dim=1).float()


class AttendingTree(Tree):
    """A tree that attends to a source: random weights, 2 layers of 2 heads, for each prefix."""

    def __init__(self, size: int, depth: int, seed: int) -> None:
        super().__init__(size, depth, seed)
        generator = torch.Generator().manual_seed(seed + 1)
        self.scores = torch.randn(len(self.table), 2, 2, 4, generator=generator) * 2

    def start(self, source, source_lengths, prefix, prefix_lengths, *, attention=False):
        return super().start(source, source_lengths, prefix, prefix_lengths), source_lengths

    def attended(self, state) -> Attention:
        return {}

    def step(self, last_ids, state):
        logprobs, node, _ = super().step(last_ids, state[0])
        return logprobs, (node, state[1]), {"cross": self.weights(node, state[1])}

    def select(self, state, rows):
        return state[0][rows], state[1][rows]

    def weights(self, nodes: Tensor, lengths: Tensor) -> Tensor:
        """Over sources of up to 4 tokens, (N, 2, 2, S)."""
        width = int(lengths.max())
        past = torch.arange(width) >= lengths[:, None]
        scores = self.scores[nodes, ..., :width]
        return scores.masked_fill(past[:, None, None], -torch.inf).softmax(dim=-1)

    def coverage(self, tokens: list[int], length: int) -> float:
        """Sum over a source of `length` of log(min(received, 1))."""
        node, received = 0, torch.zeros(length, dtype=torch.float64)
        for token in tokens:
            received += self.weights(torch.tensor([node]), torch.tensor([length]))[0, 1].mean(0)
            node = node * self.vocabulary_size + token + 1
        return float(received.clamp(max=1).log().sum())
