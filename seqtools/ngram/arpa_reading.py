"""ARPA files to models.

A block of lines at a time goes through a compiled function (`arpa_parsing`), which stops at the
first line that is not as it should be; what is wrong with that one is found out in plain Python.
"""

from __future__ import annotations

import re
from typing import Any, NoReturn, TypeAlias

import numpy as np

from seqtools.errors import FormatError, InputError
from seqtools.ngram.arpa_parsing import (
    BACKOFF,
    END,
    FEW,
    NUMBER,
    OTHER,
    POSITIVE,
    UNKNOWN,
    parse,
)
from seqtools.ngram.linking import Grams, link_all
from seqtools.ngram.model import Model
from seqtools.ngram.sorting import HIGHEST
from seqtools.ngram.storage import roomy
from seqtools.ngram.words import EOS, SPECIALS, UNK, Words, is_utf8
from seqtools.streams.files import read_blocks

Array: TypeAlias = np.ndarray[Any, Any]

_BLOCK = 1 << 22  # bytes
_FIRST_ROWS = 1 << 20  # room for so many n-grams is made before there are any
_MOST_ROWS = 0xFFFFFFFE
_LISTED = b'{"ngram":'  # as `listing` begins its lines
_COUNT = re.compile(rb"ngram\s+(\d{1,12})\s*=\s*(\d{1,12})")


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
        self.ids = np.empty((0, order), dtype=np.uint32)
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

    def finish(self) -> Grams:
        """All of them."""
        rows = self.rows
        return Grams(self.ids[:rows], self.probs[:rows], self.backoffs[:rows])


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
        grams: list[Grams] = []
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
        return Model(self.words, link_all(grams), self._metadata(len(grams)))

    def _metadata(self, order: int) -> dict[str, Any]:
        return {
            "order": order, "smoothing": None, "discounts": None, "counts_of_counts": None,
            "records": None, "tokens": None, "has_unk": bool(self.present[UNK]),
            "unk_as_word": False, "additive": None, "unseen_backoff": 0.0,
        }  # fmt: skip

    def _read_head(self) -> list[int]:
        """How many n-grams of each order the file says it has."""
        lines = self.lines
        if (lines.next_full() or b"").startswith(_LISTED):
            raise FormatError(
                f"{lines.source}: n-grams as JSONL, which are not read back"
                " (.arpa and .safetensors are)"
            )
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
            if len(counts) == HIGHEST:
                lines.fail(f"n-grams of more than {HIGHEST} words")
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
        lines.position, section.rows, code = parse(
            np.frombuffer(lines.data, dtype=np.uint8), lines.position, section.order,
            section.highest, words.utf8, words.offsets, words.table, self.present,
            section.ids, section.probs, section.backoffs, section.spans, before,
        )  # fmt: skip
        lines.line += section.rows - before
        if section.order == 1:
            section.cut(lines.data, before)
        if code == OTHER:
            lines.fail(
                f"\\{section.order}-grams: has {section.rows} n-grams,"
                f" not the {section.count} that \\data\\ says"
            )
        if code != END:
            lines.fail(self._explain(code, (lines.peek() or b"").split(), section.order))

    def _explain(self, code: int, tokens: list[bytes], order: int) -> str:
        """What is wrong with a line."""
        if code == NUMBER:
            return f"{_shown(tokens[0])} is not the log10 of a probability"
        if code == POSITIVE:
            return f"a probability above 1: {_shown(tokens[0])} is its log10"
        if code == UNKNOWN:
            unknown = [token for token in tokens[1:] if not self._is_known(token)]
            return f"{_shown(unknown[0])} is not among the 1-grams"
        if code == BACKOFF:
            return f"{_shown(tokens[order + 1])} is not the log10 of a backoff weight"
        extra = "" if code == FEW else " and no more"
        what = f"{order} word" if order == 1 else f"{order} words"
        return f"expected {what}{extra} after the probability, got {len(tokens) - 1}"

    def _is_known(self, token: bytes) -> bool:
        number = self.spelled.find(token)
        return number > EOS or (number >= 0 and bool(self.present[number]))

    def _define(self, section: _Section, line: int) -> Grams:
        """Make the words, and put the unigrams in the order of their ids."""
        places: dict[bytes, int] = {}
        for row, string in enumerate(section.strings):
            if places.setdefault(string, row) != row:
                self.lines.fail(f"the word {_shown(string)} is there twice", line + row)
            if not is_utf8(string):
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

    def _sorted(self, section: _Section, line: int) -> Grams:
        """The n-grams in suffix order."""
        grams = section.finish()
        if not grams.is_sorted():
            twice = grams.sort(len(self.words))
            if twice is not None:
                words = b" ".join(map(self.words.string, grams.ids[twice].tolist()))
                self.lines.fail(f"the n-gram {_shown(words)} is there twice", line + twice)
        return grams


def _shown(text: bytes) -> str:
    """Something from the file, as a message shows it."""
    shown = repr(text.decode("utf-8", "backslashreplace"))
    return shown if len(shown) <= 100 else shown[:80] + "..." + shown[0]


def _enlarged(array: Array, used: int, shape: tuple[int, ...]) -> Array:
    larger = roomy(shape, array.dtype)
    larger[:used] = array[:used]
    return larger
