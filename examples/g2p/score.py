#!/usr/bin/env python3
"""Word and phoneme error rate of decoded records, as one JSON record: `score.py test.out.jsonl`.

A word is right if the output is one of its `references`. Its phoneme errors are the insertions,
deletions and substitutions that make the output of the reference that needs fewest; their rate is
their sum over the phonemes of those references (of equals, the first).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path


def distance(first: Sequence[str], second: Sequence[str]) -> int:
    """Fewest insertions, deletions and substitutions that make one of the other (Levenshtein)."""
    row = list(range(len(second) + 1))
    for above, left in enumerate(first, 1):
        corner, row[0] = row[0], above
        for column, right in enumerate(second, 1):
            corner, row[column] = (
                row[column],
                min(row[column] + 1, row[column - 1] + 1, corner + (left != right)),
            )
    return row[-1]


def score(outputs: Sequence[str], references: Sequence[Sequence[str]]) -> dict[str, float | int]:
    """Rates from 0 up, and the counts that they come from; phonemes are parted by blanks."""
    word_errors = phoneme_errors = phonemes = 0
    for output, possible in zip(outputs, references, strict=True):
        said = output.split()
        errors, nearest = min(
            ((distance(said, reference.split()), reference) for reference in possible),
            key=lambda pair: pair[0],
        )
        word_errors += errors > 0
        phoneme_errors += errors
        phonemes += len(nearest.split())
    return {
        "wer": word_errors / len(outputs),
        "per": phoneme_errors / phonemes,
        "words": len(outputs),
        "word_errors": word_errors,
        "phonemes": phonemes,
        "phoneme_errors": phoneme_errors,
    }


def main() -> None:
    lines = Path(sys.argv[1]).read_text("utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    if not records:
        sys.exit(f"{sys.argv[1]}: no records, so there is no score")
    found = score(
        [record["output"] for record in records], [record["references"] for record in records]
    )
    print(json.dumps(found))


if __name__ == "__main__":
    main()
