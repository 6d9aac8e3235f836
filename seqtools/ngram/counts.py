"""The n-grams of a corpus with their counts, for all orders at once.

The ids of the text are cut by last word into partitions that fit into memory, each is sorted in
suffix order (`sorting`), and the distinct n-grams of all orders fall out of one pass over it. What
a partition gives is appended to the columns of each order, so these are in suffix order as a whole:
the layout of `model.Level`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from seqtools.errors import SeqtoolsError
from seqtools.ngram.sorting import (
    NONE,
    Layout,
    Sorting,
    emit,
    gather,
    interleave,
    link,
    shortened,
    sort_occurrences,
)
from seqtools.ngram.storage import BLOCK, Column, Store
from seqtools.ngram.words import BOS, EOS, SPECIALS, UNK, Learner, Words

Array: TypeAlias = np.ndarray[Any, Any]

_SHARE = 64  # a corpus that fits well into memory is cut so far, so that a partition fits a cache
_SMALLEST = 1 << 17
_MOST_PARTS = 1 << 13  # or twice as many, as words fall; their numbers have 15 bits
_GOES = 4  # through the text, to collect its occurrences, where memory allows
_RUN_BLOCK = 1 << 16  # values of a part that are read together,
_LEAST_BLOCK = 1 << 10  # and where there are many parts
_MOST = NONE - 1  # tokens, so n-grams of an order, too


@dataclass
class Corpus:
    """A text as ids.

    Attributes:
        words: the vocabulary; ordinary words by falling frequency, ties by code point.
        ids: int32, `</s>`, and then all records, each with `</s>` at its end.
        frequencies: int64 (V,), how often each word occurs; `</s>` once a record, `<s>` never.
        spelled_unk: tokens spelled `<unk>` that became it.
        spelled_marker: tokens spelled `<s>` or `</s>` that became `<unk>`.
    """

    words: Words
    ids: Column
    frequencies: Array
    spelled_unk: int = 0
    spelled_marker: int = 0

    @property
    def records(self) -> int:
        """How many records there are."""
        return int(self.frequencies[EOS])

    @property
    def events(self) -> int:
        """How many words are predicted: all tokens, and `</s>` once a record."""
        return int(self.frequencies.sum())


class Reader:
    """Takes in a text, piece by piece.

    Args:
        store: where the ids are kept.
        vocabulary: the only words there are, all others being `<unk>`; None learns them.
        unk_as_word: text spelled `<unk>` is an ordinary word, whatever the vocabulary says.
    """

    def __init__(
        self, store: Store, *, vocabulary: list[bytes] | None = None, unk_as_word: bool = False
    ) -> None:
        self._learner = Learner(unk_as_word=unk_as_word)
        self._words: Words | None = None
        if vocabulary is not None:
            strings = [*SPECIALS, *vocabulary]
            if unk_as_word and SPECIALS[UNK] not in vocabulary:
                strings.append(SPECIALS[UNK])
            self._words = Words.from_strings(strings, unk_as_word=unk_as_word)
        self._spelled = np.zeros(2, dtype=np.int64)  # where there is a vocabulary
        self._store = store
        self._ids = store.column(np.int32)
        self._ids.append(np.array([EOS], dtype=np.int32))
        self._frequencies = np.zeros(1 << 16, dtype=np.int64)
        self.events = 0

    def add_text(self, data: bytes) -> None:
        """Take whole lines of plain text, tokens separated by white space."""
        if self._words is None:
            self._add(self._learner.learn_text(data))
        else:
            self._add(self._words.encode_text(data, mark=True, spelled=self._spelled)[0])

    def add_packed(self, data: bytes) -> None:
        """Take records as `words.pack_tokens` gives them."""
        if self._words is None:
            self._add(self._learner.learn_packed(data))
        else:
            self._add(self._words.encode_packed(data, mark=True, spelled=self._spelled)[0])

    def finish(self) -> Corpus:
        """The whole text, with the ids it keeps."""
        self._store.standard = 8 * (self.events + 1)
        words = self._words or self._learner.words()
        frequencies = np.zeros(len(words), dtype=np.int64)
        known = min(len(words), len(self._frequencies))
        frequencies[:known] = self._frequencies[:known]
        strings = words.strings()
        order = _by_frequency(strings, frequencies)
        ranks = np.empty(len(words), dtype=np.int32)
        ranks[order] = np.arange(len(words), dtype=np.int32)
        self._ids.replace(ranks)
        return Corpus(
            Words.from_strings([strings[word] for word in order], unk_as_word=words.unk_as_word),
            self._ids,
            frequencies[order],
            self._learner.spelled_unk + int(self._spelled[0]),
            self._learner.spelled_marker + int(self._spelled[1]),
        )

    def _add(self, ids: Array) -> None:
        if not len(ids):
            return
        seen = np.bincount(ids)
        if len(seen) > len(self._frequencies):
            self._frequencies = np.pad(self._frequencies, (0, 2 * len(seen)))
        self._frequencies[: len(seen)] += seen
        self._ids.append(ids)
        self.events += len(ids)


def _by_frequency(strings: list[bytes], frequencies: Array) -> Array:
    """Ids in their final order: specials, then by falling frequency, ties by code point."""
    first = len(SPECIALS)
    ordinary = np.array(sorted(range(first, len(strings)), key=strings.__getitem__), dtype=np.int64)
    falling = np.argsort(-frequencies[ordinary], kind="stable")
    return np.concatenate([np.arange(first), ordinary[falling]])


@dataclass
class Grams:
    """The distinct n-grams of one order, in suffix order.

    Attributes:
        words: uint32 (n,), leftmost words; for unigrams all ids.
        begins: uint32 (n + 1,), where the extensions to the left begin one order up.
        counts: uint32 (n,); see `count`.
        raws: uint32 (n,), occurrences, where they are asked for and differ from the counts.
        contexts: uint32 (n,), the row of each n-gram without its last word, one order down.
        of_counts: int64 (5,), how many have a count of 1, 2, 3, 4 (index 0 is not used).
    """

    words: Column
    begins: Column
    counts: Column
    raws: Column | None = None
    contexts: Column | None = None
    of_counts: Array = field(default_factory=lambda: np.zeros(5, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.counts)

    def tally(self, counts: Array) -> None:
        """Add to `of_counts`."""
        self.of_counts += np.bincount(np.minimum(counts, 5), minlength=6)[:5]


def count(
    corpus: Corpus, order: int, store: Store, scratch: int, *, adjusted: bool, raws: bool = False
) -> list[Grams]:
    """Count the n-grams of all orders up to `order`.

    Args:
        corpus: the text.
        order: the highest order.
        store: where the results are kept.
        scratch: bytes of its memory to work in.
        adjusted: below the highest order, count the different words to the left of an n-gram
            instead of its occurrences, unless it begins with `<s>` (Chen and Goodman 1998, section
            2.7; Heafield et al. 2013, section 3.3).
        raws: keep the occurrences as well.

    Raises:
        SeqtoolsError: there are more tokens than a count can tell.
    """
    if corpus.events > _MOST:
        raise SeqtoolsError(f"{corpus.events} tokens: more than {_MOST} cannot be counted")
    if order == 1:
        return [_unigrams(corpus, store, corpus.frequencies)]
    counter = _Counter(corpus, order, store, scratch, adjusted=adjusted, raws=raws)
    counter.run()
    return counter.grams


@dataclass
class _Room:
    """Arrays to count one part in, used again for the next one."""

    sorting: Sorting
    words: Array
    begins: Array
    counts: Array
    places: Array

    @classmethod
    def borrow(cls, store: Store, layout: Layout, size: int) -> _Room:
        order, rounds, borrow = layout.order, len(layout.fields), store.borrow
        sorting = Sorting.allocate(borrow, rounds, size)
        return cls(
            sorting, borrow((order, size), np.uint32), borrow((order, size + 1), np.uint32),
            borrow((order, size), np.uint32), borrow((size, order), np.uint32),
        )  # fmt: skip

    def give_back(self, store: Store) -> None:
        """The store gets its arrays back."""
        sorting = self.sorting
        store.give_back(
            sorting.keys, sorting.other_keys, sorting.rows, sorting.other_rows, sorting.common,
            self.words, self.begins, self.counts, self.places,
        )  # fmt: skip

    def cut(self, size: int) -> _Room:
        """The same arrays for a part of `size` occurrences."""
        return _Room(
            self.sorting.cut(size), shortened(self.words, size), shortened(self.begins, size + 1),
            shortened(self.counts, size), self.places[:size],
        )  # fmt: skip


class _Counter:
    """One run of `count`."""

    def __init__(
        self, corpus: Corpus, order: int, store: Store, scratch: int, *, adjusted: bool, raws: bool
    ) -> None:
        self.corpus, self.order, self.store, self.scratch = corpus, order, store, scratch
        self.adjusted, self.keep_raws = adjusted, raws and adjusted
        self.children = np.zeros(len(corpus.words), dtype=np.int64)
        self.grams = [self._column_set() for _ in range(order)]
        self.places = [store.column(np.uint32, corpus.events) for _ in range(order)]
        self.parts = _partition(corpus.frequencies, self._part_size())
        self.sizes = [int(corpus.frequencies[low:high].sum()) for low, high in self.parts]
        self.layout = Layout.plan(order, len(corpus.words), max(self.sizes))
        self.fields = np.array(self.layout.fields, dtype=np.int64)
        self.room = _Room.borrow(store, self.layout, max(self.sizes))

    def run(self) -> None:
        for group in _groups(self.sizes, self._group_size()):
            self._do_group(group)
        for index in range(1, self.order - 1):
            self._close_begins(index)
        counts = self.children if self.adjusted else self.corpus.frequencies
        self.grams[0] = _unigrams(self.corpus, self.store, counts, self.children)
        if self.keep_raws:
            self.grams[0].raws = self.store.column(np.uint32, len(self.grams[0]))
            self.grams[0].raws.append(self.corpus.frequencies)
        self.room.give_back(self.store)
        del self.room
        self._link_contexts()

    def _column_set(self) -> Grams:
        size = self.corpus.events
        return Grams(
            self.store.column(np.uint32, size),
            self.store.column(np.uint32, size + 1),
            self.store.column(np.uint32, size),
            self.store.column(np.uint32, size) if self.keep_raws else None,
        )

    def _part_size(self) -> int:
        """Occurrences that a part should have, and will where no one word is too frequent."""
        row = 40 + 20 * self.order  # bytes: keys, rows and what `emit` writes
        most = max(1 << 12, self.corpus.events // _MOST_PARTS, self.scratch // 2 // row)
        return min(most, max(_SMALLEST, self.corpus.events // _SHARE))

    def _group_size(self) -> int:
        """Occurrences that are collected in one go through the text."""
        most = self.scratch // 2 // (8 * len(self.fields))
        return max(max(self.sizes), min(most, self.corpus.events // _GOES))

    def _do_group(self, group: range) -> None:
        """Collect the occurrences of some parts, then count them part by part."""
        part_of = np.full(len(self.corpus.words), -1, dtype=np.int16)
        for number, part in enumerate(group):
            low, high = self.parts[part]
            part_of[low:high] = number
        ends = np.cumsum([self.sizes[part] for part in group], dtype=np.int64)
        keys = self.store.borrow((len(self.fields), int(ends[-1])), np.uint64)
        cursors = np.concatenate([[0], ends[:-1]])
        for ids, start in _stretches(self.corpus.ids, self.order - 1):
            gather(ids, start, part_of, self.order, self.layout.bits, self.fields, keys, cursors)
        for part, end in zip(group, ends.tolist(), strict=True):
            self._do_part(keys[:, end - self.sizes[part] : end])
        self.store.give_back(keys)

    def _do_part(self, keys: Array) -> None:
        room = self.room.cut(keys.shape[1])
        done = sort_occurrences(keys, room.sorting, self.layout)
        sizes = np.zeros(self.order, dtype=np.int64)
        emit(
            done.keys, done.rows, done.common, self.fields, self.layout.bits,
            room.words, room.begins, room.counts, room.places, sizes, self.children,
        )  # fmt: skip
        for index in range(self.order - 1, 0, -1):  # downwards: begins count what is there above
            rows = int(sizes[index])
            self._append(
                index, room.words[index, :rows], room.begins[index, : rows + 1],
                room.counts[index, :rows],
            )  # fmt: skip
            here = room.places[:, index]
            base = np.uint32(len(self.grams[index]) - rows)
            self.places[index].append(np.where(here == NONE, here, here + base))

    def _append(self, index: int, words: Array, begins: Array, counts: Array) -> None:
        grams = self.grams[index]
        highest = index + 1 == self.order
        given = counts
        if not highest:
            above = self.grams[index + 1]
            base = len(above) - int(begins[-1])
            grams.begins.append(begins[:-1] + np.uint32(base))
            if self.adjusted:
                given = np.where(words == BOS, counts, np.diff(begins))
        grams.words.append(words)
        grams.counts.append(given)
        if grams.raws is not None:
            grams.raws.append(counts)
        grams.tally(given)

    def _close_begins(self, index: int) -> None:
        end = len(self.grams[index + 1])
        self.grams[index].begins.append(np.array([end], dtype=np.uint32))

    def _link_contexts(self) -> None:
        """Find the context of each n-gram from where its occurrences stand in the text."""
        before = None
        for index in range(1, self.order):
            if self.order > 2:
                rows = self._in_text_order(self.places[index])
                if before is not None:
                    self.grams[index].contexts = self._link(len(self.grams[index]), rows, before)
                    before.free()
                before = rows
            self.places[index].free()
        if before is not None:
            before.free()

    def _in_text_order(self, places: Column) -> Column:
        """The rows, which lie partition by partition, as the text goes."""
        part_of = np.zeros(len(self.corpus.words), dtype=np.uint16)
        for number, (low, high) in enumerate(self.parts):
            part_of[low:high] = number
        out = self.store.column(np.uint32, self.corpus.events)
        runs = _Runs(places, self.sizes, self.scratch)
        for start in range(1, len(self.corpus.ids), BLOCK):
            out.append(runs.take(part_of[self.corpus.ids[start : start + BLOCK]]))
        return out

    def _link(self, size: int, rows: Column, before: Column) -> Column:
        out = self.store.column(np.uint32, size)
        step = max(BLOCK, self.scratch // 4)
        for first in range(0, size, step):
            contexts = self.store.borrow(min(step, size - first), np.uint32)
            for start in range(1, len(rows), BLOCK):
                end = min(start + BLOCK, len(rows))
                link(rows[start:end], before[start - 1 : end - 1], first, contexts)
            out.append(contexts)
            self.store.give_back(contexts)
        return out


class _Runs:
    """Values that lie in runs one after the other, taken from the runs in turn.

    Args:
        source: the values.
        sizes: of the runs.
        scratch: bytes of memory to work in.
    """

    def __init__(self, source: Column, sizes: list[int], scratch: int) -> None:
        self._source = source
        fitting = scratch // (len(sizes) * source.dtype.itemsize)
        self._block = max(_LEAST_BLOCK, min(_RUN_BLOCK, fitting))
        ends = np.cumsum(sizes, dtype=np.int64)
        self._next = ends - np.array(sizes, dtype=np.int64)  # what to read of each run
        self._ends = ends
        if source.on_disk:
            self._buffer = np.empty(len(sizes) * self._block, dtype=source.dtype)
            self._cursors = np.arange(len(sizes), dtype=np.int64) * self._block
            self._limits = self._cursors.copy()
        else:
            self._buffer = source[0 : len(source)]
            self._cursors, self._limits = self._next, ends

    def take(self, parts: Array) -> Array:
        """The next value of the run that each of `parts` names."""
        out = np.empty(len(parts), dtype=self._buffer.dtype)
        done = 0
        while True:
            done = interleave(parts, self._cursors, self._limits, self._buffer, out, done)
            if done == len(parts):
                return out
            self._fill(int(parts[done]))

    def _fill(self, run: int) -> None:
        start = int(self._next[run])
        values = self._source[start : min(start + self._block, int(self._ends[run]))]
        at = run * self._block
        self._buffer[at : at + len(values)] = values
        self._next[run] += len(values)
        self._cursors[run], self._limits[run] = at, at + len(values)


def _unigrams(corpus: Corpus, store: Store, counts: Array, children: Array | None = None) -> Grams:
    size = len(corpus.words)
    grams = Grams(
        store.column(np.uint32, size), store.column(np.uint32, size + 1),
        store.column(np.uint32, size),
    )  # fmt: skip
    counts = counts.copy()
    counts[BOS] = 0
    grams.words.append(np.arange(size))
    grams.counts.append(counts)
    grams.tally(counts[counts > 0])
    if children is not None:
        grams.begins.append(np.concatenate([[0], np.cumsum(children)]))
    return grams


def _partition(frequencies: Array, size: int) -> list[tuple[int, int]]:
    """Ranges of ids whose words occur about `size` times together."""
    parts = []
    low, total = 0, 0
    for word, frequency in enumerate(frequencies.tolist()):
        if total and total + frequency > size:
            parts.append((low, word))
            low, total = word, 0
        total += frequency
    parts.append((low, len(frequencies)))
    return parts


def _groups(sizes: list[int], most: int) -> Iterator[range]:
    """Parts that follow each other and have at most `most` occurrences together."""
    start, total = 0, 0
    for part, size in enumerate(sizes):
        if part > start and total + size > most:
            yield range(start, part)
            start, total = part, 0
        total += size
    yield range(start, len(sizes))


def _stretches(ids: Column, history: int) -> Iterator[tuple[Array, int]]:
    """The text in pieces, each with what comes before it, and where it begins."""
    step = BLOCK if ids.on_disk else len(ids)
    for start in range(1, len(ids), step):
        lead = min(history, start)
        yield ids[start - lead : start + step], lead
