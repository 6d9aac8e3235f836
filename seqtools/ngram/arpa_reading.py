"""ARPA files to models.

A block of lines at a time goes through a compiled function, which takes numbers and words as they
come and stops at the first line that is not as it should be; what is wrong with that one is found
out in plain Python. The n-grams of an order are kept as rows of ids until all orders are known.
Then they are sorted where the file has another order, and each is linked to its suffix, which is
put in where the file has none.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeAlias

import numpy as np

from seqtools.errors import FormatError, InputError
from seqtools.ngram.compiled import kernel
from seqtools.ngram.model import Level, Model
from seqtools.ngram.sorting import Layout, Sorting, sort_occurrences
from seqtools.ngram.storage import roomy
from seqtools.ngram.words import EOS, SPECIALS, UNK, Words, find_word, hash_word
from seqtools.streams.files import read_blocks

Array: TypeAlias = np.ndarray[Any, Any]

_BLOCK = 1 << 22  # bytes
_FIRST_ROWS = 1 << 20  # room for so many n-grams is made before there are any
_MOST_ROWS = 0xFFFFFFFE
_COUNT = re.compile(rb"ngram\s+(\d{1,12})\s*=\s*(\d{1,12})")
_INFINITY = np.frombuffer(b"infinity", dtype=np.uint8)
_NOTHING = np.empty(0, dtype=np.uint32)

# Why parsing stopped.
_END, _OTHER, _NUMBER, _POSITIVE, _FEW, _UNKNOWN, _MANY, _BACKOFF = range(8)


@dataclass
class _Grams:
    """The n-grams of one order.

    Attributes:
        ids: uint32 (n, order), the words as they stand in the text; in the end only the first.
        probs, backoffs: float32 (n,), log10; there are no backoffs at the highest order.
        begins: uint32 (n + 1,), as in `Level`, where that is known.
        added: the ids of those that are not in the file.
    """

    ids: Array
    probs: Array
    backoffs: Array
    begins: Array = field(default_factory=_NOTHING.copy)
    added: Array = field(default_factory=_NOTHING.copy)

    def take(self, rows: Array) -> _Grams:
        """Rows in another order."""
        backoffs = self.backoffs[rows] if len(self.backoffs) else self.backoffs
        return _Grams(self.ids[rows], self.probs[rows], backoffs)


class _Section:
    """The n-grams of one order as they come in.

    Attributes:
        rows: how many there are so far.
        count: how many there will be.
        strings: at order 1 the words, as nothing else is known of them.
    """

    def __init__(self, order: int, count: int, *, highest: bool) -> None:
        self.order, self.count, self.highest = order, count, highest
        self.rows = 0
        self.strings: list[bytes] = []
        self.ids = _NOTHING.reshape(0, order)
        self.probs = self.backoffs = np.empty(0, dtype=np.float32)
        self.spans = np.empty((0, 2), dtype=np.int64)

    def make_room(self) -> None:
        """Have room for more, but not for all that a file may say it has and has not."""
        if self.rows < len(self.probs):
            return
        size = min(self.count, max(_FIRST_ROWS, 4 * self.rows))
        self.ids = _enlarged(self.ids, self.rows, (size, self.order))
        self.probs = _enlarged(self.probs, self.rows, (size,))
        if not self.highest:
            self.backoffs = _enlarged(self.backoffs, self.rows, (size,))
        if self.order == 1:
            self.spans = _enlarged(self.spans, self.rows, (size, 2))

    def cut(self, data: bytes, before: int) -> None:
        """Take the words of what has just come in."""
        spans = self.spans[before : self.rows].tolist()
        self.strings += [data[start:end] for start, end in spans]

    def finish(self) -> _Grams:
        """All of them."""
        rows = self.rows
        return _Grams(self.ids[:rows], self.probs[:rows], self.backoffs[:rows])


class _Lines:
    """The lines of a file, one by one or as the bytes that are at hand."""

    def __init__(self, path: str) -> None:
        self._blocks = read_blocks([path], keep_blank=True, block_size=_BLOCK)
        self.source = path
        self.data = b""
        self.position = 0
        self.line = 1  # number of the line at the position

    def more(self) -> bool:
        """Whether there is anything at the position, now that it has been read."""
        while self.position >= len(self.data):
            block = next(self._blocks, None)
            if block is None:
                return False
            self.source, self.position = block.source, 0
            self.data = block.data
            if self.data and not self.data.endswith(b"\n"):
                self.data += b"\n"
        return True

    def peek(self) -> bytes | None:
        """The line at the position, without white space around it; None at the end."""
        if not self.more():
            return None
        return self.data[self.position : self.data.index(b"\n", self.position)].strip()

    def skip(self) -> None:
        """Leave the line at the position behind."""
        self.position = self.data.index(b"\n", self.position) + 1
        self.line += 1

    def next_full(self) -> bytes | None:
        """The next line that is not blank, at the position then."""
        while (line := self.peek()) == b"":
            self.skip()
        return line

    def fail(self, reason: str, line: int | None = None) -> NoReturn:
        """Raise an error about the line at the position, or another one."""
        raise InputError(self.source, self.line if line is None else line, reason)

    def fail_short(self, what: str) -> NoReturn:
        """Raise an error about the end of the file."""
        self.fail(f"the file is cut short: {what}", max(1, self.line - 1))


class Reader:
    """One run of `arpa.read`."""

    def __init__(self, path: str) -> None:
        self.lines = _Lines(path)
        self.words = self.spelled = Words.from_strings(SPECIALS)  # `spelled` as in the file
        self.present = np.zeros(len(SPECIALS), dtype=np.bool_)

    def read(self) -> Model:
        """The whole model."""
        counts = self._read_head()
        grams: list[_Grams] = []
        for order, count in enumerate(counts, 1):
            section, line = self._read_section(order, count, highest=order == len(counts))
            if order == 1:
                grams.append(self._define(section, line))
            else:
                grams.append(self._sorted(section, line))
        last = self.lines.next_full()
        if last is None:
            self.lines.fail_short("it has no \\end\\")
        if last != b"\\end\\":
            self.lines.fail(f"expected \\end\\, got {_shown(last)}")
        return Model(self.words, _link_all(grams), self._metadata(len(grams)))

    def _metadata(self, order: int) -> dict[str, Any]:
        return {
            "order": order, "smoothing": None, "discounts": None, "counts_of_counts": None,
            "records": None, "tokens": None, "has_unk": bool(self.present[UNK]),
            "unk_as_word": False, "additive": None, "unseen_backoff": 0.0,
        }  # fmt: skip

    def _read_head(self) -> list[int]:
        """How many n-grams of each order the file says it has."""
        lines = self.lines
        while (line := lines.peek()) != b"\\data\\":
            if line is None:
                raise FormatError(f"{lines.source}: not an ARPA file: it has no line \\data\\")
            lines.skip()
        lines.skip()
        counts: list[int] = []
        while (line := lines.next_full()) is not None and not line.startswith(b"\\"):
            found = _COUNT.fullmatch(line)
            if found is None or int(found[1]) != len(counts) + 1:
                lines.fail(f'expected "ngram {len(counts) + 1}=" and a number, got {_shown(line)}')
            if int(found[2]) > _MOST_ROWS:
                lines.fail(f"more than {_MOST_ROWS} n-grams of order {len(counts) + 1}")
            counts.append(int(found[2]))
            lines.skip()
        if not counts:
            lines.fail("\\data\\ does not say how many n-grams there are")
        if not counts[0]:
            lines.fail("a model without words")
        return counts

    def _read_section(self, order: int, count: int, *, highest: bool) -> tuple[_Section, int]:
        """The n-grams of one order, and the line of the first."""
        lines, heading = self.lines, f"\\{order}-grams:"
        line = lines.next_full()
        if line is None:
            lines.fail_short(f"it has no {heading}")
        if line != heading.encode():
            lines.fail(f"expected {heading}, got {_shown(line)}")
        lines.skip()
        lines.next_full()
        section, first = _Section(order, count, highest=highest), lines.line
        while section.rows < count:
            if not lines.more():
                lines.fail_short(f"{heading} has {section.rows} n-grams, not {count}")
            self._take(section)
        line = lines.next_full()
        if line is not None and not line.startswith(b"\\"):
            lines.fail(f"{heading} has more n-grams than the {count} that \\data\\ says")
        return section, first

    def _take(self, section: _Section) -> None:
        """Parse lines up to the end of the block or of the section."""
        lines, words = self.lines, self.spelled
        section.make_room()
        before = section.rows
        lines.position, section.rows, code = _parse(
            np.frombuffer(lines.data, dtype=np.uint8), lines.position, section.order,
            section.highest, words.utf8, words.offsets, words.table, self.present,
            section.ids, section.probs, section.backoffs, section.spans, before,
        )  # fmt: skip
        lines.line += section.rows - before
        if section.order == 1:
            section.cut(lines.data, before)
        if code == _OTHER:
            lines.fail(
                f"\\{section.order}-grams: has {section.rows} n-grams,"
                f" not the {section.count} that \\data\\ says"
            )
        if code != _END:
            lines.fail(self._explain(code, (lines.peek() or b"").split(), section.order))

    def _explain(self, code: int, tokens: list[bytes], order: int) -> str:
        """What is wrong with a line."""
        if code == _NUMBER:
            return f"{_shown(tokens[0])} is not the log10 of a probability"
        if code == _POSITIVE:
            return f"a probability above 1: {_shown(tokens[0])} is its log10"
        if code == _UNKNOWN:
            unknown = [token for token in tokens[1:] if not self._is_known(token)]
            return f"{_shown(unknown[0])} is not among the 1-grams"
        if code == _BACKOFF:
            return f"{_shown(tokens[order + 1])} is not the log10 of a backoff weight"
        extra = "" if code == _FEW else " and no more"
        what = f"{order} word" if order == 1 else f"{order} words"
        return f"expected {what}{extra} after the probability, got {len(tokens) - 1}"

    def _is_known(self, token: bytes) -> bool:
        number = self.spelled.find(token)
        return number > EOS or (number >= 0 and bool(self.present[number]))

    def _define(self, section: _Section, line: int) -> _Grams:
        """Make the words, and put the unigrams in the order of their ids."""
        places: dict[bytes, int] = {}
        for row, string in enumerate(section.strings):
            if places.setdefault(string, row) != row:
                self.lines.fail(f"the word {_shown(string)} is there twice", line + row)
            if not _is_utf8(string):
                self.lines.fail(f"the word {_shown(string)} is not UTF-8", line + row)
        specials = [*SPECIALS]
        if SPECIALS[UNK] not in places and b"<UNK>" in places:
            specials[UNK] = b"<UNK>"
        rows = [places.pop(special, -1) for special in specials]
        self.present = np.array(rows) >= 0
        self.words = Words.from_strings([*SPECIALS, *places])
        self.spelled = Words.from_strings([*specials, *places])
        rows += places.values()
        grams = section.finish().take(np.array(rows))
        grams.ids = np.arange(len(rows), dtype=np.uint32).reshape(-1, 1)
        grams.probs[: len(SPECIALS)][~self.present] = -np.inf
        grams.backoffs[: len(SPECIALS)][~self.present[: len(grams.backoffs)]] = 0
        return grams

    def _sorted(self, section: _Section, line: int) -> _Grams:
        """The n-grams in suffix order."""
        grams = section.finish()
        if _is_sorted(grams.ids):
            return grams
        size, order = grams.ids.shape
        layout = Layout.plan(order, len(self.words), size)
        rounds = len(layout.fields)
        keys = roomy((rounds, size), np.uint64)
        _pack(grams.ids, layout.bits, np.array(layout.fields), keys)
        room = Sorting(
            roomy((rounds, size), np.uint64), roomy(size, np.uint64), roomy(size, np.uint32),
            roomy(size, np.uint32), roomy(size, np.uint8),
        )  # fmt: skip
        done = sort_occurrences(keys, room, layout)
        twice = np.flatnonzero(done.common[1:] == order)
        if len(twice):
            row = int(done.rows[twice + 1].min())
            words = b" ".join(map(self.words.string, grams.ids[row].tolist()))
            self.lines.fail(f"the n-gram {_shown(words)} is there twice", line + row)
        return grams.take(done.rows)


def _shown(text: bytes) -> str:
    """Something from the file, as a message shows it."""
    shown = repr(text.decode("utf-8", "backslashreplace"))
    return shown if len(shown) <= 100 else shown[:80] + "..." + shown[0]


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def _enlarged(array: Array, used: int, shape: tuple[int, ...]) -> Array:
    larger = roomy(shape, array.dtype)
    larger[:used] = array[:used]
    return larger


def _link_all(grams: list[_Grams]) -> list[Level]:
    """Levels of n-grams, each of which has its suffix."""
    for upper, lower in zip(grams[:0:-1], grams[-2::-1], strict=True):
        _link_to(upper, lower)
    levels: list[Level] = []
    for index, each in enumerate(grams):
        each.ids = each.ids[:, :1].copy()
        if len(each.added):
            _back_off(grams[: index + 1])
        arrays = each.ids[:, 0], each.begins, each.probs, each.backoffs
        for array in arrays:
            array.flags.writeable = False
        levels.append(Level(*arrays))
    return levels


def _link_to(upper: _Grams, lower: _Grams) -> None:
    """Find where the extensions of each n-gram begin; suffixes that are missing are put in."""
    lower.begins = roomy(len(lower.probs) + 1, np.uint32)
    missing = _link(upper.ids, lower.ids, lower.begins, _NOTHING.copy(), _NOTHING.copy())
    if missing:
        rows, places = np.empty((2, missing), dtype=np.uint32)
        _link(upper.ids, lower.ids, lower.begins, rows, places)
        lower.added = upper.ids[rows, 1:]
        before = places.astype(np.int64)
        lower.ids = np.insert(lower.ids, before, lower.added, axis=0)
        lower.probs = np.insert(lower.probs, before, np.float32(np.nan))
        lower.backoffs = np.insert(lower.backoffs, before, np.float32(0))
        _link_to(upper, lower)


def _back_off(grams: list[_Grams]) -> None:
    """Give the n-grams that were put into the highest order the probability of backing off."""
    *_, below, here = grams
    rows = np.flatnonzero(np.isnan(here.probs))
    suffixes = np.searchsorted(below.begins, rows, side="right") - 1
    contexts = _find_rows(grams[:-1], here.added[:, :-1])
    weights = np.where(contexts < 0, 0, below.backoffs[contexts])
    here.probs[rows] = below.probs[suffixes] + weights


def _find_rows(grams: list[_Grams], ids: Array) -> Array:
    """The rows of n-grams (m, order), -1 where there is none."""
    rows = ids[:, -1].astype(np.int64)
    for back, (lower, upper) in enumerate(itertools.pairwise(grams), 2):
        if not len(upper.ids):
            return np.full(len(ids), -1)
        wanted, lefts = ids[:, -back], upper.ids[:, 0]
        low, end = lower.begins[rows].astype(np.int64), lower.begins[rows + 1].astype(np.int64)
        high = end
        while (low < high).any():  # each halves what it has left
            middle = (low + high) // 2
            smaller = lefts[np.minimum(middle, len(lefts) - 1)] < wanted
            high = np.where((low < high) & ~smaller, middle, high)
            low = np.where((low < high) & smaller, middle + 1, low)
        there = (low < end) & (lefts[np.minimum(low, len(lefts) - 1)] == wanted)
        rows = np.where(there & (rows >= 0), low, -1)
    return rows


@kernel
def _parse(
    raw: Array, start: int, order: int, highest: bool, utf8: Array, offsets: Array,  # noqa: FBT001
    table: Array, present: Array, ids: Array, probs: Array, backoffs: Array, spans: Array, row: int,
) -> tuple[int, int, int]:  # fmt: skip
    """Parse lines until the block or the room ends, or one is not as it should be.

    Args:
        raw: uint8, whole lines.
        start: where to begin.
        order: words of a line.
        highest: there are no backoff weights.
        utf8, offsets, table: the words; not used at order 1.
        present: bool (3,), which specials there are.
        ids: uint32 (n, order) to write; not at order 1.
        probs: float32 (n,) to write.
        backoffs: float32 (n,) to write; not at the highest order.
        spans: int64 (n, 2) to write at order 1: where each word begins and ends.
        row: the first to write.

    Returns:
        The position of the next line, the row for it, and why it ended.
    """
    position = start
    while row < len(probs) and position < len(raw):
        at = _skip_space(raw, position)
        if raw[at] == 10 or raw[at] == 92:  # a blank line, a heading
            return position, row, _OTHER
        at, value = _parse_number(raw, at)
        if np.isnan(value):
            return position, row, _NUMBER
        if value > 1e-3:
            return position, row, _POSITIVE
        probs[row] = min(value, 0.0) if value > -99.0 else -np.inf
        for column in range(order):
            begin = _skip_space(raw, at)
            at = begin
            while not _is_space(raw[at]) and raw[at] != 10:
                at += 1
            if at == begin:
                return position, row, _FEW
            if order == 1:
                spans[row, 0], spans[row, 1] = begin, at
            else:
                word = find_word(raw, begin, at, hash_word(raw, begin, at), utf8, offsets, table)
                if word < 0 or (word < len(present) and not present[word]):
                    return position, row, _UNKNOWN
                ids[row, column] = word
        at = _skip_space(raw, at)
        value = 0.0
        if raw[at] != 10:
            if highest:
                return position, row, _MANY
            at, value = _parse_number(raw, at)
            if np.isnan(value) or value > 99.0:
                return position, row, _BACKOFF
            at = _skip_space(raw, at)
            if raw[at] != 10:
                return position, row, _MANY
        if not highest:
            backoffs[row] = value if value > -99.0 else -np.inf
        row += 1
        position = at + 1
    return position, row, _END


@kernel
def _is_space(byte: int) -> bool:
    return byte == 32 or byte == 9 or 11 <= byte <= 13


@kernel
def _skip_space(raw: Array, at: int) -> int:
    while _is_space(raw[at]):
        at += 1
    return at


@kernel
def _parse_number(raw: Array, at: int) -> tuple[int, float]:
    """A number, and where it ends; NaN where there is none that white space follows."""
    negative = raw[at] == 45
    if negative or raw[at] == 43:
        at += 1
    value, digits, scale, point = 0.0, 0, 0, 0
    while 48 <= raw[at] <= 57 or (raw[at] == 46 and not point):
        if raw[at] == 46:
            point = 1
        else:
            digits += 1
            if value < 1e17:
                value = value * 10.0 + (raw[at] - 48)
                scale -= point
            else:  # a float holds no more
                scale += 1 - point
        at += 1
    if digits and raw[at] | 32 == 101:
        at += 1
        shrinks = raw[at] == 45
        if shrinks or raw[at] == 43:
            at += 1
        exponent, digits = 0, 0
        while 48 <= raw[at] <= 57:
            exponent = min(exponent * 10 + (raw[at] - 48), 1000)
            digits += 1
            at += 1
        scale += -exponent if shrinks else exponent
    if not (digits or point):
        for letter in _INFINITY:
            if raw[at] | 32 != letter:
                break
            digits += 1
            at += 1
        value = np.inf if digits in (3, 8) else np.nan
    if not (digits and (_is_space(raw[at]) or raw[at] == 10)):
        return at, np.nan
    if scale < 0:
        value /= 10.0**-scale
    elif scale and value:
        value *= 10.0**scale
    return at, -value if negative else value


@kernel
def _pack(ids: Array, bits: int, fields: Array, keys: Array) -> None:
    """Pack the words of n-grams, from the last to the first, as `Layout` says."""
    for row in range(len(ids)):
        column = ids.shape[1] - 1
        for each in range(len(fields)):
            key = np.uint64(0)
            for _ in range(fields[each]):
                key = (key << np.uint64(bits)) | np.uint64(ids[row, column])
                column -= 1
            keys[each, row] = key


@kernel
def _compare(some: Array, one: int, others: Array, other: int, columns: int) -> int:
    """Which of two n-grams is first in suffix order by its last words: -1, or 1, or 0."""
    for back in range(1, columns + 1):
        left, right = some[one, some.shape[1] - back], others[other, others.shape[1] - back]
        if left != right:
            return -1 if left < right else 1
    return 0


@kernel
def _is_sorted(ids: Array) -> bool:
    """Whether each n-gram is beyond the one before it in suffix order."""
    for row in range(1, len(ids)):  # noqa: SIM110
        if _compare(ids, row - 1, ids, row, ids.shape[1]) >= 0:
            return False
    return True


@kernel
def _link(ids: Array, lower: Array, begins: Array, rows: Array, places: Array) -> int:
    """Find the suffixes of n-grams among those of the order below, both in suffix order.

    Args:
        ids: uint32 (n, order).
        lower: uint32 (m, order - 1).
        begins: uint32 (m + 1,) to write: where the n-grams with each suffix begin.
        rows: uint32 to write, as far as there is room: an n-gram for each suffix that is missing.
        places: uint32 to write: before which row of `lower` it would stand.

    Returns:
        How many suffixes are missing.
    """
    columns = lower.shape[1]
    below, missing, last = 0, 0, -1
    begins[0] = 0
    for row in range(len(ids)):
        order = 1
        while below < len(lower):
            order = _compare(lower, below, ids, row, columns)
            if order >= 0:
                break
            below += 1
            begins[below] = row
            order = 1
        if order and (last < 0 or _compare(ids, last, ids, row, columns)):
            if missing < len(rows):
                rows[missing], places[missing] = row, below
            missing += 1
            last = row
    begins[below + 1 :] = len(ids)
    return missing
