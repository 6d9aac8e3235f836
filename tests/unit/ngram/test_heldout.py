"""Weights of Jelinek-Mercer smoothing: the likeliest ones for what each model can say at all."""

import random

import numpy as np
import pytest

from seqtools.ngram.estimate import Estimate, train
from seqtools.ngram.scoring import Scorer
from seqtools.ngram.smoothing import Smoothing

SOURCE = random.Random(5)
RECORDS = [[SOURCE.choice("aaabbc") for _ in range(6)] for _ in range(40)]
HELDOUT = [[SOURCE.choice("aabbbcx") for _ in range(6)] for _ in range(20)]


def fit(smoothing: Smoothing) -> Estimate:
    return train(RECORDS, 2, smoothing, heldout=HELDOUT)


def likelihood(estimate: Estimate) -> float:
    """log10 probability of what is possible in the held-out text."""
    ids, ends = estimate.model.words.encode_tokens(HELDOUT)
    values = Scorer(estimate.model).score(ids, ends).log10probs
    return float(values[np.isfinite(values)].sum())


@pytest.mark.parametrize(("interpolate", "unk"), [(True, True), (False, True), (True, False)])
def test_no_other_weights_are_likelier(interpolate: bool, unk: bool) -> None:
    best = fit(Smoothing("jelinek-mercer", interpolate_unigrams=interpolate, unk=unk))
    weights = best.model.metadata["weights"]
    found = likelihood(best)
    for order in range(2):
        for change in (-0.05, 0.05):
            moved = [list(row) for row in weights]
            moved[order] = [min(max(weight + change, 0.0), 0.9999) for weight in moved[order]]
            other = Smoothing(
                "jelinek-mercer", interpolate_unigrams=interpolate, unk=unk,
                weights=tuple(map(tuple, moved)),
            )  # fmt: skip
            assert likelihood(fit(other)) < found + 1e-4
