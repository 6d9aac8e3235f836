"""One token after another without looking back: the loop under greedy search and sampling."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from seqtools.decoding.attended import Attended
from seqtools.decoding.constraints import Constraints, Rules
from seqtools.decoding.hypothesis import Array, Hypothesis, Prompts, add_up, refuse_hopeless
from seqtools.decoding.walk import Beside, Walk
from seqtools.models.protocols import Stepper

# (what ranks (N, V), -inf where not allowed; which of the rows they are (N,)) -> chosen ids (N,)
Choose = Callable[[Tensor, Array], Tensor]


def greedy(
    stepper: Stepper,
    prompts: Prompts,
    constraints: Constraints,
    *,
    beside: Beside | None = None,
    attention: bool = False,
) -> list[Hypothesis]:
    """Take the likeliest token at each step; of equals, the one with the lowest id.

    Args:
        stepper: the model.
        prompts: B records.
        constraints: the end symbol, longest lengths, and what may be proposed.
        beside: a model that has a say in what is likeliest.
        attention: collect it.

    Returns:
        One hypothesis a record. Its score is the sum of what the tokens were chosen by: its
        logprob, where no model stands beside and no repetition is penalised.

    Raises:
        RecordError: the model gives no finite log-probability to any token that may be proposed.
    """
    return generate(stepper, prompts, constraints, _likeliest, beside=beside, attention=attention)


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
    beside: Beside | None = None,
    attention: bool = False,
) -> list[Hypothesis]:
    """Extend each record by the tokens that `choose` takes until it ends or is long enough.

    Rows that are done leave the batch. The logprob of a token is the model's own, whatever bound
    the choice and however it was made.

    Args:
        stepper: the model.
        prompts: B records.
        constraints: the end symbol, longest lengths, and what may be proposed.
        choose: picks a token for each row.
        copies: how many rows are grown for each record; row `record * copies + number`.
        beside: a model that has a say in the ranking.
        attention: collect it.

    Returns:
        B * copies hypotheses in the order of the rows.

    Raises:
        RecordError: the model gives no finite log-probability to any token that may be proposed.
    """
    rules = Rules(constraints)
    walk = Walk(stepper, prompts, beside=beside, copies=copies, attention=attention)
    trail = _Trail(len(prompts) * copies)
    attended = Attended(prompts, walk.given) if attention else None
    alive = np.arange(trail.rows)
    produced = np.zeros((trail.rows, 0), dtype=np.int64)
    while alive.size:
        own, ranked, weights = walk.step()
        records = alive // copies
        allowed = rules.allowed(ranked, records, produced)
        refuse_hopeless(allowed.amax(dim=1))
        last = choose(allowed, alive)
        ids = last.cpu().numpy()
        trail.add(alive, ids, _pick(own, last), _pick(allowed, last))
        if attended is not None:
            attended.add(weights)
        going = rules.limits[records] > trail.length
        if constraints.eos is not None:
            going &= ids != constraints.eos
        alive = alive[going]
        produced = np.column_stack([produced, ids])[going]
        if alive.size == going.size:
            walk.go_on(last)
        elif alive.size:
            kept = np.flatnonzero(going)
            walk.go_on(last[torch.from_numpy(kept).to(last.device)], kept)
    return [
        trail.hypothesis(row, constraints.eos, attended, row // copies) for row in range(trail.rows)
    ]


def _pick(table: Tensor, ids: Tensor) -> Array:
    """The entries of (N, V) at ids (N,)."""
    picked: Array = table.gather(1, ids[:, None]).squeeze(1).cpu().numpy()
    return picked


@dataclass
class _Trail:
    """What each step chose for the rows that were alive, all columns of a step (N,)."""

    rows: int
    alive: list[Array] = field(default_factory=list)
    ids: list[Array] = field(default_factory=list)
    values: list[Array] = field(default_factory=list)
    ranks: list[Array] = field(default_factory=list)

    @property
    def length(self) -> int:
        return len(self.alive)

    def add(self, alive: Array, ids: Array, values: Array, ranks: Array) -> None:
        self.alive.append(alive)
        self.ids.append(ids)
        self.values.append(values)
        self.ranks.append(ranks)

    def hypothesis(
        self, row: int, eos: int | None, attended: Attended | None, record: int
    ) -> Hypothesis:
        """What was chosen for a row, which is one of a record."""
        places = []  # of the row in each step
        for alive in self.alive:
            place = int(np.searchsorted(alive, row))
            if place == alive.size or alive[place] != row:
                break  # a row never comes back, so its steps are the first ones
            places.append(place)
        ids, values, ranks = (
            np.array([step[place] for step, place in zip(column, places, strict=False)])
            for column in (self.ids, self.values, self.ranks)
        )
        finished = bool(ids[-1] == eos)
        return Hypothesis(
            ids=(ids[:-1] if finished else ids).tolist(),
            token_logprobs=values,
            logprob=add_up(values),
            score=add_up(ranks),
            finished=finished,
            attention=None if attended is None else attended.of(record, places),
        )
