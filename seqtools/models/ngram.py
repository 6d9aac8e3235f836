"""A model of n-grams as a Stepper: the searches draw from it as from any other language model.

Shapes: B rows, N order, P prefix tokens, V vocabulary.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from seqtools.models.protocols import Attention
from seqtools.ngram.words import BOS

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
