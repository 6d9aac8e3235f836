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
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from importlib.util import find_spec
from itertools import accumulate
from typing import TYPE_CHECKING, Any, TypeVar

from seqtools.text.tokenizers.jieba_hmm import UnknownWords

if TYPE_CHECKING:
    from seqtools.text.tokenizers.jieba_arrays import RunArrays

# The versions that were compared.
_RJIEBA = "0.2.2"
_JIEBA = "0.42.1"

# To rjieba parts of words, to jieba symbols; and what no Rust string can hold.
_SYMBOLS = re.compile("[\u3400-\u4dbf\u9fd6-\u9fff\uf900-\ufaff\U00020000-\U0002ffff\ud800-\udfff]")
SYMBOL = "\ue000"  # a symbol to both

LETTERS = frozenset("+#&._%-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
_HAN = re.compile("([\u4e00-\u9fd5]+)")
_NUMBER = re.compile(r"([a-zA-Z0-9]+(?:\.[0-9]+)?%?)")

_REMEMBERED = 1 << 16  # answers
_SHORT = 16  # characters of what may be asked for again
_MANY = 1 << 16  # tokens, seen so far, that are worth the time to load arrays
_SEVERAL = 1 << 10  # tokens in one call that are worth the use of them

T = TypeVar("T")


class NativeCutter:
    """Cut text into jieba's words of mode precise, which are the text when joined.

    Args:
        jieba: the module, without its dictionary.
        hmm: find words that are in no dictionary.

    Attributes:
        has_word: whether jieba's dictionary has this word.
    """

    def __init__(self, jieba: Any, *, hmm: bool) -> None:
        import rjieba

        self._cut = rjieba.cut
        self.has_word: Callable[[str], bool] = rjieba.has_word
        self._hmm = hmm
        self._seen = 0  # tokens
        self._runs = Runs(self.has_word, UnknownWords(jieba.finalseg))

    def cut(self, text: str) -> list[str]:
        """The words of `text`."""
        if _SYMBOLS.search(text) is not None:
            tokens = self._cut(_SYMBOLS.sub(SYMBOL, text), False)
            ends = accumulate(map(len, tokens))
            tokens = [text[end - len(token) : end] for token, end in zip(tokens, ends, strict=True)]
        else:
            tokens = self._cut(text, False)
        if not self._hmm:
            return tokens
        self._seen += len(tokens)
        alone = self._seen < _MANY or len(tokens) < _SEVERAL
        return self._runs.cut(tokens) if alone else self._arrays.cut(tokens)

    def cut_all(self, texts: Sequence[str]) -> Iterator[list[str]]:
        """The words of each text, which all are cut together."""
        together = SYMBOL.join(texts)
        if together.count(SYMBOL) != len(texts) - 1:  # they have it themselves
            yield from map(self.cut, texts)
            return
        words = [*self.cut(together), SYMBOL]
        start = 0
        for _ in texts:
            end = words.index(SYMBOL, start)
            yield words[start:end]
            start = end + 1

    @cached_property
    def _arrays(self) -> RunArrays:
        from seqtools.text.tokenizers.jieba_arrays import RunArrays

        return RunArrays(self._runs)


class Runs(dict[str, tuple[str, ...]]):
    """Cuts runs of words that are single characters, and remembers the short ones.

    Attributes:
        has_word: whether the dictionary has a word.
        unknown: cuts Han characters.
    """

    def __init__(self, has_word: Callable[[str], bool], unknown: UnknownWords) -> None:
        self.has_word = has_word
        self.unknown = unknown

    def cut(self, tokens: list[str]) -> list[str]:
        """The tokens, each run of single characters cut anew."""
        words: list[str] = []
        add = words.append
        run = ""
        for token in tokens:
            if len(token) == 1:
                if "\u4e00" <= token <= "\u9fd5" or token in LETTERS:
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
        if self.has_word(run):
            words = tuple(run)
        elif len(run.encode()) == 3 * len(run):  # Han alone
            words = tuple(self.unknown.cut(run))
        else:
            words = tuple(self._cut_mixed(run))
        return remember(self, run, words)

    def _cut_mixed(self, run: str) -> Iterator[str]:
        for position, piece in enumerate(_HAN.split(run)):
            yield from self.unknown.cut(piece) if position % 2 else cut_letters(piece)


def cut_letters(piece: str) -> list[str]:
    """Numbers and words among ASCII letters, digits and `+#&._%-`, and what is between them."""
    return [token for token in _NUMBER.split(piece) if token]


def remember(answers: dict[str, T], question: str, answer: T) -> T:
    """Put the answer in, where it is one that may be asked for again, and give it."""
    if len(question) <= _SHORT:
        if len(answers) == _REMEMBERED:
            answers.clear()
        answers[question] = answer
    return answer


def is_proved(jieba: Any) -> bool:
    """Whether this jieba and the rjieba there is were compared; asked of a folder, to be quick."""
    found = find_spec("rjieba")
    if found is None or found.origin is None:
        return False
    packages = os.path.dirname(os.path.dirname(found.origin))
    installed = os.path.isdir(os.path.join(packages, f"rjieba-{_RJIEBA}.dist-info"))
    return installed and jieba.__version__ == _JIEBA
