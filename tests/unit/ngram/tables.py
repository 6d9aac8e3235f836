"""A model's arrays as dictionaries, for tests that ask for n-grams by name."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from seqtools.ngram.estimate import Estimate
from tests.oracles.ngram import BOS, Gram


def whole(array: Any) -> Any:
    """All of an array or a column."""
    return array[0 : len(array)]


def rows(model: Any) -> list[list[Gram]]:
    """The n-gram of each row of each order."""
    names = [word.decode() for word in model.words.strings()]
    found: list[list[Gram]] = [[(name,) for name in names]]
    for below, here in itertools.pairwise(model.levels):
        begins, words = whole(below.begins).tolist(), whole(here.words).tolist()
        assert begins[0] == 0
        assert begins[-1] == len(words)
        found.append(
            [
                (names[words[row]], *suffix)
                for suffix, start, end in zip(found[-1], begins[:-1], begins[1:], strict=True)
                for row in range(start, end)
            ]
        )
    return found


class Table:
    """A back-off model: what is read from it is what an ARPA file would say."""

    def __init__(self, estimate: Estimate) -> None:
        self.order = len(estimate.model.levels)
        self.probabilities: dict[Gram, float] = {}
        self.backoffs: dict[Gram, float] = {}
        names = rows(estimate.model)
        for each, values in zip(names, estimate.probabilities, strict=True):
            self.probabilities.update(zip(each, values.tolist(), strict=True))
        for each, values in zip(names, estimate.backoffs, strict=False):
            self.backoffs.update(zip(each, values.tolist(), strict=True))

    def probability(self, word: str, history: Sequence[str]) -> float:
        """The longest n-gram there is, times what each longer context gives to a shorter one."""
        context = tuple(history)[max(0, len(history) - self.order + 1) :]
        weight = 1.0
        while (*context, word) not in self.probabilities:
            weight *= self.backoffs.get(context, 1.0)
            context = context[1:]
        return weight * self.probabilities[(*context, word)]

    def words(self) -> list[str]:
        """What can be predicted."""
        return [gram[0] for gram in self.probabilities if len(gram) == 1 and gram[0] != BOS]
