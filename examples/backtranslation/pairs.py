#!/usr/bin/env python3
"""Write made-up English sentences and their German translations, a pair a line, parted by a tab.

    the big dog quickly ran home<TAB>der große Hund lief schnell heim

Several English words have one German word, so that the way there and back finds other words for
the same. The same arguments give the same bytes.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator

NOUNS = """
    dog:der_Hund cat:die_Katze child|kid:das_Kind woman|lady:die_Frau man|fellow:der_Mann
    doctor|physician:der_Arzt car|automobile:das_Auto house|home:das_Haus ship|boat:das_Schiff
    film|movie:der_Film shop|store:der_Laden picture|image:das_Bild
"""
ADJECTIVES = """
    big|large:große small|little:kleine old:alte new:neue lovely|pretty|beautiful:schöne
    odd|strange|peculiar:seltsame quick|fast|rapid:schnelle famous|renowned:berühmte
"""
VERBS = """
    saw|noticed:sah looked_for|sought:suchte bought|purchased:kaufte liked|loved:liebte
    built|constructed:baute began_with:begann_mit forgot:vergaß found|discovered:fand
"""
TIMES = """
    yesterday:gestern again|once_more:wieder often|frequently:oft here:hier finally|at_last:endlich
"""


def words(lines: str) -> list[tuple[list[str], str]]:
    """The English words of each German one."""
    entries = (entry.replace("_", " ").split(":") for entry in lines.split())
    return [(english.split("|"), german) for english, german in entries]


def write_pairs(count: int, seed: int) -> Iterator[tuple[str, str]]:
    """Draw pairs of sentences."""
    draw = random.Random(seed)
    nouns, adjectives, verbs, times = map(words, (NOUNS, ADJECTIVES, VERBS, TIMES))

    def phrase() -> tuple[str, str]:
        (english, german), (how, wie) = draw.choice(nouns), draw.choice(adjectives)
        article, noun = german.split()
        if draw.random() < 0.5:
            return f"the {draw.choice(english)}", german
        return f"the {draw.choice(how)} {draw.choice(english)}", f"{article} {wie} {noun}"

    for _ in range(count):
        (subject, wer), (thing, was) = phrase(), phrase()
        (verb, tat), (when, wann) = draw.choice(verbs), draw.choice(times)
        english = f"{subject} {draw.choice(verb)} {thing} {draw.choice(when)} ."
        yield english, f"{wer} {tat} {wann} {was} ."


def main() -> None:
    """Run from the shell."""
    parser = argparse.ArgumentParser(description="Made-up sentences in English and German.")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    for english, german in write_pairs(arguments.count, arguments.seed):
        print(f"{english}\t{german}")


if __name__ == "__main__":
    main()
