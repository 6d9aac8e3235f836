"""Words, numbers and symbols of running text; nothing but white space is ever left out.

- A run of letters, digits and underscores is one token, together with the marks and joiners that
  belong to its letters (so `café` is one token in either normal form, and so is `हिन्दी`).
- Inside a word stay `'`, `-`, `&` and `@` (`don't`, `T-shirt`, `Q&A`, `me@home`), and a point
  before a small letter or between single letters (`node.js`, `U.S`).
- Inside a number stay point, comma and colon (`3.14`, `1,000`, `12:30`), before it a sign (`-5`).
- Each Han character is a token.
- An emoji with all its parts is one token: skin tone, variation selector, U+200D sequence, flag.
- A run of one symbol (`...`, `--`) is one token, any other symbol is one.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence

import orjson

from seqtools.text.normalize import Offsets
from seqtools.text.tokenizers import json_list, locate
from seqtools.text.tokenizers.spacing import HAN, join_words

_TONES = "\U0001f3fb-\U0001f3ff"  # symbols that colour the emoji before them
_FLAGS = "\U0001f1e6-\U0001f1ff"  # regional indicators, two to a flag
_SEPARATORS = "\u200b\ufeff"  # format characters that belong to no letter
_OFTEN = (*map(chr, range(0x300, 0x370)), "\u200c", "\u200d", "\ufe0f")
_LONGEST = 32  # characters of text between white space that is remembered
_MOST = 1 << 16
_SYMBOL = re.compile(r"[^\w\s\x00-\x7f]")


def _ascii_pattern(space: str) -> re.Pattern[str]:
    """What `_pattern` finds, for text of ASCII alone."""
    inner = r"['&@-](?=\w)|(?<=\d)[.,:](?=\d)|\.(?=[a-z])|(?<=\b[a-zA-Z])\.(?=[a-zA-Z]\b)"
    return re.compile(rf"((?:-(?<!\S.)(?=\d))?\w+(?:(?:{inner})\w+)*|([^\w\s])\2*{space})")


def _pattern(marks: Iterable[str], space: str) -> re.Pattern[str]:
    """A token, as group 1.

    Args:
        marks: characters that belong to the one before them.
        space: an alternative for white space, or nothing.
    """
    mark = "".join(sorted(marks))
    letter = rf"[^\W{HAN}]"
    word = rf"{letter}+(?:[{mark}]+{letter}*)*"
    single = r"[^\W\d_]"
    inner = (
        rf"['’‐‑&@-](?={letter})|(?<=\d)[.,:](?=\d)|\.(?=[a-zß-öø-ÿ])"
        rf"|(?<=(?<![\w{mark}]){single})\.(?={single}(?![\w{mark}]))"
    )
    part = f"[{mark}{_TONES}]"
    return re.compile(
        rf"((?:[-−](?<!\S.)(?=\d))?{word}(?:(?:{inner}){word})*"
        rf"|[{HAN}][{mark}]*"
        rf"|[{_FLAGS}]{{2}}"
        rf"|[^\w\s]{part}+(?:(?<=\u200d)[^\w\s]{part}*)*"
        rf"|([^\w\s])\2*(?!{part}){space})"
    )


class WordTokenizer:
    """Split into words, numbers and symbols.

    Args:
        keep_space: each run of white space is a token, too.
    """

    json_from = 0

    def __init__(self, *, keep_space: bool = False) -> None:
        self._keep_space = keep_space
        self._space = r"|\s+" if keep_space else ""
        self._ascii = _ascii_pattern(self._space)
        # A class with the marks of all scripts takes long to make: ours grows by those it meets.
        self._marks: set[str] = set()
        self._met: set[str] = set()
        self._pattern: re.Pattern[str] | None = None
        self._parts = _Encoded(self._finder)

    def tokenize(self, text: str) -> list[str]:
        """Words, numbers and symbols; joined they are the text without its white space."""
        find = self._finder(text)
        if self._keep_space:
            return find(text)
        tokens: list[str] = []
        for part in text.split():  # no token has white space, and no rule looks across it
            if part.isalnum() and part.isascii():  # most are
                tokens.append(part)
            elif part[:-1].isalnum() and part[-1] != "_" and part.isascii():  # nearly all others
                tokens += part[:-1], part[-1]
            else:
                tokens += find(part)
        return tokens

    def to_json(self, text: str) -> str | bytes:
        """The tokens as a JSON list."""
        parts = () if self._keep_space else text.split()
        if not parts:
            return orjson.dumps(self.tokenize(text))
        return json_list(map(self._parts.__getitem__, parts))

    def _finder(self, text: str) -> Callable[[str], list[str]]:
        """What finds the tokens of a text and of its parts."""
        find = (self._ascii if text.isascii() else self._pattern_for(text)).findall
        return lambda part: [found[0] for found in find(part)]

    def _pattern_for(self, text: str) -> re.Pattern[str]:
        new = set(_SYMBOL.findall(text)) - self._met
        if self._pattern is None:
            new.update(_OFTEN)
        if new:
            self._met |= new
            marks = {symbol for symbol in new if _is_mark(symbol)}
            if marks:
                self._marks |= marks
                self._pattern = _pattern(self._marks, self._space)
        assert self._pattern is not None
        return self._pattern

    def spans(self, text: str) -> tuple[list[str], Offsets]:
        """The tokens and where they stand."""
        tokens = self.tokenize(text)
        return tokens, locate(text, tokens)

    def join(self, tokens: Sequence[str]) -> str:
        """Readable text: see `join_words`."""
        return "".join(tokens) if self._keep_space else join_words(tokens)


class _Encoded(dict[str, str]):
    """The tokens of a text without white space as JSON, but for the list's own ends.

    Few words make up most of a text, and they come early, so what is found first is kept.
    """

    def __init__(self, finder: Callable[[str], Callable[[str], list[str]]]) -> None:
        self._finder = finder

    def __missing__(self, part: str) -> str:
        if part.isalnum() and part.isascii():  # most are a token, and JSON writes it as it is
            made = part
        else:
            made = orjson.dumps(self._finder(part)(part)).decode()[2:-2]
        if len(part) <= _LONGEST and len(self) < _MOST:
            self[part] = made
        return made


def _is_mark(symbol: str) -> bool:
    """Whether the character belongs to the one before it, as combining marks and joiners do."""
    category = unicodedata.category(symbol)
    return category[0] == "M" or (category == "Cf" and symbol not in _SEPARATORS)
