"""Keywords by TextRank: words that stand near words that matter (Mihalcea and Tarau 2004).

Words are the nodes of an undirected graph, and an edge's weight is how often the two stand within
`SPAN` tokens of each other. The score of a node (their section 2.2, with the undirected weights of
section 2.1),

    S(v) = (1 - d) + d · Σ_u w(u, v) / Σ_x w(u, x) · S(u),

is iterated as jieba does it: ten rounds from 1 / nodes, in which each node in the order of its code
points already uses the new scores of those before it. The scores are then scaled, with m the
smallest and M the largest, to (S - m/10) / (M - m/10), so that the heaviest word weighs 1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from seqtools.text.keywords import Words

SPAN = 5  # tokens in a window
DAMPING = 0.85
ROUNDS = 10

Pairs = Counter[tuple[str, str]]


def count_pairs(words: Words, span: int = SPAN) -> Pairs:
    """How often one word comes before another within `span` tokens, by first appearance.

    None in `words` holds the place of a token that makes no node.
    """
    places = [place for place, word in enumerate(words) if word is not None]
    pairs: Pairs = Counter()
    for index, place in enumerate(places):
        for other in places[index + 1 : index + span]:
            if other - place >= span:
                break
            pairs[words[place], words[other]] += 1  # type: ignore[index]
    return pairs


def rank(pairs: Mapping[tuple[str, str], int]) -> dict[str, float]:
    """The score of every word that stands near another, in the order of the pairs."""
    edges: dict[str, list[tuple[str, int]]] = {}
    for (first, second), count in pairs.items():
        edges.setdefault(first, []).append((second, count))
        edges.setdefault(second, []).append((first, count))
    if not edges:
        return {}
    degree = {word: sum(count for _, count in near) for word, near in edges.items()}
    scores = dict.fromkeys(edges, 1 / len(edges))
    order = sorted(edges)
    for _ in range(ROUNDS):
        for word in order:
            flow = sum(count / degree[other] * scores[other] for other, count in edges[word])
            scores[word] = (1 - DAMPING) + DAMPING * flow
    base = min(scores.values()) / 10
    width = max(scores.values()) - base
    return {word: (score - base) / width for word, score in scores.items()}
