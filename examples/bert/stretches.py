#!/usr/bin/env python3
"""Cut lines into stretches that a model can read: `stretches.py train|valid|test --length N FILE`.

FILE holds records with `tokens`. The first nine tenths of those that have any are for training,
half of the rest is for validation, the other half for testing. A stretch has at most N tokens, and
ends with a sentence if one ends in its second half. It is a record: {"id":"test-1","tokens":[…]}.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

# What stands at the end of a sentence, quotation marks behind it included.
ENDS = frozenset("。！？；…”’」』）.!?;")


def cut(tokens: list[str], length: int) -> Iterator[list[str]]:
    """The stretches of one line."""
    while len(tokens) > length:
        places = range(length, length // 2, -1)  # the latest is the best
        end = next((i for i in places if tokens[i - 1] in ENDS and tokens[i] not in ENDS), length)
        yield tokens[:end]
        tokens = tokens[end:]
    yield tokens


def main() -> None:
    parser = argparse.ArgumentParser(description="Cut one part of a text into stretches.")
    parser.add_argument("part", choices=("train", "valid", "test"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--length", type=int, required=True)
    arguments = parser.parse_args()
    with arguments.file.open(encoding="utf-8") as file:
        lines = [tokens for line in file if (tokens := json.loads(line)["tokens"])]
    first, second = len(lines) * 90 // 100, len(lines) * 95 // 100
    parts = {"train": lines[:first], "valid": lines[first:second], "test": lines[second:]}
    number = 0
    for tokens in parts[arguments.part]:
        for stretch in cut(tokens, arguments.length):
            number += 1
            print(json.dumps({"id": f"{arguments.part}-{number}", "tokens": stretch}))


if __name__ == "__main__":
    main()
