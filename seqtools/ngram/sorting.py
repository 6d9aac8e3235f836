"""All n-grams of a stretch of text in suffix order, by radix sort.

An occurrence is seen as its words backwards: the last, the one before it, and so on up to the
order or the beginning of the record (`<s>`), after which there are zeros. Columns of words are
packed into 64-bit keys, as many as fit; where one key does not hold them all, what is equal so far
gets a rank, and the next key is that rank with the next columns. So any order and any vocabulary
will do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from seqtools.ngram.compiled import kernel
from seqtools.ngram.words import BOS, EOS

Array: TypeAlias = np.ndarray[Any, Any]

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


@dataclass(frozen=True)
class Sorted:
    """The occurrences of a stretch in suffix order.

    Attributes:
        keys: uint64 (rounds, m), the packed columns of each occurrence, in the order of the text.
        lengths: uint8 (m,), how many words each has, in the order of the text.
        rows: uint32 (m,), the occurrences sorted.
        common: uint8 (m,), how many words each shares with the one sorted before it.
    """

    layout: Layout
    keys: Array
    lengths: Array
    rows: Array
    common: Array


def sort_occurrences(keys: Array, lengths: Array, layout: Layout) -> Sorted:
    """Sort what `gather` has collected.

    Args:
        keys: uint64 (rounds, m).
        lengths: uint8 (m,).
        layout: of the keys.
    """
    count = keys.shape[1]
    rows = np.arange(count, dtype=np.uint32)
    other_rows = np.empty_like(rows)
    common = np.zeros(count, dtype=np.uint8)
    sorting, other = keys[0].copy(), np.empty(count, dtype=np.uint64)
    done = 0
    for number, fields in enumerate(layout.fields):
        if number:
            _rank(keys[number], rows, common, done, fields * layout.bits, sorting)
        if _radix(sorting, rows, other, other_rows):
            sorting, other, rows, other_rows = other, sorting, other_rows, rows
        _compare(sorting, common, done, fields, layout.bits)
        done += fields
    return Sorted(layout, keys, lengths, rows, common)


@kernel
def gather(
    ids: Array, start: int, low: int, high: int, order: int, bits: int, fields: Array,
    keys: Array, lengths: Array, count: int,
) -> int:  # fmt: skip
    """Collect the occurrences whose last word has an id from `low` up to below `high`.

    Args:
        ids: int32, a stretch of text; before it, `start` words that are only history.
        start: where the stretch begins; at least order - 1, or the text itself begins there.
        low, high: bounds of the last word.
        order, bits: as in the layout.
        fields: int64 (rounds,), as in the layout.
        keys: uint64 (rounds, m) to write.
        lengths: uint8 (m,) to write.
        count: how many are there already.

    Returns:
        How many there are now.
    """
    shift = np.uint64(bits)
    for position in range(start, len(ids)):
        if not low <= ids[position] < high:
            continue
        length, column = 0, 0
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
                    length += 1
                key = (key << shift) | word
                column += 1
            keys[each, count] = key
        lengths[count] = length
        count += 1
    return count


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
    keys: Array, lengths: Array, rows: Array, common: Array, fields: Array, bits: int,
    words: Array, begins: Array, counts: Array, places: Array, sizes: Array, children: Array,
) -> None:  # fmt: skip
    """The distinct n-grams of sorted occurrences, order by order.

    Args:
        keys, lengths, rows, common: as in `Sorted`.
        fields, bits: as in the layout.
        words: uint32 (order, m) to write: leftmost words; row k - 1 is for order k, from 2 on.
        begins: uint32 (order, m + 1) to write: where an n-gram's extensions begin one order up.
        counts: uint32 (order, m) to write: occurrences; zeros at first.
        places: uint32 (order, m) to write: for each occurrence in the order of the text the row of
            its n-gram of each order, NONE where it has none.
        sizes: int64 (order,) to write: how many there are of each order.
        children: int64 (V,) to add to: how many bigrams end with each word.
    """
    order = len(sizes)
    mask = np.uint64((1 << bits) - 1) if bits < 64 else np.uint64(0xFFFFFFFFFFFFFFFF)
    which = np.empty(order, dtype=np.int64)  # of each column, its key
    shifts = np.empty(order, dtype=np.uint64)
    column = 0
    for each in range(len(fields)):
        for field in range(fields[each]):
            which[column] = each
            shifts[column] = np.uint64((fields[each] - 1 - field) * bits)
            column += 1
    for place in range(len(rows)):
        row = rows[place]
        length = lengths[row]
        for index in range(max(1, int(common[place])), int(length)):
            if index == 1:
                children[(keys[0, row] >> shifts[0]) & mask] += 1
            size = sizes[index]
            words[index, size] = (keys[which[index], row] >> shifts[index]) & mask
            if index + 1 < order:
                begins[index, size] = sizes[index + 1]
            sizes[index] = size + 1
        for index in range(1, length):
            last = sizes[index] - 1
            counts[index, last] += 1
            places[index, row] = last
        for index in range(length, order):
            places[index, row] = NONE
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
