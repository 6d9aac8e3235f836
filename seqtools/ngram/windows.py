"""Windows of a text in prefix order: compiled parts of counting tables.

A window is what can be read from one place of the text on: as many columns as the highest order
has words. A column is a code: 0 for nothing, else 1 + the word's place among all words by code
point. So windows that are sorted as numbers are sorted by their words, a shorter one before those
that go on, and all n-grams of all orders stand in one sorted array of windows. As in `sorting`,
columns lie in 64-bit keys.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from seqtools.ngram.compiled import inlined, kernel
from seqtools.ngram.putting import put_bytes, put_whole
from seqtools.ngram.words import BOS, EOS

Array: TypeAlias = np.ndarray[Any, Any]

# What `tally` sums up for each order.
TYPES, TOKENS, SINGLES, HELDOUT, UNSEEN = range(5)


@kernel
def read_windows(
    ids: Array, start: int, end: int, codes: Array, padding: Array, fields: Array, bits: int,
    keys: Array,
) -> tuple[int, int]:  # fmt: skip
    """Pack the windows that begin in a stretch of text, as far as there is room.

    Args:
        ids: int32, text in which `</s>` ends each record; a record begins at its start.
        start, end: where windows are to begin.
        codes: int64 (V,), the code of each id.
        padding: int64 (3,): how many windows begin with `<s>` (those with most of them first);
            whether there is one that is `</s>` alone; the code that fills a window after `</s>`.
        fields: int64 (rounds,), columns of each key.
        bits: width of a column.
        keys: uint64 (rounds, m) to write.

    Returns:
        Where to go on, `end` if all is done, and how many windows there are.
    """
    count = 0
    shift = np.uint64(bits)
    room = keys.shape[1] - padding[0] - 1
    for place in range(start, end):
        if count > room:
            return place, count
        ended = ids[place] == EOS
        heads = padding[0] if place == 0 or ids[place - 1] == EOS else 0
        least = 1 if ended and padding[1] == 0 else 0
        for head in range(heads, least - 1, -1):
            at, column, over = place, 0, False
            for each in range(len(fields)):
                key = np.uint64(0)
                for _ in range(fields[each]):
                    code = padding[2]
                    if column < head:
                        code = codes[BOS]
                    elif not over:
                        code = codes[ids[at]]
                        over = ids[at] == EOS
                        at += 1
                    key = (key << shift) | np.uint64(code)
                    column += 1
                keys[each, count] = key
            count += 1
    return end, count


@kernel
def deal(
    keys: Array, count: int, shifts: Array, ranges: Array, splitters: Array,
    parts: Array, ends: Array, dealt: Array, cut: Array,
) -> None:  # fmt: skip
    """Bring the windows of each part together, in their order.

    Args:
        keys: uint64 (rounds, m), the first `count` of them are windows.
        shifts: int64, how far left the first column stands in the first key; then, for the orders
            that a part may begin in the midst of, where the last column of each stands.
        ranges: int64 (codes, 2), the first and last part that windows with a first code go to.
        splitters: uint64 (parts - 1,), the first keys with which the parts from the second begin.
        parts: uint16 (m,), to work in.
        ends: int64 (parts,) to write: where each part ends.
        dealt: uint64 (m, rounds) to write: the keys of the windows, part by part.
        cut: int64 (parts, orders) to add to: how many windows of a part have the n-gram that it
            begins in the midst of.
    """
    ends[:] = 0
    for window in range(count):
        key = keys[0, window]
        code = key >> np.uint64(shifts[0])
        low, high = ranges[code, 0], ranges[code, 1]
        while low < high:
            middle = (low + high) >> 1
            if splitters[middle] <= key:
                low = middle + 1
            else:
                high = middle
        parts[window] = low
        ends[low] += 1
        if low:
            differing = key ^ splitters[low - 1]
            for each in range(1, len(shifts)):
                if differing >> np.uint64(shifts[each]):
                    break
                cut[low, each - 1] += 1
    total = 0
    for part in range(len(ends)):
        size = ends[part]
        ends[part] = total
        total += size
    for window in range(count):
        part = parts[window]
        to = ends[part]
        ends[part] = to + 1
        for each in range(len(keys)):
            dealt[to, each] = keys[each, window]


@kernel
def _columns(keys: Array, place: int, fields: Array, bits: int, columns: Array) -> None:
    """Unpack a window."""
    mask = np.uint64((1 << bits) - 1)
    column = 0
    for each in range(len(fields)):
        key = keys[each, place]
        for field in range(fields[each] - 1, -1, -1):
            columns[column] = (key >> np.uint64(field * bits)) & mask
            column += 1


@kernel
def tally(
    keys: Array, rows: Array, common: Array, fields: Array, bits: int, orders: Array, begin: int,
    skip: Array, heldout: int, more: Array, counts: Array, sums: Array,
) -> None:  # fmt: skip
    """Count the n-grams of sorted windows.

    Args:
        keys: uint64 (rounds, m), sorted; what stands above the columns of a key is ignored.
        rows: uint32 (m,), which windows they were.
        common: uint8 (m,), how many columns each shares with the one before it.
        fields, bits: as in `read_windows`.
        orders: int64 (orders,), which n-grams are counted, rising.
        begin: n-grams that end with this code are none; 0 for no such code.
        skip: uint8 (orders,), whether the first n-gram has been counted before.
        heldout: windows from this row on are not counted, but compared.
        more: int64 (2, orders), how often the last n-gram occurs besides, and held out.
        counts: int64 (orders * m,) to write: of the n-grams in order, 0 if it is only held out.
        sums: int64 (orders, 5) to add to: different n-grams, occurrences, n-grams that occur once;
            held-out occurrences, and those of n-grams that do not occur.
    """
    columns = np.zeros(fields.sum(), dtype=np.int64)
    open_at = np.full(len(orders), -1, dtype=np.int64)
    from_place = np.zeros(len(orders), dtype=np.int64)
    from_held = np.zeros(len(orders), dtype=np.int64)
    found = held = 0
    for place in range(len(rows) + 1):
        shared = np.int64(common[place]) if 0 < place < len(rows) else 0
        if place == 0 or shared < orders[-1]:
            for each in range(len(orders)):
                if orders[each] > shared and open_at[each] >= 0:
                    aside = held - from_held[each]
                    count = place - from_place[each] - aside
                    if place == len(rows):
                        count += more[0, each]
                        aside += more[1, each]
                    counts[open_at[each]] = count
                    open_at[each] = -1
                    sums[each, 3] += aside
                    if count:
                        sums[each, 0] += 1
                        sums[each, 1] += count
                        sums[each, 2] += count == 1
                    else:
                        sums[each, 4] += aside
            if place == len(rows):
                break
            _columns(keys, place, fields, bits, columns)
            for each in range(len(orders)):
                if orders[each] > shared:
                    code = columns[orders[each] - 1]
                    if code == 0:
                        break
                    if code != begin and not (place == 0 and skip[each]):
                        open_at[each], from_place[each], from_held[each] = found, place, held
                        found += 1
        held += rows[place] >= heldout


@kernel
def render(
    keys: Array, common: Array, fields: Array, bits: int, orders: Array, begin: int,
    skip: Array, counts: Array, least: int, texts: Array, offsets: Array, state: Array, out: Array,
) -> int:  # fmt: skip
    """Write the n-grams of sorted windows as lines of JSON, as far as there is room.

    Args:
        keys, common, fields, bits, orders, begin, skip, counts: as in `tally`.
        least: n-grams with smaller counts are left out.
        texts: uint8, `{"ngram":[`, then for each code from 1 its word in JSON and a comma, then
            `],"count":`.
        offsets: int64 (codes + 2,), where each of them begins and the last ends; those of the
            first and the last are those of the beginning and the end of a line.
        state: int64 (2,), the window and the count to go on with; moved.
        out: uint8 to write; must have room for the lines of any one window.

    Returns:
        How many bytes were written; 0 at the end.
    """
    columns = np.zeros(fields.sum(), dtype=np.int64)
    place, found = state[0], state[1]
    size = 0
    while place < len(common):
        shared = np.int64(common[place]) if place else 0
        if shared >= orders[-1]:
            place += 1
            continue
        _columns(keys, place, fields, bits, columns)
        if size + _room(columns, orders, offsets) > len(out):
            break
        for each in range(len(orders)):
            if orders[each] <= shared:
                continue
            code = columns[orders[each] - 1]
            if code == 0:
                break
            if code == begin or (place == 0 and skip[each]):
                continue
            if counts[found] >= least:
                size = _put_line(columns, orders[each], counts[found], texts, offsets, out, size)
            found += 1
        place += 1
    state[0], state[1] = place, found
    return size


@inlined
def _room(columns: Array, orders: Array, offsets: Array) -> int:
    """Bytes that the lines of a window have at most."""
    room: int = len(orders) * (offsets[1] + offsets[-1] - offsets[-2] + 21)
    for each in range(len(orders)):
        for column in range(orders[each]):
            room += offsets[columns[column] + 1] - offsets[columns[column]]
    return room


@inlined
def _put_line(
    columns: Array, order: int, count: int, texts: Array, offsets: Array, out: Array, at: int
) -> int:
    """Write the line of an n-gram, of the first words of a window; the place after it."""
    at = put_bytes(texts, offsets[0], offsets[1], out, at)
    for column in range(order):
        code = columns[column]
        at = put_bytes(texts, offsets[code], offsets[code + 1], out, at)
    at = put_bytes(texts, offsets[-2], offsets[-1], out, at - 1)  # over the last comma
    at = put_whole(count, out, at)
    out[at], out[at + 1] = 125, 10  # the brace, the line's end
    return at + 2
