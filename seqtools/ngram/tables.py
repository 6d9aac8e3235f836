"""Tables of n-gram counts, sorted, as lines of JSON.

The text becomes ids, each place of it a window (`windows`). Windows are dealt into parts that
follow each other and fit into memory; each is sorted and written. So what is held does not depend
on how many different n-grams there are, and the lines come out sorted as they are made.
"""

from __future__ import annotations

import resource
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from seqtools.errors import ConfigError, SeqtoolsError
from seqtools.ngram import windows
from seqtools.ngram.extraction import BOS as BOS_TEXT
from seqtools.ngram.extraction import EOS as EOS_TEXT
from seqtools.ngram.sorting import HIGHEST, Layout, Sorting, shortened, sort_occurrences
from seqtools.ngram.storage import Column, Store
from seqtools.ngram.words import BOS, EOS, SPECIALS, Learner
from seqtools.streams.records import dumps

Array: TypeAlias = np.ndarray[Any, Any]

_PART = 300_000  # windows that are quick to sort
_MOST_PARTS = 400
_OTHER_FILES = 100  # that may be open besides
_SAMPLES = 4096  # stretches of the text to cut it by
_STRETCH = 64
_BLOCK = 1 << 19  # places of the text that are dealt at a time
_OUT = 1 << 22  # bytes
_MOST_ROWS = (1 << 32) - 1


@dataclass(frozen=True)
class Sparsity:
    """How well the n-grams of one order are covered.

    Attributes:
        order: tokens of an n-gram.
        vocabulary: different tokens of the text, and the markers where they are counted.
        tokens: occurrences of n-grams.
        types: different n-grams.
        singletons: n-grams that occur once.
        heldout: occurrences of n-grams in the held-out text.
        unseen: those whose n-gram is not in the table.
    """

    order: int
    vocabulary: int
    tokens: int
    types: int
    singletons: int
    heldout: int
    unseen: int

    @property
    def possible(self) -> int:
        """How many n-grams there could be, V^n."""
        return int(self.vocabulary**self.order)


class Counter:
    """Counts n-grams.

    Args:
        orders: lengths of the n-grams.
        padding: as in `extraction.ngrams`; no token may then be spelled like a marker.
        store: where the text and its windows are kept.

    Attributes:
        records, tokens: how much was read, of what is counted.

    Raises:
        ConfigError: an order is too high.
    """

    def __init__(self, orders: Sequence[int], padding: str, store: Store) -> None:
        self.orders = tuple(sorted(set(orders)))
        if not 1 <= self.orders[0] <= self.orders[-1] <= HIGHEST:
            raise ConfigError(f"orders must be from 1 to {HIGHEST}")
        self.padding = padding
        self.store = store
        self.records = self.tokens = 0
        self._learner = Learner(literal=True)
        self._known: int | None = None  # words before there is held-out text
        self._texts = [store.column(np.int32) for _ in range(2)]
        self._sums = np.zeros((len(self.orders), 5), dtype=np.int64)

    def add_text(self, data: bytes) -> None:
        """Take whole lines of plain text, tokens separated by ASCII white space."""
        self._add(self._learner.learn_text(data))

    def add_packed(self, data: bytes) -> None:
        """Take records as `words.pack_tokens` gives them."""
        self._add(self._learner.learn_packed(data))

    def hold_out(self) -> None:
        """What is added from now on is compared with the table, not counted."""
        self._known = self._words()

    def sparsity(self) -> list[Sparsity]:
        """What the table covers, for each order; after `lines`."""
        size = self._words() if self._known is None else self._known
        if self.padding != "none":
            size += 2
        return [
            Sparsity(
                order, size, *(int(sums[each]) for each in (
                    windows.TOKENS, windows.TYPES, windows.SINGLES, windows.HELDOUT, windows.UNSEEN
                )),
            )
            for order, sums in zip(self.orders, self._sums, strict=True)
        ]  # fmt: skip

    def lines(self, min_count: int = 1) -> Iterator[bytes]:
        """The table, in pieces of whole lines: `{"ngram":["a","b"],"count":2}`.

        N-grams are sorted by their tokens, by code point, token by token, a shorter one before
        those that go on. Can be read once.

        Args:
            min_count: leave out n-grams that occur less often.

        Raises:
            SeqtoolsError: no room on the disk.
        """
        plan = _Plan.make(self)
        self._check_disk(plan)
        parts = _deal(plan, self._texts, self.store)
        for text in self._texts:
            text.free()
        writer = _Writer(plan, self.store, max(map(len, parts)), self._sums)
        for part in parts:
            yield from writer.write(part, max(1, min_count))

    def _check_disk(self, plan: _Plan) -> None:
        """See that what does not fit into memory will fit on the disk."""
        needed = (4 + 8 * plan.rounds) * sum(map(len, self._texts)) - self.store.memory
        self.store.check_disk(needed)

    def _add(self, ids: Array) -> None:
        self._texts[self._known is not None].append(ids)
        if self._known is None:
            records = int(np.count_nonzero(ids == EOS))
            self.records += records
            self.tokens += len(ids) - records

    def _words(self) -> int:
        return len(self._learner) - len(SPECIALS)


class _Pieces:
    """A column whose length nobody knows before."""

    def __init__(self, store: Store, dtype: Any, first: int) -> None:
        self._store, self._dtype, self._size = store, dtype, first
        self._room = 0  # in the last one
        self.columns: list[Column] = []

    def __len__(self) -> int:
        return sum(map(len, self.columns))

    def append(self, values: Array) -> None:
        """Add values that are to lie in one piece."""
        if not len(values):
            return
        if len(values) > self._room:
            # Twice as long each time: however long it gets, few files are open.
            self._room = max(self._size, len(values))
            self._size = 2 * self._room
            self.columns.append(self._store.column(self._dtype, self._room))
        self.columns[-1].append(values)
        self._room -= len(values)

    def blocks(self, size: int) -> Iterator[Array]:
        """All values, at most `size` at a time."""
        for column in self.columns:
            yield from column.blocks(size)

    def free(self) -> None:
        """Forget the values."""
        for column in self.columns:
            column.free()
        self.columns = []


@dataclass
class _Plan:
    """What a run of `lines` works by; arrays as `windows` describes them."""

    layout: Layout
    fields: Array
    orders: Array
    codes: Array
    padding: Array
    begin: int
    texts: Array
    offsets: Array
    splitters: Array
    ranges: Array
    part: int = 0  # windows that one will have, and some more

    @classmethod
    def make(cls, counter: Counter) -> _Plan:
        """Lay out the windows of a text that has been read."""
        codes, strings = _by_code_point(counter)
        highest = counter.orders[-1]
        heads = {"none": 0, "one": 1, "full": highest - 1}[counter.padding]
        alone = counter.padding == "one" and counter.orders[0] == 1
        full = counter.padding == "full"
        most = sum(map(len, counter._texts)) * (1 + heads)
        layout = Layout.plan(highest, len(strings) + 1, most)
        texts = [b'{"ngram":[', *strings, b'],"count":']
        offsets = np.zeros(len(texts) + 1, dtype=np.int64)
        np.cumsum([len(text) for text in texts], out=offsets[1:])
        plan = cls(
            layout, np.array(layout.fields, dtype=np.int64),
            np.array(counter.orders, dtype=np.int64), codes,
            np.array([heads, alone, codes[EOS] if full else 0], dtype=np.int64),
            int(codes[BOS]) if full else 0, np.frombuffer(b"".join(texts), dtype=np.uint8),
            offsets, np.empty(0, dtype=np.uint64), np.zeros((len(texts), 2), dtype=np.int64),
        )  # fmt: skip
        plan._cut(counter)
        return plan

    @property
    def rounds(self) -> int:
        """Keys of a window."""
        return len(self.fields)

    @property
    def shift(self) -> int:
        """Where the first column stands in the first key."""
        return int(self.fields[0] - 1) * self.layout.bits

    @property
    def shifts(self) -> Array:
        """Where the last column stands in the first key, of each order that does not fill it."""
        columns = int(self.fields[0])
        return (columns - self.orders[self.orders < columns]) * self.layout.bits

    @property
    def line(self) -> int:
        """Bytes that the lines of a window have at most."""
        ends = int(self.offsets[1] + self.offsets[-1] - self.offsets[-2]) + 21
        words = int(self.orders.sum()) * int(np.diff(self.offsets[1:-1]).max(initial=0))
        return len(self.orders) * ends + words

    def read(self, ids: Array, start: int, end: int, keys: Array) -> tuple[int, int]:
        """`windows.read_windows` with what is known here."""
        return windows.read_windows(
            ids, start, end, self.codes, self.padding, self.fields, self.layout.bits, keys
        )

    def _cut(self, counter: Counter) -> None:
        """Choose where the parts begin, by a sample of the text."""
        sample, share = self._sample(counter._texts)
        total = int(len(sample) / share) + 1
        row = 16 * self.rounds + 17 + 8 * len(self.orders)  # bytes of a window, in `_Writer`
        fitting = max(1 << 12, counter.store.memory // 5 // row)
        wanted = min(-(-total // min(fitting, _PART)), _most_parts())
        if len(sample):
            self.splitters = np.unique(sample[np.arange(1, wanted) * len(sample) // wanted])
        shift = self.shift
        first = np.arange(len(self.ranges), dtype=np.uint64) << np.uint64(shift)
        last = first | np.uint64((1 << shift) - 1)
        for column, keys in enumerate((first, last)):
            self.ranges[:, column] = np.searchsorted(self.splitters, keys, side="right")
        self.part = -(-total * 5 // 4 // (len(self.splitters) + 1))

    def _sample(self, texts: list[Column]) -> tuple[Array, float]:
        """First keys of windows from all over the text, sorted; which share of all it is."""
        found, read = [np.empty(0, dtype=np.uint64)], 0
        keys = np.empty((self.rounds, _STRETCH * (2 + int(self.padding[0]))), dtype=np.uint64)
        total = sum(map(len, texts))
        step = max(_STRETCH, total // _SAMPLES)
        for text in texts:
            for place in range(0, len(text), step):
                ids, start, end = _stretch(text, place, _STRETCH, self.layout.order)
                stop, count = self.read(ids, start, end, keys)
                found.append(keys[0, :count].copy())
                read += stop - start
        return np.sort(np.concatenate(found)), read / total if total else 1.0


def _most_parts() -> int:
    """How many there may be: each may need two files."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return _MOST_PARTS
    return max(1, min(_MOST_PARTS, (files - _OTHER_FILES) // 2))


def _by_code_point(counter: Counter) -> tuple[Array, list[bytes]]:
    """The code of each id, and for each code from 1 the word in JSON and a comma."""
    strings = counter._learner.words().strings()
    ids = list(range(len(SPECIALS), len(strings)))
    if counter.padding != "none":
        strings[BOS], strings[EOS] = BOS_TEXT.encode(), EOS_TEXT.encode()
        ids += [BOS, EOS]
    ids.sort(key=strings.__getitem__)  # UTF-8 sorts as code points do
    codes = np.zeros(len(strings), dtype=np.int64)
    codes[ids] = np.arange(1, len(ids) + 1)
    return codes, [dumps(strings[each].decode()) + b"," for each in ids]


def _stretch(text: Column, place: int, size: int, highest: int) -> tuple[Array, int, int]:
    """Ids around a stretch of text that windows are to begin in, and where it begins and ends."""
    start = min(place, 1)  # the id before says whether a record begins
    ids = text[place - start : place + size + highest]
    return ids, start, min(start + size, len(ids))


@dataclass
class _Part:
    """Windows that belong together; the keys of one stand side by side.

    Attributes:
        own, others: those of the text, and of what is held out.
        more: int64 (2, orders), how often n-grams that the next part begins in the midst of occur
            there and beyond, and held out.
        following: the first key of the next part, None for the last.
    """

    own: _Pieces
    others: _Pieces
    more: Array
    following: int | None

    def __len__(self) -> int:
        return len(self.own) + len(self.others)


def _deal(plan: _Plan, texts: list[Column], store: Store) -> list[_Part]:
    """The windows of both texts, in parts that follow each other."""
    count, size = len(plan.splitters) + 1, _BLOCK + int(plan.padding[0]) + 1
    parts = [
        _Part(
            _Pieces(store, np.uint64, plan.part * plan.rounds), _Pieces(store, np.uint64, _BLOCK),
            np.zeros((2, len(plan.orders)), dtype=np.int64), following,
        )
        for following in [*plan.splitters.tolist(), None]
    ]  # fmt: skip
    keys = store.borrow((plan.rounds, size), np.uint64)
    dealt = store.borrow((size, plan.rounds), np.uint64)
    part_of, ends = store.borrow(size, np.uint16), np.zeros(count, dtype=np.int64)
    shifts = np.array([plan.shift, *plan.shifts], dtype=np.int64)
    cut = np.zeros((2, count, len(shifts) - 1), dtype=np.int64)
    for which, text in enumerate(texts):
        for place in range(0, len(text), _BLOCK):
            ids, start, end = _stretch(text, place, _BLOCK, plan.layout.order)
            while start < end:
                start, found = plan.read(ids, start, end, keys)
                windows.deal(
                    keys, found, shifts, plan.ranges, plan.splitters, part_of, ends, dealt,
                    cut[which],
                )  # fmt: skip
                begins = [0, *ends.tolist()]
                for number, part in enumerate(parts):
                    pieces = part.others if which else part.own
                    pieces.append(dealt[begins[number] : begins[number + 1]].reshape(-1))
    store.give_back(keys, dealt, part_of)
    for number in range(count - 2, -1, -1):
        here, after = parts[number], parts[number + 1]
        for each, shift in enumerate(shifts[1:].tolist()):
            here.more[:, each] = cut[:, number + 1, each]
            if _alike(here.following, after.following, shift):
                here.more[:, each] += after.more[:, each]
    return parts


def _alike(one: int | None, other: int | None, shift: int) -> bool:
    """Whether two first keys begin with the same n-gram."""
    return one is not None and other is not None and one >> shift == other >> shift


class _Writer:
    """Sorts parts, one after the other, and writes them as lines.

    Args:
        plan: what the windows look like.
        store: for the arrays to work in.
        most: keys of the largest part.
        sums: what `windows.tally` adds to.
    """

    def __init__(self, plan: _Plan, store: Store, most: int, sums: Array) -> None:
        self.plan, self._sums = plan, sums
        rounds, size = plan.rounds, most // plan.rounds
        if size > _MOST_ROWS:
            raise SeqtoolsError("too many n-grams begin alike to be sorted")
        self._keys = store.borrow((rounds, size), np.uint64)
        self._room = Sorting.allocate(store.borrow, rounds, size)
        self._counts = store.borrow(len(plan.orders) * size, np.int64)
        self._out = store.borrow(max(_OUT, plan.line), np.uint8)
        self._last: int | None = None  # first key of the window that was written last

    def write(self, part: _Part, least: int) -> Iterator[bytes]:
        """The lines of the next part."""
        plan = self.plan
        heldout = len(part.own) // plan.rounds
        keys = shortened(self._keys, len(part) // plan.rounds)
        if not keys.size:
            return
        at = 0
        for pieces in (part.own, part.others):
            for block in pieces.blocks(plan.rounds << 16):
                rows = block.reshape(-1, plan.rounds)
                keys[:, at : at + len(rows)] = rows.T
                at += len(rows)
            pieces.free()
        done = sort_occurrences(keys, self._room.cut(at), plan.layout)
        skip, more = np.zeros(len(plan.orders), dtype=np.uint8), np.zeros_like(part.more)
        first, last = int(done.keys[0, 0]), int(done.keys[0, -1])
        for each, shift in enumerate(plan.shifts.tolist()):
            skip[each] = _alike(self._last, first, shift)
            if _alike(last, part.following, shift):
                more[:, each] = part.more[:, each]
        self._last = last
        shape = (plan.fields, plan.layout.bits, plan.orders, plan.begin, skip)
        windows.tally(
            done.keys, done.rows, done.common, *shape, heldout, more, self._counts, self._sums
        )
        state = np.zeros(2, dtype=np.int64)
        while size := windows.render(
            done.keys, done.common, *shape, self._counts, least, plan.texts, plan.offsets, state,
            self._out,
        ):  # fmt: skip
            yield self._out[:size].tobytes()
