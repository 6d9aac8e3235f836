"""Keywords by TF-IDF: frequent here, rare elsewhere (Salton and Buckley 1988)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from seqtools.text.keywords import Words
from seqtools.text.keywords.idf import IdfTable


def weigh(words: Words, table: IdfTable) -> dict[str, float]:
    """The weight of each word of a text, in order of appearance.

    tf · idf with tf the word's share of the words that count; None in `words` stands for one that
    does not.
    """
    return weigh_counts(Counter(word for word in words if word is not None), table)


def weigh_counts(counts: Mapping[str, int], table: IdfTable) -> dict[str, float]:
    """The weight of each word that was counted, in the order of `counts`."""
    total, idf, unknown = sum(counts.values()), table.values, table.unknown
    return {word: count * (idf.get(word, unknown) / total) for word, count in counts.items()}
