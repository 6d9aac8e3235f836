"""Make the golden numbers with `lmplz` of KenLM: python -m tests.golden.ngram.make LMPLZ

Each file holds what was asked for, the n-grams of each order, the discounts, and log10
probabilities and backoffs: their sums, and those of every so-manieth n-gram, where n-grams are
sorted as strings.

At the very end of its stream (Run in adjust_counts.cc, the last loop) `lmplz` takes the occurrences
of the last n-gram of each lower order for its adjusted count in the counts of counts, from which
the discounts come. That n-gram ends in the word that appears last for the first time; as long as
this word occurs once, both numbers are 1. It is checked.
"""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from tests.golden.ngram.corpora import CORPORA

FOLDER = Path(__file__).parent
CASES: list[tuple[str, dict[str, Any]]] = [
    ("k1", {"order": 1, "fallback": True}),
    ("k1", {"order": 2}),
    ("k1", {"order": 3, "fallback": True}),
    ("zipf", {"order": 1}),
    ("zipf", {"order": 3}),
    ("zipf", {"order": 3, "prune": [0, 0, 1]}),
    ("zipf", {"order": 5}),
    ("zipf", {"order": 5, "prune": [0, 0, 1]}),
    ("zipf", {"order": 5, "interpolate_unigrams": False}),
    ("zipf", {"order": 6, "fallback": True, "prune": [0, 1]}),
    ("letters", {"order": 3, "fallback": True}),
    ("letters", {"order": 5, "fallback": True, "prune": [0, 1, 2]}),
    ("letters", {"order": 6, "fallback": True, "interpolate_unigrams": False}),
    ("shakespeare", {"order": 3}),
    ("shakespeare", {"order": 3, "interpolate_unigrams": False, "prune": [0, 0, 1]}),
    ("shakespeare", {"order": 5, "fallback": True}),
    ("shakespeare", {"order": 5, "fallback": True, "prune": [0, 0, 1]}),
]
SAMPLES = 150  # of an order


def main() -> None:
    """Write all files."""
    for old in FOLDER.glob("*.json"):
        old.unlink()
    for corpus, options in CASES:
        case = {"fallback": False, "prune": [0], "interpolate_unigrams": True, **options}
        records = CORPORA[corpus]()
        if records is None:
            sys.exit("no tinyshakespeare: SEQTOOLS_DATA names the folder it is in")
        check_last(records)
        name = "-".join([corpus, *(f"{key}{_short(value)}" for key, value in options.items())])
        numbers = estimate(sys.argv[1], records, case)
        text = json.dumps({"corpus": corpus, **case, **numbers}, indent=0)
        text = re.sub(r",\n(?=[-\d])", ", ", text)
        (FOLDER / f"{name}.json").write_text(text + "\n")


def _short(value: Any) -> str:
    if isinstance(value, bool):
        return "" if value else "-no"
    return "".join(map(str, value)) if isinstance(value, list) else str(value)


def check_last(records: list[list[str]]) -> None:
    """Stop where the discounts would be those of a slip of the program."""
    counts = Counter(itertools.chain.from_iterable(records))
    if list(counts.values())[-1] != 1:
        sys.exit("the last word to appear should occur once")


def estimate(program: str, records: list[list[str]], case: dict[str, Any]) -> dict[str, Any]:
    """Run the program and read what it says and writes."""
    command = [program, "-o", str(case["order"]), "-S", "200M"]
    command += ["--interpolate_unigrams", str(int(case["interpolate_unigrams"]))]
    command += ["--discount_fallback"] if case["fallback"] else []
    command += ["--prune", *map(str, case["prune"])] if any(case["prune"]) else []
    text = "".join(" ".join(record) + "\n" for record in records)
    run = subprocess.run(command, input=text.encode(), capture_output=True, check=False)
    said = run.stderr.decode()
    if run.returncode:
        sys.exit(said)
    discounts = re.findall(r"^\d+ \S+ D1=(\S+) D2=(\S+) D3\+=(\S+)$", said, re.MULTILINE)
    levels: list[list[tuple[str, float, float | None]]] = []
    for line in run.stdout.decode().split("\\1-grams:")[1].splitlines()[1:]:
        if line.endswith("-grams:"):
            levels.append([])
        elif line and line != "\\end\\":
            if not levels:
                levels.append([])
            logprob, gram, *backoff = line.split("\t")
            levels[-1].append((gram, float(logprob), float(backoff[0]) if backoff else None))
    return {
        "discounts": [[float(number) for number in row] for row in discounts],
        "levels": [sample(level) for level in levels],
    }


def sample(level: list[tuple[str, float, float | None]]) -> dict[str, Any]:
    """What is kept of one order."""
    level = sorted(level)
    every = max(1, len(level) // SAMPLES)
    chosen = level[every // 2 :: every]
    numbers: dict[str, Any] = {
        "ngrams": len(level),
        "every": every,
        "sum_log10probs": round(sum(row[1] for row in level), 6),
        "log10probs": [row[1] for row in chosen],
    }
    if level[0][2] is not None:
        numbers["sum_log10backoffs"] = round(sum(row[2] or 0 for row in level), 6)
        numbers["log10backoffs"] = [row[2] for row in chosen]
    return numbers


if __name__ == "__main__":
    main()
