#!/usr/bin/env python3
"""A table of perplexities in Markdown, a row a method: `table.py FOLDER '1 2 3' METHOD...`.

FOLDER/METHOD.ORDER.valid.json and .test.json are summaries of `seq-ngram score`.
What is no real perplexity is in brackets.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

SCORES = ("stupid-backoff",)  # do not sum to 1 above order 1, and make no real perplexity


def perplexity(path: Path) -> str:
    """The perplexity of one model on one text, with two decimals."""
    return f"{float(json.loads(path.read_text('utf-8'))['perplexity']):,.2f}"


def cell(folder: Path, method: str, order: str) -> str:
    """Both perplexities of one model."""
    splits = ("valid", "test")
    shown = " / ".join(perplexity(folder / f"{method}.{order}.{split}.json") for split in splits)
    return f"({shown})" if method in SCORES and order != "1" else shown


def main() -> None:
    folder, orders, methods = Path(sys.argv[1]), sys.argv[2].split(), sys.argv[3:]
    rows = [("valid / test", *(f"order {order}" for order in orders))]
    for method in methods:
        cells = [cell(folder, method, order) for order in orders]
        rows.append((f"`{method}`", *cells))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    rows.insert(1, tuple("-" * width for width in widths))
    for row in rows:
        padded = (text.ljust(width) for text, width in zip(row, widths, strict=True))
        print(f"| {' | '.join(padded)} |")


if __name__ == "__main__":
    main()
