"""ARPA, the text format of n-gram models that every decoder reads.

A count of n-grams for each order, then the n-grams of each order, one a line: log10 of the
probability, a tab, the words, and below the highest order a tab and log10 of the backoff weight.
What we write has the n-grams in suffix order (`model`), as lmplz does, numbers with seven decimals,
and -99 for the logarithm of 0, as SRILM does.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

from seqtools.errors import ConfigError, FormatError
from seqtools.ngram.arpa_reading import Reader
from seqtools.ngram.compiled import frozen, kernel
from seqtools.ngram.model import Level, Model
from seqtools.ngram.putting import put_bytes, put_whole
from seqtools.ngram.words import UNK, Words

Array: TypeAlias = np.ndarray[Any, Any]

_ROWS = 1 << 17  # formatted by one thread at a time
_WINDOW = 1 << 14  # rows of a lower level that are looked at together
_PIECE = 1 << 22  # bytes of text that are handed on together
_NUMBERS = 64  # bytes, more than two numbers and what separates them
_THREADS = 2
_FEW = 1 << 12  # n-grams that are not worth a second thread

_SPACE = np.zeros(256, dtype=bool)
_SPACE[[9, 10, 11, 12, 13, 32]] = True

_TEN, _HUNDRED, _ZERO = np.uint64(10), np.uint64(100), np.uint64(48)  # int64 would make floats
_SCALE = np.uint64(10_000_000)
_DIGITS = np.frombuffer(b"".join(b"%02d" % number for number in range(100)), dtype=np.uint8)

# Columns of a walker's state, a row for each lower level.
_CURSOR, _BUILT, _FIRST, _SIZE, _PLACE = range(5)


def read(path: str) -> Model:
    """Read a model; compressed files by the ending of their names, `-` from stdin.

    Numbers of -99 and less are the logarithm of 0, a probability up to 1.002 is 1, and a missing
    backoff weight is 1. `<UNK>` stands for `<unk>` where there is no such word. Where the suffix of
    an n-gram is missing, it is put in with the probability it has by backing off, and counts as an
    n-gram of the model.

    Raises:
        ConfigError: the file cannot be opened.
        FormatError: it is not ARPA at all, or a compressed file is damaged.
        InputError: a line is not as it should be.
    """
    return Reader(path).read()


def check(model: Model) -> None:
    """See that ARPA can hold a model.

    Raises:
        ConfigError: its way of smoothing needs more than one backoff weight a context.
        FormatError: as for `write`.
    """
    metadata = model.metadata
    if len(model.levels) > 1:
        if metadata.get("additive") is not None:
            raise ConfigError("ARPA cannot express add-k above order 1")
        if metadata.get("unseen_backoff"):
            raise ConfigError("ARPA cannot express stupid-backoff above order 1")
    _check_words(model.words)


def write(words: Words, levels: Sequence[Level], put: Callable[[Any], object]) -> None:
    """Write a model.

    `<unk>` is left out where it has no probability and nothing speaks of it.

    Args:
        words: the vocabulary.
        levels: the lowest order first; their arrays need not be in memory.
        put: takes bytes or a memoryview of them, in order; they do not change any more.

    Raises:
        FormatError: a word cannot stand in ARPA: it is empty, holds white space, or is spelled
            `<unk>` beside the model's own.
    """
    _check_words(words)
    sizes = count_ngrams(levels)
    first = len(words) - sizes[0]  # of the unigrams
    put(b"\\data\\\n")
    for order, size in enumerate(sizes, 1):
        put(b"ngram %d=%d\n" % (order, size))
    put(b"\n")
    for index in range(len(levels)):
        put(b"\\%d-grams:\n" % (index + 1))
        for piece in _pieces(words, levels, index, 0 if index else first):
            put(piece)
        put(b"\n")
    put(b"\\end\\\n")


def count_ngrams(levels: Sequence[Level]) -> list[int]:
    """How many n-grams of each order a model has; `<unk>` counts where it `has_unk`."""
    sizes = [len(level) for level in levels]
    sizes[0] -= not has_unk(levels)
    return sizes


def has_unk(levels: Sequence[Level]) -> bool:
    """Whether the unknown word has a probability or a weight, or is part of a longer n-gram."""
    if levels[0].log10probs[:1][0] > -np.inf:
        return True
    if len(levels) == 1:
        return False
    begins = levels[0].begins[:2]
    if levels[0].log10backoffs[:1][0] or begins[1] > begins[0]:
        return True
    return any((block == UNK).any() for level in levels[1:] for block in _blocks(level.words))


def _check_words(words: Words) -> None:
    if words.unk_as_word and words.find(b"<unk>") >= 0:
        raise FormatError(
            "a word <unk> beside the model's own cannot stand in ARPA (train without --unk-as-word,"
            " or spell it differently)"
        )
    empty = np.flatnonzero(np.diff(words.offsets) == 0)
    if len(empty):
        raise FormatError("an empty token cannot stand in ARPA")
    spaces = np.flatnonzero(_SPACE[words.utf8])
    if len(spaces):
        number = int(np.searchsorted(words.offsets, spaces[0], side="right")) - 1
        word = words.string(number).decode("utf-8", "replace")
        raise FormatError(f"token {word!r}, with white space in it, cannot stand in ARPA")


def _blocks(values: Any, size: int = 1 << 20) -> Iterator[Array]:
    for start in range(0, len(values), size):
        yield values[start : start + size]


def _pieces(words: Words, levels: Sequence[Level], index: int, first: int) -> Iterator[memoryview]:
    """The lines of one order, formatted by threads while those before them are written."""
    rows = len(levels[index])
    starts = range(first, rows, _ROWS)

    def lines(start: int) -> list[memoryview]:
        return _Walker(words, levels, index).lines(start, min(start + _ROWS, rows))

    if rows < _FEW:
        yield from itertools.chain.from_iterable(map(lines, starts))
        return
    from concurrent.futures import Future, ThreadPoolExecutor

    running: deque[Future[list[memoryview]]] = deque()
    with ThreadPoolExecutor(_THREADS) as pool:
        for start in starts:
            running.append(pool.submit(lines, start))
            if len(running) > _THREADS:
                yield from running.popleft().result()
        while running:
            yield from running.popleft().result()


class _Walker:
    """Goes through rows of one level, and with them through those of the lower levels.

    The rows of a level that have the same suffix follow each other, so one cursor in each lower
    level, moving on, finds the words. The suffix's text is kept, its end at the end of `tail`, so
    that another word before it needs no copy.
    """

    def __init__(self, words: Words, levels: Sequence[Level], index: int) -> None:
        self.words, self.levels, self.index = words, levels, index
        longest = int(np.diff(words.offsets).max()) + 1
        self.tail = np.empty(longest * index, dtype=np.uint8)
        self.room = longest * (index + 1) + _NUMBERS  # that any line needs
        self.state = np.zeros((index, 5), dtype=np.int64)
        self.state[:, _BUILT] = -1
        self.lefts = np.empty((index, _WINDOW), dtype=np.uint32)
        self.begins = np.empty((index, _WINDOW + 1), dtype=np.uint32)

    def lines(self, start: int, end: int) -> list[memoryview]:
        """The lines of rows `start` to `end`."""
        level = self.levels[self.index]
        rows = slice(start, end)
        own = frozen(level.words[rows])
        probs, backoffs = frozen(level.log10probs[rows]), frozen(level.log10backoffs[rows])
        out: Array = np.empty(max(_PIECE, self.room), dtype=np.uint8)
        made: list[memoryview] = []
        done = filled = 0
        while done < end - start:
            done, filled, depth = _format(
                self.words.utf8, self.words.offsets, own, probs, backoffs, start, done,
                self.lefts, self.begins, self.state, self.tail, _DIGITS, out, filled, self.room,
            )  # fmt: skip
            if depth >= 0:
                self._look_on(depth, start + done)
            elif done < end - start:
                made.append(out[:filled].data)
                out, filled = np.empty(len(out), dtype=np.uint8), 0
        return [*made, out[:filled].data]

    def _look_on(self, depth: int, row: int) -> None:
        """Go on in a lower level where the suffix of what is looked at above it is."""
        level, state = self.levels[depth], self.state[depth]
        child = row if depth == self.index - 1 else int(self.state[depth + 1, _CURSOR])
        first = _parent(level.begins, child, int(state[_CURSOR]))
        last = min(first + _WINDOW, len(level))
        state[[_CURSOR, _FIRST, _SIZE]] = first, first, last - first
        self.lefts[depth, : last - first] = level.words[first:last]
        self.begins[depth, : last - first + 1] = level.begins[first : last + 1]


def _parent(begins: Any, child: int, low: int) -> int:
    """The row from `low` whose children include one; `begins` need not be in memory."""
    high = len(begins) - 1
    while high - low > 1:
        middle = (low + high) // 2
        if begins[middle : middle + 1][0] <= child:
            low = middle
        else:
            high = middle
    return low


@kernel
def _format(
    utf8: Array, offsets: Array, own: Array, probs: Array, backoffs: Array, base: int, start: int,
    lefts: Array, begins: Array, state: Array, tail: Array, digits: Array, out: Array, filled: int,
    room: int,
) -> tuple[int, int, int]:  # fmt: skip
    """Write lines, as far as the windows and the room reach.

    Args:
        utf8, offsets: the words.
        own, probs, backoffs: of the rows; the last may be empty.
        base: the number of the first row.
        start: where to go on in them.
        lefts: uint32 (depths, window), leftmost words of rows of each lower level.
        begins: uint32 (depths, window + 1), where the children of these begin.
        state: int64 (depths, 5): the row that is looked at, the one whose text is in `tail`, the
            first row of the window, how many there are, and where the text begins.
        tail: uint8, the text of the suffix at its end, a space before each word.
        digits: uint8, two for each number below 100.
        out: uint8 to write.
        filled: how much of it is written.
        room: bytes that any line needs.

    Returns:
        The row to go on with, what is written, and the level whose window has to move; -1 for none.
    """
    depths = len(state)
    for row in range(start, len(own)):
        if filled + room > len(out):
            return row, filled, -1
        built, leaving = _move(begins, state, base + row)
        if leaving >= 0:
            return row, filled, leaving
        _build(utf8, offsets, lefts, state, tail, built)
        filled = _put_number(probs[row], digits, out, filled)
        out[filled] = 9
        filled = put_bytes(utf8, offsets[own[row]], offsets[own[row] + 1], out, filled + 1)
        if depths:
            filled = put_bytes(tail, state[depths - 1, _PLACE], len(tail), out, filled)
        if len(backoffs):
            out[filled] = 9
            filled = _put_number(backoffs[row], digits, out, filled + 1)
        out[filled] = 10
        filled += 1
    return len(own), filled, -1


@kernel
def _move(begins: Array, state: Array, child: int) -> tuple[int, int]:
    """Move the cursors of the lower levels to the suffixes of a row, as far as `tail` lacks them.

    Returns:
        From which level on `tail` has to be written, and the level whose window has to move before
        that; -1 for none.
    """
    for depth in range(len(state) - 1, -1, -1):
        first, size = state[depth, _FIRST], state[depth, _SIZE]
        place = state[depth, _CURSOR] - first
        while place < size and begins[depth, place + 1] <= child:
            place += 1
        child = first + place
        state[depth, _CURSOR] = child
        if place >= size:
            return depth, depth
        if child == state[depth, _BUILT]:
            return depth + 1, -1
    return 0, -1


@kernel
def _build(
    utf8: Array, offsets: Array, lefts: Array, state: Array, tail: Array, start: int
) -> None:
    """Write the words of the lower levels from `start` on, each before the one below it."""
    for depth in range(start, len(state)):
        cursor = state[depth, _CURSOR]
        word = lefts[depth, cursor - state[depth, _FIRST]]
        begin, end = offsets[word], offsets[word + 1]
        place = (state[depth - 1, _PLACE] if depth else len(tail)) - (end - begin)
        put_bytes(utf8, begin, end, tail, place)
        tail[place - 1] = 32
        state[depth, _PLACE] = place - 1
        state[depth, _BUILT] = cursor


@kernel
def _put_number(value: float, digits: Array, out: Array, at: int) -> int:
    """Write a logarithm with up to seven decimals; where it ends.

    float32 has numbers nearer to each other than that below 1 only, so what is read back gives the
    same text again.
    """
    if value <= -99.0:
        out[at], out[at + 1], out[at + 2] = 45, 57, 57
        return at + 3
    scaled = np.uint64(np.rint(min(abs(np.float64(value)), 1e9) * 1e7))
    if scaled == 0:
        out[at] = 48
        return at + 1
    if value < 0:
        out[at] = 45
        at += 1
    at = put_whole(scaled // _SCALE, out, at)
    part = scaled % _SCALE
    if part == 0:
        return at
    out[at] = 46
    out[at + 7] = _ZERO + part % _TEN
    part //= _TEN
    for position in range(at + 5, at, -2):
        pair = np.int64(part % _HUNDRED) * 2
        part //= _HUNDRED
        out[position] = digits[pair]
        out[position + 1] = digits[pair + 1]
    at += 8
    while out[at - 1] == 48:
        at -= 1
    return at
