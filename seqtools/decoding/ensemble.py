"""Several models as one: the mean of their probabilities, token by token."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

import torch
from torch import Tensor

from seqtools.models.protocols import Attention, Fills, Scorer, State, Stepper, TensorBatch


class Ensemble:
    """Models over the same ids that speak with one voice: log of their mean probability.

    It does what all of them do: it is a `Stepper`, a `Scorer` and a `Fills`. Its state is a tuple
    of theirs. Its attention is the mean of theirs, of those kinds that all of them give in the same
    shape.

    Args:
        models: at least one.

    Raises:
        ValueError: there is none, or they are over vocabularies of different sizes.
    """

    def __init__(self, models: Sequence[Any]) -> None:
        sizes = {model.vocabulary_size for model in models if hasattr(model, "vocabulary_size")}
        if not models or len(sizes) > 1:
            raise ValueError("an ensemble needs models over the same ids, at least one")
        self.models = tuple(models)
        self.vocabulary_size: int = next(iter(sizes), 0)

    def start(
        self,
        source: Tensor | None,
        source_lengths: Tensor | None,
        prefix: Tensor,
        prefix_lengths: Tensor,
        *,
        attention: bool = False,
    ) -> tuple[State, ...]:
        """See `Stepper`."""
        return tuple(
            model.start(source, source_lengths, prefix, prefix_lengths, attention=attention)
            for model in self._steppers
        )

    def attended(self, state: tuple[State, ...]) -> Attention:
        """See `Stepper`."""
        pairs = zip(self._steppers, state, strict=True)
        return _mean_attention([model.attended(part) for model, part in pairs])

    def step(
        self, last_ids: Tensor, state: tuple[State, ...]
    ) -> tuple[Tensor, tuple[State, ...], Attention | None]:
        """See `Stepper`."""
        pairs = zip(self._steppers, state, strict=True)
        logprobs, states, weights = zip(
            *(model.step(last_ids, part) for model, part in pairs), strict=True
        )
        return _mean(logprobs), states, _mean_attention([given or {} for given in weights]) or None

    def select(self, state: tuple[State, ...], rows: Tensor) -> tuple[State, ...]:
        """See `Stepper`."""
        pairs = zip(self._steppers, state, strict=True)
        return tuple(model.select(part, rows) for model, part in pairs)

    def token_logprobs(self, batch: TensorBatch) -> Tensor:
        """See `Scorer`."""
        models = cast(tuple[Scorer, ...], self.models)
        return _mean([model.token_logprobs(batch).float() for model in models])

    def fill_logprobs(
        self, batch: TensorBatch, places: Tensor, *, attention: bool = False
    ) -> tuple[Tensor, Attention]:
        """See `Fills`."""
        models = cast(tuple[Fills, ...], self.models)
        found = [model.fill_logprobs(batch, places, attention=attention) for model in models]
        return _mean([logprobs for logprobs, _ in found]), _mean_attention([w for _, w in found])

    @property
    def _steppers(self) -> tuple[Stepper, ...]:
        return cast(tuple[Stepper, ...], self.models)


def _mean(logprobs: Sequence[Tensor]) -> Tensor:
    """The log of the mean of probabilities whose logs are given, never above 0 by rounding."""
    total = torch.stack(list(logprobs)).logsumexp(dim=0)
    return total.sub_(math.log(len(logprobs))).clamp_(max=0.0)


def _mean_attention(given: Sequence[Attention]) -> Attention:
    return {
        kind: torch.stack([one[kind] for one in given]).mean(dim=0)
        for kind in given[0]
        if all(kind in one and one[kind].shape == given[0][kind].shape for one in given)
    }
