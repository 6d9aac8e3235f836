"""The weights of Jelinek-Mercer smoothing, by expectation maximisation on held-out text.

P(w | h) = weight(h) c(h w) / c(h) + (1 - weight(h)) P(w | h'). Contexts of an order that were seen
about as often share a weight: one for each power of two (Jelinek and Mercer 1980; Chen and Goodman
1998, section 2.3).
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from seqtools.errors import SeqtoolsError
from seqtools.ngram.compiled import frozen
from seqtools.ngram.counts import Corpus, Grams
from seqtools.ngram.lookup import walk
from seqtools.ngram.smoothing import BUCKETS
from seqtools.ngram.words import BOS, EOS, UNK

Array: TypeAlias = np.ndarray[Any, Any]

_MOST_STEPS = 200
_ENOUGH = 1e-7  # relative change of the log-likelihood
_HIGHEST = 1 - 1e-4  # with a weight of 1, what was not seen would have no probability at all


def fit_weights(
    grams: list[Grams],
    corpus: Corpus,
    heldout: Array,
    *,
    interpolate_unigrams: bool = True,
    unk: bool = True,
) -> tuple[tuple[float, ...], ...]:
    """Find the weights that make the held-out text likeliest.

    Args:
        grams: occurrences of all orders.
        corpus: what was counted.
        heldout: int32, ids of other text, `</s>` after each record.
        interpolate_unigrams: below the unigrams stands the uniform distribution, else `<unk>`.
        unk: `<unk>` is one of the words.

    Returns:
        For each order a weight for each of `BUCKETS`.

    Raises:
        SeqtoolsError: there is no held-out text.
    """
    if not len(heldout):
        raise SeqtoolsError("no held-out records, so there is nothing to find the weights by")
    hits, totals = _look_up(grams, corpus, heldout)
    shares = np.divide(hits, totals, out=np.zeros_like(hits), where=totals > 0)
    buckets = np.minimum(np.log2(np.maximum(totals, 1)).astype(np.int64), BUCKETS - 1)
    if interpolate_unigrams:
        base = np.full(len(heldout), 1 / (len(corpus.words) - 1 - (not unk)))
        base[heldout == UNK] *= unk
    else:
        base = (heldout == UNK).astype(np.float64)
    possible = (base > 0) | (shares > 0).any(axis=1)
    return _maximise(shares[possible], totals[possible] > 0, buckets[possible], base[possible])


def _look_up(grams: list[Grams], corpus: Corpus, heldout: Array) -> tuple[Array, Array]:
    """For each held-out word and each order: the counts of its n-gram, and of the context."""
    order = len(grams)
    hits = np.zeros((len(heldout), order))
    totals = np.zeros((len(heldout), order))
    ids = np.concatenate([np.array([EOS], dtype=np.int32), heldout.astype(np.int32)])
    # Of the n-gram that ends at each place, longer by one each time round.
    rows = ids.astype(np.int64)
    counts = grams[0].counts[0 : len(grams[0])].astype(np.float64)
    counts[BOS] = corpus.records  # as a context
    hits[:, 0] = counts[ids[1:]]
    totals[:, 0] = corpus.events
    lengths = _lengths(ids)
    for index in range(1, order):
        below, here = grams[index - 1], grams[index]
        before = np.where(np.arange(len(ids)) >= index, np.roll(ids, index), EOS)
        before[before == EOS] = BOS
        contexts = rows[:-1].copy()
        contexts[ids[:-1] == EOS] = BOS if index == 1 else -1  # nothing stands before <s>
        known = (contexts >= 0) & (lengths[1:] > index)
        totals[known, index] = counts[contexts[known]]
        lefts = np.where(lengths > index, before, -1).astype(np.int64)
        words, begins = here.words[0 : len(here)], below.begins[0 : len(below) + 1]
        walk(frozen(words), frozen(begins), lefts, rows)
        counts = here.counts[0 : len(here)].astype(np.float64)
        found = rows[1:] >= 0
        hits[found, index] = counts[rows[1:][found]]
    return hits, totals


def _lengths(ids: Array) -> Array:
    """How many words there are back to `<s>`, the word itself and `<s>` counted."""
    places = np.arange(len(ids))
    ends = np.where(ids == EOS, places, -1)
    last = np.concatenate([[-1], np.maximum.accumulate(ends)[:-1]])
    lengths: Array = places - last + 1
    return lengths


def _maximise(
    shares: Array, known: Array, buckets: Array, base: Array
) -> tuple[tuple[float, ...], ...]:
    """Expectation maximisation, all weights at once.

    Args:
        shares: float64 (n, order), c(h w) / c(h).
        known: bool (n, order), whether the context was seen.
        buckets: int64 (n, order), of the contexts.
        base: float64 (n,), probability below the unigrams.
    """
    order = shares.shape[1]
    weights = np.full((order, BUCKETS), 0.5)
    before = -np.inf
    for _ in range(_MOST_STEPS):
        chain = [base]
        for index in range(order):
            weight = np.where(known[:, index], weights[index, buckets[:, index]], 0.0)
            chain.append(weight * shares[:, index] + (1 - weight) * chain[-1])
        likelihood = float(np.log(chain[-1]).sum())
        left = np.ones(len(shares))  # probability that no higher order made the word
        for index in reversed(range(order)):
            here = known[:, index]
            bucket = buckets[here, index]
            weight = weights[index, bucket]
            mine = left[here] * weight * shares[here, index] / chain[index + 1][here]
            made = np.bincount(bucket, mine, minlength=BUCKETS)
            asked = np.bincount(bucket, left[here], minlength=BUCKETS)
            overall = made.sum() / asked.sum() if asked.sum() else 0.5
            ratio = np.divide(made, asked, out=np.full(BUCKETS, overall), where=asked > 0)
            weights[index] = np.minimum(ratio, _HIGHEST)
            left[here] -= mine
        if likelihood - before < _ENOUGH * abs(likelihood):
            break
        before = likelihood
    return tuple(tuple(row) for row in weights.tolist())
