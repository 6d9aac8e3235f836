#!/usr/bin/env python3
"""A split of a pronouncing dictionary in CMUdict's format, as JSONL: `records.py words.dict test`.

    {"word":"abbe","src":"a b b e","tgt":"AE B IY","references":["AE B IY","AE B EY"]}

A line of the dictionary is a word, or word(2) for a further pronunciation, and its phonemes; what
follows a # is a comment. Stress, the digit of a vowel, is left out, and pronunciations that are
then the same count once. Of every twenty words in the order of the dictionary the 18th and 19th are
for the test and the 20th is for validation, as https://github.com/cmusphinx/g2p-seq2seq splits. In
training each pronunciation is a record; otherwise each word is one, and `tgt` the first of them.
"""

from __future__ import annotations

import argparse
import json
import re
import signal
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

SPLITS = ("train",) * 17 + ("test", "test", "valid")


def read_dictionary(lines: Iterable[str]) -> dict[str, list[str]]:
    """The pronunciations of each word, without stress, each once, in the order of the lines."""
    words: dict[str, list[str]] = {}
    for number, line in enumerate(lines, 1):
        entry, *phonemes = line.partition("#")[0].split() or [""]
        if not entry or line.startswith(";;;"):  # an empty line, or a comment of older versions
            continue
        if not phonemes:
            raise ValueError(f"line {number}: {entry!r} has no pronunciation")
        word = re.sub(r"\(\d+\)$", "", entry).lower()
        said = " ".join(re.sub(r"\d$", "", phoneme) for phoneme in phonemes)
        known = words.setdefault(word, [])
        if said not in known:
            known.append(said)
    return words


def write_records(words: dict[str, list[str]], split: str) -> Iterator[dict[str, str | list[str]]]:
    """The records of a split."""
    for number, (word, said) in enumerate(words.items()):
        if SPLITS[number % len(SPLITS)] != split:
            continue
        for pronunciation in said if split == "train" else said[:1]:
            yield {"word": word, "src": " ".join(word), "tgt": pronunciation, "references": said}


def main() -> None:
    parser = argparse.ArgumentParser(description="Write a split of a dictionary as JSONL.")
    parser.add_argument("file", type=Path)
    parser.add_argument("split", choices=("train", "valid", "test"))
    arguments = parser.parse_args()
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` ends us quietly
    sys.stdout.reconfigure(encoding="utf-8")
    try:
        with arguments.file.open(encoding="utf-8") as lines:
            words = read_dictionary(lines)
    except (OSError, ValueError) as error:
        sys.exit(f"{arguments.file}: {error}")
    for record in write_records(words, arguments.split):
        print(json.dumps(record, ensure_ascii=False))


if __name__ == "__main__":
    main()
