#!/usr/bin/env python3
"""Made-up words and how they are said, by the rules below, as a dictionary in CMUdict's format.

    fedge  F EH1 JH
    xabim  Z AA1 B IH0 M
    xabim(2)  K S AA1 B IH0 M

As in English, letters are read by what stands beside them: c and g by the vowel that follows, a
vowel by whether one consonant and a vowel come after it, an e at the end after one consonant not at
all. An x that begins a word is said in two ways. The same arguments give the same bytes.
"""

from __future__ import annotations

import argparse
import random
import re
import signal
from collections.abc import Iterator

ONSETS = "b c ch d f g h j k l m n p ph qu r s sh t th v w x z bl br cr dr gr pl st tr".split()  # noqa: SIM905
NUCLEI = "a a a e e e i i i o o o u u ai ea ee oa ou".split()  # noqa: SIM905
CODAS = ["", "", "", "", *"b d g k l m n p r s t ck ng nt ss sh tch ve dge ne te ke".split()]  # noqa: SIM905

# The first rule that matches where the reader stands is the one that counts. LONG: one consonant
# and a vowel follow.
LONG = "(?=[bcdfgklmnprstvz][aeiou])"
RULES = tuple(
    (re.compile(pattern), phonemes.split())
    for pattern, phonemes in (
        (r"(?<=[aeiou][a-z])e$", ""),
        (r"dge?", "JH"),
        (r"tch|ch", "CH"),
        (r"ck|cc", "K"),
        (r"ph|ff", "F"),
        (r"qu", "K W"),
        (r"sh", "SH"),
        (r"th", "TH"),
        (r"ng$", "NG"),
        (r"ai|a" + LONG, "EY"),
        (r"ea|ee|e" + LONG, "IY"),
        (r"oa|o" + LONG, "OW"),
        (r"ou", "AW"),
        (r"i" + LONG, "AY"),
        (r"u" + LONG, "UW"),
        (r"a", "AA"),
        (r"e", "EH"),
        (r"i", "IH"),
        (r"o", "AO"),
        (r"u", "AH"),
        (r"c(?=[eiy])", "S"),
        (r"c", "K"),
        (r"g(?=[eiy])", "JH"),
        (r"x", "K S"),
        (r"j", "JH"),
        (r"h", "HH"),
        (r"([bdfgklmnprstvwz])\1?", r"\1"),
    )
)


def say(word: str) -> list[str]:
    """The phonemes of a word; its first vowel is stressed (1), all others are not (0)."""
    phonemes: list[str] = []
    place, stress = 0, "1"
    while place < len(word):
        found, said = next(
            (found, said) for rule, said in RULES if (found := rule.match(word, place))
        )
        for phoneme in said:
            plain = phoneme.replace(r"\1", found[0][:1].upper())
            vowel = plain[0] in "AEIOU"
            phonemes.append(plain + stress if vowel else plain)
            stress = "0" if vowel else stress
        place = found.end()
    return phonemes


def make_word(rng: random.Random) -> str:
    """A word of one to three syllables, of which the last may be closed."""
    syllables = "".join(rng.choice(ONSETS) + rng.choice(NUCLEI) for _ in range(rng.randint(1, 3)))
    return syllables + rng.choice(CODAS)


def write_lines(count: int, seed: int) -> Iterator[str]:
    """The lines of a dictionary of that many words, in order."""
    rng = random.Random(seed)
    words: set[str] = set()
    while len(words) < count:
        words.add(make_word(rng))
    for word in sorted(words):
        if word.startswith("x"):
            rest = " ".join(say(word)[2:])
            yield f"{word}  Z {rest}"
            yield f"{word}(2)  K S {rest}"
        else:
            yield f"{word}  {' '.join(say(word))}"


def main() -> None:
    parser = argparse.ArgumentParser(description="Write a made-up pronouncing dictionary.")
    parser.add_argument("--count", type=int, default=4000, help="words; default: 4000")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` ends us quietly
    for line in write_lines(arguments.count, arguments.seed):
        print(line)


if __name__ == "__main__":
    main()
