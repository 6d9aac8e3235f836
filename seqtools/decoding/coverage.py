"""How much of the source a hypothesis has attended to."""

from __future__ import annotations

import torch
from torch import Tensor

from seqtools.decoding.hypothesis import Array, Prompts
from seqtools.errors import ConfigError

_LEAST = 1e-30  # a position that got nothing at all counts as this much, so that ranks stay finite


class Coverage:
    """The attention that each source position received from the tokens of each hypothesis.

    The attention of a step is that of the last layer, the mean over its heads.

    Args:
        prompts: B records.
    """

    def __init__(self, prompts: Prompts) -> None:
        self._lengths = prompts.source_lengths
        self._received: Tensor | None = None

    def add(self, weights: dict[str, Tensor], records: Array) -> Array:
        """Count a step, and give sum over i of log(min(received_i, 1)) of each row, (N,) float64.

        Args:
            weights: what the step attended to.
            records: (N,), whose record each row is.

        Raises:
            ConfigError: there is no attention to the source.
        """
        if "cross" not in weights or self._lengths is None:
            raise ConfigError("a coverage penalty needs a model that attends to its source")
        step = weights["cross"][:, -1].double().mean(dim=1)
        received = step if self._received is None else self._received + step
        self._received = received
        lengths = self._lengths[torch.from_numpy(records).to(received.device)]
        real = torch.arange(received.shape[1], device=received.device) < lengths[:, None]
        logs = received.clamp(_LEAST, 1.0).log().masked_fill(~real, 0.0)
        total: Array = logs.sum(dim=1).cpu().numpy()
        return total

    def select(self, rows: Array) -> None:
        """Go on with the given rows."""
        assert self._received is not None
        self._received = self._received[torch.from_numpy(rows).to(self._received.device)]
