"""Beam search with an exact end, after Huang, Zhao and Ma (2017), "When to Finish?".

At each step the extensions of a record's live hypotheses are ranked by the sum of their
log-probabilities. An end symbol among the first `width` finishes a hypothesis; the first `width`
extensions that are no end live on. So a beam of 1 without a length penalty is greedy search, and a
beam as wide as the space of sequences finds the best one under any penalty.

Of equals, the one that finished earlier comes first (so the shorter), then the one whose parent
ranked better, then the one whose last token has the lower id.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from seqtools.decoding.hypothesis import (
    Array,
    Constraints,
    Hypothesis,
    Prompts,
    cross,
    length_score,
)
from seqtools.errors import RecordError
from seqtools.models.protocols import Stepper

# One hypothesis that is done: where its last step started from, and that step's token.
_ENTRY = np.dtype(
    [
        ("score", np.float64),
        ("sum", np.float64),
        ("step", np.int64),
        ("row", np.int64),
        ("token", np.int64),
        ("logprob", np.float32),
        ("finished", np.bool_),
    ]
)


@torch.inference_mode()
def beam(
    stepper: Stepper,
    prompts: Prompts,
    constraints: Constraints,
    *,
    width: int,
    nbest: int = 1,
    length_penalty: float = 0.0,
    attention: bool = False,
) -> list[list[Hypothesis]]:
    """Search with `width` live hypotheses a record; records that are done leave the batch.

    The score is sum / T^alpha with alpha = `length_penalty` and T the tokens produced, the end
    included. A record is done when none of its live hypotheses can, at any length still allowed,
    get a score above the worst of its `nbest` kept ones. A hypothesis cut at the longest length
    ranks among the finished ones by the same formula.

    Args:
        stepper: the model.
        prompts: B records.
        constraints: the end symbol, longest lengths, and what is never proposed.
        width: live hypotheses, at least 1.
        nbest: hypotheses kept, at least 1; there may be fewer where the space is smaller.
        length_penalty: alpha; 0 ranks by the plain sum.
        attention: collect it.

    Returns:
        For each record its best hypotheses, best first.

    Raises:
        RecordError: the model gives NaN, or no finite log-probability to any sequence.
    """
    last, state = prompts.begin(stepper)
    limits = np.asarray(constraints.max_lengths)
    kept = np.zeros((len(prompts), nbest), dtype=_ENTRY)
    kept["score"] = -np.inf  # an empty place
    active = np.arange(len(prompts))
    sums = np.zeros((len(prompts), 1))
    trail = _Trail()
    for step in itertools.count(1):
        logprobs, state, weights = stepper.step(last, state)
        trail.attention.append(cross(weights) if attention else None)
        found = _extend(logprobs, sums, width, constraints.banned)
        longest = limits[active]
        live, new = _split(found, width, constraints.eos, step, longest)
        new["score"] = new["sum"] / float(step) ** length_penalty
        kept[active] = _best(kept[active], new)
        hope = _attainable(live.sums.max(axis=1, initial=-np.inf), step, longest, length_penalty)
        going = (hope > kept["score"][active, -1]) & (longest > step)
        if not going.any():
            break
        active, live = active[going], live.take(going)
        rows = trail.add(live)
        last = torch.from_numpy(live.tokens.ravel()).to(last.device)
        state = stepper.select(state, torch.from_numpy(rows).to(last.device))
        sums = live.sums
    return [
        [
            trail.hypothesis(entry, prompts, record, length_penalty)
            for entry in entries[entries["score"] > -np.inf]
        ]
        for record, entries in enumerate(_refuse_empty(kept))
    ]


class _Candidates(NamedTuple):
    """Extensions of each record, best first, all (records, candidates); no sum: an empty place."""

    sums: Array
    rows: Array  # which row of the step they extend
    tokens: Array
    logprobs: Array

    def take(self, records: Array) -> _Candidates:
        """The given records, without places that are empty for all of them."""
        part = _Candidates(*(column[records] for column in self))
        width = int(np.isfinite(part.sums).sum(axis=1).max())
        return _Candidates(*(column[:, :width] for column in part))


def _extend(logprobs: Tensor, sums: Array, width: int, banned: Sequence[int]) -> _Candidates:
    """The 2 * width best extensions of each record by log P (rows, V), parents' sums (records, w).

    At most w <= width of them are the end, so they hold the width best others too; and no row can
    give more of those than its own width + 1 best that are allowed.
    """
    records, parents = sums.shape
    values, tokens = top(logprobs, width + 1 + len(banned))
    live = np.isfinite(sums).reshape(-1, 1)
    if not (values < np.inf)[live[:, 0]].all():
        raise RecordError("the model gives NaN or infinity as a log-probability")
    values = np.where(live & ~np.isin(tokens, banned), values, -np.inf)
    totals = (sums.reshape(-1, 1) + values).reshape(records, -1)
    order = np.argsort(-totals, axis=1, kind="stable")[:, : 2 * width]
    rows = np.repeat(np.arange(records * parents), values.shape[1]).reshape(records, -1)
    columns = (totals, rows, tokens.reshape(records, -1), values.reshape(records, -1))
    return _Candidates(*(np.take_along_axis(column, order, axis=1) for column in columns))


def top(logprobs: Tensor, count: int) -> tuple[Array, Array]:
    """The `count` highest values of each row (rows, V) in order, of equals the lowest id first.

    torch.topk takes any of equals, so one more is asked for: where it equals the last one wanted,
    the row is sorted whole.

    Returns:
        Values, float32, and ids, int64, both (rows, min(count, V)). A NaN is among the values.
    """
    count = min(count, logprobs.shape[1])
    values, ids = logprobs.topk(min(count + 1, logprobs.shape[1]), dim=1)
    if values.shape[1] > count:
        last = values[:, count - 1]
        unclear = (last == values[:, count]) & (last > -torch.inf)
        if bool(unclear.any()):
            ordered, places = logprobs[unclear].sort(dim=1, descending=True, stable=True)
            values[unclear], ids[unclear] = ordered[:, : count + 1], places[:, : count + 1]
    best, tokens = values[:, :count].cpu().numpy(), ids[:, :count].cpu().numpy()
    order = np.lexsort((tokens, -best), axis=1)
    return np.take_along_axis(best, order, axis=1), np.take_along_axis(tokens, order, axis=1)


def _split(
    found: _Candidates, width: int, eos: int | None, step: int, limits: Array
) -> tuple[_Candidates, Array]:
    """What lives on, (records, <= width), and what is done by this step, as unscored entries."""
    possible = np.isfinite(found.sums)
    ends = (found.tokens == eos) & possible if eos is not None else np.zeros_like(possible)
    others = possible & ~ends
    places = np.argsort(~others, axis=1, kind="stable")[:, :width]
    live = _Candidates(*(np.take_along_axis(column, places, axis=1) for column in found))
    live.sums[~np.take_along_axis(others, places, axis=1)] = -np.inf
    finished = ends & (np.arange(ends.shape[1]) < width)
    cut = others & (others.cumsum(axis=1) <= width) & (limits[:, None] <= step)
    new = np.empty(ends.shape, dtype=_ENTRY)
    new["sum"] = np.where(finished | cut, found.sums, -np.inf)
    new["step"], new["row"], new["token"] = step, found.rows, found.tokens
    new["logprob"], new["finished"] = found.logprobs, finished
    return live, new


def _best(kept: Array, new: Array) -> Array:
    """The best entries of both, as many as there are in `kept`; of equals, those kept first."""
    both = np.concatenate([kept, new], axis=1)
    order = np.argsort(-both["score"], axis=1, kind="stable")[:, : kept.shape[1]]
    return np.take_along_axis(both, order, axis=1)


def _attainable(sums: Array, step: int, limits: Array, penalty: float) -> Array:
    """The best score that sums (records,) after `step` tokens can still end with.

    Sums never grow, and sum / T^alpha is monotone in T, so it is at one end of the lengths allowed.
    """
    nearest = np.minimum(step + 1, limits)
    return np.maximum(
        *(sums / length.astype(np.float64) ** penalty for length in (nearest, limits))
    )


def _refuse_empty(kept: Array) -> Array:
    if not (kept["score"][:, 0] > -np.inf).all():
        raise RecordError("the model gives no finite log-probability to any sequence")
    return kept


@dataclass
class _Trail:
    """How each row of each step came about, for walking back from its end.

    Element i of each list belongs to step i + 1; what stands there is where its rows came from.
    """

    attention: list[Tensor | None] = field(default_factory=list)
    parents: list[Array] = field(default_factory=lambda: [np.empty(0)])
    tokens: list[Array] = field(default_factory=lambda: [np.empty(0)])
    logprobs: list[Array] = field(default_factory=lambda: [np.empty(0)])

    def add(self, live: _Candidates) -> Array:
        """Note the rows of the next step; gives the rows of this one that they come from."""
        self.parents.append(live.rows.ravel())
        self.tokens.append(live.tokens.ravel())
        self.logprobs.append(live.logprobs.ravel())
        return self.parents[-1]

    def hypothesis(self, entry: Array, prompts: Prompts, record: int, penalty: float) -> Hypothesis:
        """Walk back from an entry to the first step."""
        length, row = int(entry["step"]), int(entry["row"])
        tokens, values, rows = [int(entry["token"])], [entry["logprob"]], [row]
        for index in range(length - 1, 0, -1):
            tokens.append(int(self.tokens[index][row]))
            values.append(self.logprobs[index][row])
            row = int(self.parents[index][row])
            rows.append(row)
        token_logprobs = np.array(values[::-1], dtype=np.float32)
        logprob = float(token_logprobs.sum(dtype=np.float64))
        finished = bool(entry["finished"])
        return Hypothesis(
            ids=tokens[:0:-1] if finished else tokens[::-1],
            token_logprobs=token_logprobs,
            logprob=logprob,
            score=length_score(logprob, length, penalty),
            finished=finished,
            attention=prompts.trim(record, self._attended(rows[::-1])),
        )

    def _attended(self, rows: list[int]) -> Array | None:
        steps = [
            weights[row].cpu().numpy()
            for weights, row in zip(self.attention, rows, strict=False)
            if weights is not None
        ]
        return np.stack(steps, axis=2) if steps else None
