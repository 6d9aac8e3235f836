"""One token after another without looking back: the loop under greedy search and sampling."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from seqtools.decoding.hypothesis import (
    Array,
    Constraints,
    Hypothesis,
    Prompts,
    cross,
    refuse_hopeless,
)
from seqtools.models.protocols import Stepper

# (log P (N, V), -inf where banned; which of the rows they are (N,)) -> chosen ids (N,)
Choose = Callable[[Tensor, Array], Tensor]


def greedy(
    stepper: Stepper, prompts: Prompts, constraints: Constraints, *, attention: bool = False
) -> list[Hypothesis]:
    """Take the likeliest token at each step; of equals, the one with the lowest id.

    Args:
        stepper: the model.
        prompts: B records.
        constraints: the end symbol, longest lengths, and what is never proposed.
        attention: collect it.

    Returns:
        One hypothesis a record; its score is its logprob.

    Raises:
        RecordError: the model gives no finite log-probability to any token.
    """
    return generate(stepper, prompts, constraints, _likeliest, attention=attention)


def _likeliest(logprobs: Tensor, rows: Array) -> Tensor:
    return logprobs.argmax(dim=1)  # the first of equals, as torch promises


@torch.inference_mode()
def generate(
    stepper: Stepper,
    prompts: Prompts,
    constraints: Constraints,
    choose: Choose,
    *,
    copies: int = 1,
    attention: bool = False,
) -> list[Hypothesis]:
    """Extend each record by the tokens that `choose` takes until it ends or is long enough.

    Rows that are done leave the batch. The logprob of a token is the model's own, whatever was
    banned or how it was chosen.

    Args:
        stepper: the model.
        prompts: B records.
        constraints: the end symbol, longest lengths, and what is never proposed.
        choose: picks a token for each row.
        copies: how many rows are grown for each record; row `record * copies + number`.
        attention: collect it.

    Returns:
        B * copies hypotheses in the order of the rows.

    Raises:
        RecordError: the model gives no finite log-probability to any token.
    """
    last, state = prompts.begin(stepper)
    if copies > 1:
        rows = torch.arange(len(prompts), device=last.device).repeat_interleave(copies)
        last, state = last[rows], stepper.select(state, rows)
    limits = np.repeat(np.asarray(constraints.max_lengths), copies)
    banned = torch.tensor(list(constraints.banned), dtype=torch.long, device=last.device)
    alive = np.arange(len(limits))
    trail = _Trail(len(limits))
    while alive.size:
        logprobs, state, weights = stepper.step(last, state)
        allowed = logprobs.index_fill(1, banned, -torch.inf)
        refuse_hopeless(allowed.amax(dim=1))
        last = choose(allowed, alive)
        values = logprobs.gather(1, last[:, None]).squeeze(1)
        ids = last.cpu().numpy()
        trail.add(alive, ids, values.cpu().numpy(), cross(weights) if attention else None)
        going = limits[alive] > trail.length
        if constraints.eos is not None:
            going &= ids != constraints.eos
        alive = alive[going]
        if alive.size < going.size and alive.size:
            kept = torch.from_numpy(np.flatnonzero(going)).to(last.device)
            last, state = last[kept], stepper.select(state, kept)
    attended = trail.attention()
    return [
        _hypothesis(ids, values, constraints.eos, prompts.trim(row // copies, attended[row]))
        for row, (ids, values) in enumerate(trail.paths())
    ]


@dataclass
class _Trail:
    """What each step chose for the rows that were alive."""

    rows: int
    steps: list[tuple[Array, Array, Array, Tensor | None]] = field(default_factory=list)

    @property
    def length(self) -> int:
        return len(self.steps)

    def add(self, alive: Array, ids: Array, values: Array, weights: Tensor | None) -> None:
        self.steps.append((alive, ids, values, weights))

    def paths(self) -> list[tuple[Array, Array]]:
        """For each row, the ids chosen (T,) and their log-probabilities (T,)."""
        ids = np.zeros((self.rows, self.length), dtype=np.int64)
        values = np.zeros((self.rows, self.length), dtype=np.float32)
        lengths = np.zeros(self.rows, dtype=np.int64)
        for step, (alive, chosen, logprobs, _) in enumerate(self.steps):
            ids[alive, step] = chosen
            values[alive, step] = logprobs
            lengths[alive] += 1  # a row never comes back, so its steps are the first ones
        return [(ids[row, :n], values[row, :n]) for row, n in enumerate(lengths.tolist())]

    def attention(self) -> list[Array | None]:
        """For each row, the attention of its steps, (L, H, T, S), or None."""
        found: list[list[Array]] = [[] for _ in range(self.rows)]
        for alive, _, _, weights in self.steps:
            if weights is not None:
                for row, part in zip(alive.tolist(), weights.cpu().numpy(), strict=True):
                    found[row].append(part)
        return [np.stack(parts, axis=2) if parts else None for parts in found]


def _hypothesis(ids: Array, values: Array, eos: int | None, attention: Array | None) -> Hypothesis:
    finished = bool(ids[-1] == eos)
    logprob = float(values.sum(dtype=np.float64))
    produced = ids[:-1] if finished else ids
    return Hypothesis(produced.tolist(), values, logprob, logprob, finished, attention)
