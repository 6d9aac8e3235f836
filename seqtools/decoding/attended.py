"""Attention collected from the pass that decodes, put together for each hypothesis."""

from __future__ import annotations

import numpy as np
from torch import Tensor

from seqtools.decoding.hypothesis import Array, Prompts, Weights


class Attended:
    """What a search attended to: at its start for each record, then step by step for each row.

    Args:
        prompts: B records.
        given: what the start gave: "encoder" (B, L, H, S, S) and "decoder" (B, L, H, P-1, P-1).
    """

    def __init__(self, prompts: Prompts, given: Weights) -> None:
        self._given = given
        self._steps: list[Weights] = []
        self._prefixes = prompts.prefix_lengths.tolist()
        sources = prompts.source_lengths
        self._sources = [None] * len(prompts) if sources is None else sources.tolist()

    def add(self, weights: dict[str, Tensor]) -> None:
        """Take in a step: "cross" (N, L, H, S) and "decoder" (N, L, H, C) of its N rows."""
        self._steps.append({kind: part.float().cpu().numpy() for kind, part in weights.items()})

    def of(self, record: int, rows: list[int]) -> Weights | None:
        """Put together what belongs to a hypothesis of a record, without padding.

        Args:
            record: which one of the B.
            rows: which row it was at each step, (T,).

        Returns:
            The kinds that there are, as in `Hypothesis`; None where there are none.
        """
        found: Weights = {}
        width = self._sources[record]
        steps = list(zip(self._steps, rows, strict=False))
        if "cross" in self._steps[0]:
            crosses = [step["cross"][row, ..., :width] for step, row in steps]
            found["cross"] = np.stack(crosses, axis=2)
        if "encoder" in self._given:
            found["encoder"] = self._given["encoder"][record, :, :, :width, :width].copy()
        if "decoder" in self._steps[0]:
            found["decoder"] = self._inputs(record, [step["decoder"][row] for step, row in steps])
        return found or None

    def _inputs(self, record: int, steps: list[Array]) -> Array:
        """The inputs attended to from each input, (L, H, I, I) with I = P + T - 1."""
        first = self._prefixes[record] - 1
        inputs = first + len(steps)
        table = np.zeros((*steps[0].shape[:2], inputs, inputs), dtype=np.float32)
        if first:
            table[:, :, :first, :first] = self._given["decoder"][record, :, :, :first, :first]
        for place, weights in enumerate(steps, start=first):
            table[:, :, place, : place + 1] = weights[:, :, : place + 1]
        return table


def within_texts(weights: dict[str, Tensor], lengths: list[int]) -> list[Weights | None]:
    """The attention within whole texts, (B, L, H, T, T) of each kind, row by row without padding.

    Args:
        weights: "encoder", or "decoder" of a model that reads from left to right.
        lengths: (B,) of the rows.

    Returns:
        (L, H, length, length) by kind for each row; None where there is none.

    >>> within_texts({}, [2, 1])
    [None, None]
    """
    tables = {kind: table.float().cpu().numpy() for kind, table in weights.items()}
    return [
        {kind: table[row, :, :, :length, :length].copy() for kind, table in tables.items()} or None
        for row, length in enumerate(lengths)
    ]
