"""Corpora and settings for tests of estimation, drawn at random."""

from __future__ import annotations

import itertools
import random
from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

from tests.oracles.ngram import BOS, BUCKETS, EOS, UNK, Gram, Reference

K1 = [["a", "b"], ["a", "b"], ["a", "c"], ["b", "a"]]

METHODS = (
    "mle", "add-k", "jelinek-mercer", "witten-bell", "absolute", "kneser-ney",
    "modified-kneser-ney", "stupid-backoff",
)  # fmt: skip
# Floating-point numbers hold them exactly.
fractions = st.builds(Fraction, st.integers(0, 64), st.just(64))


def _language(seed: int, size: int, types: int) -> list[list[str]]:
    """Records of words of very different frequency: there is an n-gram for every count."""
    source = random.Random(seed)
    return [
        [f"{int(types ** source.random())}" for _ in range(source.randrange(8))]
        for _ in range(size)
    ]


@st.composite
def corpora(draw: st.DrawFn) -> list[list[str]]:
    """Some records, of which some are empty; of few words, or enough to estimate discounts."""
    if draw(st.booleans()):
        size, types = draw(st.integers(20, 80)), draw(st.integers(10, 40))
        return _language(draw(st.integers(0, 1 << 32)), size, types)
    alphabet = draw(st.sampled_from(["a", "ab", "abc", "abcdefg"]))
    record = st.lists(st.sampled_from(alphabet), max_size=10)
    return draw(st.lists(record, min_size=1, max_size=8))


@st.composite
def smoothings(draw: st.DrawFn, order: int, methods: tuple[str, ...] = METHODS) -> dict[str, Any]:
    """A method and its settings, as the reference takes them."""
    method = draw(st.sampled_from(methods))
    options: dict[str, Any] = {"method": method, "unk": draw(st.booleans())}
    if options["unk"]:
        options["interpolate_unigrams"] = draw(st.booleans())
    if method in ("absolute", "kneser-ney"):
        options["discount"] = draw(st.none() | fractions.filter(lambda value: 0 < value < 1))
    if method == "add-k":
        options["add"] = draw(fractions.filter(bool))
    if method == "jelinek-mercer":
        row = st.lists(fractions, min_size=BUCKETS, max_size=BUCKETS)
        options["weights"] = draw(st.lists(row, min_size=order, max_size=order))
    if method != "add-k" and draw(st.booleans()):
        options["prune"] = (0, *sorted(draw(st.lists(st.integers(0, 3), max_size=order - 1))))
    return options


@st.composite
def cases(
    draw: st.DrawFn, methods: tuple[str, ...] = METHODS
) -> tuple[list[list[str]], int, dict[str, Any]]:
    """Records, an order, a method with its settings."""
    order = draw(st.integers(1, 6))
    return draw(corpora()), order, draw(smoothings(order, methods))


def contexts(model: Reference) -> list[Gram]:
    """Contexts of up to two words, all that were seen, and these one word longer."""
    words = [word for word in model.vocabulary if word != EOS][:4] or [UNK]
    found: list[Gram] = [(), (BOS,)]
    for length in (1, 2):
        found += itertools.product(words, repeat=length)
        found += [(BOS, *rest) for rest in itertools.product(words, repeat=length)]
    seen = [gram for counts in model.counts for gram in counts if gram[-1] != EOS]
    found += seen
    found += [(word, *gram) for gram in seen for word in (BOS, words[0]) if gram[0] != BOS]
    if model.method == "add-k":  # which is defined for whole contexts alone
        found = [each for each in found if len(each) == model.order - 1 or each[:1] == (BOS,)]
    return [each for each in dict.fromkeys(found) if len(each) < model.order]
