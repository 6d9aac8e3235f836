#!/usr/bin/env python3
"""A table of perplexities in Markdown: `table.py out/table/METHOD.ORDER...`, a row a method.

Behind each name stand NAME.valid.json and NAME.test.json, summaries of `seq-ngram score`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path


def perplexity(name: str, split: str) -> str:
    """The perplexity of one model, with two decimals."""
    summary = json.loads(Path(f"{name}.{split}.json").read_text("utf-8"))
    return f"{float(summary['perplexity']):,.2f}"


def main() -> None:
    names = [Path(name) for name in sys.argv[1:]]
    orders = sorted({name.suffix for name in names}, key=lambda suffix: int(suffix[1:]))
    rows = [("valid / test", *(f"order {order[1:]}" for order in orders))]
    for method in dict.fromkeys(name.with_suffix("") for name in names):
        cells = [f"{method}{order}" for order in orders]
        shown = (f"{perplexity(cell, 'valid')} / {perplexity(cell, 'test')}" for cell in cells)
        rows.append((f"`{method.name}`", *shown))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    rows.insert(1, tuple("-" * width for width in widths))
    for row in rows:
        padded = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print(f"| {' | '.join(padded)} |")


if __name__ == "__main__":
    main()
