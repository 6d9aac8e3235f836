#!/usr/bin/env python3
"""Show gaps as text, with what a model would put there: `show.py --count 10 FILE`.

FILE holds records of `seq-decode fill` with `gold_tokens`. The gaps are spread over the file, each
from another record. What was meant stands in 【 】, other gaps are □: the model saw neither. The
candidates stand below with their probabilities, and ✓ at the right one.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import Any

AROUND = 14  # characters that are shown on either side


def show(record: dict[str, Any]) -> str:
    """The middle gap of a record, in two lines."""
    seen = ["□" if token == "<mask>" else token for token in record["tokens"]]
    gaps = [place for place, token in enumerate(record["tokens"]) if token == "<mask>"]
    middle = len(gaps) // 2
    place = gaps[middle]
    meant = record["gold_tokens"][place]
    before, after = seen[max(0, place - AROUND) : place], seen[place + 1 : place + 1 + AROUND]
    candidates = (
        f"{one['token']} {math.exp(one['logprob']):.0%}{' ✓' if one['token'] == meant else ''}"
        for one in record["candidates"][middle]
    )
    return f"{''.join(before)}【{meant}】{''.join(after)}\n    {'   '.join(candidates)}"


def main() -> None:
    parser = argparse.ArgumentParser(description="Show gaps and what a model puts there.")
    parser.add_argument("file", type=Path)
    parser.add_argument("--count", type=int, default=10)
    arguments = parser.parse_args()
    with arguments.file.open(encoding="utf-8") as file:
        records = [record for line in file if (record := json.loads(line))["candidates"]]
    count = min(arguments.count, len(records))
    for number in range(count):
        print(show(records[number * len(records) // count]))


if __name__ == "__main__":
    main()
