#!/usr/bin/env python3
"""Made-up sentences and verses: `made_up.py train.txt` writes English lines to stdout,
`made_up.py test.poems.jsonl` records of Chinese verses. Another split has other ones.
"""

from __future__ import annotations

import json
import random
import sys

SIZES = {"train": 1500, "valid": 150, "test": 150}

NOUNS = "cat dog bird child king woman friend fox teacher fisherman".split()
KINDS = "old small quiet hungry red clever".split()
ACTS = "sees hears follows likes finds forgets".split()
RESTS = "sleeps waits sings laughs runs".split()
PLACES = "in the garden;by the river;on the hill;under a tree;at home".split(";")

TIMES = "春夜 秋日 今夜 明月 江上 山中".split()
THINGS = "白云 落花 孤舟 故人 寒雨 飞鸟".split()
DOINGS = "归 来 去 远 空 深".split()


def noun_phrase(chance: random.Random, depth: int = 0) -> str:
    """A noun with what goes with it, now and then a clause."""
    words = [chance.choice(["the", "the", "a"]), chance.choice(NOUNS)]
    if chance.random() < 0.4:
        words.insert(1, chance.choice(KINDS))
    if depth < 2 and chance.random() < 0.2:
        words += ["that", verb_phrase(chance, depth + 1)]
    return " ".join(words)


def verb_phrase(chance: random.Random, depth: int = 0) -> str:
    """A verb with its object or its place."""
    if chance.random() < 0.6:
        return f"{chance.choice(ACTS)} {noun_phrase(chance, depth + 1)}"
    words = chance.choice(RESTS)
    return f"{words} {chance.choice(PLACES)}" if chance.random() < 0.5 else words


def verse(chance: random.Random) -> str:
    """Seven characters and a sign."""
    first, second = chance.sample(THINGS, 2)
    return chance.choice(TIMES) + first + second + chance.choice(DOINGS) + chance.choice("，。")


def main() -> None:
    split, _, kind = sys.argv[1].partition(".")
    chance = random.Random(split)
    for _ in range(SIZES[split]):
        if kind == "txt":
            print(noun_phrase(chance), verb_phrase(chance), ".")
        else:
            poem = "\n".join(verse(chance) for _ in range(4))
            print(json.dumps({"text": poem}))


if __name__ == "__main__":
    main()
