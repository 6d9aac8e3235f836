"""Random segmentations of a sentencepiece model, from a source that the caller seeds.

The library can draw them too, but mixes the seed with something of each process, so that no two
runs agree. What is drawn here has the same distribution. All texts are normalised by the model, and
blanks are `▁`.
"""

from __future__ import annotations

import heapq
import itertools
import math
import random
import re
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from seqtools.errors import ConfigError
from seqtools.text.normalize import Offsets
from seqtools.text.subword_model import PieceType, SubwordModel

_UNKNOWN_PENALTY = 10.0  # how far an unknown character scores below the worst piece
_SYMBOL_BONUS = 0.1  # of a symbol of the user's, for each character but one: it always wins
_LOW = (1 << 32) - 1
_BLANK = "▁"
_WORD = re.compile(f"{_BLANK}[^{_BLANK}]*|[^{_BLANK}]+")


@dataclass(frozen=True)
class Sampling:
    """How segmentations are drawn at random, for subword regularisation.

    Attributes:
        alpha: of a unigram model, the power of the segmentations' probabilities (Kudo 2018,
            section 3.2); of a BPE model, how likely each merge is left out (Provilkov et al. 2020).
        count: of a unigram model, the so many best segmentations are drawn from; None: all.
        seed: of all draws.
    """

    alpha: float
    count: int | None = None
    seed: int = 0


class Drawer(Protocol):
    """Draws segmentations."""

    def draw(self, text: str, source: random.Random, /) -> list[str]:
        """A segmentation of `text`; each unknown character is a part of its own."""


def drawer(model: SubwordModel, sampling: Sampling) -> Drawer:
    """What draws from a model.

    Raises:
        ConfigError: a model of this kind cannot be drawn from in this way.
    """
    if model.kind == "unigram":
        return UnigramDrawer(model, sampling)
    if model.kind != "bpe":
        raise ConfigError(f"a model of kind {model.kind} has one segmentation only")
    if sampling.count is not None:
        raise ConfigError("a BPE model has no list of best segmentations to draw from")
    if sampling.alpha > 1:
        raise ConfigError("of a BPE model alpha is a probability, at most 1")
    return BpeDrawer(model, sampling)


# One of the best segmentations of a text's beginning: its score; where its last part begins, and
# which of the best up to there it goes on from.
_Kept = tuple[float, int, int]


class UnigramDrawer:
    """Draws segmentations by their probability under a unigram model, to the power alpha.

    All: forward sums, then cuts drawn from the end (Kudo 2018, section 3.2). Of the best: by an
    exact search, with memory for `count` times the length of the text.
    """

    def __init__(self, model: SubwordModel, sampling: Sampling) -> None:
        normal = [piece.score for piece in model.pieces if piece.type == PieceType.NORMAL]
        self._scores = {
            piece.text: (
                piece.score
                if piece.type == PieceType.NORMAL
                else _SYMBOL_BONUS * (len(piece.text) - 1)
            )
            for piece in model.pieces
            if piece.type in (PieceType.NORMAL, PieceType.USER_DEFINED)
        }
        self._unknown = min(normal, default=0.0) - _UNKNOWN_PENALTY
        self._longest = max(map(len, self._scores), default=1)
        self._sampling = sampling

    def draw(self, text: str, source: random.Random) -> list[str]:
        """See `Drawer`."""
        if self._sampling.count is None:
            return self._draw_from_all(text, source)
        return self._draw_from_best(text, self._sampling.count, source)

    def arrivals(self, text: str, end: int) -> list[tuple[int, float]]:
        """Where the parts that end at `end` begin, and their scores."""
        scores = self._scores
        found = []
        for start in range(max(0, end - self._longest), end):
            score = scores.get(text[start:end])
            if score is not None:
                found.append((start, score))
        if not (found and found[-1][0] == end - 1):
            found.append((end - 1, self._unknown))
        return found

    def _draw_from_all(self, text: str, source: random.Random) -> list[str]:
        alpha = self._sampling.alpha
        sums = array("d", [0.0])  # of e to alpha times the score, over all ways to get there; logs
        for end in range(1, len(text) + 1):
            terms = [sums[start] + alpha * score for start, score in self.arrivals(text, end)]
            best = max(terms)
            sums.append(best + math.log(sum(math.exp(term - best) for term in terms)))
        parts = []
        end = len(text)
        while end:
            ways = self.arrivals(text, end)
            weights = [math.exp(sums[start] + alpha * score - sums[end]) for start, score in ways]
            ((start, _),) = source.choices(ways, weights)
            parts.append(text[start:end])
            end = start
        return parts[::-1]

    def best(self, text: str, count: int) -> list[list[_Kept]]:
        """For each end of a beginning of the text, its `count` best segmentations."""
        kept: list[list[_Kept]] = [[(0.0, 0, 0)]]
        for end in range(1, len(text) + 1):
            ways = [
                (before[0] + score, start, rank)
                for start, score in self.arrivals(text, end)
                for rank, before in enumerate(kept[start])
            ]
            ways.sort(reverse=True)  # of runs that are sorted
            kept.append(ways[:count])
        return kept

    def _draw_from_best(self, text: str, count: int, source: random.Random) -> list[str]:
        kept = self.best(text, count)
        alpha, top = self._sampling.alpha, kept[-1][0][0]
        weights = [math.exp(alpha * (score - top)) for score, _, _ in kept[-1]]
        (rank,) = source.choices(range(len(weights)), weights)
        parts = []
        end = len(text)
        while end:
            _, start, rank = kept[end][rank]
            parts.append(text[start:end])
            end = start
        return parts[::-1]


class BpeDrawer:
    """Merges as a BPE model does, each merge left out with probability alpha when its turn comes.

    As the library has it: a merge that was left out is thought of again only where one of its two
    sides has changed. A stretch that may be one word takes some 80 bytes of memory a character.
    """

    def __init__(self, model: SubwordModel, sampling: Sampling) -> None:
        self._alpha = sampling.alpha
        mergeable = (PieceType.NORMAL, PieceType.USER_DEFINED, PieceType.UNUSED)
        scores = {piece.text: piece.score for piece in model.pieces if piece.type in mergeable}
        places = {score: n for n, score in enumerate(sorted(set(scores.values()), reverse=True))}
        self._ranks = {text: places[score] for text, score in scores.items()}  # the best has 0
        self._unused = {piece.text for piece in model.pieces if piece.type == PieceType.UNUSED}
        symbols = [piece.text for piece in model.pieces if piece.type == PieceType.USER_DEFINED]
        self._symbols = frozenset(symbols)
        longest_first = sorted(symbols, key=len, reverse=True)
        self._parts = re.compile("|".join([*map(re.escape, longest_first), "."]), re.DOTALL)
        # Where no piece has a blank within, no merge goes from one word to the next.
        self._by_word = not any(_BLANK in text[1:] for text in self._ranks)

    def draw(self, text: str, source: random.Random) -> list[str]:
        """See `Drawer`."""
        words = _WORD.findall(text) if self._by_word else [text]
        return list(itertools.chain.from_iterable(self._merge(word, source) for word in words))

    def _merge(self, word: str, source: random.Random) -> list[str]:
        parts = self._parts.findall(word)
        frozen = bytearray(part in self._symbols for part in parts)
        before = array("q", range(-1, len(parts) - 1))
        after = array("q", range(1, len(parts) + 1))
        if after:
            after[-1] = -1
        # Rank, left side and length together, in one number each: there may be millions.
        agenda: list[int] = []
        splits: dict[str, tuple[str, str]] = {}  # pieces not in use, and what they were merged from

        def offer(left: int, right: int) -> None:
            if left < 0 or right < 0 or frozen[left] or frozen[right]:
                return
            merged = parts[left] + parts[right]
            rank = self._ranks.get(merged)
            if rank is None:
                return
            heapq.heappush(agenda, rank << 64 | left << 32 | len(merged))
            if merged in self._unused:
                splits[merged] = parts[left], parts[right]

        for right in range(1, len(parts)):
            offer(right - 1, right)
        while agenda:
            entry = heapq.heappop(agenda)
            left, size = entry >> 32 & _LOW, entry & _LOW
            right = after[left]  # where left has swallowed the one that was meant, the size tells
            gone = not parts[left] or right < 0 or len(parts[left]) + len(parts[right]) != size
            if gone or source.random() < self._alpha:
                continue
            parts[left] += parts[right]
            parts[right] = ""
            after[left] = after[right]
            if after[right] >= 0:
                before[after[right]] = left
            offer(before[left], left)
            offer(left, after[left])
        if splits:
            return list(
                itertools.chain.from_iterable(_split(part, splits) for part in parts if part)
            )
        return [part for part in parts if part]


def _split(part: str, splits: dict[str, tuple[str, str]]) -> list[str]:
    """A piece that is not in use as pieces that are."""
    if part not in splits:
        return [part]
    left, right = splits[part]
    return _split(left, splits) + _split(right, splits)


def finish(
    parts: Sequence[str], places: Sequence[int], known: frozenset[str], *, byte_fallback: bool
) -> tuple[list[str], Offsets]:
    """Parts of a normalised text to tokens and offsets, as the library writes them.

    Args:
        parts: a segmentation.
        places: for each character of the normalised text, and its end, where it is in the original.
        known: the pieces of the model.
        byte_fallback: unknown parts become bytes; else those side by side are one token.
    """
    tokens: list[str] = []
    offsets: Offsets = []
    start = 0
    after_unknown = False
    for part in parts:
        first, last = places[start], places[start + len(part)]
        start += len(part)
        unknown = part not in known
        if unknown and byte_fallback:
            data = part.encode()
            tokens += [f"<0x{byte:02X}>" for byte in data]
            offsets += [(first, first)] * (len(data) - 1) + [(first, last)]
        elif unknown and after_unknown:
            tokens[-1] += part
            offsets[-1] = offsets[-1][0], last
        else:
            tokens.append(part)
            offsets.append((first, last))
        after_unknown = unknown
    return tokens, offsets
