"""How a search ranks hypotheses of different lengths, and the best rank one can still come to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

FORMS = ("power", "gnmt")


@dataclass(frozen=True)
class Penalty:
    """The score of a hypothesis: its sum over a power of its length, plus what it left uncovered.

    Attributes:
        length: alpha; 0 ranks by the plain sum.
        form: what the sum is divided by, T being the tokens produced, the end included: `power`
            T^alpha; `gnmt` ((5 + T) / 6)^alpha (Wu et al. 2016, equation 14).
        coverage: beta of beta * sum over the source positions of log(min(attention received, 1))
            (Wu et al. 2016, equation 14), 0 or more; 0 needs no attention.

    Raises:
        ValueError: there is no such form, or a number is out of its range.
    """

    length: float = 0.0
    form: str = "power"
    coverage: float = 0.0

    def __post_init__(self) -> None:
        if self.form not in FORMS:
            raise ValueError(f"form must be one of {', '.join(FORMS)}, got {self.form}")
        if not -float("inf") < self.length < float("inf"):
            raise ValueError(f"length must be finite, got {self.length}")
        if not 0 <= self.coverage < float("inf"):
            raise ValueError(f"coverage must be 0 or more and finite, got {self.coverage}")

    def divisor(self, length: int) -> float:
        """What the sum of `length` tokens is divided by.

        >>> Penalty(1.0).divisor(4), Penalty(2.0, "gnmt").divisor(7)
        (4.0, 4.0)
        """
        base = float(length) if self.form == "power" else (5 + length) / 6
        return float(base**self.length)

    def score(self, total: float, length: int) -> float:
        """The score of a sum over `length` tokens, without coverage.

        >>> Penalty(0.5).score(-6.0, 4)
        -3.0
        """
        return total / self.divisor(length)


PLAIN = Penalty()


class Bound:
    """The best score that live hypotheses can still end with.

    A hypothesis of step t has the sum s <= 0. It ends with some sum s' after T tokens, T from
    `shortest(t)` to its limit. Each further token adds a log-probability, perhaps times a factor or
    with another model's beside it, but never more than 0: s' <= s. The divisor d(T) is positive, so
    s' / d(T) <= s / d(T). Both forms of d are monotone in T, and with s <= 0 so is s / d(T): over
    the lengths allowed it is largest at the first or the last of them. The coverage term is a
    multiple of logarithms of at most 1, so at most 0. Hence

        max(s / d(shortest), s / d(limit))

    is never below the score that it ends with, and a search that stops where this is no better than
    the worst hypothesis kept leaves out none that would have been kept. Without coverage it is
    attained where all further tokens are certain, so no smaller bound holds for every model.

    Args:
        penalty: what ranks.
        limits: (B,) longest lengths.
        min_length: shortest length at which a hypothesis may end, if its limit is not before that.
    """

    def __init__(self, penalty: Penalty, limits: Array, min_length: int = 0) -> None:
        self._penalty = penalty
        self._limits = limits
        self._min_length = min_length
        self._longest = np.array([penalty.divisor(limit) for limit in limits.tolist()])

    def best(self, sums: Array, step: int, records: Array) -> Array:
        """Give the bound, (N,), for sums (N,) after `step` tokens, of the records (N,)."""
        shortest = max(step + 1, self._min_length)
        longest = self._longest[records]
        nearest = np.where(
            self._limits[records] > shortest, self._penalty.divisor(shortest), longest
        )
        best: Array = np.maximum(sums / nearest, sums / longest)
        return best
