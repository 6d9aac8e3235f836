"""All n-grams of a stretch of text in suffix order, by radix sort.

An occurrence is seen as its words backwards: the last, the one before it, and so on up to the
order or the beginning of the record (`<s>`), after which there are zeros. Columns of words are
packed into 64-bit keys, as many as fit; where one key does not hold them all, what is equal so far
gets a rank, and the next key is that rank with the next columns. So any order and any vocabulary
will do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from seqtools.ngram.compiled import kernel
from seqtools.ngram.words import BOS, EOS

Array: TypeAlias = np.ndarray[Any, Any]

HIGHEST = 99  # order; that n-grams share up to 255 words is all that a byte can tell
NONE = 0xFFFFFFFF  # the row of an n-gram that does not exist
_DIGIT = 11


@dataclass(frozen=True)
class Layout:
    """How the columns of an occurrence lie in its keys.

    Attributes:
        order: columns.
        bits: width of a column.
        fields: how many columns each key holds.
    """

    order: int
    bits: int
    fields: tuple[int, ...]

    @classmethod
    def plan(cls, order: int, vocabulary: int, occurrences: int) -> Layout:
        """Lay out `order` columns of ids below `vocabulary`, for so many occurrences at most."""
        bits = max(1, (vocabulary - 1).bit_length())
        first = min(order, 64 // bits)
        more = (64 - max(1, occurrences.bit_length())) // bits
        fields, left = [first], order - first
        while left:
            fields.append(min(left, more))
            left -= fields[-1]
        return cls(order, bits, tuple(fields))


@dataclass
class Sorting:
    """Arrays to sort in."""

    keys: Array  # uint64 (rounds, m)
    other_keys: Array  # uint64 (m,)
    rows: Array  # uint32 (m,)
    other_rows: Array
    common: Array  # uint8 (m,)

    @classmethod
    def allocate(cls, allocate: Callable[[Any, Any], Array], rounds: int, size: int) -> Sorting:
        """Arrays for `size` occurrences; `allocate` takes a shape and a type."""
        return cls(
            allocate((rounds, size), np.uint64), allocate(size, np.uint64),
            allocate(size, np.uint32), allocate(size, np.uint32), allocate(size, np.uint8),
        )  # fmt: skip

    def cut(self, size: int) -> Sorting:
        """The same arrays for `size` occurrences."""
        return Sorting(
            shortened(self.keys, size), self.other_keys[:size], self.rows[:size],
            self.other_rows[:size], self.common[:size],
        )  # fmt: skip


def shortened(array: Array, size: int) -> Array:
    """An array of rows of `size` in the memory of a larger one, contiguous."""
    return array.reshape(-1)[: len(array) * size].reshape(len(array), size)


def sort_occurrences(keys: Array, room: Sorting, layout: Layout) -> Sorting:
    """Sort what `gather` has collected in suffix order.

    Args:
        keys: uint64 (rounds, m), the packed columns of each occurrence, in the order of the text.
        room: arrays for m occurrences.
        layout: of the keys.

    Returns:
        The same arrays: `rows` are the occurrences sorted, `keys` their columns, a row for each
        round (in the later ones a rank stands above the columns), and `common` says how many words
        each shares with the one before it.
    """
    rows, other_rows, other = room.rows, room.other_rows, room.other_keys
    rows[:] = np.arange(len(rows), dtype=np.uint32)
    room.common[:] = 0
    done = 0
    for number, fields in enumerate(layout.fields):
        sorting = room.keys[number]
        if number:
            _rank(keys[number], rows, room.common, done, fields * layout.bits, sorting)
        else:
            sorting[:] = keys[0]
        if _radix(sorting, rows, other, other_rows):
            sorting[:] = other
            rows, other_rows = other_rows, rows
        _compare(sorting, room.common, done, fields, layout.bits)
        done += fields
    room.rows, room.other_rows = rows, other_rows
    return room


@kernel
def gather(
    ids: Array, start: int, parts: Array, order: int, bits: int, fields: Array,
    keys: Array, cursors: Array,
) -> None:  # fmt: skip
    """Collect occurrences, part by part.

    Args:
        ids: int32, a stretch of text; before it, `start` words that are only history.
        start: where the stretch begins; at least order - 1, or the text itself begins there.
        parts: int16 (V,), the part that a last word belongs to, -1 for none.
        order, bits: as in the layout.
        fields: int64 (rounds,), as in the layout.
        keys: uint64 (rounds, m) to write.
        cursors: int64 (parts,), where each part goes on in `keys`; moved.
    """
    shift = np.uint64(bits)
    for position in range(start, len(ids)):
        part = parts[ids[position]]
        if part < 0:
            continue
        at = cursors[part]
        cursors[part] = at + 1
        column = 0
        ended = False
        for each in range(len(fields)):
            key = np.uint64(0)
            for _ in range(fields[each]):
                word = np.uint64(0)
                if not ended:
                    word = np.uint64(ids[position - column])
                    if column and word == EOS:  # the end of the record before is where this begins
                        word = np.uint64(BOS)
                        ended = True
                key = (key << shift) | word
                column += 1
            keys[each, at] = key


@kernel
def _radix(keys: Array, rows: Array, other_keys: Array, other_rows: Array) -> bool:
    """Sort keys with their rows, stably; whether the result is in the other two arrays."""
    count = len(keys)
    passes = (64 + _DIGIT - 1) // _DIGIT
    mask = np.uint64((1 << _DIGIT) - 1)
    totals = np.zeros((passes, 1 << _DIGIT), dtype=np.int64)
    for row in range(count):
        key = keys[row]
        for each in range(passes):
            totals[each, (key >> np.uint64(each * _DIGIT)) & mask] += 1
    swapped = False
    for each in range(passes):
        shift = np.uint64(each * _DIGIT)
        begins = totals[each]
        if count == 0 or begins[(keys[0] >> shift) & mask] == count:
            continue  # all have the same digit
        total = 0
        for digit in range(len(begins)):
            size = begins[digit]
            begins[digit] = total
            total += size
        for row in range(count):
            key = keys[row]
            digit = (key >> shift) & mask
            to = begins[digit]
            begins[digit] = to + 1
            other_keys[to] = key
            other_rows[to] = rows[row]
        keys, other_keys = other_keys, keys
        rows, other_rows = other_rows, rows
        swapped = not swapped
    return swapped


@kernel
def _rank(
    keys: Array, rows: Array, common: Array, done: int, width: int, ranked: Array
) -> None:  # fmt: skip
    """For each sorted occurrence, the rank of what was compared, then the columns of `keys`."""
    rank = np.uint64(0)
    shift = np.uint64(width)
    for place in range(len(rows)):
        if place and common[place] < done:
            rank += np.uint64(1)
        ranked[place] = (rank << shift) | keys[rows[place]]


@kernel
def _compare(keys: Array, common: Array, done: int, fields: int, bits: int) -> None:
    """Count the columns that sorted keys share, where all `done` columns before them are shared."""
    for place in range(1, len(keys)):
        if common[place] < done:
            continue
        differing = keys[place] ^ keys[place - 1]
        if differing == 0:
            common[place] = done + fields
            continue
        highest = 0  # the bit, then the field from below
        while differing > 1:
            differing >>= np.uint64(1)
            highest += 1
        common[place] = done + fields - 1 - min(fields - 1, highest // bits)


@kernel
def emit(
    keys: Array, rows: Array, common: Array, fields: Array, bits: int,
    words: Array, begins: Array, counts: Array, places: Array, sizes: Array, children: Array,
) -> None:  # fmt: skip
    """The distinct n-grams of sorted occurrences, order by order.

    Args:
        keys, rows, common: from `sort_occurrences`.
        fields, bits: as in the layout.
        words: uint32 (order, m) to write: leftmost words; row k - 1 is for order k, from 2 on.
        begins: uint32 (order, m + 1) to write: where an n-gram's extensions begin one order up.
        counts: uint32 (order, m) to write: occurrences.
        places: uint32 (m, order) to write: for each occurrence in the order of the text the row of
            its n-gram of each order, NONE where it has none.
        sizes: int64 (order,), zeros, to write: how many there are of each order.
        children: int64 (V,) to add to: how many bigrams end with each word.
    """
    order = len(sizes)
    mask = np.uint64((1 << bits) - 1)
    which = np.empty(order, dtype=np.int64)  # of each column, its key
    shifts = np.empty(order, dtype=np.uint64)
    column = 0
    for each in range(len(fields)):
        for field in range(fields[each]):
            which[column] = each
            shifts[column] = np.uint64((fields[each] - 1 - field) * bits)
            column += 1
    opened = np.zeros(order, dtype=np.int64)  # where the present n-gram of each order began
    here = np.full(order, NONE, dtype=np.uint32)  # and its row
    length = 1  # words of the present occurrence
    for place in range(len(rows)):
        first = max(1, int(common[place]))
        if first < order:
            for index in range(first, length):
                counts[index, sizes[index] - 1] = place - opened[index]
            length = first
            word = (keys[which[first - 1], place] >> shifts[first - 1]) & mask
            for index in range(first, order):
                if word == BOS:
                    break
                word = (keys[which[index], place] >> shifts[index]) & mask
                size = sizes[index]
                words[index, size] = word
                if index == 1:
                    children[(keys[0, place] >> shifts[0]) & mask] += 1
                if index + 1 < order:
                    begins[index, size] = sizes[index + 1]
                sizes[index] = size + 1
                opened[index] = place
                here[index] = size
                length = index + 1
            for index in range(length, order):
                here[index] = NONE
        row = rows[place]
        for index in range(1, order):
            places[row, index] = here[index]
    for index in range(1, length):
        counts[index, sizes[index] - 1] = len(rows) - opened[index]
    for index in range(1, order - 1):
        begins[index, sizes[index]] = sizes[index + 1]


@kernel
def interleave(
    parts: Array, cursors: Array, limits: Array, source: Array, out: Array, start: int
) -> int:
    """Take values in turn from several runs, until a run that is needed is used up.

    Args:
        parts: uint16 (n,), which run each value comes from.
        cursors: int64 (runs,), where each goes on in `source`; moved.
        limits: int64 (runs,), where each ends.
        source: the values of the runs.
        out: (n,) to write.
        start: where to go on in `parts`.

    Returns:
        How far it came; n if it is done.
    """
    for position in range(start, len(parts)):
        part = parts[position]
        cursor = cursors[part]
        if cursor == limits[part]:
            return position
        out[position] = source[cursor]
        cursors[part] = cursor + 1
    return len(parts)


@kernel
def link(rows: Array, before: Array, first: int, contexts: Array) -> None:
    """Note for n-grams the row of their context.

    Args:
        rows: uint32 (n,), the row of the n-gram that ends at each position, or NONE.
        before: uint32 (n,), the row of the shorter n-gram that ends one position before.
        first: the row that `contexts` begins with.
        contexts: uint32 (rows,) to write.
    """
    for position in range(len(rows)):
        row = np.int64(rows[position])
        if row != NONE and 0 <= row - first < len(contexts):
            contexts[row - first] = before[position]
