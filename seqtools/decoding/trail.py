"""How the hypotheses of a beam came about, and what is kept of those that are done."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from seqtools.decoding.attended import Attended
from seqtools.decoding.extensions import Extensions
from seqtools.decoding.hypothesis import Array, Hypothesis, add_up

# One hypothesis that is done: where its last step started from, and that step's token.
ENTRY = np.dtype(
    [
        ("score", np.float64),
        ("sum", np.float64),
        ("step", np.int64),
        ("row", np.int64),
        ("token", np.int64),
        ("logprob", np.float32),
        ("finished", np.bool_),
    ]
)


@dataclass
class Trail:
    """How each row of each step came about, for walking back from its end.

    Element i of each list belongs to step i + 1; what stands there is where its rows came from.
    """

    parents: list[Array] = field(default_factory=lambda: [np.empty(0)])
    tokens: list[Array] = field(default_factory=lambda: [np.empty(0)])
    logprobs: list[Array] = field(default_factory=lambda: [np.empty(0)])

    def add(self, live: Extensions) -> Array:
        """Note the rows of the next step; gives the rows of this one that they come from."""
        self.parents.append(live.rows.ravel())
        self.tokens.append(live.tokens.ravel())
        self.logprobs.append(live.logprobs.ravel())
        return self.parents[-1]

    def hypothesis(self, entry: Array, record: int, attended: Attended | None) -> Hypothesis:
        """Walk back from an entry of a record to the first step."""
        row = int(entry["row"])
        tokens, values, rows = [int(entry["token"])], [entry["logprob"]], [row]
        for index in range(int(entry["step"]) - 1, 0, -1):
            tokens.append(int(self.tokens[index][row]))
            values.append(self.logprobs[index][row])
            row = int(self.parents[index][row])
            rows.append(row)
        token_logprobs = np.array(values[::-1], dtype=np.float32)
        finished = bool(entry["finished"])
        return Hypothesis(
            ids=tokens[:0:-1] if finished else tokens[::-1],
            token_logprobs=token_logprobs,
            logprob=add_up(token_logprobs),
            score=float(entry["score"]),
            finished=finished,
            attention=None if attended is None else attended.of(record, rows[::-1]),
        )
