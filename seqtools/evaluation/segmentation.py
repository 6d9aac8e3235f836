"""How well text was cut into words, as the bakeoffs of Chinese word segmentation score it."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Any

from seqtools.errors import FormatError, InputError, RecordError
from seqtools.evaluation.pairs import get_values, read_values
from seqtools.streams.files import Place
from seqtools.streams.records import Record, get_text, loads
from seqtools.text.convert import read_text

Span = tuple[int, int]
_SHOWN = 10  # characters
_COUNTED = re.compile(r"\s*(?P<word>[^\t]*[^\t ](?=\t)|[^\s]+)[\t ]+[0-9]+([\t ]+\S+)?\s*")


class Segmentation:
    """Precision, recall and F1 of words; with training words, recall of unknown and known ones.

    A word of the output is right if the reference has a word at the same place, from the same
    character to the same, as in the bakeoffs (Sproat and Emerson 2003; Emerson 2005). White space
    does not count: places are those of the other characters, and tokens of white space alone are no
    words. The bakeoffs' script `score` lines words up with `diff`, which may pair equal words of
    different places and miss others: on their PKU and MSR texts its F1 differs by about 0.0001.

    Args:
        words: those of the training data, without white space, or None where they are not known.
        lowercase: compare without case (by case folding, which goes character by character).
    """

    def __init__(self, words: frozenset[str] | None = None, *, lowercase: bool = False) -> None:
        self._lowercase = lowercase
        self._words = words
        if words is not None and lowercase:
            self._words = frozenset(word.casefold() for word in words)
        self._correct = self._guessed = self._total = self._records = 0
        self._unknown = self._unknown_correct = 0

    def add(self, hypothesis: Sequence[str], references: Sequence[Sequence[str]]) -> None:
        """Count one text, which has exactly one reference; both are lists of tokens.

        Raises:
            RecordError: they are not the same text.
        """
        (reference,) = references
        guesses, words = self._bare(hypothesis), self._bare(reference)
        _check_same("".join(guesses), "".join(words))
        found = set(_spans(guesses))
        right = [span in found for span in _spans(words)]
        self._guessed += len(guesses)
        self._total += len(words)
        self._correct += sum(right)
        if self._words is not None:
            unknown = [
                hit for word, hit in zip(words, right, strict=True) if word not in self._words
            ]
            self._unknown += len(unknown)
            self._unknown_correct += sum(unknown)
        self._records += 1

    def advice(self) -> str | None:
        """What to say where none of the words is known, as with a list of something else."""
        if not self._words or not 0 < self._total == self._unknown:
            return None
        return (
            "no word of the references is among the known ones, so all count as unknown"
            " (--words wants one a line)"
        )

    def result(self) -> dict[str, Any]:
        """`score` is F1, 2 correct / (guessed + total), as all shares from 0 to 1.

        `total` counts the words of the references, `guessed` those of the outputs. With training
        words, `oov` of the former are not among these, and `oov_recall` and `iv_recall` are the
        shares of them and of the others that were found; a share of none is left out.

        Raises:
            RecordError: the references have no word, so there is no share.
        """
        correct, guessed, total = self._correct, self._guessed, self._total
        if not total:
            raise RecordError("no reference has a word, so there is no score")
        found: dict[str, Any] = {"metric": "segmentation", "score": 2 * correct / (guessed + total)}
        if self._lowercase:  # a score says how it was made
            found["lowercase"] = True
        found |= {
            "precision": correct / guessed,
            "recall": correct / total,
            "correct": correct,
            "guessed": guessed,
            "total": total,
            "records": self._records,
        }
        if self._words is not None:
            unknown, known = self._unknown, total - self._unknown
            found |= {"oov": unknown, "oov_rate": unknown / total}
            if unknown:
                found["oov_recall"] = self._unknown_correct / unknown
            if known:
                found["iv_recall"] = (correct - self._unknown_correct) / known
        return found

    def _bare(self, tokens: Sequence[str]) -> list[str]:
        """The words, without white space."""
        if self._lowercase:
            tokens = [token.casefold() for token in tokens]
        return [word for word in map(_without_space, tokens) if word]


def _without_space(token: str) -> str:
    return "".join(token.split())


def _spans(words: Sequence[str]) -> Iterator[Span]:
    """Start and end of every word, in characters from the text's start."""
    end = 0
    for word in words:
        start, end = end, end + len(word)
        yield start, end


def _check_same(output: str, reference: str) -> None:
    """RecordError where two texts differ, with the place (characters but white space, from 1)."""
    if output == reference:
        return
    pairs = zip(output, reference, strict=False)
    shorter = min(len(output), len(reference))
    place = next((at for at, (a, b) in enumerate(pairs) if a != b), shorter)
    here, there = (_excerpt(text, place) for text in (output, reference))
    raise RecordError(
        f"the output is not the text of its reference: at character {place + 1}, without white "
        f"space, it has {here}, the reference {there}"
    )


def _excerpt(text: str, start: int) -> str:
    """What stands there, as a message shows it."""
    return repr(text[start : start + _SHOWN]) if start < len(text) else "nothing"


def get_words(record: Record, field: str) -> list[str]:
    """The field as a list of words; a string is cut at white space.

    Raises:
        RecordError: it is missing or something else.
    """
    value = get_values(record, field)
    return value.split() if isinstance(value, str) else value


def read_words(path: str) -> frozenset[str]:
    """The words of a file, without white space: one a line, or a vocabulary's tokens.

    Where each line is a word and a count, and maybe a third column (as in jieba's dictionaries),
    parted by tabs or blanks, the first column is taken. A file whose first line is an object is a
    vocabulary; specials are no words.

    Raises:
        ConfigError: the file cannot be opened.
        InputError: a line is not UTF-8, is no entry of a vocabulary, or has a tab where not all
            have a count.
        FormatError: there is no word, or a compressed file is damaged.
    """
    lines = read_values(path, itemgetter("text"), parse=read_text)
    first = next(lines, None)
    if first is None:
        raise FormatError(f"{path}: no words in it")
    read = _entries if _is_object(first[1]) else _listed
    words = frozenset(read(itertools.chain((first,), lines))) - {""}
    if not words:
        raise FormatError(f"{path}: no words in it")
    return words


def _entries(lines: Iterable[tuple[Place, str]]) -> Iterator[str]:
    """The tokens of a vocabulary; of a special none."""
    for place, line in lines:
        try:
            entry = loads(line.encode())
            if "token" not in entry:
                raise RecordError('no vocabulary entry, which has "token", and no word')
            yield "" if "special" in entry else _without_space(get_text(entry, "token"))
        except RecordError as error:
            raise InputError(place.source, place.line, str(error)) from None


def _listed(lines: Iterable[tuple[Place, str]]) -> set[str]:
    """The words of lines; the first columns where all lines have a count for the second."""
    words, columns = set(), set()
    counted = True
    tab: Place | None = None
    for place, line in lines:
        words.add(_without_space(line))
        if tab is None and "\t" in line.strip():
            tab = place
        counted = counted and (found := _COUNTED.fullmatch(line)) is not None
        if counted and found is not None:
            columns.add(_without_space(found["word"]))
    if counted:
        return columns
    if tab is not None:
        raise InputError(
            tab.source,
            tab.line,
            "a tab in a list of words: one word a line is wanted, or in each line a word, a tab and"
            " a count (cut -f 1 leaves the first column)",
        )
    return words


def _is_object(line: str) -> bool:
    try:
        loads(line.encode())
    except RecordError:
        return False
    return True
