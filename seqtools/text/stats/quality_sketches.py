"""Near-duplicates by MinHash: small sketches of texts, and pairs of them that agree in much.

A text, once normalised, is the set of its shingles: all stretches of so many code points (Broder
1997). A sketch has 128 numbers, each the smallest value of one hash function on that set, so two
sketches agree in a place with the probability that is the sets' resemblance s, the size of their
intersection by that of their union (Broder 1997, section 4). Of each number a byte is kept (Li and
König 2010), which agrees by chance, too, with probability 1/256; the estimate takes that out. Its
standard error is √(s(1 - s)/128), 0.035 at s = 0.8 and 0 at s = 1.

To find pairs without comparing all, a sketch is cut into b bands of r numbers (Indyk and Motwani
1998; Leskovec et al. 2014, section 3.4): a pair that agrees in a whole band is compared, which
happens with probability 1 - (1 - s^r)^b at least.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

SIZE = 128  # numbers in a sketch, a byte each

_RECALL = 0.95  # of candidates at the threshold
_MOST_ROWS = 32
_NEIGHBOURS = 100  # in a band's order, that a sketch is compared with
_AT_ONCE = 1 << 15  # pairs compared in one step
_PIECE = 1 << 16  # shingles of a text hashed in one step
_CHANCE = 1 / 256  # of two bytes to be equal

Sketches = NDArray[np.uint8]
_Words = NDArray[np.uint64]


def normal(text: str) -> str:
    """A text without what near-duplicates may differ in for free: width, case, white space."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    return " ".join(text.casefold().split())


def bands(threshold: float) -> tuple[int, int]:
    """Rows r of a band and number b of bands for a threshold of the resemblance.

    The most rows, thus the fewest vain comparisons, with 1 - (1 - threshold^r)^b >= 0.95.
    """
    for rows in range(_MOST_ROWS, 1, -1):
        if recall(threshold, rows, SIZE // rows) >= _RECALL:
            return rows, SIZE // rows
    return 1, SIZE


def recall(resemblance: float, rows: int, count: int) -> float:
    """The probability that a pair agrees in at least one of `count` bands of `rows` numbers."""
    return float(1 - (1 - resemblance**rows) ** count)


def sketch(texts: Sequence[str], shingle: int) -> Sketches:
    """Sketches of normalised texts, shape (texts, 128).

    A text shorter than a shingle is one shingle.
    """
    least = _least([text[: _PIECE + shingle - 1] for text in texts], shingle)
    for row, text in zip(least, texts, strict=True):
        for start in range(_PIECE, len(text) - shingle + 1, _PIECE):
            piece = text[start : start + _PIECE + shingle - 1]
            np.minimum(row, _least([piece], shingle)[0], out=row)
    return (_mix(least) >> np.uint64(56)).astype(np.uint8)


def _least(texts: Sequence[str], shingle: int) -> _Words:
    """The smallest value of each hash function, shape (texts, 128)."""
    padded = [text.ljust(shingle, "\0") for text in texts]
    lengths = np.array([len(text) for text in padded])
    points = np.frombuffer("".join(padded).encode("utf-32-le"), "<u4").astype(np.uint64)
    width = len(points) - shingle + 1
    hashes = np.zeros(width, np.uint64)
    for place in range(shingle):
        hashes += points[place : place + width]
        hashes *= _BASE
    # Windows that begin in one text and end in the next are none.
    owner = np.repeat(np.arange(len(texts)), lengths)
    hashes = _mix(hashes[owner[:width] == owner[shingle - 1 :]])
    counts = lengths - shingle + 1
    starts = np.cumsum(counts) - counts
    made = np.empty((len(texts), SIZE), np.uint64)
    values = np.empty_like(hashes)
    for place in range(SIZE):
        np.bitwise_xor(hashes, _MASKS[place], out=values)
        np.multiply(values, _FACTORS[place], out=values)
        made[:, place] = np.minimum.reduceat(values, starts)
    return made


def resemblance(first: Sketches, second: Sketches) -> NDArray[np.float64]:
    """Estimates of the resemblance, row by row; below 0 where they agree less than by chance."""
    agreement = (first == second).sum(axis=1) / SIZE
    return np.asarray((agreement - _CHANCE) / (1 - _CHANCE))


def find_near(
    sketches: Sketches, threshold: float, rows: NDArray[np.int64] | None = None
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """For each sketch, an earlier one like it.

    Equal sketches are always found. Other pairs are found if they agree in a band (`bands`) and
    the estimate is at least `threshold`; of those that share a band, a sketch is compared with the
    100 before it.

    Args:
        sketches: shape (n, 128).
        threshold: of the resemblance.
        rows: which sketches, in what order; None: all.

    Returns:
        For each of `rows`, the place of the earlier one in them, or -1; and the estimate, or 0.
    """
    if rows is None:
        rows = np.arange(len(sketches))
    match, likeness = np.full(len(rows), -1), np.zeros(len(rows))
    _, first, inverse = np.unique(_digest(sketches)[rows], return_index=True, return_inverse=True)
    original = first[inverse]
    copies = original != np.arange(len(rows))
    match[copies], likeness[copies] = original[copies], 1.0
    kept = np.flatnonzero(~copies)
    height, count = bands(threshold)
    for band in range(count):
        columns = slice(band * height, (band + 1) * height)
        keys = _digest(sketches[rows[kept], columns])
        order = kept[np.argsort(keys, kind="stable")]
        keys.sort()
        # How many of the same band come before, in the order of the corpus.
        begins = np.flatnonzero(np.r_[True, keys[1:] != keys[:-1]])
        before = np.arange(len(keys)) - np.repeat(begins, np.diff(np.r_[begins, len(keys)]))
        for lag in range(1, _NEIGHBOURS + 1):
            places = np.flatnonzero(before >= lag)
            places = places[match[order[places]] < 0]
            if not len(places):
                break
            mine, theirs = order[places], order[places - lag]
            found = _compare(sketches, rows[mine], rows[theirs])
            alike = found >= threshold
            match[mine[alike]], likeness[mine[alike]] = theirs[alike], found[alike]
    return match, likeness


def _compare(
    sketches: Sketches, first: NDArray[np.int64], second: NDArray[np.int64]
) -> NDArray[np.float64]:
    """The resemblance of pairs of rows, so many at once that little memory is needed."""
    starts = range(0, len(first), _AT_ONCE)
    ends = [slice(start, start + _AT_ONCE) for start in starts]
    return np.concatenate([resemblance(sketches[first[at]], sketches[second[at]]) for at in ends])


def _digest(rows: Sketches) -> _Words:
    """A number for each row; those of different rows are different but for a chance of 2^-64."""
    digest = np.zeros(len(rows), np.uint64)
    for column in rows.T:
        digest += column
        digest *= _BASE
        digest ^= digest >> np.uint64(29)
    return digest


def _mix(values: _Words) -> _Words:
    """The last steps of SplitMix64 (Steele, Lea and Flood 2014): each bit changes all others."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


# SplitMix64's sequence from 0: the same numbers with every version of numpy.
_STREAM = _mix(np.arange(1, 2 * SIZE + 2, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15))
_MASKS, _FACTORS = _STREAM[:SIZE], _STREAM[SIZE : 2 * SIZE] | np.uint64(1)
_BASE = _STREAM[-1] | np.uint64(1)
