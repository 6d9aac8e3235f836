#!/usr/bin/env python3
"""A table of perplexities in Markdown, a row a method: `table.py FOLDER '1 2 3' METHOD...`.

FOLDER/METHOD.ORDER.valid.json and .test.json are summaries of `seq-ngram score`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path


def perplexity(path: Path) -> str:
    """The perplexity of one model on one text, with two decimals."""
    return f"{float(json.loads(path.read_text('utf-8'))['perplexity']):,.2f}"


def main() -> None:
    folder, orders, methods = Path(sys.argv[1]), sys.argv[2].split(), sys.argv[3:]
    rows = [("valid / test", *(f"order {order}" for order in orders))]
    for method in methods:
        names = [f"{method}.{order}" for order in orders]
        cells = (
            [perplexity(folder / f"{name}.{split}.json") for split in ("valid", "test")]
            for name in names
        )
        rows.append((f"`{method}`", *map(" / ".join, cells)))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    rows.insert(1, tuple("-" * width for width in widths))
    for row in rows:
        padded = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print(f"| {' | '.join(padded)} |")


if __name__ == "__main__":
    main()
