"""From the counts of a corpus to a language model, order by order.

Every order needs the statistics of its contexts, which lie in the order below, and the
probabilities of its suffixes, which do too. Columns are gone through in blocks; only the statistics
of contexts are looked up at random, in as many goes as the memory asks for. Whatever is added up is
a whole number, so neither the memory nor the number of goes changes a bit of the result.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from seqtools.errors import ConfigError, SeqtoolsError
from seqtools.ngram.counts import Corpus, Grams, Reader, count
from seqtools.ngram.heldout import fit_weights
from seqtools.ngram.model import Level, Model
from seqtools.ngram.smoothing import (
    STUPID,
    Smoothing,
    accumulate,
    probabilities,
    weigh_contexts,
)
from seqtools.ngram.sorting import HIGHEST, interleave
from seqtools.ngram.storage import BLOCK, Column, Store
from seqtools.ngram.words import BOS, UNK, pack_tokens

Array: TypeAlias = np.ndarray[Any, Any]

_LOG10_E = 1 / np.log(10)
_NOTHING = np.empty(0, dtype=np.uint8)


@dataclass
class Estimate:
    """What was estimated.

    Attributes:
        model: the language model; its arrays are columns of the store that was worked in.
        discounts: for each order those of counts 1, 2, and 3 or more.
        of_counts: for each order how many n-grams have a count of 1, 2, 3, 4.
        fallbacks: the orders whose discounts could not be estimated.
        probabilities: with `exact`, for each order float64 (n,), in the order of the model's rows.
        backoffs: with `exact`, for each order but the highest float64 (n,).
        counts: with `exact`, for each order uint32 (n,).
    """

    model: Model
    discounts: list[list[float]]
    of_counts: list[list[int]]
    fallbacks: list[int]
    probabilities: list[Array] = field(default_factory=list)
    backoffs: list[Array] = field(default_factory=list)
    counts: list[Array] = field(default_factory=list)


@dataclass(frozen=True)
class Settings:
    """What to estimate.

    Attributes:
        order: of the model.
        smoothing: the method.
        prune: for each order, n-grams seen so often or less are left out; the last number holds for
            all higher orders. Unigrams are never left out, so the first is 0.

    Raises:
        ConfigError: settings that do not go together.
    """

    order: int
    smoothing: Smoothing = field(default_factory=Smoothing)
    prune: tuple[int, ...] = (0,)

    def __post_init__(self) -> None:
        if not 1 <= self.order <= HIGHEST:
            raise ConfigError(f"the order must be from 1 to {HIGHEST}, got {self.order}")
        if len(self.prune) > self.order:
            raise ConfigError(
                f"{len(self.prune)} numbers to prune by, but the order is {self.order}"
            )
        if self.prune[0]:
            raise ConfigError("unigrams are never pruned (a vocabulary can leave words out): the first number must be 0")  # fmt: skip # noqa: E501
        if any(low > high for low, high in zip(self.prune, self.prune[1:], strict=False)):
            raise ConfigError("the numbers to prune by must not decrease: a shorter n-gram is needed by the longer ones")  # fmt: skip # noqa: E501
        if any(self.prune) and self.smoothing.method == "add-k":
            raise ConfigError(
                "add-k gives what is pruned no mass to come back to: it cannot be pruned"
            )

    def threshold(self, order: int) -> int:
        """The number for one order."""
        return self.prune[min(order, len(self.prune)) - 1]


def train(
    records: Iterable[Sequence[str]],
    order: int,
    smoothing: Smoothing | None = None,
    *,
    prune: tuple[int, ...] = (0,),
    heldout: Iterable[Sequence[str]] | None = None,
    vocabulary: Sequence[str] | None = None,
    unk_as_word: bool = False,
    memory: int = 1 << 28,
    folder: str | None = None,
    exact: bool = False,
) -> Estimate:
    """Estimate a model from records in memory; the way for programs, as `estimate` is for pipes.

    Args:
        records: lists of tokens.
        order: of the model.
        smoothing: the method.
        prune: see `Settings`.
        heldout: other records, for the weights of jelinek-mercer.
        vocabulary: the only words there are.
        unk_as_word: a token `<unk>` is an ordinary word.
        memory: bytes to work in, beyond which temporary files are used.
        folder: for temporary files.
        exact: keep the values in float64, too.

    Raises:
        ConfigError: settings that do not go together.
        SeqtoolsError: no records; discounts that cannot be estimated.
    """
    settings = Settings(order, smoothing or Smoothing(), prune)
    store = Store(memory * 6 // 10, folder)
    known = None if vocabulary is None else [word.encode() for word in vocabulary]
    reader = Reader(store, vocabulary=known, unk_as_word=unk_as_word)
    reader.add_packed(pack_tokens(records))
    corpus = reader.finish()
    others = None if heldout is None else corpus.words.encode_tokens(heldout, mark=True)[0]
    return estimate(corpus, settings, store, memory // 4, heldout=others, exact=exact)


def estimate(
    corpus: Corpus,
    settings: Settings,
    store: Store,
    scratch: int,
    *,
    heldout: Array | None = None,
    exact: bool = False,
) -> Estimate:
    """Estimate a model.

    Args:
        corpus: the text; its ids are freed.
        settings: what to estimate.
        store: where columns are kept.
        scratch: bytes of its memory to work in.
        heldout: for jelinek-mercer: int32, other text as ids, `</s>` after each record.
        exact: keep the values in float64, too.

    Raises:
        ConfigError: jelinek-mercer without held-out text.
        SeqtoolsError: no records; discounts that cannot be estimated.
    """
    smoothing = settings.smoothing
    if not corpus.records:
        raise SeqtoolsError("no records, so there is nothing to estimate")
    if not smoothing.unk and corpus.frequencies[UNK]:
        raise ConfigError(f"{corpus.frequencies[UNK]} tokens are unknown, so <unk> is needed")
    raws = any(settings.prune) and smoothing.adjusted
    grams = count(corpus, settings.order, store, scratch, adjusted=smoothing.adjusted, raws=raws)
    if smoothing.method == "jelinek-mercer" and smoothing.weights is None:
        if heldout is None:
            raise ConfigError("jelinek-mercer needs held-out text for its weights")
        weights = fit_weights(
            grams, corpus, heldout,
            interpolate_unigrams=smoothing.interpolate_unigrams, unk=smoothing.unk,
        )  # fmt: skip
        settings = dataclasses.replace(
            settings, smoothing=dataclasses.replace(smoothing, weights=weights)
        )
    corpus.ids.free()
    return _Estimator(corpus, settings, store, scratch, grams, exact=exact).run()


class _Estimator:
    """One run of `estimate`, from the lowest order up."""

    def __init__(
        self, corpus: Corpus, settings: Settings, store: Store, scratch: int, grams: list[Grams],
        *, exact: bool,
    ) -> None:  # fmt: skip
        self.corpus, self.settings, self.store, self.scratch = corpus, settings, store, scratch
        self.smoothing = settings.smoothing
        self.grams = grams
        self.exact = exact
        # <s> is never predicted, and <unk> may not exist.
        self.vocabulary = len(corpus.words) - 1 - (not self.smoothing.unk)
        self.parameters: list[Array] = []
        self.levels: list[Level] = []
        self.done = Estimate(Model(corpus.words, self.levels, {}), [], [], [])

    def run(self) -> Estimate:
        self._find_discounts()
        shorter = self._unigrams()
        kept: Column | None = None  # which rows of the order below stay; None for all
        for index in range(1, self.settings.order):
            above = self._kept(index)
            longer, backoffs = self._next(index, shorter, above)
            self._finish(index - 1, shorter, backoffs, kept, above)
            shorter, kept = longer, above
        self._finish(self.settings.order - 1, shorter, None, kept, None)
        self.done.model.metadata.update(self._metadata())
        return self.done

    def _find_discounts(self) -> None:
        for order, grams in enumerate(self.grams, 1):
            smoothing = self.smoothing
            if order == 1 and not smoothing.unk:
                found, fallback = np.zeros(3), False
            else:
                found, fallback = smoothing.discounts(order, grams.of_counts)
            self.parameters.append(smoothing.parameters(order, found, self.vocabulary))
            self.done.discounts.append(found.tolist())
            self.done.of_counts.append(grams.of_counts[1:].tolist())
            if fallback:
                self.done.fallbacks.append(order)

    def _unigrams(self) -> Column:
        """Probabilities of the unigrams."""
        grams, smoothing = self.grams[0], self.smoothing
        counts = grams.counts[0 : len(grams)]
        statistics = np.zeros((1, 4), dtype=np.uint32)
        seen = counts[counts > 0]
        nowhere = np.zeros(len(seen), dtype=np.uint32)
        accumulate(nowhere, seen, _NOTHING, 0, False, statistics)
        # As n-grams that all have the empty context and, as suffix, the uniform distribution.
        everything = np.array([0, len(counts)], dtype=np.uint32)
        mixed = smoothing.interpolated and smoothing.interpolate_unigrams
        uniform = np.full(1 if mixed else 0, 1 / self.vocabulary)
        values = np.zeros(len(counts))
        factors = np.empty((1, 2))
        weigh_contexts(self.parameters[0], statistics, factors)
        probabilities(
            self.parameters[0], counts, np.zeros(len(counts), dtype=np.uint32), 0, factors,
            everything, uniform, values,
        )  # fmt: skip
        if smoothing.interpolated and not mixed:
            values[UNK] += factors[0, 1]
        if not smoothing.unk:
            values[UNK] = 0
        values[BOS] = 1  # as lmplz has it: it is given, not predicted
        column = self.store.column(np.float64, len(values))
        column.append(values)
        return column

    def _kept(self, index: int) -> Column | None:
        """Which n-grams of an order stay, or None for all."""
        threshold = self.settings.threshold(index + 1)
        if not threshold:
            return None
        grams = self.grams[index]
        column = self.store.column(np.uint8, len(grams))
        for block in (grams.raws or grams.counts).blocks():
            column.append(block > threshold)
        return column

    def _next(self, index: int, shorter: Column, kept: Column | None) -> tuple[Column, Column]:
        """Probabilities of one order, and log10 of the weights of its contexts."""
        contexts = len(self.grams[index - 1])
        width = 4 if kept is None else 6
        size = max(BLOCK, self.scratch // (4 * width))
        starts = range(0, contexts, size)
        weights = self.store.column(np.float32, contexts)
        exact: list[Array] = [np.empty(0)]
        found: list[Column] = []
        for first in starts:
            statistics = self.store.borrow((min(size, contexts - first), width), np.uint32)
            statistics[:] = 0
            self._accumulate(index, first, kept, statistics)
            factors = statistics.view(np.float64)
            weigh_contexts(self.parameters[index], statistics, factors)
            for start in range(0, len(factors), BLOCK):
                weights.append(_log10(factors[start : start + BLOCK, 1]))
            if self.exact:
                exact.append(factors[:, 1].copy())
            found.append(self._probabilities(index, first, factors, shorter, some=len(starts) > 1))
            self.store.give_back(statistics)
        if self.exact:
            self.done.backoffs.append(np.concatenate(exact))
        longer = found[0] if len(found) == 1 else self._woven(index, size, found)
        return longer, weights

    def _contexts(self, index: int) -> Column:
        grams = self.grams[index]
        return grams.words if grams.contexts is None else grams.contexts

    def _accumulate(self, index: int, first: int, kept: Column | None, statistics: Array) -> None:
        grams, contexts = self.grams[index], self._contexts(index)
        all_types = self.smoothing.method == "witten-bell"
        for start in range(0, len(grams), BLOCK):
            end = start + BLOCK
            stay = _NOTHING if kept is None else kept[start:end]
            accumulate(
                contexts[start:end], grams.counts[start:end], stay, first, all_types, statistics
            )

    def _probabilities(
        self, index: int, first: int, factors: Array, shorter: Column, *, some: bool
    ) -> Column:
        """Probabilities of the n-grams with these contexts, all the others left out."""
        grams, contexts = self.grams[index], self._contexts(index)
        out = self.store.column(np.float64, len(grams))
        mixed = self.smoothing.interpolated
        for start, end, begins in _families(self.grams[index - 1].begins):
            rows = slice(int(begins[0]), int(begins[-1]))
            suffixes = shorter[start:end] if mixed else np.empty(0)
            values = np.empty(rows.stop - rows.start)
            context = contexts[rows]
            probabilities(
                self.parameters[index], grams.counts[rows], context, first, factors,
                begins, suffixes, values,
            )  # fmt: skip
            if some:
                known = context.astype(np.int64) - first
                values = values[(known >= 0) & (known < len(factors))]
            out.append(values)
        return out

    def _woven(self, index: int, size: int, found: list[Column]) -> Column:
        """One column from those that hold the n-grams of some contexts each."""
        out = self.store.column(np.float64, len(self.grams[index]))
        done = np.zeros(len(found), dtype=np.int64)
        for block in self._contexts(index).blocks():
            parts = (block // np.uint32(size)).astype(np.uint16)
            counts = np.bincount(parts, minlength=len(found))
            source = np.concatenate(
                [column[at : at + n] for column, at, n in zip(found, done, counts, strict=True)]
            )
            limits = np.cumsum(counts)
            values = np.empty(len(block))
            interleave(parts, limits - counts, limits, source, values, 0)
            out.append(values)
            done += counts
        for column in found:
            column.free()
        return out

    def _finish(
        self, index: int, values: Column, weights: Column | None, kept: Column | None,
        above: Column | None,
    ) -> None:  # fmt: skip
        """Turn what is known of one order into a level of the model."""
        grams, store = self.grams[index], self.store
        size = len(grams)
        if self.exact:
            chosen = slice(None) if kept is None else kept[0:size] > 0
            self.done.probabilities.append(values[0:size][chosen].copy())
            self.done.counts.append(grams.counts[0:size][chosen].copy())
            if weights is not None:
                self.done.backoffs[index] = self.done.backoffs[index][chosen]
        for unused in (grams.counts, grams.raws, grams.contexts):
            if unused is not None:
                unused.free()
        logs = store.column(np.float32, size)
        for block in values.blocks():
            logs.append(_log10(block))
        values.free()
        backoffs = store.column(np.float32, 0) if weights is None else weights
        words, begins = grams.words, grams.begins
        if kept is not None:
            words, logs = self._only(words, kept), self._only(logs, kept)
            backoffs = backoffs if weights is None else self._only(backoffs, kept)
        if kept is not None or above is not None:
            begins = store.column(np.uint32, size + 1)
            if weights is not None:
                for block in _kept_begins(grams.begins, kept, above):
                    begins.append(block)
            grams.begins.free()
        self.levels.append(Level(words, begins, logs, backoffs))

    def _only(self, column: Column, kept: Column) -> Column:
        """What stays of a column, which is freed."""
        out = self.store.column(column.dtype, len(column))
        for values, stay in zip(column.blocks(), kept.blocks(), strict=True):
            out.append(values[stay > 0])
        column.free()
        return out

    def _metadata(self) -> dict[str, Any]:
        """What the model says of itself."""
        smoothing, done = self.smoothing, self.done
        above_unigrams = self.settings.order > 1
        return {
            "order": self.settings.order,
            "smoothing": smoothing.method,
            "discounts": done.discounts if smoothing.discounted else None,
            "counts_of_counts": done.of_counts,
            "fallbacks": done.fallbacks,
            "weights": None if smoothing.weights is None else [list(w) for w in smoothing.weights],
            "prune": list(self.settings.prune),
            "interpolate_unigrams": smoothing.interpolate_unigrams,
            "records": self.corpus.records,
            "tokens": self.corpus.events - self.corpus.records,
            "unknown": int(self.corpus.frequencies[UNK]),
            "has_unk": smoothing.unk,
            "unk_as_word": self.corpus.words.unk_as_word,
            "additive": smoothing.add if smoothing.method == "add-k" and above_unigrams else None,
            "unseen_backoff": float(np.log10(STUPID))
            if smoothing.method == "stupid-backoff" and above_unigrams
            else 0.0,
        }


def _log10(values: Array) -> Array:
    """log10 as float32, at most 0: rounding must not make a probability of more than 1."""
    with np.errstate(divide="ignore"):
        logs: Array = np.minimum(np.log(values) * _LOG10_E, 0).astype(np.float32)
    return logs


def _families(begins: Column) -> Iterator[tuple[int, int, Array]]:
    """Stretches of suffixes with about a block of n-grams: first, end, their begins."""
    parents = len(begins) - 1
    start = 0
    while start < parents:
        some = begins[start : start + BLOCK + 1]
        count = int(np.searchsorted(some, np.int64(some[0]) + BLOCK, side="right")) - 1
        count = min(max(count, 1), len(some) - 1)
        yield start, start + count, some[: count + 1]
        start += count


def _kept_begins(begins: Column, kept: Column | None, above: Column | None) -> Iterator[Array]:
    """The begins of what stays of an order, counting what stays of the one above."""
    total = last = 0
    for start, end, some in _families(begins):
        rows = slice(int(some[0]), int(some[-1]))
        if above is None:
            sums = np.arange(rows.start, rows.stop + 1)
        else:
            sums = total + np.concatenate([[0], np.cumsum(above[rows], dtype=np.int64)])
            total = int(sums[-1])
        block = sums[some[:-1] - some[0]]
        yield block if kept is None else block[kept[start:end] > 0]
        last = int(sums[-1])
    yield np.array([last])
