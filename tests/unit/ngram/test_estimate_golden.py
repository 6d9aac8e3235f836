"""Estimation against numbers that `lmplz` of KenLM gave; see tests/golden/ngram/make.py."""

from __future__ import annotations

import json
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seqtools.ngram.estimate import train
from seqtools.ngram.smoothing import Smoothing
from tests.golden.ngram import make
from tests.golden.ngram.corpora import CORPORA
from tests.oracles.ngram import BOS, Reference
from tests.unit.ngram.tables import rows, whole

FILES = sorted(make.FOLDER.glob("*.json"))
CLOSE = 1e-5  # in log10: lmplz computes with single precision


@cache
def corpus(name: str) -> list[list[str]]:
    records = CORPORA[name]()
    if records is None:
        pytest.skip("SEQTOOLS_DATA names no folder with tinyshakespeare")
    return records


def test_the_numbers_are_there() -> None:
    assert len(FILES) == len(make.CASES)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_numbers_of_lmplz(file: Path) -> None:
    golden = json.loads(file.read_text())
    fallback = (0.5, 1.0, 1.5) if golden["fallback"] else None
    smoothing = Smoothing(fallback=fallback, interpolate_unigrams=golden["interpolate_unigrams"])
    prune = tuple(golden["prune"])
    found = train(corpus(golden["corpus"]), golden["order"], smoothing, prune=prune)
    np.testing.assert_allclose(found.discounts, golden["discounts"], atol=CLOSE)
    for level, grams, expected in zip(
        found.model.levels, rows(found.model), golden["levels"], strict=True
    ):
        names = [" ".join(gram) for gram in grams]
        backoffs = whole(level.log10backoffs).tolist() or [None] * len(names)
        values = whole(level.log10probs).tolist()
        _compare(list(zip(names, values, backoffs, strict=True)), expected)


@pytest.mark.parametrize("file", [file for file in FILES if "k1" in file.stem or "letters" in file.stem], ids=lambda file: file.stem)  # fmt: skip # noqa: E501
def test_the_reference_gives_them_too(file: Path) -> None:
    golden = json.loads(file.read_text())
    fallback = (Fraction(1, 2), Fraction(1), Fraction(3, 2)) if golden["fallback"] else None
    model = Reference(
        corpus(golden["corpus"]),
        golden["order"],
        "modified-kneser-ney",
        fallback=fallback,
        interpolate_unigrams=golden["interpolate_unigrams"],
        prune=golden["prune"],
    )
    np.testing.assert_allclose(
        np.array(model.discounts[1:], dtype=float), golden["discounts"], atol=CLOSE
    )
    for length, expected in enumerate(golden["levels"], 1):
        grams = set(model.kept[length])
        if length == 1:
            grams = {(word,) for word in model.vocabulary} | {(BOS,)}
        level = [
            (
                " ".join(gram),
                0.0 if gram == (BOS,) else _log10(model.probability(gram[-1], gram[:-1])),
                _log10(model.backoff(gram)) if length < golden["order"] else None,
            )
            for gram in grams
        ]
        _compare(level, expected)


def _log10(value: Fraction) -> float:
    return float(np.log10(float(value)))


def _compare(level: list[tuple[str, float, float | None]], expected: dict[str, Any]) -> None:
    """One order: how many n-grams, the sums, and the values that were kept."""
    found = make.sample(level)
    size = expected["ngrams"]
    assert (found["ngrams"], found["every"]) == (size, expected["every"])
    for key in ("log10probs", "log10backoffs"):
        assert (key in found) == (key in expected)
        if key in found:
            np.testing.assert_allclose(found[key], expected[key], atol=CLOSE, rtol=0)
            assert found[f"sum_{key}"] / size == pytest.approx(
                expected[f"sum_{key}"] / size, abs=CLOSE
            )
