"""The n-grams of one record, as lists of tokens; what stands before and after it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from seqtools.errors import RecordError

BOS, EOS = "<s>", "</s>"
MARKERS = frozenset((BOS, EOS))
PADDINGS = ("none", "one", "full")


def ngrams(tokens: Sequence[str], orders: Sequence[int], padding: str = "none") -> list[list[str]]:
    """All n-grams in order of appearance: by order as the orders are given, then by position.

    Args:
        tokens: the record; without padding it has no n-grams longer than itself.
        orders: lengths of the n-grams.
        padding: `none`; `one` puts `<s>` before the record and `</s>` after it, for all orders;
            `full` puts n - 1 of each for n-grams of n tokens, so that every token stands once at
            each place of an n-gram (and unigrams have no markers).

    >>> ngrams(["a", "b"], [1, 2])
    [['a'], ['b'], ['a', 'b']]
    >>> ngrams(["a"], [3], "one"), ngrams(["a"], [2], "full")
    ([['<s>', 'a', '</s>']], [['<s>', 'a'], ['a', '</s>']])
    """
    found = []
    for order in orders:
        markers = {"none": 0, "one": 1, "full": order - 1}[padding]
        padded = [BOS] * markers + [*tokens] + [EOS] * markers
        found += [padded[start : start + order] for start in range(len(padded) - order + 1)]
    return found


def refuse_markers(tokens: Iterable[str], where: str) -> None:
    """See that no token is spelled like a marker, for what is counted could not be told apart.

    Args:
        tokens: of one record.
        where: what has them, for the message.

    Raises:
        RecordError: one is.
    """
    if not MARKERS.isdisjoint(tokens):
        token = next(each for each in tokens if each in MARKERS)
        raise RecordError(
            f"{where} has a token spelled {token}, like a marker (--no-markers sets none)"
        )
