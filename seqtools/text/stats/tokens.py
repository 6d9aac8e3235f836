"""Tokens and types: richness, frequency spectrum, Zipf's law, growth of the vocabulary."""

from __future__ import annotations

import heapq
import math
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from seqtools.streams.records import Record, get_tokens

_PIECE = 1000  # types in a record of the state
_HEAPS_FROM = 1000


class Tokens:
    """Counts of tokens, a field apart from the other.

    What is held is each type once, with its count and where it stood first.

    Args:
        fields: lists of tokens.
        top: how many of the most frequent types are reported.
        spectrum: up to which frequency the number of types is reported.
    """

    kind = "tokens"
    places = None

    def __init__(
        self, fields: Sequence[str] = ("tokens",), *, top: int = 10, spectrum: int = 10
    ) -> None:
        self.options: Record = {"fields": [*fields]}
        self._top = top
        self._spectrum = spectrum
        self._counts = {field: _Counts() for field in fields}

    def add(self, record: Record, number: int) -> None:
        """Take in a record.

        Raises:
            RecordError: a field is missing or no list of strings.
        """
        found = [get_tokens(record, field) for field in self._counts]
        for counts, tokens in zip(self._counts.values(), found, strict=True):
            counts.add(tokens)

    def dump(self) -> Iterator[Record]:
        """Records with types in the order of their first occurrence, and one with the totals."""
        for field, counts in self._counts.items():
            for part in counts.dump():
                yield {"field": field, **part}

    def merge(self, part: Record) -> None:
        """Take in a record of `dump`; what it is from is taken to stand after all there is."""
        self._counts[part["field"]].merge(part)

    def report(self) -> Iterator[Record]:
        """Of each field one record with its measures, then `growth`, `spectrum` and `top`."""
        for field, counts in self._counts.items():
            for name, record in counts.report(self._top, self._spectrum):
                yield {"statistic": name, "field": field, **record}


class _Counts:
    """Types in the order of their first occurrence."""

    def __init__(self) -> None:
        self.records = 0
        self.tokens = 0
        self._counts: Counter[str] = Counter()
        self._firsts = array("q")  # positions, ascending; one for each of the counts

    def add(self, tokens: list[str]) -> None:
        before = len(self._counts)
        self._counts.update(tokens)
        new = len(self._counts) - before
        if new:
            self._locate(tokens, {*islice(reversed(self._counts), new)})
        self.records += 1
        self.tokens += len(tokens)

    def _locate(self, tokens: list[str], new: set[str]) -> None:
        for position, token in enumerate(tokens, self.tokens):
            if token in new:
                self._firsts.append(position)
                new.remove(token)
                if not new:
                    return

    def dump(self) -> Iterator[Record]:
        items = iter(self._counts.items())
        for start in range(0, len(self._counts), _PIECE):
            types, counts = zip(*islice(items, _PIECE), strict=True)
            firsts = self._firsts[start : start + _PIECE].tolist()
            yield {"types": types, "counts": counts, "firsts": firsts}
        yield {"records": self.records, "tokens": self.tokens}

    def merge(self, part: Record) -> None:
        if "types" not in part:
            self.records += part["records"]
            self.tokens += part["tokens"]
            return
        counts = self._counts
        columns = part["types"], part["counts"], part["firsts"]
        for token, count, first in zip(*columns, strict=True):
            if token in counts:
                counts[token] += count
            else:
                counts[token] = count
                self._firsts.append(self.tokens + first)

    def report(self, top: int, most: int) -> Iterator[tuple[str, Record]]:
        spectrum = Counter(self._counts.values())
        growth = [(number, bisect_left(self._firsts, number)) for number in grid(self.tokens)]
        head: Record = {"records": self.records, "tokens": self.tokens, "types": len(self._counts)}
        if self.tokens:
            head |= measures(spectrum, self.tokens)
            head |= fit_heaps(growth)
        yield "tokens", head
        for number, types in growth:
            yield "growth", {"tokens": number, "types": types}
        for frequency in sorted(spectrum):
            if frequency > most:
                break
            yield "spectrum", {"count": frequency, "types": spectrum[frequency]}
        best = heapq.nsmallest(top, self._counts.items(), key=lambda item: (-item[1], item[0]))
        for rank, (token, count) in enumerate(best, 1):
            share = count / self.tokens
            yield "top", {"rank": rank, "token": token, "count": count, "share": share}


def measures(spectrum: Mapping[int, int], tokens: int) -> Record:
    """Measures of a frequency spectrum: V(m), the number of types that occur m times, by m.

    `type_token_ratio` falls with the length of a text; `yule_k` does not in theory, and hardly in
    practice (Tweedie and Baayen 1998, equation 16):
    K = 10^4 (sum over m of m^2 V(m) - N) / N^2.
    """
    types = sum(spectrum.values())
    squares = sum(count * count * number for count, number in spectrum.items())
    hapax = spectrum.get(1, 0)
    made: Record = {
        "type_token_ratio": types / tokens,
        "yule_k": 1e4 * (squares - tokens) / tokens**2,
        "hapax": hapax,
        "hapax_share": hapax / types,
    }
    exponent = fit_zipf(spectrum)
    return made if exponent is None else {**made, "zipf_exponent": exponent}


def fit_zipf(spectrum: Mapping[int, int]) -> float | None:
    """The exponent s of Zipf's law by maximum likelihood.

    The law gives the type of rank r, of V types, the share r^-s / (1^-s + ... + V^-s) of all
    tokens: a zeta distribution cut off at V, fitted to ranks as by Baixeries, Elvevåg and
    Ferrer-i-Cancho (2013). The likelihood is highest where the mean of log r under the law is that
    of the tokens. Least squares on log rank and log frequency would follow the rare types, which
    are most of the points. Ranks are taken from the data, so the fit describes, and tests nothing.

    Returns:
        The exponent to six decimals, or None where all types occur equally often: no order, no law.
    """
    if len(spectrum) < 2:
        return None
    rank, logs, tokens = 0, 0.0, 0
    for count in sorted(spectrum, reverse=True):
        after = rank + spectrum[count]
        logs += count * (math.lgamma(after + 1) - math.lgamma(rank + 1))
        tokens += count * spectrum[count]
        rank = after
    wanted = logs / tokens
    low, high = 0.0, 1.0
    while _mean_log(high, rank) > wanted:
        low, high = high, 2 * high
    while high - low > 1e-10 * high:
        middle = (low + high) / 2
        if _mean_log(middle, rank) > wanted:
            low = middle
        else:
            high = middle
    return round((low + high) / 2, 6)


def _mean_log(exponent: float, types: int) -> float:
    """The mean of log r where r from 1 to `types` has a weight of r^-exponent."""
    near = min(types, 100)
    logs = [math.log(rank) for rank in range(1, near + 1)]
    weights = [math.exp(-exponent * log) for log in logs]
    total = math.fsum(weights)
    mean = math.fsum(log * weight for log, weight in zip(logs, weights, strict=True))
    if types > near:
        more = _tail(exponent, near, types)
        total, mean = total + more[0], mean + more[1]
    return mean / total


def _tail(exponent: float, low: int, high: int) -> tuple[float, float]:
    """Sums of x^-s and of x^-s log x over low < x <= high, by Euler and Maclaurin.

    With f''' next, the error is below 1e-10 of the sum from low = 100 on.
    """
    t = 1 - exponent
    a, b = math.log(low), math.log(high)
    fa, fb = math.exp(-exponent * a), math.exp(-exponent * b)
    plain = _integral(t, a, b, 0)
    logged = _integral(t, a, b, 1)
    plain += (fb - fa) / 2 - exponent * (fb / high - fa / low) / 12
    slope = (fb * (1 - exponent * b) / high - fa * (1 - exponent * a) / low) / 12
    logged += (fb * b - fa * a) / 2 + slope
    return plain, logged


def _integral(t: float, a: float, b: float, power: int) -> float:
    """The integral of u^power e^(t u) from a to b, with power 0 or 1; x = e^u."""
    if abs(t) * b < 1e-3:  # the closed forms cancel: a series instead
        return math.fsum(
            t**k / math.factorial(k) * (b ** (k + power + 1) - a ** (k + power + 1))
            / (k + power + 1)
            for k in range(6)
        )  # fmt: skip
    ea, eb = math.exp(t * a), math.exp(t * b)
    if power == 0:
        return (eb - ea) / t
    return (eb * (b - 1 / t) - ea * (a - 1 / t)) / t


def grid(tokens: int) -> list[int]:
    """1, 2, 5, 10, 20, 50 and so on below `tokens`, and that itself."""
    made = []
    power = 1
    while power < tokens:
        made += [step for step in (power, 2 * power, 5 * power) if step < tokens]
        power *= 10
    return [*made, tokens] if tokens else []


def fit_heaps(growth: Sequence[tuple[int, int]]) -> Record:
    """Heaps' law, V = K N^beta: least squares of log V on log N (Manning et al. 2008, 5.1.1).

    Args:
        growth: N and V; those from N = 1000 on are taken.

    Returns:
        `heaps_k`, `heaps_beta`; nothing where fewer than two points are left.
    """
    points = [(math.log(n), math.log(v)) for n, v in growth if n >= _HEAPS_FROM]
    if len(points) < 2:
        return {}
    mean_x = math.fsum(x for x, _ in points) / len(points)
    mean_y = math.fsum(y for _, y in points) / len(points)
    across = math.fsum((x - mean_x) * (y - mean_y) for x, y in points)
    beta = across / math.fsum((x - mean_x) ** 2 for x, _ in points)
    return {"heaps_k": math.exp(mean_y - beta * mean_x), "heaps_beta": beta}
