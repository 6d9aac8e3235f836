"""Corpora of the golden numbers, made anew each time."""

from __future__ import annotations

import gzip
import os
import random
from bisect import bisect_right
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path

REPOSITORY = Path(__file__).parents[3]
_PLACE = Path("tinyshakespeare", "input.txt.gz")


def k1() -> list[list[str]]:
    """Four records that can be computed by hand."""
    return [["a", "b"], ["a", "b"], ["a", "c"], ["b", "a"]]


def zipf() -> list[list[str]]:
    """2,000 records of words whose frequencies fall like those of a language, some empty.

    Half of the words follow from the one before, so that long n-grams occur again.
    """
    source = random.Random(20)
    limits = list(accumulate(1 / (rank + 1.5) for rank in range(5000)))

    def word() -> int:
        return bisect_right(limits, source.random() * limits[-1])

    records = []
    for _ in range(2000):
        record = [word() for _ in range(int(source.random() ** 2 * 25))]
        for place in range(1, len(record)):
            if source.random() < 0.5:
                record[place] = (record[place - 1] * 7 + int(source.random() * 3)) % 90
        records.append([f"w{number}" for number in record])
    return [*records, ["once"]]


def letters() -> list[list[str]]:
    """500 records of few types, each of which is frequent."""
    source = random.Random(21)
    alphabet = "eéaio字uß-語nstrl"
    limits = list(accumulate(1 / (rank + 1) ** 1.5 for rank in range(len(alphabet))))
    records = [
        [
            alphabet[bisect_right(limits, source.random() * limits[-1])]
            for _ in range(1 + int(source.random() * 12))
        ]
        for _ in range(500)
    ]
    return [*records, ["y"]]


def shakespeare() -> list[list[str]] | None:
    """The first 5,000 lines that are not empty, in lower case, or None where there are no data."""
    folders = [REPOSITORY.parent / "shared" / "data"]
    if "SEQTOOLS_DATA" in os.environ:
        folders.insert(0, Path(os.environ["SEQTOOLS_DATA"]))
    for folder in folders:
        if (folder / _PLACE).is_file():
            with gzip.open(folder / _PLACE, "rt", encoding="utf-8") as file:
                lines = [line.lower().split() for line in file if line.strip()]
            return lines[:5000]
    return None


CORPORA: dict[str, Callable[[], list[list[str]] | None]] = {
    "k1": k1,
    "zipf": zipf,
    "letters": letters,
    "shakespeare": shakespeare,
}
