"""What binds a search: how long its outputs may be, and which tokens each of them may take next.

The model's log-probabilities stay as they are. Rules change the values that a search ranks by:
what may not be proposed gets minus infinity, and what was produced before may be made less likely.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from seqtools.errors import ConfigError, RecordError

Array = np.ndarray[Any, Any]
_NO = -torch.inf


@dataclass(frozen=True)
class Constraints:
    """What binds a search.

    A prefix comes before every other rule. What an output already holds is what was produced for
    it, a prefix included, a prompt not.

    Attributes:
        eos: the symbol that ends a sequence; None where the model has none.
        max_lengths: for each record, how many tokens may be produced, the end included; at least 1.
        banned: ids that are never proposed.
        min_length: how many tokens are produced at least, the end included, where `max_lengths`
            leaves room for them.
        no_repeat_ngram: no sequence of that many tokens comes twice in an output (Paulus, Xiong
            and Socher 2018, section 2.5); 0 allows all.
        repetition_penalty: the log-probability of each token that the output already holds is
            multiplied by it, so that more than 1 makes it less likely (Keskar et al. 2019, section
            4.1, where it divides a logit).
        prefixes: for each record, ids that its output begins with, no end among them; None for no
            prefix. They count in `logprob` and in every length.
        forced: ids that every output holds somewhere, one that is named twice at least twice.

    Raises:
        ConfigError: what is forced is banned, or is the end.
        ValueError: a number is out of its range, or there are not as many prefixes as records.
    """

    eos: int | None
    max_lengths: Sequence[int]
    banned: Sequence[int] = ()
    min_length: int = 0
    no_repeat_ngram: int = 0
    repetition_penalty: float = 1.0
    prefixes: Sequence[Sequence[int]] | None = None
    forced: Sequence[int] = ()

    def __post_init__(self) -> None:
        if min(self.max_lengths, default=1) < 1:
            raise ValueError(f"each of max_lengths must be at least 1, got {self.max_lengths}")
        if self.min_length < 0 or self.no_repeat_ngram < 0:
            raise ValueError("min_length and no_repeat_ngram must be 0 or more")
        if not 0 < self.repetition_penalty < float("inf"):
            raise ValueError(f"repetition_penalty must be above 0, got {self.repetition_penalty}")
        if self.prefixes is not None and len(self.prefixes) != len(self.max_lengths):
            raise ValueError(f"{len(self.prefixes)} prefixes for {len(self.max_lengths)} records")
        if self.eos in self.forced or set(self.forced) & set(self.banned):
            raise ConfigError("a token that is never proposed, or is the end, cannot be forced")


class Rules:
    """Constraints at work on the rows of a search.

    N rows are on their way, each for a record; all have produced t tokens, and step t + 1 is next.

    Args:
        constraints: what binds the search.

    Raises:
        RecordError: a prefix holds the end, or has no room, or what is forced has none.
    """

    def __init__(self, constraints: Constraints) -> None:
        self._bound = constraints
        self.eos = constraints.eos
        self.limits = np.asarray(constraints.max_lengths, dtype=np.int64)
        self._prefixes = self._pad(constraints.prefixes or [()] * len(self.limits))
        counts = Counter(constraints.forced)
        self.forced = np.array(sorted(counts), dtype=np.int64)
        self._wanted = np.array([counts[token] for token in sorted(counts)], dtype=np.int64)

    def _pad(self, prefixes: Sequence[Sequence[int]]) -> Array:
        """The prefixes as (B, longest), filled up with -1."""
        table = np.full((len(prefixes), max(map(len, prefixes), default=0)), -1, dtype=np.int64)
        for row, (prefix, limit) in enumerate(zip(prefixes, self.limits.tolist(), strict=True)):
            needed = len(prefix) + (Counter(self._bound.forced) - Counter(prefix)).total()
            if needed > limit:
                raise RecordError(
                    f"the prefix and forced tokens need {needed} places of an output, and it has"
                    f" {limit}"
                )
            if self.eos in prefix:
                raise RecordError("the prefix of an output holds the end symbol")
            table[row, : len(prefix)] = prefix
        return table

    def missing(self, produced: Array) -> Array:
        """How often each of `forced` must still come, (N, forced), after `produced` (N, t)."""
        present = (produced[:, :, None] == self.forced).sum(axis=1)
        missing: Array = np.maximum(self._wanted - present, 0)
        return missing

    def apply(self, values: Tensor, records: Array, produced: Array) -> tuple[Tensor, list[int]]:
        """Change what the rows are ranked by.

        Args:
            values: (N, V), not changed in place.
            records: (N,), whose record each row is.
            produced: (N, t) ids.

        Returns:
            The values, and ids that no row may take although they have a value: where nothing
            else is to be changed, the matrix is not copied for their sake.
        """
        step = produced.shape[1] + 1
        excluded = list(self._bound.banned)
        if self.eos is not None and step < self._bound.min_length:
            excluded.append(self.eos)
        given, tokens = self._given(step, records)
        if not (given.size or self._looks_back(step)):
            return values, excluded
        ranked = values.clone()
        self._penalise(ranked, produced)
        begun = ranked[given, tokens]
        ranked.index_fill_(1, torch.tensor(excluded, dtype=torch.long, device=ranked.device), _NO)
        ranked[_repeats(produced, self._bound.no_repeat_ngram)] = _NO
        self._make_room(ranked, produced, self.limits[records] - step + 1)
        ranked[given] = _NO
        ranked[given, tokens] = begun
        return ranked, []

    def allowed(self, values: Tensor, records: Array, produced: Array) -> Tensor:
        """The same with minus infinity at the ids that no row may take."""
        ranked, excluded = self.apply(values, records, produced)
        if not excluded:
            return ranked
        return ranked.index_fill(1, torch.tensor(excluded, device=ranked.device), _NO)

    def _given(self, step: int, records: Array) -> tuple[Array, Array]:
        """The rows that still have a token of their prefix to take, and that token."""
        if step > self._prefixes.shape[1]:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        tokens = self._prefixes[records, step - 1]
        rows = np.flatnonzero(tokens >= 0)
        return rows, tokens[rows]

    def _looks_back(self, step: int) -> bool:
        bound = self._bound
        repeats = bound.no_repeat_ngram > 0 or bound.repetition_penalty != 1
        return bool(bound.forced) or (repeats and step > 1)

    def _penalise(self, ranked: Tensor, produced: Array) -> None:
        if self._bound.repetition_penalty != 1 and produced.size:
            past = torch.from_numpy(produced).to(ranked.device)
            ranked.scatter_(1, past, ranked.gather(1, past) * self._bound.repetition_penalty)

    def _make_room(self, ranked: Tensor, produced: Array, room: Array) -> None:
        """No end while something is missing, and nothing else where it needs all the room (N,)."""
        if not self.forced.size:
            return
        missing = self.missing(produced)
        count = missing.sum(axis=1)
        if self.eos is not None:
            ranked[np.flatnonzero(count), self.eos] = _NO
        urgent = np.flatnonzero(count >= room)
        rows, places = np.nonzero(missing[urgent])
        rows, tokens = urgent[rows], self.forced[places]
        taken = ranked[rows, tokens]
        ranked[urgent] = _NO
        ranked[rows, tokens] = taken


def _repeats(produced: Array, size: int) -> tuple[Array, Array]:
    """Rows and tokens that would bring an n-gram of `size` a second time.

    >>> _repeats(np.array([[5, 6, 5]]), 2)
    (array([0]), array([6]))
    """
    if size == 0 or produced.shape[1] < size:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    ngrams = np.lib.stride_tricks.sliding_window_view(produced, size, axis=1)
    last = produced[:, None, produced.shape[1] - size + 1 :]
    rows, places = np.nonzero((ngrams[:, :, :-1] == last).all(axis=2))
    return rows, ngrams[rows, places, -1]
