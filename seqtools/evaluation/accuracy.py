"""How many values are right: labels, or the items of two lists position by position."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from seqtools.errors import RecordError
from seqtools.evaluation.pairs import get_values
from seqtools.streams.records import Record, get_tokens

Guess = str | Sequence[str | None]
"""A label, or a list; in a list, None stands where nothing was to be guessed."""


class Accuracy:
    """Share of values equal to their reference, over all records together.

    A record has one value (a string) or several (a list, whose items are compared position by
    position). Beside it stands what always guessing the commonest reference value would reach.

    Args:
        lowercase: compare without case.
        labels: give precision, recall and F1 of every value, too.
    """

    def __init__(self, *, lowercase: bool = False, labels: bool = False) -> None:
        self._lowercase = lowercase
        self._labels = labels
        self._guessed: Counter[str] = Counter()
        self._expected: Counter[str] = Counter()
        self._correct: Counter[str] = Counter()
        self._records = 0

    def add(self, hypothesis: Guess, references: Sequence[str | Sequence[str]]) -> None:
        """Count one record, which has exactly one reference.

        Raises:
            RecordError: one is a string and the other a list, or the lists differ in length.
        """
        (reference,) = references
        guesses, values = _aligned(hypothesis, reference)
        pairs = [
            (guess.lower(), value.lower()) if self._lowercase else (guess, value)
            for guess, value in zip(guesses, values, strict=True)
            if guess is not None
        ]
        self._guessed.update(guess for guess, _ in pairs)
        self._expected.update(value for _, value in pairs)
        self._correct.update(value for guess, value in pairs if guess == value)
        self._records += 1

    def advice(self) -> str | None:
        """Nothing."""
        return None

    def result(self) -> dict[str, Any]:
        """All shares from 0 to 1.

        `majority` is the share of `majority_value`, the commonest among the references; of several,
        the first by code point. Labels stand in the order of a vocabulary: by their count among
        the references, then by code point.

        Raises:
            RecordError: there was nothing to guess, so there is no share.
        """
        total, correct = self._expected.total(), self._correct.total()
        if not total:
            raise RecordError("no record has a value to compare, so there is no accuracy")
        values = sorted(
            self._expected.keys() | self._guessed.keys(),
            key=lambda value: (-self._expected[value], value),
        )
        found: dict[str, Any] = {"metric": "accuracy", "score": correct / total}
        if self._lowercase:  # a score says how it was made
            found["lowercase"] = True
        found |= {
            "correct": correct,
            "total": total,
            "majority": self._expected[values[0]] / total,
            "majority_value": values[0],
            "records": self._records,
        }
        if self._labels:
            rows = [self._row(value) for value in values]
            found["macro_f1"] = sum(row["f1"] for row in rows) / len(rows)
            found["labels"] = rows
        return found

    def _row(self, value: str) -> dict[str, Any]:
        """How well one value was told from all others.

        Precision is the share of right ones among its guesses, recall among its references, F1 the
        harmonic mean of both (van Rijsbergen 1979, chapter 7), 2 right / (guesses + references). A
        share of none counts 0. The macro F1 is the mean of these F1s, of every value that was
        expected or guessed, not the F1 of mean precision and recall (Opitz and Burst 2019).
        """
        correct, guessed, expected = (
            counts[value] for counts in (self._correct, self._guessed, self._expected)
        )
        return {
            "label": value,
            "precision": correct / guessed if guessed else 0.0,
            "recall": correct / expected if expected else 0.0,
            "f1": 2 * correct / (guessed + expected),
            "count": expected,
            "guessed": guessed,
        }


def _aligned(
    hypothesis: Guess, reference: str | Sequence[str]
) -> tuple[Sequence[str | None], Sequence[str]]:
    """Both as lists of one length; see `Accuracy.add`."""
    if isinstance(hypothesis, str) and isinstance(reference, str):
        return [hypothesis], [reference]
    if isinstance(hypothesis, str) or isinstance(reference, str):
        kinds = [
            "a string" if isinstance(one, str) else "a list" for one in (hypothesis, reference)
        ]
        raise RecordError(f"the output is {kinds[0]}, but its reference {kinds[1]}")
    if len(hypothesis) != len(reference):
        lengths = f"{len(hypothesis)} values, but its reference {len(reference)}"
        raise RecordError(f"the output has {lengths}")
    return hypothesis, reference


def get_guesses(record: Record, field: str, masked: str | None, mask: str) -> Guess:
    """The field's values; with `masked`, None where the list of that name has not the token `mask`.

    Raises:
        RecordError: a field is missing or something else, or the lists differ in length.
    """
    if masked is None:
        return get_values(record, field)
    guesses, marks = get_tokens(record, field), get_tokens(record, masked)
    if len(guesses) != len(marks):
        reason = f'"{field}" has {len(guesses)} values, but "{masked}" {len(marks)}'
        raise RecordError(reason)
    return [guess if mark == mask else None for guess, mark in zip(guesses, marks, strict=True)]
