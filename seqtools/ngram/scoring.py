"""Probabilities of text under a model of n-grams.

Many tokens are looked up together, one order after the other: the longest n-gram that ends with a
token is found by going from its word to the left, and what was found for the token before it is the
context whose weight is paid where the n-gram is not known. So each order is one pass over memory
that does not wait for the results of another token's search.

Logarithms are to base 10, as models store them, unless a name says otherwise.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from seqtools.ngram.compiled import kernel
from seqtools.ngram.lookup import ADD, BACK_OFF, Rule, find_child, tables
from seqtools.ngram.words import BOS, EOS, UNK

if TYPE_CHECKING:
    from seqtools.ngram.model import Model

Array: TypeAlias = np.ndarray[Any, Any]

LN10 = math.log(10)
_NOTHING = np.empty(0, dtype=np.uint32)
_NOTHING.flags.writeable = False
_UNIT = 1 << 40  # sums over a corpus are whole numbers of such parts, so their order is no matter


@dataclass(frozen=True)
class Scores:
    """What became of the targets of some records: their tokens, and `</s>` where it is predicted.

    Attributes:
        log10probs: float32 (targets,), -inf for a probability of 0.
        matched: uint8 (targets,), words of the longest n-gram that is known.
        oov: bool (targets,), not in the vocabulary.
        ends: int64 (records,), record i has the targets ends[i - 1] to ends[i].
        known_sums, oov_sums: float64 (records,), the parts that are of known and unknown words.
        n_oov: int64 (records,).
    """

    log10probs: Array
    matched: Array
    oov: Array
    ends: Array
    known_sums: Array
    oov_sums: Array
    n_oov: Array

    @property
    def sums(self) -> Array:
        """float64 (records,), log10 of the records' probabilities."""
        return self.known_sums + self.oov_sums

    @property
    def n_tokens(self) -> Array:
        """int64 (records,), how many targets each has."""
        return np.diff(self.ends, prepend=0)

    def one(self, record: int) -> Scores:
        """Those of one record."""
        this = slice(record, record + 1)
        targets = slice(self.ends[record - 1] if record else 0, self.ends[record])
        return Scores(
            self.log10probs[targets], self.matched[targets], self.oov[targets],
            self.ends[this] - targets.start, self.known_sums[this], self.oov_sums[this],
            self.n_oov[this],
        )  # fmt: skip


class Scorer:
    """Looks tokens up in a model.

    Args:
        model: whose arrays are in memory or mapped.
        eos: `</s>` is predicted after each record, and counted.
        bos: `<s>` stands before each record; without it the first token has no context.
    """

    def __init__(self, model: Model, *, eos: bool = True, bos: bool = True) -> None:
        self.eos, self.bos = eos, bos
        self._order = model.order
        self._tables = tables(model)
        self._rule = Rule.of(model)
        self.score(np.zeros(1, dtype=np.int32), np.ones(1, dtype=np.int64))  # compiles

    def score(self, ids: Array, ends: Array) -> Scores:
        """Score records, each on its own: nothing is known of the one before it.

        Args:
            ids: int32 (n,), tokens; 0 for those that are not in the vocabulary.
            ends: int64 (records,), record i is ids[ends[i - 1]:ends[i]].
        """
        marked, starts, limits = _with_markers(ids, ends, eos=self.eos)
        logs, matched = self._look_up(marked, starts, limits)
        targets = marked != BOS
        logs[~targets] = 0
        oov = marked == UNK
        records = np.repeat(np.arange(len(ends)), limits - starts)
        known_sums, oov_sums = (
            np.bincount(records, weights=np.where(counted, logs, 0), minlength=len(ends))
            for counted in (~oov, oov)
        )
        n_oov = np.bincount(records[oov], minlength=len(ends))
        return Scores(
            logs[targets].astype(np.float32), matched[targets], oov[targets],
            limits - np.arange(1, len(ends) + 1), known_sums, oov_sums, n_oov,
        )  # fmt: skip

    def _look_up(self, ids: Array, starts: Array, limits: Array) -> tuple[Array, Array]:
        """Of each token, markers included: its logarithm, how long an n-gram was found."""
        rule, count = self._rule, len(ids)
        rows = np.empty(count, dtype=np.int64)
        found = np.zeros(count)
        weights = np.full(count, rule.log10 if rule.family == ADD else 0.0)
        matched = np.zeros(count, dtype=np.uint8)
        begins = _NOTHING
        for order, table in enumerate(self._tables, 1):
            _extend(
                order, self._order, rule.family == ADD, self.bos, ids, begins,
                table.words, table.log10probs, table.log10backoffs,
                rows, found, weights, matched,
            )  # fmt: skip
            begins = table.begins
        logs = found + weights
        if rule.family != BACK_OFF:
            before = np.arange(count) - np.repeat(starts, limits - starts) - (not self.bos)
            longest = np.minimum(before, self._order - 1) + 1
            if rule.family == ADD:
                logs = np.where(matched == longest, found, weights)
            else:
                logs = found + rule.log10 * (longest - matched)
        if not rule.has_unk:
            logs[ids == UNK] = -math.inf
        return logs, matched


def add_up(counts: Counter[str], scores: Scores, sign: int = 1) -> None:
    """Add records to what `summarise` makes its numbers of.

    Args:
        counts: to add to; those of several parts of a corpus are summed up.
        scores: of the records.
        sign: -1 takes them away again.
    """
    counts["records"] += sign * len(scores.ends)
    counts["n_tokens"] += sign * len(scores.oov)
    counts["n_oov"] += sign * int(scores.n_oov.sum())
    for name, sums in (("known", scores.known_sums), ("oov", scores.oov_sums)):
        finite = sums[sums > -math.inf]
        whole = np.floor(finite)
        part = np.rint((finite - whole) * _UNIT)
        counts[name] += sign * (int(whole.sum()) * _UNIT + int(part.sum(dtype=np.int64)))
        counts[f"{name} zeros"] += sign * (len(sums) - len(finite))


def summarise(counts: Counter[str], *, eos: bool, bos: bool = True) -> dict[str, Any]:
    """The numbers of a corpus, the same whatever it was cut into.

    `logprob` is in nats, `bits` are per token, and those `without_oov` leave out unknown words, in
    the sum and among the tokens. Infinities are the strings `"inf"` and `"-inf"`; where no token
    counts, perplexity and bits are `"nan"`.

    Args:
        counts: from `add_up`.
        eos: whether `</s>` is among the tokens.
        bos: whether `<s>` stood before each record.
    """
    n_tokens, n_oov = counts["n_tokens"], counts["n_oov"]
    known, oov = (
        -math.inf if counts[f"{name} zeros"] else counts[name] / _UNIT * LN10
        for name in ("known", "oov")
    )
    without = _rate(known, n_tokens - n_oov)
    return {
        "records": counts["records"],
        "n_tokens": n_tokens,
        "n_oov": n_oov,
        "bos": bos,
        "eos": eos,
        **_rate(known + oov, n_tokens),
        **{f"{name}_without_oov": value for name, value in without.items()},
    }


def _rate(log: float, n_tokens: int) -> dict[str, Any]:
    """Sum in nats, perplexity, and bits per token."""
    loss = -log / n_tokens if n_tokens else math.nan
    try:
        perplexity = math.exp(loss)
    except OverflowError:
        perplexity = math.inf
    return {
        "logprob": plain(log),
        "perplexity": plain(perplexity),
        "bits": plain(loss / math.log(2)),
    }


def plain(value: float) -> float | str:
    """The number, or its name where JSON has no number for it."""
    if math.isfinite(value):
        return value + 0.0  # no minus zero
    return str(value)


def _with_markers(ids: Array, ends: Array, *, eos: bool) -> tuple[Array, Array, Array]:
    """The records as `<s> tokens </s>`, where each starts, where it ends."""
    extra = 1 + eos
    limits = ends + extra * np.arange(1, len(ends) + 1)
    starts = np.concatenate([[0], limits])[:-1]
    marked = np.empty(len(ids) + extra * len(ends), dtype=np.int32)
    tokens = np.ones(len(marked), dtype=bool)
    for places, marker in ((starts, BOS), (limits - 1, EOS))[:extra]:
        marked[places] = marker
        tokens[places] = False
    marked[tokens] = ids
    return marked, starts, limits


@kernel
def _extend(
    order: int, highest: int, additive: bool, bos: bool,  # noqa: FBT001
    ids: Array, begins: Array, words: Array, log10probs: Array, log10backoffs: Array,
    rows: Array, found: Array, weights: Array, matched: Array,
) -> None:  # fmt: skip
    """Find the n-grams of one order that end at each token, those of all lower orders being known.

    Args:
        order: of the level.
        highest: order of the model.
        additive: the weight of the longest context is all that counts.
        bos: `<s>` is a context.
        ids: int32 (n,), records that begin with `<s>`.
        begins: uint32, of the level below; (0,) at order 1.
        words, log10probs, log10backoffs: of the level.
        rows: int64 (n,), the n-grams of the order below, -1 where there is none; in the end those
            of this order.
        found: float64 (n,), the probabilities of the longest n-grams.
        weights: float64 (n,), the sum of the weights of the contexts that are not shorter than
            those n-grams; with `additive`, the weight of the longest possible context.
        matched: uint8 (n,), lengths of those n-grams.
    """
    place = 0  # how many words stand before, as far as they count
    for index in range(len(ids)):
        word = np.int64(ids[index])
        if word == BOS:
            place = 0 if bos else -1
            rows[index] = BOS if bos and order == 1 else -1
            continue
        place += 1
        row = np.int64(-1)
        if order == 1:
            row = word
        elif place >= order - 1 and rows[index] >= 0:
            row = np.int64(find_child(words, begins, rows[index], int(ids[index - order + 1])))
        rows[index] = row
        if row >= 0:
            found[index] = log10probs[row]
            matched[index] = order
            if not additive:
                weights[index] = 0
        context = rows[index - 1]
        if context >= 0 and order < highest:
            weight = log10backoffs[context]
            if not additive:
                weights[index] += weight
            elif order == min(place, highest - 1) and weight != 0:  # 0: it is not a context
                weights[index] = weight
