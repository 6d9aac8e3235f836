"""What a tokenizer is, and the table of those there are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, runtime_checkable

from seqtools.text.normalize import Offsets

_BETWEEN = '","'

TOKENIZERS = {
    "whitespace": "seqtools.text.tokenizers.whitespace:WhitespaceTokenizer",
    "word": "seqtools.text.tokenizers.word:WordTokenizer",
    "char": "seqtools.text.tokenizers.char:CharTokenizer",
    "byte": "seqtools.text.tokenizers.byte:ByteTokenizer",
    "jieba": "seqtools.text.tokenizers.jieba:JiebaTokenizer",
}
"""Name to class, for `seqtools.lazy.lookup`."""


class Tokenizer(Protocol):
    """Text to tokens and back.

    Tokens of white space alone are left out unless the tokenizer was made with `keep_space`; then
    the tokens joined are the text, and `join` is exact. Bytes have no such choice: all are kept.
    """

    def tokenize(self, text: str) -> list[str]:
        """The tokens of `text`, none of them empty."""

    def spans(self, text: str) -> tuple[list[str], Offsets]:
        """The tokens of `text` and where each stands in it: `[start, end)` in code points."""

    def join(self, tokens: Sequence[str]) -> str:
        """Text that has these tokens, as a person would write it.

        Raises:
            ConfigError: the tokens of this tokenizer do not say how the text was.
            RecordError: these tokens do not.
        """


@runtime_checkable
class JsonTokenizer(Tokenizer, Protocol):
    """A tokenizer that has a quicker way to JSON than by a string for each token.

    Attributes:
        json_from: of how many characters a text must be for that to be quicker.
    """

    json_from: int

    def to_json(self, text: str) -> str | bytes:
        """The tokens of `text` as a JSON list, as orjson writes it."""


def json_list(parts: Iterable[str]) -> str:
    """A JSON list of strings, at least one, that are JSON already but for their quotes."""
    return f'["{_BETWEEN.join(parts)}"]'


def locate(text: str, tokens: Iterable[str]) -> Offsets:
    """Offsets of tokens that follow each other with nothing but white space between them."""
    offsets = []
    end = 0
    for token in tokens:
        start = text.index(token, end)
        end = start + len(token)
        offsets.append((start, end))
    return offsets
