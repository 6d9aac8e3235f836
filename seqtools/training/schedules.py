"""Learning-rate schedules: pure functions from a step to a factor of the base rate.

Steps count from 1, the step that is about to be taken. During warm-up the factor rises linearly,
step / warmup, and reaches 1 at the last warm-up step; what follows depends on the schedule.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from seqtools.errors import ConfigError
from seqtools.lazy import unknown

KINDS = ("constant", "linear", "step", "cosine", "inverse-sqrt")


def ramp(step: int, warmup: int) -> float:
    """Linear warm-up over `warmup` steps, 1 after them."""
    return min(1.0, step / warmup) if warmup else 1.0


def staircase(step: int, *, size: int, gamma: float, warmup: int = 0) -> float:
    """Gamma to the number of whole stretches of `size` steps since the warm-up."""
    return float(gamma ** (max(0, step - 1 - warmup) // size))


def linear(progress: float) -> float:
    """A straight line from 1 at progress 0 to 0 at progress 1 (Devlin et al. 2019, section A.2)."""
    return 1.0 - min(1.0, max(0.0, progress))


def cosine(progress: float) -> float:
    """Half a cosine from 1 at progress 0 to 0 at progress 1 (Loshchilov and Hutter 2017, eq. 5)."""
    return 0.5 * (1.0 + math.cos(math.pi * min(1.0, max(0.0, progress))))


def inverse_sqrt(step: int, *, warmup: int = 0) -> float:
    """Root of warmup / step after the warm-up (Vaswani et al. 2017, eq. 3, with its peak at 1)."""
    start = max(1, warmup)
    return math.sqrt(start / max(step, start))


@dataclass(frozen=True)
class Schedule:
    """One schedule with its numbers.

    Attributes:
        kind: one of `KINDS`.
        warmup: steps of linear warm-up.
        steps: where `linear` and `cosine` reach zero, in steps; None when only time ends them.
        seconds: where they reach zero, in seconds; whichever comes first counts.
        step_size: steps between two decays of `step`.
        gamma: factor of each decay of `step`.

    Raises ConfigError for an unknown kind.
    """

    kind: str = "constant"
    warmup: int = 0
    steps: int | None = None
    seconds: float | None = None
    step_size: int = 1000
    gamma: float = 0.5

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ConfigError(unknown(self.kind, KINDS, "schedule"))

    def factor(self, step: int, seconds: float = 0.0) -> float:
        """The factor for `step`, `seconds` after the start; it is a function of these alone."""
        rise = ramp(step, self.warmup)
        if self.kind == "step":
            return rise * staircase(step, size=self.step_size, gamma=self.gamma, warmup=self.warmup)
        if self.kind == "linear":
            return rise * linear(self._progress(step, seconds))
        if self.kind == "cosine":
            return rise * cosine(self._progress(step, seconds))
        if self.kind == "inverse-sqrt":
            return rise * inverse_sqrt(step, warmup=self.warmup)
        return rise

    def _progress(self, step: int, seconds: float) -> float:
        """How far the way down is, from 0 to 1; 0 during warm-up unless time says otherwise."""
        parts = [0.0]
        if self.steps is not None:
            parts.append((step - 1 - self.warmup) / max(1, self.steps - self.warmup))
        if self.seconds is not None:
            parts.append(seconds / self.seconds)
        return max(parts)
