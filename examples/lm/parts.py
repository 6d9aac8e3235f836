#!/usr/bin/env python3
"""Cut a text into its first nine tenths and its last tenth, each as one JSON record.

The cut is made by characters, wherever it falls, and nothing is changed: a line end is a character
like any other. `parts.py train text.txt` writes {"id":"train","text":"…"}.
"""

from __future__ import annotations

import argparse
import gzip
import json
from pathlib import Path


def read_text(path: Path) -> str:
    """The text of a file, which may be gzipped."""
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8-sig")


def main() -> None:
    parser = argparse.ArgumentParser(description="Write a part of a text as a JSON record.")
    parser.add_argument("part", choices=("train", "heldout", "whole"))
    parser.add_argument("file", type=Path)
    arguments = parser.parse_args()
    text = read_text(arguments.file)
    cut = len(text) * 9 // 10
    part = {"train": text[:cut], "heldout": text[cut:], "whole": text}[arguments.part]
    print(json.dumps({"id": arguments.part, "text": part}))


if __name__ == "__main__":
    main()
