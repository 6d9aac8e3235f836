"""Probabilities by walking over any n-grams, against a dictionary of them in plain Python."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from seqtools.errors import FormatError
from seqtools.ngram.scoring import LN10, Scorer
from seqtools.ngram.words import BOS, EOS, UNK
from tests.unit.ngram.corpora import K1
from tests.unit.ngram.models import language_model
from tests.unit.ngram.test_arpa import Gram, Values, model_of, tables

# log10 of P(word | context), and the words of the n-gram that was found.
Plain = Callable[[Gram, int], tuple[float, int]]
FAMILIES: list[dict[str, Any]] = [
    {"additive": None, "unseen_backoff": 0.0},
    {"additive": None, "unseen_backoff": -0.398},
    {"additive": 0.5, "unseen_backoff": 0.0},
]


def by_dictionary(size: int, order: int, values: Values, metadata: dict[str, Any]) -> Plain:
    """What the docstrings of the model say, word for word."""

    def longest(context: Gram, word: int) -> Gram:
        gram = (*context, word)[-order:]
        while gram not in values:
            gram = gram[1:]
        return gram

    def probability(context: Gram, word: int) -> tuple[float, int]:
        found = longest(context, word)
        if word == UNK and not metadata["has_unk"]:
            return -math.inf, len(found)
        context = context[max(0, len(context) + 1 - order) :]
        if metadata["additive"] is not None and context:
            if len(found) == len(context) + 1:
                return values[found][0], len(found)
            weight = values.get(context, (0.0, 0.0))[1]
            possible = size - 1 if metadata["has_unk"] else size - 2
            # a weight of 1 means that nothing was seen after it
            return weight or -math.log10(possible), len(found)
        log = values[found][0]
        for length in range(len(found), len(context) + 1):
            known = values.get(context[len(context) - length :], (0.0, 0.0))[1]
            log += metadata["unseen_backoff"] or known
        return log, len(found)

    return probability


texts = st.lists(st.lists(st.integers(0, 7), max_size=7), max_size=4)


@settings(max_examples=200)
@given(tables(), st.sampled_from(FAMILIES), st.booleans(), texts)
@example(([b"<unk>", b"<s>", b"</s>"], 1, {(0,): (-1, 0), (1,): (0, 0), (2,): (-1, 0)}), FAMILIES[0], True, [[]])  # fmt: skip # noqa: E501
def test_scores_and_distributions_of_any_model(
    table: tuple[list[bytes], int, Values],
    family: dict[str, Any],
    has_unk: bool,
    drawn: list[list[int]],
) -> None:
    strings, order, values = table
    model = model_of(strings, order, values)
    model.metadata = {**family, "has_unk": has_unk}
    plain = by_dictionary(len(strings), order, values, model.metadata)
    ordinary = [UNK, *range(EOS + 1, len(strings))]
    records = [[ordinary[number % len(ordinary)] for number in record] for record in drawn]

    ids = np.array([*itertools.chain.from_iterable(records)], dtype=np.int32)
    ends = np.cumsum([len(record) for record in records], dtype=np.int64)
    found = Scorer(model).score(ids, ends)
    expected, histories = [], []
    for record in records:
        words = [BOS, *record, EOS]
        for place in range(1, len(words)):
            expected.append(plain(tuple(words[:place]), words[place]))
            histories.append(words[:place])
    assert found.matched.tolist() == [length for _, length in expected]
    logs = [log for log, _ in expected]
    np.testing.assert_allclose(found.log10probs, logs, rtol=1e-5, atol=1e-5)

    contexts = [[], *histories, *(history[-2:] for history in histories), [EOS]]
    following = model.distributions(padded(contexts, order))
    assert following.dtype == np.float32
    assert (following[:, BOS] == -math.inf).all()
    for row, context in zip(following, contexts, strict=True):
        history = tuple(context[max(0, len(context) + 1 - order) :])
        wanted = [plain(history, word)[0] for word in range(len(strings))]
        wanted[BOS] = -math.inf
        np.testing.assert_allclose(row / LN10, wanted, rtol=1e-5, atol=1e-5)


def padded(contexts: Sequence[Sequence[int]], order: int) -> Any:
    made = np.full((len(contexts), order - 1), -1, dtype=np.int64)
    for row, context in enumerate(contexts):
        for back, word in enumerate(reversed(context[max(0, len(context) + 1 - order) :]), 1):
            made[row, -back] = word
    return made


def test_histories_of_another_order() -> None:
    model = language_model(K1, 3)
    for width in (0, 1, 3):
        with pytest.raises(ValueError, match=f"histories of {width} words"):
            model.distributions(np.zeros((1, width), dtype=np.int64))
    assert model.distributions(np.zeros((0, 2), dtype=np.int32)).shape == (0, 6)


@pytest.mark.parametrize("change", [(slice(0, 1), 1), (slice(1, 2), 99), (slice(6, 7), 3)])
def test_an_index_of_damaged_arrays_is_not_made(change: tuple[slice, int]) -> None:
    model = language_model(K1, 2)
    where, value = change
    begins = np.array(model.levels[0].begins)
    begins[where] = value
    model.levels[0].begins = begins
    with pytest.raises(FormatError, match="damaged"):
        model.distributions(np.zeros((1, 1), dtype=np.int64))


def test_an_index_of_words_that_are_none_is_not_made() -> None:
    model = language_model(K1, 2)
    model.levels[1].words = np.full(len(model.levels[1]), 99, dtype=np.uint32)
    with pytest.raises(FormatError, match="damaged"):
        model.distributions(np.zeros((1, 1), dtype=np.int64))
