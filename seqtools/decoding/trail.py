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

    def hypotheses(self, kept: Array, attended: Attended | None) -> list[list[Hypothesis]]:
        """Walk back from entries (B, n) to the first step, all at once; none for empty places."""
        records, places = np.nonzero(kept["score"] > -np.inf)
        entries = kept[records, places]
        longest = int(entries["step"].max())
        rows, tokens = np.zeros((2, len(entries), longest), dtype=np.int64)
        logprobs = np.zeros((len(entries), longest), dtype=np.float32)
        for step in range(longest, 0, -1):
            last = np.flatnonzero(entries["step"] == step)
            for table, name in ((rows, "row"), (tokens, "token"), (logprobs, "logprob")):
                table[last, step - 1] = entries[name][last]
            if step > 1:
                inside = np.flatnonzero(entries["step"] >= step)
                came = rows[inside, step - 1]
                rows[inside, step - 2] = self.parents[step - 1][came]
                tokens[inside, step - 2] = self.tokens[step - 1][came]
                logprobs[inside, step - 2] = self.logprobs[step - 1][came]
        found: list[list[Hypothesis]] = [[] for _ in kept]
        for index, record in enumerate(records.tolist()):
            length = int(entries["step"][index])
            values = logprobs[index, :length]
            finished = bool(entries["finished"][index])
            found[record].append(
                Hypothesis(
                    ids=tokens[index, : length - finished].tolist(),
                    token_logprobs=values,
                    logprob=add_up(values),
                    score=float(entries["score"][index]),
                    finished=finished,
                    attention=None
                    if attended is None
                    else attended.of(record, rows[index, :length].tolist()),
                )
            )
        return found
