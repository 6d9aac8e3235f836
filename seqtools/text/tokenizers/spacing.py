"""Where spaces stand between words and symbols: tokens back to text that reads naturally.

Rules of English and German typography, and none between Han or kana. What the tokens do not say is
guessed from their neighbours: which of two equal quotation marks opens, whether an apostrophe ends
a genitive, whether a hyphen is a dash or half of a compound.
"""

from __future__ import annotations

import bisect
import functools
import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

HAN = (
    "\u3005\u3007\u3021-\u3029\u3038-\u303b\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003fffd"
)
"""Han characters, as the inside of a regular expression's class."""

# Han, kana, their punctuation and full-width forms: scripts written without spaces
_CJK = re.compile(rf"[{HAN}\u3000-\u303f\u3040-\u312f\u31f0-\u31ff\uff01-\uff9f\uffe0-\uffe6]")


class _Glue(NamedTuple):
    """Whether a token sticks to the one before it and to the one after it."""

    before: bool
    after: bool


_NONE, _BEFORE, _AFTER, _BOTH = (
    _Glue(before, after)
    for before, after in ((False, False), (True, False), (False, True), (True, True))
)

_SYMBOLS = {
    **dict.fromkeys(".,;:!?)]}%‰…°′″™®”’", _BEFORE),
    **dict.fromkeys("([{¿¡", _AFTER),
    **dict.fromkeys("/\\^", _BOTH),
}
_CURRENCY = "$£€¥₹"
_AND = {"und", "oder", "bzw", "bis", "sowie"}

_S = ("s", "x", "z")  # ends of words whose genitive is an apostrophe alone
_ELIDED = re.compile(r"(?i)\d\ds|tis|twas|twill|em|til")  # what an apostrophe begins

# What opens a quotation, and what may close it.
_QUOTES = {
    '"': ('"',), "'": ("'",), "`": ("'",), "``": ("''", '"'), "''": ("''",),
    "“": ("”", "“"), "‘": ("’",), "„": ("“", "”"), "‚": ("‘", "’"),
    "«": ("»",), "»": ("«",), "‹": ("›",), "›": ("‹",),
}  # fmt: skip


def join_words(tokens: Sequence[str]) -> str:
    """Join words and symbols with a space where one belongs."""
    rules = _Rules(tokens)
    parts = []
    stuck = True  # to what comes next
    for position, token in enumerate(tokens):
        glue = rules.glue(position)
        if not (stuck or glue.before or rules.dense(position)):
            parts.append(" ")
        parts.append(token)
        stuck = glue.after
    return "".join(parts)


class _Rules:
    """How each token of one text sticks to its neighbours; to be asked in order."""

    def __init__(self, tokens: Sequence[str]) -> None:
        self._tokens = tokens
        self._closers: list[tuple[str, ...]] = []  # of the quotations that are open
        self._open: Counter[str] = Counter()  # of how many of them a token is a closer
        asian = sum(_CJK.match(token) is not None for token in tokens)
        # Foreign words in Chinese stand without spaces, Chinese words in a foreign text do not.
        self._asian = asian > 0 and 2 * asian >= sum(map(_is_word, tokens))

    def dense(self, position: int) -> bool:
        """Whether script alone forbids a space between this token and the one before it."""
        before, token = self._tokens[position - 1], self._tokens[position]
        here, there = _CJK.match(token) is not None, _CJK.match(before[-1:]) is not None
        if not self._asian:
            return here and there
        return here or there or not (_is_word(token) or _is_word(before))

    def glue(self, position: int) -> _Glue:
        """The glue of the token at `position`."""
        token = self._tokens[position]
        if _is_word(token):
            return _NONE
        symbol = token[:1]
        if token in _QUOTES or self._open.get(token):
            return self._quote(position)
        if token.strip(
            symbol
        ):  # no run of one symbol: a part cut off by another tokenizer, an emoji
            return _BEFORE if symbol in "'’" and token[1].isalpha() else _NONE
        if symbol in "-–—":
            return self._dash(position)
        if symbol in "#@+°" or symbol in _CURRENCY:
            return self._sign(position)
        return _SYMBOLS.get(symbol, _NONE)

    def _around(self, position: int) -> tuple[str, str]:
        """The tokens before and after, empty strings at the ends."""
        tokens = self._tokens
        return (
            tokens[position - 1] if position else "",
            tokens[position + 1] if position + 1 < len(tokens) else "",
        )

    def _quote(self, position: int) -> _Glue:
        token = self._tokens[position]
        before, after = self._around(position)
        if token in "'’":
            if after in ("s", "S") and before and not _is_word(before):
                return _BOTH  # Inc.'s
            if _ELIDED.fullmatch(after):
                return _AFTER
        if self._open[token]:
            self._close(token)
            return _BEFORE
        close = self._find(_QUOTES[token], position + 1)
        genitive = token == "'" and before.endswith(_S)
        if close and not (genitive and self._tokens[close - 1].endswith(_S)):
            self._closers.append(_QUOTES[token])
            self._open.update(_QUOTES[token])
            return _AFTER
        # Nothing closes it: inches, the genitive of a plural, or letters left out.
        last = position + 1 == len(self._tokens)
        return _BEFORE if genitive or last or before[-1:].isdigit() else _AFTER

    def _close(self, token: str) -> None:
        """End the innermost quotation that the token may close, and those within."""
        while self._open[token]:
            closers = self._closers.pop()
            self._open.subtract(closers)
            if token in closers:
                break

    def _find(self, wanted: Sequence[str], start: int) -> int | None:
        """Position of the first of the tokens `wanted`, from `start` on."""
        found = []
        for token in wanted:
            places = self._places[token]
            next_one = bisect.bisect_left(places, start)
            found += places[next_one : next_one + 1]
        return min(found, default=None)

    @functools.cached_property
    def _places(self) -> dict[str, list[int]]:
        """Where each token that may close a quotation stands."""
        places: dict[str, list[int]] = {token: [] for some in _QUOTES.values() for token in some}
        for position, token in enumerate(self._tokens):
            if token in places:
                places[token].append(position)
        return places

    def _dash(self, position: int) -> _Glue:
        token = self._tokens[position]
        before, after = self._around(position)
        if token == "–" and before[-1:].isdigit() and after[:1].isdigit():
            return _BOTH
        if token == "-" and before and after:
            if _is_word(after) and any(before in closers for closers in _QUOTES.values()):
                return _BOTH
            if _is_word(before) and (after == "," or after.lower() in _AND):
                return _BEFORE
            if before.lower() in _AND and _is_word(after):
                return _AFTER
        return _NONE

    def _sign(self, position: int) -> _Glue:
        token = self._tokens[position]
        before, after = self._around(position)
        if token == "°":
            return _BOTH if after in ("C", "F", "K") else _BEFORE
        if token == "#":
            return _BEFORE if before in ("C", "F") else _AFTER
        if token == "@":
            return _AFTER if after[:1].isalpha() else _NONE
        if token[0] == "+":
            return _BEFORE if len(token) > 1 and _is_word(before) else _NONE
        return _AFTER if after[:1].isdigit() and not before[-1:].isdigit() else _NONE


def _is_word(token: str) -> bool:
    """Whether the token begins with a letter, a digit or an underscore."""
    return token[:1].isalnum() or token[:1] == "_"
