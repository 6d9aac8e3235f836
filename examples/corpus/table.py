#!/usr/bin/env python3
"""Tables of a corpus, in Markdown: `table.py FOLDER` of what the Makefile has put there."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from unicodedata import east_asian_width

Records = list[dict[str, Any]]


def read(folder: Path, name: str) -> Records:
    """The records of a file of statistics."""
    lines = (folder / f"{name}.stats.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


def first(records: Records, **keys: Any) -> dict[str, Any]:
    """The first record with these values; an empty one if there is none."""
    return next((record for record in records if keys.items() <= record.items()), {})


def shown(value: object) -> str:
    """A cell: thousands apart, four digits of a fraction, nothing for nothing."""
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value or "")


def percent(share: float | None) -> str:
    """A share in percent."""
    return "" if share is None else f"{100 * share:.2f} %"


def width(cell: str) -> int:
    """How wide a terminal shows it: a Han character as two."""
    return sum(1 + (east_asian_width(sign) in "WF") for sign in cell)


def table(headings: Iterable[str], rows: Iterable[Iterable[object]]) -> None:
    """Print one; its columns are as wide as they need be."""
    cells = [[*headings], *([shown(value) for value in row] for row in rows)]
    if len(cells) == 1:
        cells.append(["none", *[""] * (len(cells[0]) - 1)])
    widths = [max(map(width, column)) for column in zip(*cells, strict=True)]
    cells.insert(1, ["-" * wide for wide in widths])
    for row in cells:
        padded = (cell + " " * (wide - width(cell)) for cell, wide in zip(row, widths, strict=True))
        print(f"| {' | '.join(padded)} |")
    print()


def column(tokens: Records, lengths: Records, characters: int) -> dict[str, object]:
    """What is said of a corpus of tokens."""
    types = first(tokens, statistic="tokens")
    length = first(lengths, statistic="lengths", field="tokens")
    cut = first(lengths, statistic="cut", field="tokens")
    percentiles = length.get("percentiles", {})
    return {
        "records": types["records"],
        "tokens": types["tokens"],
        "characters a token": characters / max(types["tokens"], 1) if characters else "",
        "types": types["types"],
        "types seen once": percent(types.get("hapax_share")),
        "Zipf's exponent": types.get("zipf_exponent"),
        "Heaps' exponent": types.get("heaps_beta"),
        "tokens a record: median": length.get("median"),
        "95 %": percentiles.get("95"),
        "longest": length.get("max"),
        f"records over {cut.get('max_length')}": percent(cut.get("longer_share")),
        f"tokens beyond {cut.get('max_length')}": percent(cut.get("lost_share")),
    }


def main() -> None:
    folder = Path(sys.argv[1])
    lengths = read(folder, "lengths")
    characters = first(lengths, statistic="lengths", field="text")["total"]
    pieces, augmented = read(folder, "pieces"), read(folder, "augmented")
    columns = {
        "words": column(read(folder, "tokens"), lengths, characters),
        "pieces": column(pieces, pieces, characters),
        "augmented words": column(augmented, augmented, 0),
    }
    names = columns["words"]
    table(["", *columns], ([name, *(one[name] for one in columns.values())] for name in names))

    table(
        ["most frequent words", "seen at least", "of the tokens", "of the records whole"],
        (
            [
                one["size"], one["min_count"],
                percent(one["token_coverage"]), percent(one["record_coverage"]),
            ]
            for one in read(folder, "coverage")
        ),
    )  # fmt: skip
    faults = [one for one in read(folder, "quality") if one["statistic"] == "fault"]
    table(
        ["fault of the lines", "how many", ""],
        ([one["fault"], one["count"], percent(one["share"])] for one in faults if one["count"]),
    )
    table(
        ["keyword", "times", "weight"],
        ([one["token"], one["count"], one["weight"]] for one in read(folder, "keywords")),
    )


if __name__ == "__main__":
    main()
