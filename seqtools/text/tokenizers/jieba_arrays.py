"""What jieba does after its dictionary, on arrays: for much text at once, with the same results.

All runs of single Han characters go through the hidden Markov model together, one step for the
second characters, one for the third, and so on; see `jieba_hmm` for the model, whose sums and
comparisons these are.
"""

from __future__ import annotations

from itertools import compress

import numpy as np
from numpy.typing import NDArray

from seqtools.text.tokenizers.jieba_hmm import NEVER, STEPS
from seqtools.text.tokenizers.jieba_native import LETTERS, Runs, cut_letters

_FIRST, _LAST = 0x4E00, 0x9FD5  # the Han characters that jieba joins
_LONG = 64  # characters of a run that is better done alone
_S, _B, _E, _M = 1, 2, 4, 8  # states, by the bit that tells where they come from

_Bools = NDArray[np.bool_]
_Integers = NDArray[np.intp]


class RunArrays:
    """Cut the runs of single characters among many tokens.

    Args:
        runs: what does them one by one.
    """

    def __init__(self, runs: Runs) -> None:
        self._one = runs
        finalseg = runs.unknown.finalseg
        self._start = [finalseg.start_P[state] for state in "BMES"]
        self._steps = [finalseg.trans_P[step[0]][step[1]] for step in STEPS]
        self._emit = np.full((4, _LAST - _FIRST + 1), NEVER)
        for row, state in zip(self._emit, "BMES", strict=True):
            table = finalseg.emit_P[state]
            codes = np.fromiter(map(ord, table), np.intp, len(table))
            inside = (codes >= _FIRST) & (codes <= _LAST)
            row[codes[inside] - _FIRST] = np.fromiter(table.values(), float, len(table))[inside]

    def cut(self, tokens: list[str]) -> list[str]:
        """The tokens, each run of single characters cut anew."""
        text = "".join(tokens)
        codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
        sizes = np.fromiter(map(len, tokens), np.intp, len(tokens))
        ends = np.cumsum(sizes)
        first = codes[ends - sizes].astype(np.intp)
        single = sizes == 1
        han = single & (first >= _FIRST) & (first <= _LAST)
        lettered = np.isin(first, [ord(letter) for letter in LETTERS])
        for place in np.flatnonzero(lettered & ~single).tolist():
            token = tokens[place]
            lettered[place] = token.isascii() and token.isalnum()
        begins = self._begins(text, first, ends, han, lettered)
        words = tokens.copy()
        places = np.flatnonzero(begins)
        many = np.flatnonzero(np.diff(places) > 1)
        starts, stops = places[many], places[many + 1]
        lefts, rights = ends[starts] - 1, ends[stops - 1]
        for start, left, right in zip(*map(_list, (starts, lefts, rights)), strict=True):
            words[start] = text[left:right]
        for start, stop in zip(*map(_list, _runs(lettered)), strict=True):
            pieces = cut_letters("".join(tokens[start:stop]))
            words[start : start + len(pieces)] = pieces  # there are no more of them
            begins[start + len(pieces) : stop] = False
        return list(compress(words, begins[:-1].tolist()))

    def _begins(
        self, text: str, first: _Integers, ends: _Integers, han: _Bools, lettered: _Bools
    ) -> _Bools:
        """Which of the tokens, and of the end, begin a word."""
        starts, stops = _runs(han)
        begins = np.ones(len(han) + 1, bool)
        short = stops - starts <= _LONG
        self._walk(first - _FIRST, starts[short], stops[short], begins)
        for start, stop in zip(*map(_list, (starts[~short], stops[~short])), strict=True):
            words = self._one.unknown.cut(text[ends[start] - 1 : ends[stop - 1]])
            begins[start:stop] = False
            begins[start + np.cumsum([0, *map(len, words[:-1])])] = True
        # A run that is itself a word, of those that did not pay, stays in single characters.
        joined = np.append(0, np.cumsum(~begins))
        beside = np.append(lettered, False)
        alone = ~(beside[stops] | beside[starts - 1]) & (joined[stops] > joined[starts])
        starts, stops = starts[alone], stops[alone]
        lefts, rights = ends[starts] - 1, ends[stops - 1]
        for start, stop, left, right in zip(
            *map(_list, (starts, stops, lefts, rights)), strict=True
        ):
            if self._one.has_word(text[left:right]):
                begins[start:stop] = True
        return begins

    def _walk(self, codes: _Integers, starts: _Integers, stops: _Integers, begins: _Bools) -> None:
        """Viterbi's algorithm over all runs; clears `begins` where a word goes on."""
        sizes = stops - starts
        order = np.argsort(-sizes, kind="stable")
        starts, sizes = starts[order], sizes[order]
        # how many runs have a character at each place
        active = np.searchsorted(-sizes, -np.arange(1, sizes.max(initial=1) + 1), "right")
        eb, sb, es, ss, be, me, bm, mm = self._steps
        emit = self._emit[:, codes[starts]]
        b, m, e, s = (begin + row for begin, row in zip(self._start, emit, strict=True))
        state = np.empty(len(starts), np.uint8)
        back = []
        for place, count in enumerate(active[1:].tolist(), start=1):
            state[count : len(e)] = np.where(e > s, _E, _S)[count:]
            b, m, e, s = b[:count], m[:count], e[:count], s[:count]
            emit_b, emit_m, emit_e, emit_s = self._emit[:, codes[starts[:count] + place]]
            s_s, s_e = s + ss + emit_s, e + es + emit_s
            b_s, b_e = s + sb + emit_b, e + eb + emit_b
            e_b, e_m = b + be + emit_e, m + me + emit_e
            m_b, m_m = b + bm + emit_m, m + mm + emit_m
            back.append(
                (s_e > s_s) * np.uint8(_S) + (b_e > b_s) * np.uint8(_B)
                + (e_m >= e_b) * np.uint8(_E) + (m_m >= m_b) * np.uint8(_M)
            )  # fmt: skip
            b, m = np.maximum(b_s, b_e), np.maximum(m_b, m_m)
            e, s = np.maximum(e_b, e_m), np.maximum(s_s, s_e)
        state[: len(e)] = np.where(e > s, _E, _S)
        for place in range(len(back), 0, -1):
            sources = back[place - 1]
            here = state[: len(sources)]
            begins[starts[: len(sources)] + place] = here < _E
            came = (sources & here) > 0
            state[: len(sources)] = np.where(
                here < _E, np.where(came, _E, _S), np.where(came, _M, _B)
            )


def _runs(member: _Bools) -> tuple[_Integers, _Integers]:
    """Where runs of two and more members start and end."""
    edges = np.diff(np.concatenate(([False], member, [False])).astype(np.int8))
    starts, stops = np.flatnonzero(edges > 0), np.flatnonzero(edges < 0)
    several = stops - starts > 1
    return starts[several], stops[several]


def _list(array: _Integers) -> list[int]:
    return array.tolist()  # type: ignore[no-any-return]
