"""n-gram models as their formulas say, in exact fractions: slow, and to be checked by reading.

Nothing here is shared with the library. With c the count of an n-gram h w, C(h) the sum of the
counts after the context h, T(h) how many different words follow it, and h' the context without its
first word, all methods but the last two are

    P(w | h) = own(h w) + rest(h) P(w | h')

where an n-gram that was not seen (or was pruned) has no own part, and a context that was not seen
has a rest of 1. Below the unigrams stands the uniform distribution over the vocabulary.

Chen and Goodman, An empirical study of smoothing techniques for language modeling, TR-10-98, 1998;
Ney, Essen and Kneser, On structuring probabilistic dependences in stochastic language modelling,
1994; Brants et al., Large language models in machine translation, 2007; for pruning Heafield et
al., Scalable modified Kneser-Ney language model estimation, 2013, and its program.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction

UNK, BOS, EOS = "<unk>", "<s>", "</s>"
BUCKETS = 16

Gram = tuple[str, ...]


class Undefined(Exception):
    """The discounts of an order cannot be estimated."""

    def __init__(self, order: int) -> None:
        super().__init__(order)
        self.order = order


class Reference:
    """A model of a corpus.

    Attributes:
        counts: for each order the count of each n-gram: adjusted, where the method does that.
        raw: for each order how often each n-gram occurs.
        kept: for each order the n-grams that are not pruned.
        vocabulary: what can be predicted.
        discounts: for each order those of counts 1, 2, and 3 or more.
        fallbacks: the orders whose discounts could not be estimated.

    All lists by order have nothing at index 0.
    """

    def __init__(
        self,
        records: Iterable[Sequence[str]],
        order: int,
        method: str,
        *,
        discount: Fraction | None = None,
        fallback: tuple[Fraction, Fraction, Fraction] | None = None,
        add: Fraction = Fraction(1),
        interpolate_unigrams: bool = True,
        unk: bool = True,
        prune: Sequence[int] = (0,),
        vocabulary: Iterable[str] | None = None,
        weights: Sequence[Sequence[Fraction]] = (),
    ) -> None:
        self.order, self.method, self.add, self.unk = order, method, add, unk
        self.interpolate_unigrams = interpolate_unigrams
        self.weights = weights
        known = None if vocabulary is None else set(vocabulary)
        records = [[_spelled(word, known) for word in record] for record in records]
        words = {word for record in records for word in record} if known is None else known
        self.vocabulary = sorted({*words, EOS} | ({UNK} if unk else set()))
        self.raw = [Counter(grams(records, length)) for length in range(order + 1)]
        self.counts = [Counter[Gram](), *map(self._counts, range(1, order + 1))]
        thresholds = [0, *prune, *[prune[-1]] * order]
        self.kept = [
            {gram for gram in self.counts[length] if self.raw[length][gram] > thresholds[length]}
            for length in range(order + 1)
        ]
        self.discounts: list[tuple[Fraction, Fraction, Fraction]] = [(Fraction(0),) * 3]
        self.fallbacks: list[int] = []
        for length in range(1, order + 1):
            self.discounts.append(self._discounts(length, discount, fallback))
        self._after: dict[Gram, list[Gram]] = {}
        for counts in self.counts:
            for gram in counts:
                self._after.setdefault(gram[:-1], []).append(gram)
        self._totals = {
            context: sum(map(self._count, after)) for context, after in self._after.items()
        }
        self._known: dict[Gram, Fraction] = {}

    def probability(self, word: str, history: Sequence[str]) -> Fraction:
        """P(word | history), of which the last order - 1 words count; a score for stupid backoff.

        The history begins with `<s>`, or in the midst of a record.
        """
        assert word in self.vocabulary
        assert BOS not in history[1:]
        context = tuple(history)[max(0, len(history) - self.order + 1) :]
        if self.method == "add-k":
            return self._added(word, context)
        if self.method == "stupid-backoff":
            return self._score((*context, word))
        return self._mixed((*context, word))

    def backoff(self, context: Sequence[str]) -> Fraction:
        """What P(w | h') is multiplied by to give P(w | h), for a w that was not kept after h.

        With add-k there is no shorter context, and this is P(w | h) itself.
        """
        context = tuple(context)
        if self.method == "add-k":
            return self.add / (self._totals.get(context, 0) + self.add * len(self.vocabulary))
        if context not in self._after:
            return Fraction(1)
        if self.method == "stupid-backoff":
            return Fraction(2, 5)
        return self._rest(context)

    def is_context(self, context: Sequence[str]) -> bool:
        """Whether something was seen after it."""
        return tuple(context) in self._after

    # The counts.

    def _counts(self, length: int) -> Counter[Gram]:
        """Of one order; for Kneser-Ney, the number of different words to the left.

        What begins with `<s>` has none, and keeps its occurrences, as has the highest order.
        """
        if not self.method.endswith("kneser-ney") or length == self.order:
            return self.raw[length]
        different = Counter(gram[1:] for gram in self.raw[length + 1])
        return Counter(
            {
                gram: count if gram[0] == BOS else different[gram]
                for gram, count in self.raw[length].items()
            }
        )

    def _count(self, gram: Gram) -> int:
        return self.counts[len(gram)][gram]

    def _pruned(self, context: Gram) -> int:
        return sum(
            self._count(gram)
            for gram in self._after[context]
            if gram not in self.kept[len(gram)]
        )  # fmt: skip

    # The discounts.

    def _discounts(
        self,
        length: int,
        fixed: Fraction | None,
        fallback: tuple[Fraction, Fraction, Fraction] | None,
    ) -> tuple[Fraction, Fraction, Fraction]:
        """Of counts 1, 2, and 3 or more.

        One discount: n1 / (n1 + 2 n2) (Ney, Essen and Kneser 1994). Three: Chen and Goodman 1998,
        equation 26. As there is nobody that could be given the mass, the unigrams of a model
        without `<unk>` have none.
        """
        none = (Fraction(0),) * 3
        if self.method not in ("absolute", "kneser-ney", "modified-kneser-ney"):
            return none
        if length == 1 and not self.unk:
            return none
        if fixed is not None:
            return (fixed,) * 3
        n = Counter(self.counts[length].values())
        if self.method != "modified-kneser-ney":
            if n[1]:
                return (Fraction(n[1], n[1] + 2 * n[2]),) * 3
        elif n[1] and n[2] and n[3]:
            y = Fraction(n[1], n[1] + 2 * n[2])
            found = tuple(j - (j + 1) * y * Fraction(n[j + 1], n[j]) for j in (1, 2, 3))
            if min(found) >= 0:
                return found
        if fallback is None:
            raise Undefined(length)
        self.fallbacks.append(length)
        return fallback if self.method == "modified-kneser-ney" else fallback[:1] * 3

    def _discount(self, gram: Gram) -> Fraction:
        return self.discounts[len(gram)][min(self._count(gram), 3) - 1]

    # The methods that mix, or give back what they took.

    def _mixed(self, gram: Gram) -> Fraction:
        """P of the last word after the others."""
        if gram not in self._known:
            self._known[gram] = self._own(gram) + self._rest(gram[:-1]) * self._shorter(gram)
        return self._known[gram]

    def _shorter(self, gram: Gram) -> Fraction:
        if len(gram) > 1:
            return self._mixed(gram[1:])
        if self.interpolate_unigrams:
            return Fraction(1, len(self.vocabulary))
        return Fraction(gram == (UNK,))

    def _own(self, gram: Gram) -> Fraction:
        if gram not in self.kept[len(gram)]:
            return Fraction(0)
        context = gram[:-1]
        count, total = self._count(gram), self._totals[context]
        match self.method:
            case "mle":
                return Fraction(count, total)
            case "witten-bell":
                return Fraction(count, total + len(self._after[context]))
            case "jelinek-mercer":
                return self._weight(context) * Fraction(count, total)
            case _:
                return (count - self._discount(gram)) / Fraction(total)

    def _rest(self, context: Gram) -> Fraction:
        """What is left after a context; all that pruned n-grams had is, too."""
        if context not in self._after:
            return Fraction(1)
        total, pruned, types = self._totals[context], self._pruned(context), self._after[context]
        match self.method:
            case "mle":
                return Fraction(pruned, total)
            case "witten-bell":  # Chen and Goodman 1998, equations 16 and 17
                return Fraction(len(types) + pruned, total + len(types))
            case "jelinek-mercer":
                weight = self._weight(context)
                return 1 - weight + weight * Fraction(pruned, total)
            case _:
                kept = [gram for gram in types if gram in self.kept[len(gram)]]
                return (sum(map(self._discount, kept)) + pruned) / Fraction(total)

    def _weight(self, context: Gram) -> Fraction:
        """Of Jelinek-Mercer: one for all contexts of a length with a count of the same magnitude.

        Chen and Goodman 1998, section 2.3.
        """
        return self.weights[len(context)][bucket(self._totals[context])]

    # The others.

    def _score(self, gram: Gram) -> Fraction:
        """Brants et al. 2007, equation 5: relative frequencies, and 0.4 for each step back."""
        if gram in self.kept[len(gram)]:
            return Fraction(self._count(gram), self._totals[gram[:-1]])
        return Fraction(2, 5) * self._score(gram[1:]) if len(gram) > 1 else Fraction(0)

    def _added(self, word: str, context: Gram) -> Fraction:
        """Chen and Goodman 1998, equation 6, for any number."""
        assert len(context) == self.order - 1 or context[0] == BOS
        total = self._totals.get(context, 0)
        count = self._count((*context, word))
        return (count + self.add) / Fraction(total + self.add * len(self.vocabulary))


def _spelled(word: str, known: set[str] | None) -> str:
    """The word, or `<unk>` where it is none of ours or spelled like a marker."""
    ordinary = word not in (UNK, BOS, EOS)
    return word if ordinary and (known is None or word in known) else UNK


def grams(records: Iterable[Sequence[str]], length: int) -> list[Gram]:
    """All n-grams of a length within records, one `<s>` before and one `</s>` after each."""
    padded = [(BOS, *record, EOS) for record in records]
    windows = [
        record[start : start + length]
        for record in padded
        for start in range(len(record) - length + 1)
    ]
    return [window for window in windows if window and window[-1] != BOS]  # it is never predicted


def events(records: Iterable[Sequence[str]], order: int) -> list[Gram]:
    """Each predicted word with the order - 1 words before it, or all there are, `<s>` being one."""
    found = []
    for record in records:
        padded = (BOS, *record, EOS)
        found += [
            padded[max(0, end - order) : end] for end in range(2, len(padded) + 1)
        ]  # fmt: skip
    return found


def bucket(count: int) -> int:
    """The power of two in a count, at most 15."""
    return min(BUCKETS - 1, int(math.log2(count)))


def likelihood(model: Reference, heldout: Iterable[Sequence[str]]) -> float:
    """The logarithm of the probability of other records."""
    found = 0.0
    for *history, word in events(heldout, model.order):
        word = word if word in model.vocabulary else UNK
        found += math.log(model.probability(word, history))
    return found


def fit_weights(
    records: Sequence[Sequence[str]], order: int, heldout: Sequence[Sequence[str]], steps: int
) -> list[list[float]]:
    """Weights of Jelinek-Mercer by expectation maximisation (Chen and Goodman 1998, section 2.3).

    A word comes from the longest context with a probability of its weight, else from the next
    shorter one in the same way, at last from the uniform distribution. A step makes each weight the
    share of the words that came from a context among those that came from it or a shorter one.
    """
    model = Reference(records, order, "mle")
    weights = [[0.5] * BUCKETS for _ in range(order)]
    chains = []
    for gram in events(heldout, order):
        chain = []
        for length in range(len(gram)):
            part = gram[len(gram) - 1 - length :]
            if model.is_context(part[:-1]):
                total = model._totals[part[:-1]]
                chain.append((length, bucket(total), model._count(part) / total))
        chains.append(chain)
    for _ in range(steps):
        here = [[0.0] * BUCKETS for _ in range(order)]
        below = [[0.0] * BUCKETS for _ in range(order)]
        for chain in chains:
            paths, left = [], 1.0  # of making the word by each context, the longest first
            for length, number, share in reversed(chain):
                weight = weights[length][number]
                paths.append((length, number, left * weight * share))
                left *= 1 - weight
            rest = left / len(model.vocabulary)
            whole = rest + sum(path[2] for path in paths)
            for length, number, path in reversed(paths):
                here[length][number] += path / whole
                below[length][number] += rest / whole
                rest += path
        for length in range(order):
            for number in range(BUCKETS):
                total = here[length][number] + below[length][number]
                if total:
                    weights[length][number] = here[length][number] / total
    return weights
