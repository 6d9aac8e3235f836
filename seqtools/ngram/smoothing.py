"""The smoothing methods: what each takes from an n-gram's count, and gives to shorter contexts.

All methods but two are of one form, with c the count of an n-gram h w, C the sum of the counts
after the context h, and h' the context without its first word:

    P(w | h) = (c - D(c)) / C(h) + gamma(h) P(w | h')

The methods differ in the counts, in D and in gamma (Chen and Goodman 1998, sections 2 and 3). Below
the unigrams stands the uniform distribution over the vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from seqtools.errors import ConfigError, SeqtoolsError
from seqtools.ngram.compiled import kernel

Array: TypeAlias = np.ndarray[Any, Any]

METHODS = (
    "mle",
    "add-k",
    "jelinek-mercer",
    "witten-bell",
    "absolute",
    "kneser-ney",
    "modified-kneser-ney",
    "stupid-backoff",
)
FALLBACK = (0.5, 1.0, 1.5)
BUCKETS = 16  # of contexts, by the power of two in their counts, each with its own weight
STUPID = 0.4  # Brants et al. 2007, section 4

# The forms that the compiled functions know.
_DISCOUNT, _WITTEN_BELL, _MIXTURE, _RELATIVE, _ADD = range(5)
_FORMS = {
    "mle": _DISCOUNT,
    "absolute": _DISCOUNT,
    "kneser-ney": _DISCOUNT,
    "modified-kneser-ney": _DISCOUNT,
    "witten-bell": _WITTEN_BELL,
    "jelinek-mercer": _MIXTURE,
    "stupid-backoff": _RELATIVE,
    "add-k": _ADD,
}
_ONE_DISCOUNT = ("absolute", "kneser-ney")
TOTAL, ONES, TWOS, MORE, PRUNED = range(5)  # columns of the statistics of contexts


@dataclass(frozen=True)
class Smoothing:
    """A method and its settings.

    Attributes:
        method: one of `METHODS`.
        discount: for absolute and kneser-ney: the discount of all orders, not estimated.
        fallback: discounts of counts 1, 2, and 3 or more, for orders where they cannot be estimated
            (the first alone for absolute and kneser-ney); None makes that an error.
        add: what add-k adds to each count.
        interpolate_unigrams: unigrams are mixed with the uniform distribution; else what they leave
            goes to `<unk>`.
        unk: unknown words have a probability. Without it, the unigrams of absolute discounting and
            Kneser-Ney are not discounted, as in textbooks.
        weights: for jelinek-mercer: for each order, the weight of its own estimate in each of
            `BUCKETS`; found on held-out text where None.

    Raises:
        ConfigError: settings that do not go together.
    """

    method: str = "modified-kneser-ney"
    discount: float | None = None
    fallback: tuple[float, float, float] | None = None
    add: float = 1.0
    interpolate_unigrams: bool = True
    unk: bool = True
    weights: tuple[tuple[float, ...], ...] | None = None

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise ConfigError(f"unknown smoothing {self.method!r}: one of {', '.join(METHODS)}")
        if self.discount is not None and self.method not in _ONE_DISCOUNT:
            raise ConfigError(f"{self.method} has no single discount that could be set")
        if self.discount is not None and not 0 < self.discount < 1:
            raise ConfigError(f"a discount must be between 0 and 1, got {self.discount:g}")
        if self.fallback is not None:
            for count, discount in enumerate(self.fallback, 1):
                if not 0 <= discount <= count:
                    raise ConfigError(
                        f"the discount of count {count} must be from 0 to {count}, got {discount:g}"
                    )
        if self.method == "add-k" and not self.add > 0:
            raise ConfigError(f"add-k must add more than 0, got {self.add:g}")
        if not (self.interpolate_unigrams or self.unk):
            raise ConfigError("unigrams that are not interpolated leave their mass to <unk>, so it is needed")  # fmt: skip # noqa: E501

    @property
    def adjusted(self) -> bool:
        """Whether lower orders count different words to the left instead of occurrences."""
        return self.method in ("kneser-ney", "modified-kneser-ney")

    @property
    def discounted(self) -> bool:
        """Whether counts are discounted."""
        return self.method in (*_ONE_DISCOUNT, "modified-kneser-ney")

    @property
    def interpolated(self) -> bool:
        """Whether shorter contexts add to the probability of n-grams that were seen.

        To that of relative frequencies they add what was pruned, if anything was.
        """
        return self.method not in ("stupid-backoff", "add-k")

    def discounts(self, order: int, of_counts: Array) -> tuple[Array, bool]:
        """Discounts of counts 1, 2, and 3 or more, and whether they are the fallback.

        Modified Kneser-Ney: Chen and Goodman 1998, equation 26. One discount: n1 / (n1 + 2 n2)
        (Ney, Essen and Kneser 1994).

        Args:
            order: of the n-grams.
            of_counts: int64 (5,), how many n-grams have a count of 1, 2, 3, 4 (from index 1).

        Raises:
            SeqtoolsError: they are undefined or out of range, and there is no fallback.
        """
        if not self.discounted:
            return np.zeros(3), False
        if self.discount is not None:
            return np.full(3, self.discount), False
        if self.method in _ONE_DISCOUNT:
            found, reason = _one_discount(of_counts)
        else:
            found, reason = _three_discounts(of_counts)
        if not reason:
            return found, False
        if self.fallback is None:
            raise SeqtoolsError(_explain(order, reason, of_counts, self.method))
        values = self.fallback if self.method not in _ONE_DISCOUNT else self.fallback[:1] * 3
        return np.array(values), True

    def parameters(self, order: int, discounts: Array, vocabulary: int) -> Array:
        """What the compiled functions need of one order, float64 (6 + BUCKETS,).

        The form, three discounts, what is added to counts, how many words there are, weights.
        """
        weights = np.zeros(BUCKETS)
        if self.weights is not None:
            weights[:] = self.weights[order - 1]
        add = self.add if self.method == "add-k" else 0.0
        form = float(_FORMS[self.method])
        return np.concatenate([[form], discounts, [add, float(vocabulary)], weights])


def _one_discount(of_counts: Array) -> tuple[Array, str]:
    ones, twos = int(of_counts[1]), int(of_counts[2])
    if not ones:
        return np.zeros(3), "no n-gram has a count of 1, so the discount is undefined"
    return np.full(3, ones / (ones + 2 * twos)), ""


def _three_discounts(of_counts: Array) -> tuple[Array, str]:
    found = np.zeros(3)
    for count in (1, 2, 3):
        if not of_counts[count]:
            return found, f"no n-gram has a count of {count}, so the discount is undefined"
    n = of_counts.tolist()
    for count in (1, 2, 3):
        # In whole numbers, so that a discount of exactly 0 is not taken for one below.
        below = n[count] * (n[1] + 2 * n[2])
        found[count - 1] = value = (count * below - (count + 1) * n[1] * n[count + 1]) / below
        if value < 0:
            return found, f"the discount of count {count} would be {value:.6g}"
    return found, ""


def _explain(order: int, reason: str, of_counts: Array, method: str) -> str:
    counts = ", ".join(str(int(number)) for number in of_counts[1:])
    if method != "absolute":
        reason = reason.replace(" a count", " an adjusted count")
    return (
        f"order {order}: {reason} ({counts} n-grams have the counts 1, 2, 3, 4):"
        f" the data are too small or unusual for {method};"
        " --discount-fallback gives discounts for such orders"
    )


@kernel
def accumulate(
    contexts: Array, counts: Array, kept: Array, first: int, all_types: bool, statistics: Array  # noqa: FBT001
) -> None:  # fmt: skip
    """Add n-grams to the statistics of their contexts.

    Args:
        contexts: uint32 (n,), rows of the contexts.
        counts: uint32 (n,).
        kept: uint8 (n,), 0 where an n-gram is pruned; or (0,) where none is.
        first: the context that `statistics` begins with.
        all_types: pruned n-grams count among the different ones.
        statistics: uint32 (contexts, 4) to add to: sum of counts; n-grams with count 1, 2, 3 or
            more. Where n-grams are pruned (contexts, 6): also the sum of the counts that were
            pruned, and nothing.
    """
    pruning = len(kept) > 0
    for row in range(len(contexts)):
        context = np.int64(contexts[row]) - first
        if not 0 <= context < len(statistics):
            continue
        number = counts[row]
        statistics[context, TOTAL] += number
        gone = pruning and kept[row] == 0
        if gone:
            statistics[context, PRUNED] += number
        if not gone or all_types:
            statistics[context, ONES + min(number, np.uint32(3)) - 1] += 1


@kernel
def _weigh(parameters: Array, statistics: Array) -> tuple[float, float]:
    """Of one context: what counts are multiplied by, and the weight of the shorter context."""
    form = parameters[0]
    total = np.float64(statistics[TOTAL])
    pruned = np.float64(statistics[PRUNED]) if len(statistics) > PRUNED else 0.0
    ones, twos = np.float64(statistics[ONES]), np.float64(statistics[TWOS])
    more = np.float64(statistics[MORE])
    if form == _ADD:
        scale = 1 / (total + parameters[4] * parameters[5])
        return scale, parameters[4] * scale
    if total == 0:
        return 0.0, 1.0
    if form == _WITTEN_BELL:
        types = ones + twos + more
        return 1 / (total + types), (types + pruned) / (total + types)
    if form == _MIXTURE:
        bucket = 0
        while bucket < BUCKETS - 1 and total >= 2 << bucket:
            bucket += 1
        weight = parameters[6 + bucket]
        return weight / total, 1 - weight + weight * pruned / total
    if form == _RELATIVE:
        return 1 / total, STUPID
    left = parameters[1] * ones + parameters[2] * twos + parameters[3] * more + pruned
    return 1 / total, left / total


@kernel
def weigh_contexts(parameters: Array, statistics: Array, factors: Array) -> None:
    """What the counts after each context are multiplied by, and the weight of the shorter context.

    Args:
        parameters: from `Smoothing.parameters`.
        statistics: uint32 (contexts, 4 or 6).
        factors: float64 (contexts, 2 or 3) to write, which may be the same memory; 0 and 1 for
            what is not a context; where counts are added to, what was never a context is one that
            nothing was seen after.
    """
    for context in range(len(factors)):
        scale, weight = 0.0, 1.0
        if statistics[context, TOTAL] > 0 or parameters[0] == _ADD:
            scale, weight = _weigh(parameters, statistics[context])
        factors[context, 0] = scale
        factors[context, 1] = weight


@kernel
def probabilities(
    parameters: Array, counts: Array, contexts: Array, first: int, factors: Array,
    begins: Array, shorter: Array, out: Array,
) -> None:  # fmt: skip
    """Probabilities of n-grams whose contexts have known factors.

    Args:
        parameters: from `Smoothing.parameters`.
        counts, contexts: uint32 (n,).
        first: the context that `factors` begins with; n-grams of others are left alone.
        factors: float64 (contexts, 2 or 3), from `weigh_contexts`.
        begins: uint32 (parents + 1,), where the n-grams of each suffix begin; the first is at 0
            after subtracting begins[0].
        shorter: float64 (parents,), probability of each suffix, P(w | h'); (0,) where it adds
            nothing.
        out: float64 (n,) to write.
    """
    base = np.int64(begins[0])
    interpolated = len(shorter) > 0
    for parent in range(len(begins) - 1):
        for row in range(np.int64(begins[parent]) - base, np.int64(begins[parent + 1]) - base):
            context = np.int64(contexts[row]) - first
            if not 0 <= context < len(factors):
                continue
            number = counts[row]
            discount = parameters[min(number, np.uint32(3))] if number else 0.0
            value = (np.float64(number) - discount + parameters[4]) * factors[context, 0]
            if interpolated:
                value += factors[context, 1] * shorter[parent]
            out[row] = value
