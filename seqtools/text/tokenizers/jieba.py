"""Chinese words by jieba: a dictionary, and a hidden Markov model for words that are not in it.

`precise` cuts the text once; `search` adds shorter words of the dictionary before each long one;
`full` lists every word of the dictionary that the text holds. Parts of speech come from jieba's
posseg, whose segmentation is its own and differs from `precise`.

All tokens are those of jieba 0.42.1, whichever engine finds them: jieba itself, or, several times
faster, rjieba with what `jieba_native` adds to it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, Literal

from seqtools.errors import ConfigError, FormatError
from seqtools.streams.files import read_blocks
from seqtools.text.normalize import Offsets
from seqtools.text.tokenizers import jieba_dictionary
from seqtools.text.tokenizers.jieba_native import NativeCutter, is_proved, remember

Mode = Literal["precise", "full", "search"]
Engine = Literal["auto", "jieba"]

_Span = tuple[str, int, int]  # token, and where it stands: [start, end)

_ALNUM = re.compile(r"[a-zA-Z0-9]")


class JiebaTokenizer:
    """Split Chinese text into words.

    Args:
        mode: see above.
        hmm: find words that are in no dictionary; `full` never does.
        user_dict: paths of dictionaries, lines of `word [count] [tag]`.
        pos: be ready to `tag`.
        keep_space: white space makes tokens, too.
        engine: `jieba`, or `auto`: rjieba where it can do what is asked for, which is the modes
            precise and search with jieba's own dictionary, and where both are of the versions that
            were compared, 0.2.2 and 0.42.1; jieba otherwise. The tokens are the same.

    Attributes:
        unmatchable: for each user dictionary, line number and word of the entries that can never be
            found, because jieba joins only Han characters (U+4E00 to U+9FD5), ASCII letters and
            digits, and `+#&._%-` (with `pos` only `+#&._`) into words.

    Raises:
        ConfigError: a user dictionary cannot be opened.
        FormatError: a user dictionary is not UTF-8.
    """

    def __init__(
        self,
        *,
        mode: Mode = "precise",
        hmm: bool = True,
        user_dict: Sequence[str] = (),
        pos: bool = False,
        keep_space: bool = False,
        engine: Engine = "auto",
    ) -> None:
        self._mode = mode
        self._hmm = hmm
        self._keep_space = keep_space
        self._jieba = jieba_dictionary.load()
        able = engine == "auto" and mode != "full" and not pos and not user_dict
        proved = able and is_proved(self._jieba)
        self._native = NativeCutter(self._jieba, hmm=hmm) if proved else None
        has_word = self._cutter.FREQ.get if self._native is None else self._native.has_word
        self._inner = _InnerWords(has_word)
        self._tagger = _tagger(self._cutter) if pos else None
        joined = self._jieba.posseg.re_han_internal if pos else self._jieba.re_han_default
        self.unmatchable = {path: list(self._learn(path, joined)) for path in user_dict}

    @cached_property
    def _cutter(self) -> Any:
        """jieba's own tokenizer, with the dictionary."""
        cutter = self._jieba.Tokenizer()
        cutter.FREQ, cutter.total = jieba_dictionary.words(self._jieba)
        cutter.initialized = True
        return cutter

    def tokenize(self, text: str) -> list[str]:
        """The words of `text`."""
        return self._tokens(text, self._words(text))

    def tokenize_all(self, texts: Sequence[str]) -> list[list[str]]:
        """The words of each text; quicker than one by one."""
        return list(map(self._tokens, texts, self._words_all(texts)))

    def spans(self, text: str) -> tuple[list[str], Offsets]:
        """The words and where they stand; with `full` and `search` they overlap."""
        return self._placed(text, self._words(text))

    def spans_all(self, texts: Sequence[str]) -> list[tuple[list[str], Offsets]]:
        """The words of each text and where they stand; quicker than one by one."""
        return list(map(self._placed, texts, self._words_all(texts)))

    def tag(self, text: str) -> tuple[list[str], list[str]]:
        """The words of `text` and the part of speech of each, by posseg."""
        assert self._tagger is not None, "made without pos"
        pairs = [pair for pair in self._tagger.cut(text, HMM=self._hmm) if self._wanted(pair.word)]
        return [pair.word for pair in pairs], [pair.flag for pair in pairs]

    def join(self, tokens: Sequence[str]) -> str:
        """The tokens with nothing between them.

        Raises:
            ConfigError: the tokens overlap, as those of `full` and `search` do.
        """
        if self._mode != "precise":
            raise ConfigError(f"the tokens of mode {self._mode} overlap and do not make a text")
        return "".join(tokens)

    def join_all(self, texts: Sequence[Sequence[str]]) -> list[str]:
        """Each list of tokens joined; see `join`."""
        return list(map(self.join, texts))

    def look_back(self, texts: Sequence[Sequence[str]]) -> list[tuple[str, int]]:
        """The same, each with how many tokens are unknown, which here is none."""
        return [(text, 0) for text in self.join_all(texts)]

    def _words(self, text: str) -> Iterable[str]:
        if self._native is not None:
            return self._native.cut(text)
        return self._cutter.cut(text, cut_all=self._mode == "full", HMM=self._hmm)  # type: ignore[no-any-return]

    def _words_all(self, texts: Sequence[str]) -> Iterable[Iterable[str]]:
        return map(self._words, texts) if self._native is None else self._native.cut_all(texts)

    def _tokens(self, text: str, words: Iterable[str]) -> list[str]:
        tokens = self._searched(words) if self._mode == "search" else list(words)
        if self._mode == "full":
            return list(filter(self._wanted, tokens))
        if self._keep_space or not _has_space(text):
            return tokens
        return [token for token in tokens if not token.isspace()]

    def _placed(self, text: str, words: Iterable[str]) -> tuple[list[str], Offsets]:
        spans = self._full_spans(text) if self._mode == "full" else self._spans(words)
        found = [span for span in spans if self._wanted(span[0])]
        return [token for token, _, _ in found], [(start, end) for _, start, end in found]

    def _wanted(self, token: str) -> bool:
        # In mode full jieba gives empty tokens round white space.
        return bool(token) and (self._keep_space or not token.isspace())

    def _searched(self, words: Iterable[str]) -> list[str]:
        tokens: list[str] = []
        for word in words:
            if len(word) > 2:
                tokens += [token for token, _ in self._inner[word]]
            tokens.append(word)
        return tokens

    def _spans(self, words: Iterable[str]) -> Iterator[_Span]:
        start = 0
        for word in words:
            if self._mode == "search" and len(word) > 2:
                for token, place in self._inner[word]:
                    yield token, start + place, start + place + len(token)
            end = start + len(word)
            yield word, start, end
            start = end

    def _full_spans(self, text: str) -> Iterator[_Span]:
        """What jieba's `cut_all` gives, with the places that it does not tell."""
        start = 0
        for block in self._jieba.re_han_default.split(text):
            if self._jieba.re_han_default.match(block):
                for first, end in self._full_block(block):
                    yield block[first:end], start + first, start + end
                start += len(block)
            else:
                for part in self._jieba.re_skip_default.split(block):
                    yield part, start, start + len(part)
                    start += len(part)

    def _full_block(self, block: str) -> Iterator[tuple[int, int]]:
        covered = -1  # position of the last character that a word has
        run: tuple[int, int] | None = None  # letters and digits outside of words
        for first, lasts in self._cutter.get_DAG(block).items():
            if run and not _ALNUM.match(block[first]):
                yield run
                run = None
            if len(lasts) == 1 and first > covered:
                (covered,) = lasts
                if _ALNUM.match(block[first]):
                    run = (run[0] if run else first, covered + 1)
                elif run is None:
                    yield first, covered + 1
            else:
                for last in lasts:
                    if last > first:
                        yield first, last + 1
                        covered = last
        if run:
            yield run

    def _learn(self, path: str, joined: re.Pattern[str]) -> Iterator[tuple[int, str]]:
        """Add the words of a user dictionary, and yield those that can never be found."""
        lines = b"".join(block.data for block in read_blocks([path])).split(b"\n")
        for number, raw in enumerate(lines, start=1):
            try:
                line = raw.decode("utf-8").strip()
            except UnicodeDecodeError:
                raise FormatError(f"{path}:{number}: not UTF-8") from None
            if not line:
                continue
            word, count, tag = self._jieba.re_userdict.match(line).groups()
            self._cutter.add_word(word, count and count.strip(), tag and tag.strip())
            if not joined.fullmatch(word):
                yield number, word


class _InnerWords(dict[str, list[tuple[str, int]]]):
    """The dictionary's words of two and three characters in a longer one, and where they begin."""

    def __init__(self, has_word: Callable[[str], object]) -> None:
        self._has_word = has_word

    def __missing__(self, word: str) -> list[tuple[str, int]]:
        inner = [
            (word[place : place + size], place)
            for size in (2, 3)
            if len(word) > size
            for place in range(len(word) - size + 1)
            if self._has_word(word[place : place + size])
        ]
        return remember(self, word, inner)


def _has_space(text: str) -> bool:
    """Whether there may be white space, none of which but the space is called printable."""
    return " " in text or not text.isprintable()


def _tagger(cutter: Any) -> Any:
    """A tagger on top of `cutter`; its table of tags is read by the module itself, only once."""
    from jieba import posseg

    tagger = posseg.POSTokenizer.__new__(posseg.POSTokenizer)
    tagger.tokenizer = cutter
    tagger.word_tag_tab = dict(posseg.dt.word_tag_tab)
    return tagger
