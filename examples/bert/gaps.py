#!/usr/bin/env python3
"""Put gaps into token records, and keep what stood there: `gaps.py --share 0.15 FILE`.

`tokens` has `<mask>` for each token of the share, `gold_tokens` is what it was. Where the gaps are
depends on the seed and the record's id alone, so they are the same every time.
"""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser(description="Replace a share of the tokens by <mask>.")
    parser.add_argument("file", type=Path)
    parser.add_argument("--share", type=float, default=0.15)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    with arguments.file.open(encoding="utf-8") as file:
        for line in file:
            record = json.loads(line)
            gold = record["tokens"]
            chance = random.Random(f"{arguments.seed} {record['id']}")
            # Each token by itself, so that long records and short ones lose the same share.
            tokens = ["<mask>" if chance.random() < arguments.share else token for token in gold]
            print(json.dumps({**record, "tokens": tokens, "gold_tokens": gold}))


if __name__ == "__main__":
    main()
