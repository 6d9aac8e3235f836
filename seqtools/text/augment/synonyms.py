"""A dictionary of synonyms, from a file of lines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from seqtools.errors import FormatError, InputError, RecordError
from seqtools.streams.files import WHOLE, chomp, read_blocks
from seqtools.text.convert import read_text

Pieces = tuple[str, ...]
_CILIN = re.compile(r"[A-Z][a-z]\d\d[A-Z]\d\d([=#@])\s")  # Aa01A01=


class Synonyms:
    """What may stand in the place of a token.

    Args:
        groups: each of words that mean the same.
        entries: a word, and what may stand in its place (but not the other way round).
    """

    def __init__(
        self,
        groups: Iterable[Iterable[str]] = (),
        entries: Iterable[tuple[str, Iterable[str]]] = (),
    ) -> None:
        self._lists: dict[str, list[tuple[str, ...]]] = {}
        self._found: dict[str, list[Pieces]] = {}
        for group in groups:
            words = tuple(group)
            for word in words:
                self._lists.setdefault(word, []).append(words)
        for word, others in entries:
            self._lists.setdefault(word, []).append(tuple(others))

    @classmethod
    def read(cls, path: str) -> Synonyms:
        """Read a file of lines `word<TAB>synonym synonym`, or, without a tab, `word word word`.

        The words of a line without a tab are synonyms of each other. A word that stands in several
        lines has the synonyms of all. A `_` parts the tokens of a synonym: `living_thing`. Lines
        that begin with a code of Cilin are read as such: of `Aa01A01=` they are synonyms, of `#`
        words of one kind and of `@` a word alone, which are left out.

        Raises:
            ConfigError: it cannot be opened.
            InputError: a line is not UTF-8, or has a second tab.
            FormatError: it has no synonym at all.
        """
        groups: list[list[str]] = []
        entries: list[tuple[str, list[str]]] = []
        for line, text in read_lines(path):
            code = _CILIN.match(text)
            if code is not None:
                if code[1] == "=":
                    groups.append(text[code.end() :].split())
                continue
            word, tab, rest = text.partition("\t")
            if "\t" in rest:
                raise InputError(
                    path, line, "more than one tab: word<TAB>synonym synonym is wanted"
                )
            if tab:
                entries.append((word.strip(), rest.split()))
            else:
                groups.append(text.split())
        if not any(len(group) > 1 for group in groups) and not any(rest for _, rest in entries):
            raise FormatError(f"{path}: no synonyms in it")
        return cls(groups, entries)

    def of(self, token: str) -> list[Pieces]:
        """What may stand for the token, each as its tokens; never the token itself.

        A token that is not there is looked up in lower case, and the case is then put back: of
        `Quick`, with `quick<TAB>fast`, `Fast`.
        """
        found = self._found.get(token)
        if found is None:
            found = self._look_up(token)
            if found:  # of the others there is no end
                self._found[token] = found
        return found

    def _look_up(self, token: str) -> list[Pieces]:
        lower = token.lower()
        exact = token in self._lists
        words = dict.fromkeys(
            word for words in self._lists.get(token if exact else lower, ()) for word in words
        )
        pieces = (tuple(filter(None, word.split("_"))) or (word,) for word in words)
        cased = pieces if exact else (match_case(token, each) for each in pieces)
        return [each for each in dict.fromkeys(cased) if each != (token,)]


def match_case(token: str, pieces: Pieces) -> Pieces:
    """The pieces in capitals, or with a capital, where the token is so.

    >>> match_case("BIG", ("rather", "large"))
    ('RATHER', 'LARGE')
    """
    if token.isupper() and len(token) > 1:
        return tuple(piece.upper() for piece in pieces)
    if token[:1].isupper():
        return (pieces[0][:1].upper() + pieces[0][1:], *pieces[1:])
    return pieces


def read_stopwords(path: str) -> frozenset[str]:
    """Read the words of a file, one a line, in lower case.

    Raises:
        ConfigError: it cannot be opened.
        InputError: a line is not UTF-8.
    """
    return frozenset(text.strip().lower() for _, text in read_lines(path))


def read_lines(path: str) -> Iterator[tuple[int, str]]:
    """The lines of a file that are not blank, with their numbers.

    Raises:
        ConfigError: it cannot be opened.
        InputError: one is not UTF-8.
    """
    for block in read_blocks([path]):
        for line, _, raw in block.raw_lines(WHOLE, 1):
            try:
                yield line, read_text(chomp(raw))["text"]
            except RecordError as error:
                raise InputError(path, line, str(error)) from None
