"""What a search starts from, and what it gives back.

Legend of the package: B records, P prefix tokens, S source positions, V vocabulary, L attention
layers, H heads, T tokens produced. Everything here knows ids only; logarithms are natural.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from seqtools.errors import RecordError
from seqtools.models.protocols import State, Stepper

Array = np.ndarray[Any, Any]
Weights = dict[str, Array]


@dataclass(frozen=True)
class Hypothesis:
    """One sequence that a search made.

    Attributes:
        ids: tokens produced, without the end symbol.
        token_logprobs: (T,) float32, log P of each; one more than `ids` where the end is included.
        logprob: their plain sum.
        score: what the search ranked by.
        finished: the model ended it; False where it was cut at its longest length.
        attention: weights by kind, float32; None if not collected, or the model has none. "cross"
            (L, H, T, S), the source at each step; "encoder" (L, H, S, S), the source from the
            source; "decoder" (L, H, I, I), the inputs fed from each of them, I of them.
    """

    ids: list[int]
    token_logprobs: Array
    logprob: float
    score: float
    finished: bool
    attention: Weights | None = None


@dataclass(frozen=True)
class Prompts:
    """What each record's search starts from, padded on the right, all int64 on one device.

    Attributes:
        prefix: (B, P) ids fed before the first token is chosen.
        prefix_lengths: (B,), each at least 1.
        source: (B, S) ids, or None.
        source_lengths: (B,), or None.
    """

    prefix: Tensor
    prefix_lengths: Tensor
    source: Tensor | None = None
    source_lengths: Tensor | None = None

    def __len__(self) -> int:
        return self.prefix.shape[0]

    @classmethod
    def from_ids(
        cls,
        prefixes: Sequence[Sequence[int]],
        sources: Sequence[Sequence[int]] | None = None,
        *,
        device: torch.device | str = "cpu",
    ) -> Prompts:
        """Pad lists of ids.

        Raises:
            ValueError: a prefix is empty, or there are not as many sources as prefixes.
        """
        if not all(prefixes):
            raise ValueError("each prefix needs at least one token to step on")
        prefix, prefix_lengths = pad(prefixes, device)
        if sources is None:
            return cls(prefix, prefix_lengths)
        if len(sources) != len(prefixes):
            raise ValueError(f"{len(sources)} sources for {len(prefixes)} prefixes")
        return cls(prefix, prefix_lengths, *pad(sources, device))

    def begin(self, stepper: Stepper, *, attention: bool = False) -> tuple[Tensor, State]:
        """The token to step on first, (B,), and the state that has taken in all before it."""
        state = stepper.start(
            self.source, self.source_lengths, self.prefix, self.prefix_lengths, attention=attention
        )
        last = self.prefix.gather(1, self.prefix_lengths[:, None] - 1)
        return last.squeeze(1), state


def pad(rows: Sequence[Sequence[int]], device: torch.device | str) -> tuple[Tensor, Tensor]:
    """Lists of ids as one tensor (B, longest) filled up with 0 on the right, and lengths (B,).

    >>> pad([[5, 6], [7]], "cpu")
    (tensor([[5, 6],
            [7, 0]]), tensor([2, 1]))
    """
    lengths = [len(row) for row in rows]
    table = np.zeros((len(rows), max(lengths, default=0)), dtype=np.int64)
    for index, row in enumerate(rows):
        table[index, : len(row)] = row
    return torch.from_numpy(table).to(device), torch.tensor(lengths, device=device)


def add_up(values: Array) -> float:
    """The sum in float64, from left to right as the searches add, so that equals are equal.

    >>> add_up(np.array([-1.0, -2.5], dtype=np.float32))
    -3.5
    """
    return float(values.cumsum(dtype=np.float64)[-1])


def refuse_hopeless(values: Tensor) -> None:
    """Check the highest log P of each row, (rows,).

    Raises:
        RecordError: one is not finite: the model gave NaN, or nothing that may be proposed.
    """
    if not bool(torch.isfinite(values).all()):
        raise RecordError("the model gives no finite log-probability to any next token")
