"""jieba's words, the dictionary's part by rjieba, which is written in Rust.

Where the best way through the dictionary's words leads, rjieba finds with jieba's own sums of
floats. What jieba does next is done here: letters and digits, and what is in no dictionary. rjieba
would do that, too, but parts ways with jieba there: its hidden Markov model has probabilities of
six places, so that of two nearly equal ways it may take the other, and it cuts letters and digits
next to one of `+#&._%-` differently. It also takes more Han characters for parts of words.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import accumulate
from typing import Any, NamedTuple

from seqtools.text.tokenizers.jieba_hmm import UnknownWords

# The versions that were compared.
_RJIEBA = "0.2.2"
_JIEBA = "0.42.1"

# To rjieba parts of words, to jieba symbols; and what no Rust string can hold.
_SYMBOLS = re.compile("[\u3400-\u4dbf\u9fd6-\u9fff\uf900-\ufaff\U00020000-\U0002ffff\ud800-\udfff]")
_SYMBOL = "\ue000"  # a symbol to both

_LETTERS = frozenset("+#&._%-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
_HAN = re.compile("([\u4e00-\u9fd5]+)")
_NUMBER = re.compile(r"([a-zA-Z0-9]+(?:\.[0-9]+)?%?)")

_REMEMBERED = 1 << 16  # runs, or words
_SHORT = 16  # characters of those that may be met again


class Part(NamedTuple):
    """A word in a longer one, and where in it: `[start, end)`."""

    token: str
    start: int
    end: int


class NativeCutter:
    """Cut text into jieba's words.

    Args:
        jieba: the module, without its dictionary.
        hmm: find words that are in no dictionary.
    """

    def __init__(self, jieba: Any, *, hmm: bool) -> None:
        import rjieba

        self._native = rjieba
        self._runs = _Runs(rjieba, UnknownWords(jieba.finalseg)) if hmm else None
        self._parts = _Parts(rjieba)

    def cut(self, text: str) -> list[str]:
        """The words of `text`, which they are when joined."""
        if _SYMBOLS.search(text) is not None:
            plain = _SYMBOLS.sub(_SYMBOL, text)
            tokens = self._native.cut(plain, False)
            ends = accumulate(map(len, tokens))
            tokens = [text[end - len(token) : end] for token, end in zip(tokens, ends, strict=True)]
        else:
            tokens = self._native.cut(text, False)
        return tokens if self._runs is None else self._runs.cut(tokens)

    def search(self, text: str) -> list[str]:
        """The words, each after the dictionary's words of 2 and 3 characters in it."""
        parts = self._parts
        found: list[str] = []
        for word in self.cut(text):
            if len(word) > 2:
                found += [part.token for part in parts[word]]
            found.append(word)
        return found

    def search_spans(self, text: str) -> Iterator[tuple[str, int, int]]:
        """What `search` gives, with where it stands: `[start, end)`."""
        start = 0
        for word in self.cut(text):
            if len(word) > 2:
                for part in self._parts[word]:
                    yield part.token, start + part.start, start + part.end
            end = start + len(word)
            yield word, start, end
            start = end


class _Runs(dict[str, tuple[str, ...]]):
    """Cuts runs of words that are single characters, and remembers the short ones."""

    def __init__(self, native: Any, unknown: UnknownWords) -> None:
        self._has_word = native.has_word
        self._unknown = unknown

    def cut(self, tokens: list[str]) -> list[str]:
        """The tokens, each run of single characters cut anew."""
        words: list[str] = []
        add = words.append
        run = ""
        for token in tokens:
            if len(token) == 1:
                if "\u4e00" <= token <= "\u9fd5" or token in _LETTERS:
                    run += token
                    continue
            elif token.isascii() and token.isalnum():
                run += token  # letters and digits stand together here, though each is a word
                continue
            if run:
                if len(run) == 1:
                    add(run)
                else:
                    words += self[run]
                run = ""
            add(token)
        if run:
            words += self[run]
        return words

    def __missing__(self, run: str) -> tuple[str, ...]:
        if self._has_word(run):
            words = tuple(run)
        elif len(run.encode()) == 3 * len(run):  # Han alone
            words = tuple(self._unknown.cut(run))
        else:
            words = tuple(self._cut_mixed(run))
        if len(run) <= _SHORT:
            if len(self) == _REMEMBERED:
                self.clear()
            self[run] = words
        return words

    def _cut_mixed(self, run: str) -> Iterator[str]:
        for position, piece in enumerate(_HAN.split(run)):
            if position % 2:
                yield from self._unknown.cut(piece)
            else:
                yield from filter(None, _NUMBER.split(piece))


class _Parts(dict[str, list[Part]]):
    """The dictionary's words in words, remembered."""

    def __init__(self, native: Any) -> None:
        self._has_word = native.has_word

    def __missing__(self, word: str) -> list[Part]:
        parts = [
            Part(word[start : start + width], start, start + width)
            for width in (2, 3)
            if len(word) > width
            for start in range(len(word) - width + 1)
            if self._has_word(word[start : start + width])
        ]
        if len(word) <= _SHORT:
            if len(self) == _REMEMBERED:
                self.clear()
            self[word] = parts
        return parts


def is_proved(jieba: Any) -> bool:
    """Whether this jieba and the rjieba there is were compared; asked of a folder, to be quick."""
    found = find_spec("rjieba")
    if found is None or found.origin is None:
        return False
    packages = os.path.dirname(os.path.dirname(found.origin))
    installed = os.path.isdir(os.path.join(packages, f"rjieba-{_RJIEBA}.dist-info"))
    return installed and jieba.__version__ == _JIEBA
