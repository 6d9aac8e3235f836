#!/usr/bin/env python3
"""A table of models in Markdown: folders with errors.json, and log.jsonl of those trained."""

from __future__ import annotations

import json
import sys
from pathlib import Path

HEADINGS = ("model", "parameters", "epochs", "minutes", "word errors", "phoneme errors")


def row(folder: Path) -> tuple[str, ...]:
    """What became of one model; several models together have no run of their own."""
    errors = json.loads((folder / "errors.json").read_text("utf-8"))
    rates = f"{errors['wer']:.1%}", f"{errors['per']:.1%}"
    if not (folder / "log.jsonl").exists():
        return folder.name, "", "", "", *rates
    log = [json.loads(line) for line in (folder / "log.jsonl").read_text("utf-8").splitlines()]
    model = next(record for record in log if record["event"] == "model")
    end = log[-1]
    return (
        folder.name,
        f"{model['parameters']:,}",
        f"{end['epoch']}",
        f"{end['seconds'] / 60:.1f}",
        *rates,
    )


def main() -> None:
    rows = [HEADINGS, *(row(Path(name)) for name in sys.argv[1:])]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    rows.insert(1, tuple("-" * width for width in widths))
    for cells in rows:
        padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
        print(f"| {' | '.join(padded)} |")


if __name__ == "__main__":
    main()
