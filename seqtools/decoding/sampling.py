"""Drawing sequences from a model: temperature, top-k, nucleus, and each record's own random source.

The filters take natural log-probabilities (N, V), not necessarily normalised, and give such again,
with -inf for what is not to be drawn.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from seqtools.decoding.constraints import Constraints
from seqtools.decoding.greedy import generate
from seqtools.decoding.hypothesis import Array, Hypothesis, Prompts
from seqtools.decoding.walk import Beside
from seqtools.models.protocols import Stepper

_HEAD = 512  # how many of the likeliest tokens are sorted before the whole row is


@dataclass(frozen=True)
class Sampler:
    """How tokens are drawn.

    Attributes:
        temperature: log-probabilities are divided by it; 0 takes the likeliest token.
        top_k: only the k likeliest tokens are drawn, of equals those with the lowest ids; None or
            k >= V draws all.
        top_p: only the smallest set of likeliest tokens whose probabilities sum to p or more is
            drawn (Holtzman et al. 2020, section 3.1); 0 leaves the likeliest, 1 draws all.
        min_p: only tokens of at least that share of the likeliest one's probability are drawn
            (Nguyen et al. 2024, section 3); 0 draws all, 1 the likeliest and its equals.
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float = 1.0
    min_p: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.temperature < float("inf"):
            raise ValueError(f"temperature must be 0 or more and finite, got {self.temperature}")
        if self.top_k is not None and self.top_k < 1:
            raise ValueError(f"top_k must be at least 1, got {self.top_k}")
        if not 0 <= self.top_p <= 1:
            raise ValueError(f"top_p must be from 0 to 1, got {self.top_p}")
        if not 0 <= self.min_p <= 1:
            raise ValueError(f"min_p must be from 0 to 1, got {self.min_p}")

    def filter(self, logprobs: Tensor) -> Tensor:
        """Temperature, top-k, top-p, min-p in this order; (N, V), the highest of each row at 0."""
        scaled = temper(logprobs, self.temperature)
        if self.top_k is not None:
            scaled = keep_top_k(scaled, self.top_k)
        return keep_min_p(keep_top_p(scaled, self.top_p), self.min_p)


def sample(
    stepper: Stepper,
    prompts: Prompts,
    constraints: Constraints,
    sampler: Sampler,
    sources: Sequence[random.Random],
    *,
    beside: Beside | None = None,
    attention: bool = False,
) -> list[list[Hypothesis]]:
    """Draw sequences; as many for each record as there are sources a record.

    Each row draws one number a step from its own source, so that neither its neighbours nor the
    batch size matter. What may not be proposed is left out and the rest renormalised for the draw;
    the logprob of a token is the model's own.

    Args:
        stepper: the model.
        prompts: B records.
        constraints: the end symbol, longest lengths, and what may be proposed.
        sampler: how tokens are drawn.
        sources: B * n sources of random numbers, n for each record; see `source`.
        beside: a model that has a say in what is drawn: P * P_lm^weight, renormalised.
        attention: collect it.

    Returns:
        For each record n hypotheses, those with the highest score first, equals as they were
        drawn. The score is the sum of what the draws were from, before temperature and filters:
        the logprob, where no model stands beside and no repetition is penalised.

    Raises:
        RecordError: the model gives no finite log-probability to any token that may be proposed.
    """
    copies = len(sources) // len(prompts)
    if copies < 1 or copies * len(prompts) != len(sources):
        raise ValueError(f"{len(sources)} random sources for {len(prompts)} records")

    def choose(logprobs: Tensor, rows: Array) -> Tensor:
        if sampler.temperature == 0:
            return logprobs.argmax(dim=1)
        uniforms = [sources[row].random() for row in rows.tolist()]
        return draw(sampler.filter(logprobs), torch.tensor(uniforms, dtype=torch.float64))

    drawn = generate(
        stepper, prompts, constraints, choose, copies=copies, beside=beside, attention=attention
    )
    return [
        sorted(drawn[start : start + copies], key=lambda hypothesis: -hypothesis.score)
        for start in range(0, len(drawn), copies)
    ]


def source(seed: int, key: str, number: int) -> random.Random:
    """The random source of one sample: the same for the same seed, record and sample number.

    >>> source(0, "a", 1).random() == source(0, "a", 1).random() != source(0, "a", 2).random()
    True
    """
    return random.Random(f"{seed}\n{number}\n{key}")  # seeding by text is stable across versions


def temper(logprobs: Tensor, temperature: float) -> Tensor:
    """Divide by the temperature; the highest of each row becomes 0 first, so nothing overflows.

    >>> temper(torch.tensor([[-1.0, -2.0]]), 0.5)
    tensor([[ 0., -2.]])
    """
    shifted = logprobs - logprobs.amax(dim=1, keepdim=True)
    if temperature == 0:
        likeliest = logprobs.argmax(dim=1, keepdim=True)
        return torch.full_like(shifted, -torch.inf).scatter_(1, likeliest, 0.0)
    return shifted / max(temperature, 1e-30)  # less would be 0 in float32, and 0 / 0 no number


def keep_top_k(logprobs: Tensor, count: int) -> Tensor:
    """Keep the `count` highest of each row.

    >>> keep_top_k(torch.tensor([[-1.0, -3.0, -2.0]]), 2)
    tensor([[-1., -inf, -2.]])
    """
    if count >= logprobs.shape[1]:
        return logprobs
    lowest = logprobs.topk(count, dim=1).values[:, -1:]
    return _keep(logprobs, lowest, torch.full_like(lowest, count, dtype=torch.long))


def keep_top_p(logprobs: Tensor, mass: float) -> Tensor:
    """Keep the fewest highest of each row whose probabilities together reach `mass`.

    >>> keep_top_p(torch.tensor([[0.5, 0.3, 0.2]]).log(), 0.6).exp()
    tensor([[0.5000, 0.3000, 0.0000]])
    """
    if mass >= 1:
        return logprobs
    total = logprobs.logsumexp(dim=1, keepdim=True)
    head = min(_HEAD, logprobs.shape[1])
    ordered = logprobs.topk(head, dim=1).values
    reached = (ordered - total).exp().cumsum(dim=1, dtype=torch.float64)
    if head < logprobs.shape[1] and bool((reached[:, -1] < mass).any()):
        ordered = logprobs.sort(dim=1, descending=True).values
        reached = (ordered - total).exp().cumsum(dim=1, dtype=torch.float64)
    counts = 1 + (reached[:, :-1] < mass).sum(dim=1, keepdim=True)
    return _keep(logprobs, ordered.gather(1, counts - 1), counts)


def keep_min_p(logprobs: Tensor, share: float) -> Tensor:
    """Keep what has at least `share` of the probability of the highest of its row.

    >>> keep_min_p(torch.tensor([[0.5, 0.25, 0.125]]).log(), 0.5).exp()
    tensor([[0.5000, 0.2500, 0.0000]])
    """
    if share == 0:
        return logprobs
    lowest = logprobs.amax(dim=1, keepdim=True) + math.log(share)
    return logprobs.masked_fill(logprobs < lowest, -torch.inf)


def _keep(logprobs: Tensor, lowest: Tensor, counts: Tensor) -> Tensor:
    """Keep `counts` (N, 1) entries down to the value `lowest` (N, 1); of equals the lowest ids."""
    kept = logprobs.masked_fill(logprobs < lowest, -torch.inf)
    spare = (kept > -torch.inf).sum(dim=1, keepdim=True) - counts
    if not bool((spare > 0).any()):
        return kept
    equal = kept == lowest
    from_the_end = equal.flip(1).cumsum(dim=1).flip(1)
    return kept.masked_fill(equal & (from_the_end <= spare), -torch.inf)


def draw(logprobs: Tensor, uniforms: Tensor) -> Tensor:
    """One id a row by the inverse of the cumulative distribution, ids in order, in float64.

    `uniforms` (N,) are from [0, 1). The rows need not be normalised; nothing at -inf is drawn.

    >>> draw(torch.tensor([[0.25, 0.75], [0.25, 0.75]]).log(), torch.tensor([0.2, 0.3]))
    tensor([0, 1])
    """
    cumulative = logprobs.exp().cumsum(dim=1, dtype=torch.float64)
    total = cumulative[:, -1:]
    wanted = uniforms.to(total)[:, None] * total
    below = torch.nextafter(total, torch.zeros_like(total))  # rounding may have reached the total
    return torch.searchsorted(cumulative, torch.minimum(wanted, below), right=True).squeeze(1)
