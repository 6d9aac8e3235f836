"""Beam search with an exact end, after Huang, Zhao and Ma (2017), "When to Finish?".

At each step the extensions of a record's live hypotheses are ranked by the sum of what their tokens
are ranked by: log-probabilities, unless rules or a model beside change them. An end symbol among
the first `width` finishes a hypothesis; the first `width` extensions that are no end live on. So a
beam of 1 without a length penalty is greedy search, and a beam as wide as the space of sequences
finds the best one under any penalty.

Of equals, the one that finished earlier comes first (so the shorter), then the one whose parent
ranked better, then the one whose last token has the lower id.

What is forced shares out the beam (Post and Vilar 2018, "Fast Lexically Constrained Decoding with
Dynamic Beam Allocation", section 3): extensions that hold equally many of the forced tokens are a
bank, and places are dealt in rounds, one for each bank, from the fullest to the emptiest. Each
token that a hypothesis misses is among its extensions.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import torch

from seqtools.decoding.attended import Attended
from seqtools.decoding.constraints import Constraints, Rules
from seqtools.decoding.coverage import Coverage
from seqtools.decoding.extensions import (
    Extensions,
    add_forced,
    dealt,
    extend,
    grouped,
    in_order,
)
from seqtools.decoding.hypothesis import Array, Hypothesis, Prompts
from seqtools.decoding.penalty import PLAIN, Bound, Penalty
from seqtools.decoding.trail import ENTRY, Trail
from seqtools.decoding.walk import Beside, Walk
from seqtools.errors import RecordError
from seqtools.models.protocols import Stepper


@dataclass(frozen=True)
class Diversity:
    """Groups that share a beam and are to differ (Vijayakumar et al. 2018, algorithm 1).

    They choose one after another. At each step, a token costs a group `strength` for every
    hypothesis of an earlier group that took it at that step (Hamming diversity). That is for the
    choice alone: sums and scores stay as they are. One list of the best is kept for all groups, in
    which no sequence stands twice.

    Attributes:
        groups: how many, each with an equal share of the beam.
        strength: 0 or more.

    Raises:
        ValueError: a number is out of its range.
    """

    groups: int = 1
    strength: float = 0.0

    def __post_init__(self) -> None:
        if self.groups < 1:
            raise ValueError(f"groups must be at least 1, got {self.groups}")
        if not 0 <= self.strength < float("inf"):
            raise ValueError(f"strength must be 0 or more and finite, got {self.strength}")


@torch.inference_mode()
def beam(  # more than seven parameters: each is an option of its own to whoever searches
    stepper: Stepper,
    prompts: Prompts,
    constraints: Constraints,
    *,
    width: int,
    nbest: int = 1,
    penalty: Penalty = PLAIN,
    diversity: Diversity = Diversity(),
    beside: Beside | None = None,
    attention: bool = False,
) -> list[list[Hypothesis]]:
    """Search with `width` live hypotheses a record; records that are done leave the batch.

    A record is done when none of its live hypotheses can, at any length still allowed, get a score
    above the worst of its `nbest` kept ones; `Bound` says why that is exact. A hypothesis cut at
    the longest length ranks among the finished ones by the same formula.

    Args:
        stepper: the model.
        prompts: B records.
        constraints: the end symbol, longest lengths, and what may be proposed.
        width: live hypotheses, at least 1.
        nbest: hypotheses kept, at least 1; there may be fewer where the space is smaller.
        penalty: how hypotheses that are done are ranked.
        diversity: groups of the beam.
        beside: a model that has a say in the ranking.
        attention: collect it.

    Returns:
        For each record its best hypotheses, best first.

    Raises:
        ConfigError: the penalty needs attention that the model does not have.
        RecordError: the model gives NaN, or no finite log-probability to any sequence allowed.
        ValueError: groups of equal size do not fill the beam.
    """
    groups = diversity.groups
    if width % groups:
        raise ValueError(f"a beam of {width} cannot be split into {groups} equal groups")
    rules = Rules(constraints)
    bound = Bound(penalty, rules.limits, constraints.min_length)
    walk = Walk(
        stepper, prompts, beside=beside, copies=groups, attention=attention or penalty.coverage > 0
    )
    attended = Attended(prompts, walk.given) if attention else None
    coverage = Coverage(prompts) if penalty.coverage else None
    choice = _Choice(rules, width // groups, diversity)
    kept = np.zeros((len(prompts), nbest), dtype=ENTRY)
    kept["score"] = -np.inf  # an empty place
    active = np.arange(len(prompts))
    sums = np.zeros((len(prompts), groups, 1))
    produced = np.zeros((len(prompts) * groups, 0), dtype=np.int64)
    trail = Trail()
    for step in itertools.count(1):
        own, ranked, weights = walk.step()
        if attended is not None:
            attended.add(weights)
        records = np.repeat(active, len(produced) // len(active))
        ranked, excluded = rules.apply(ranked, records, produced)
        found = extend(sums, own, ranked, choice.needed, excluded)
        banks = None
        if rules.forced.size:
            missing = rules.missing(produced)
            found, banks = add_forced(found, own, ranked, sums.ravel(), rules.forced, missing)
        live, new = choice.choose(found, rules.limits[active], produced, banks)
        covered = None if coverage is None else coverage.add(weights, records)
        if new.size:
            new["score"] = new["sum"] / penalty.divisor(step)
            if covered is not None:
                new["score"] += penalty.coverage * covered[new["row"]]
            kept[active] = _best(kept[active], new)
        hope = bound.best(live.sums.max(axis=(1, 2), initial=-np.inf), step, active)
        going = (hope > kept["score"][active, -1]) & (rules.limits[active] > step)
        if not going.any():
            break
        active, live = active[going], live.take(going)
        sums, rows, tokens = live.sums, trail.add(live), live.tokens.ravel()
        produced = np.column_stack([produced[rows], tokens])
        if coverage is not None:
            coverage.select(rows)
        walk.go_on(torch.from_numpy(tokens).to(walk.device), rows)
    if not (kept["score"][:, 0] > -np.inf).all():
        raise RecordError("the model gives no finite log-probability to any sequence allowed")
    return trail.hypotheses(kept, attended)


class _Choice:
    """Which extensions live on, and which are done.

    Args:
        rules: what binds the search.
        width: live hypotheses of a group.
        diversity: the groups.
    """

    def __init__(self, rules: Rules, width: int, diversity: Diversity) -> None:
        self._eos = rules.eos
        self._width = width
        self._diversity = diversity
        # Of one row at most: the end, and so many others; and as many that cost more as earlier
        # groups took them, the end among them, or that stand apart as they are forced.
        groups = diversity.groups
        self.needed = 1 + width * groups + (groups > 1) + rules.forced.size

    def choose(
        self, found: Extensions, limits: Array, produced: Array, banks: Array | None
    ) -> tuple[Extensions, Array]:
        """Choose group by group.

        Args:
            found: (records, groups, n).
            limits: (records,) longest lengths.
            produced: (rows, t) ids that the rows hold already.
            banks: (records, groups, n) where something is forced: how much of it they hold.

        Returns:
            What lives on, (records, groups, <= width), and what is done by this step, (records, m)
            entries without a score.
        """
        groups, step = found.sums.shape[1], produced.shape[1] + 1
        taken = np.empty((len(limits), 0), dtype=np.int64)
        lives, dones = [], []
        for group in range(groups):
            part = found.of(group)
            keys = part.sums
            if group and self._diversity.strength:
                times = (part.tokens[:, :, None] == taken[:, None, :]).sum(axis=2)
                keys = keys - self._diversity.strength * times
            if banks is None:
                part = in_order(part, keys, 2 * self._width)
            else:
                part = dealt(part, keys, 2 * self._width, banks[:, group])
            live, done = self._split(part, step, limits)
            lives.append(live)
            dones.append(done)
            if groups == 1:
                return grouped([live]), done
            going = np.where(np.isfinite(live.sums), live.tokens, -1)
            ended = np.where(done["finished"], done["token"], -1)
            taken = np.concatenate([taken, going, ended], axis=1)
        new = np.concatenate(dones, axis=1)
        _drop_twins(new, produced)
        return grouped(lives), new

    def _split(self, found: Extensions, step: int, limits: Array) -> tuple[Extensions, Array]:
        """What lives on, (records, <= width), and what is done, of extensions (records, n)."""
        width = self._width
        possible = np.isfinite(found.sums)
        ends = (found.tokens == self._eos) & possible
        others = possible & ~ends
        before = others.cumsum(axis=1)
        finished = ends.copy()
        finished[:, width:] = False
        over = limits <= step
        done = finished
        if over.any():
            done = finished | (others & (before <= width) & over[:, None])
        places = np.argsort(~others, axis=1, kind="stable")[:, :width]
        live = found.at(places)
        live.sums[np.arange(places.shape[1]) >= before[:, -1:]] = -np.inf
        if not done.any():
            return live, np.empty((len(limits), 0), dtype=ENTRY)
        new = np.empty(done.shape, dtype=ENTRY)
        new["sum"] = np.where(done, found.sums, -np.inf)
        new["step"], new["row"], new["token"] = step, found.rows, found.tokens
        new["logprob"], new["finished"] = found.logprobs, finished
        return live, new


def _drop_twins(new: Array, produced: Array) -> None:
    """Empty the places of entries (records, m) whose tokens are those of one before them."""
    tokens = np.concatenate([produced[new["row"]], new["token"][..., None]], axis=2)
    same = (tokens[:, :, None] == tokens[:, None, :]).all(axis=3)
    same &= (new["sum"] > -np.inf)[:, None, :]
    twins = np.tril(same, -1).any(axis=2)
    new["sum"][twins] = -np.inf


def _best(kept: Array, new: Array) -> Array:
    """The best entries of both, as many as there are in `kept`; of equals, those kept first."""
    both = np.concatenate([kept, new], axis=1)
    order = np.argsort(-both["score"], axis=1, kind="stable")[:, : kept.shape[1]]
    return np.take_along_axis(both, order, axis=1)
