#!/usr/bin/env python3
"""A table of training runs: folders with log.jsonl (of seq-train) and bleu.jsonl (of seq-eval)."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

HEADINGS = ("attention", "parameters", "steps", "epochs", "best valid perplexity", "BLEU")


def read(path: Path) -> list[dict[str, Any]]:
    """The records of a file."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def row(folder: Path) -> tuple[str, ...]:
    """What became of one run."""
    log = read(folder / "log.jsonl")
    model = next(record for record in log if record["event"] == "model")
    best = min(record["perplexity"] for record in log if record["event"] == "valid")
    (bleu,) = read(folder / "bleu.jsonl")
    return (
        folder.name,
        f"{model['parameters']:,}",
        str(log[-1]["step"]),
        str(log[-1]["epoch"]),
        f"{best:.2f}",
        f"{bleu['score']:.1f}",
    )


def main() -> None:
    rows = [HEADINGS, *(row(Path(name)) for name in sys.argv[1:])]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    rows.insert(1, tuple("-" * width for width in widths))
    for cells in rows:
        print(
            "| "
            + " | ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
            + " |"
        )


if __name__ == "__main__":
    main()
