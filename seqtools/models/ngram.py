"""A model of n-grams as a Stepper: the searches draw from it as from any other language model.

Shapes: B rows, N order, P prefix tokens, V vocabulary.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from seqtools.models.protocols import Attention
from seqtools.ngram.words import BOS, EOS

if TYPE_CHECKING:
    from seqtools.ngram.model import Model

_NOTHING = -1  # stands in a history before its first word


class NgramLm:
    """Implements Stepper.

    The state is each row's last N - 1 ids, int64 (B, N - 1), the latest one last, -1 where there
    were none; `<s>` begins a history, so nothing stands before it. Probabilities are looked up on
    the CPU, whatever the device of the ids is. That of `<s>` is always 0.

    Args:
        model: the n-grams.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self.vocabulary_size = len(model.words)
        self._width = model.order - 1

    def start(
        self,
        source: Tensor | None,
        source_lengths: Tensor | None,
        prefix: Tensor,
        prefix_lengths: Tensor,
        *,
        attention: bool = False,
    ) -> Tensor:
        """See `Stepper`; there is no source."""
        # The ids at the N - 1 places before each row's last one.
        places = torch.arange(-self._width, 0, device=prefix.device) + prefix_lengths[:, None] - 1
        state = prefix.gather(1, places.clamp(min=0)).masked_fill(places < 0, _NOTHING)
        starts = (state == BOS).long()
        later = starts.flip(1).cumsum(1).flip(1) - starts  # how many <s> stand behind each place
        return state.masked_fill(later > 0, _NOTHING)

    def attended(self, state: Tensor) -> Attention:
        """See `Stepper`; nothing."""
        return {}

    def step(self, last_ids: Tensor, state: Tensor) -> tuple[Tensor, Tensor, Attention | None]:
        """See `Stepper`."""
        before = state.masked_fill((last_ids == BOS)[:, None], _NOTHING)
        state = torch.cat([before, last_ids[:, None]], dim=1)[:, 1:]
        histories = np.ascontiguousarray(state.cpu().numpy())
        logprobs = torch.from_numpy(self.model.distributions(histories))
        return logprobs.to(last_ids.device), state, None

    def select(self, state: Tensor, rows: Tensor) -> Tensor:
        """See `Stepper`."""
        return state.index_select(0, rows)


class ForeignNgramLm(NgramLm):
    """The same over the ids of another vocabulary, so that it can stand beside its models.

    An end of the other vocabulary that is fed is a line end, so what follows it follows `<s>`.
    Tokens that the n-grams do not know each have the probability of `<unk>`.

    Args:
        model: the n-grams.
        words: (V,) integers, the word that each id of the other vocabulary is.
    """

    def __init__(self, model: Model, words: np.ndarray[Any, Any]) -> None:
        super().__init__(model)
        self.vocabulary_size = len(words)
        self._words = torch.from_numpy(words.astype(np.int64))
        self._fed = self._words.masked_fill(self._words == EOS, BOS)

    def start(
        self,
        source: Tensor | None,
        source_lengths: Tensor | None,
        prefix: Tensor,
        prefix_lengths: Tensor,
        *,
        attention: bool = False,
    ) -> Tensor:
        """See `Stepper`; there is no source."""
        fed = self._fed.to(prefix.device)[prefix]
        return super().start(None, None, fed, prefix_lengths)

    def step(self, last_ids: Tensor, state: Tensor) -> tuple[Tensor, Tensor, Attention | None]:
        """See `Stepper`."""
        fed = self._fed.to(last_ids.device)[last_ids]
        logprobs, state, _ = super().step(fed, state)
        return logprobs.index_select(1, self._words.to(logprobs.device)), state, None
