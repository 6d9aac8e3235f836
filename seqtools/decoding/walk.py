"""A model taken step by step: its state, the last token of each row, and what it attends to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from seqtools.decoding.hypothesis import Array, Prompts
from seqtools.models.protocols import Stepper


@dataclass(frozen=True)
class Beside:
    """A language model that has a say in the ranking: log P + weight * log P_lm.

    Attributes:
        stepper: the language model, over the same ids as the model.
        weight: of its log-probabilities, above 0.
        prompts: what it starts from, without a source; None for the prefixes of the search.

    Raises:
        ValueError: the weight is not above 0.
    """

    stepper: Stepper
    weight: float
    prompts: Prompts | None = None

    def __post_init__(self) -> None:
        if not 0 < self.weight < float("inf"):
            raise ValueError(f"weight must be above 0, got {self.weight}")


class Walk:
    """The rows of a search on their way through the model, and through another one beside it.

    Args:
        stepper: the model.
        prompts: B records.
        beside: what has a say in the ranking.
        copies: how many rows each record starts with; row `record * copies + number`.
        attention: the steps are to give it.

    Raises:
        ValueError: the model beside has another vocabulary.
    """

    def __init__(
        self,
        stepper: Stepper,
        prompts: Prompts,
        *,
        beside: Beside | None = None,
        copies: int = 1,
        attention: bool = False,
    ) -> None:
        self._steppers, self._weight = [stepper], 0.0
        starts = [prompts.begin(stepper, attention=attention)]
        if beside is not None:
            if beside.stepper.vocabulary_size != stepper.vocabulary_size:
                raise ValueError("the model beside is over another vocabulary")
            self._steppers.append(beside.stepper)
            self._weight = beside.weight
            own = beside.prompts or Prompts(prompts.prefix, prompts.prefix_lengths)
            starts.append(own.begin(beside.stepper))
        self._last = [last for last, _ in starts]
        self._states = [state for _, state in starts]
        self.device = prompts.prefix.device
        self.given = _arrays(stepper.attended(self._states[0])) if attention else {}
        if copies > 1:
            rows = torch.arange(len(prompts), device=self.device).repeat_interleave(copies)
            self._last = [last[rows] for last in self._last]
            self._select(rows)

    def step(self) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
        """Feed the last tokens of N rows.

        Returns:
            log P (N, V), what ranks (N, V), and attention by kind, {} where there is none.
        """
        own, self._states[0], attention = self._steppers[0].step(self._last[0], self._states[0])
        ranked = own
        for index in range(1, len(self._steppers)):
            other, state, _ = self._steppers[index].step(self._last[index], self._states[index])
            self._states[index] = state
            ranked = own + self._weight * other
        return own, ranked, attention or {}

    def go_on(self, tokens: Tensor, rows: Array | None = None) -> None:
        """Go on with `tokens` (M,) after the given rows (M,), or after all of them in order."""
        before = len(self._last[0])
        self._last = [tokens] * len(self._steppers)
        if rows is not None and not np.array_equal(rows, np.arange(before)):
            self._select(torch.from_numpy(rows).to(self.device))

    def _select(self, rows: Tensor) -> None:
        pairs = zip(self._steppers, self._states, strict=True)
        self._states = [stepper.select(state, rows) for stepper, state in pairs]


def _arrays(attention: dict[str, Tensor]) -> dict[str, Array]:
    return {kind: weights.float().cpu().numpy() for kind, weights in attention.items()}
