"""Chinese words by jieba: a dictionary, and a hidden Markov model for words that are not in it.

`precise` cuts the text once; `search` adds shorter words of the dictionary before each long one;
`full` lists every word of the dictionary that the text holds. Parts of speech come from jieba's
posseg, whose segmentation is its own and differs from `precise`.
"""

from __future__ import annotations

import contextlib
import marshal
import os
import re
import stat
import sys
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, Literal

from seqtools.errors import ConfigError, FormatError
from seqtools.streams.files import read_blocks
from seqtools.text.normalize import Offsets
from seqtools.text.tokenizers import locate

Mode = Literal["precise", "full", "search"]

_Words = tuple[
    dict[str, int], int
]  # count of each word and of each beginning of one (0), and total
_ALNUM = re.compile(r"[a-zA-Z0-9]")


class JiebaTokenizer:
    """Split Chinese text into words.

    Args:
        mode: see above.
        hmm: find words that are in no dictionary; `full` never does.
        user_dict: paths of dictionaries, lines of `word [count] [tag]`.
        pos: be ready to `tag`.
        keep_space: white space makes tokens, too.

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
    ) -> None:
        self._mode = mode
        self._hmm = hmm
        self._keep_space = keep_space
        self._jieba = _load()
        self._cutter = self._jieba.Tokenizer()
        self._cutter.FREQ, self._cutter.total = _words(self._jieba)
        self._cutter.initialized = True
        self._tagger = _tagger(self._cutter) if pos else None
        joined = self._jieba.posseg.re_han_internal if pos else self._jieba.re_han_default
        self.unmatchable = {path: list(self._learn(path, joined)) for path in user_dict}

    def tokenize(self, text: str) -> list[str]:
        """The words of `text`."""
        return [token for token in self._cut(text) if self._wanted(token)]

    def spans(self, text: str) -> tuple[list[str], Offsets]:
        """The words and where they stand; with `full` and `search` they overlap."""
        if self._mode == "full":
            spans = self._full_spans(text)
        elif self._mode == "search":
            spans = self._cutter.tokenize(text, mode="search", HMM=self._hmm)
        else:
            tokens = self.tokenize(text)
            return tokens, locate(text, tokens)
        found = [span for span in spans if self._wanted(span[0])]
        return [token for token, _, _ in found], [(start, end) for _, start, end in found]

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

    def _wanted(self, token: str) -> bool:
        # In mode full jieba gives empty tokens round white space.
        return bool(token) and (self._keep_space or not token.isspace())

    def _cut(self, text: str) -> Iterator[str]:
        if self._mode == "search":
            return self._cutter.cut_for_search(text, HMM=self._hmm)  # type: ignore[no-any-return]
        full = self._mode == "full"
        return self._cutter.cut(text, cut_all=full, HMM=self._hmm)  # type: ignore[no-any-return]

    def _full_spans(self, text: str) -> Iterator[tuple[str, int, int]]:
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


def _load() -> Any:
    """The module jieba, without what it has to say."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Where there is a pkg_resources jieba would load it, slowly, only to find its dictionary.
        known = sys.modules.get("pkg_resources")
        sys.modules["pkg_resources"] = None  # type: ignore[assignment]
        try:
            import jieba
        finally:
            del sys.modules["pkg_resources"]
            if known is not None:
                sys.modules["pkg_resources"] = known
    jieba.setLogLevel(100)  # above CRITICAL
    return jieba


def _tagger(cutter: Any) -> Any:
    """A tagger on top of `cutter`; its table of tags is read by the module itself, only once."""
    from jieba import posseg

    tagger = posseg.POSTokenizer.__new__(posseg.POSTokenizer)
    tagger.tokenizer = cutter
    tagger.word_tag_tab = dict(posseg.dt.word_tag_tab)
    return tagger


def _words(jieba: Any) -> _Words:
    """jieba's own dictionary, from a cache of the user's where there is one.

    jieba's cache is in the folder for temporary files, which all users share, and it is slower.
    """
    path = _cache_path(f"jieba-{jieba.__version__}.{sys.implementation.cache_tag}")
    if path is not None:
        with contextlib.suppress(OSError, ValueError, EOFError, TypeError):
            with open(path, "rb") as file:
                counts, total = marshal.loads(file.read())
            return counts, total
    words: _Words = jieba.Tokenizer.gen_pfdict(jieba.Tokenizer().get_dict_file())
    if path is not None:
        _write(path, marshal.dumps(words))
    return words


def _cache_path(name: str) -> str | None:
    """A path in our cache folder, or None where that cannot be used or is not ours alone."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    folder = os.path.join(base, "seqtools")
    if not os.path.isabs(folder):
        return None
    try:
        os.makedirs(base, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            os.mkdir(folder, 0o700)
        status = os.stat(folder)
    except OSError:
        return None
    ours = status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return os.path.join(folder, name) if ours else None


def _write(path: str, data: bytes) -> None:
    """Put the file in place whole, or leave it."""
    temporary = f"{path}.{os.getpid()}.tmp"
    with contextlib.suppress(OSError):
        try:
            with open(temporary, "xb") as file:
                file.write(data)
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
