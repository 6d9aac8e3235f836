"""Words that are in no dictionary: the hidden Markov model of jieba's finalseg, in linear time.

Each Han character begins a word (B), is in the middle of one (M), ends one (E) or is one (S). What
jieba computes with dictionaries and copied paths is computed here with the same sums in the same
order, so that every comparison of two floats comes out as it does there; where two are equal, jieba
takes the state with the greater letter.
"""

from __future__ import annotations

from typing import Any

NEVER = -3.14e100  # jieba's logarithm of zero
STEPS = ("EB", "SB", "ES", "SS", "BE", "ME", "BM", "MM")  # from one state to another


class UnknownWords:
    """Cut runs of Han characters as `jieba.finalseg` does.

    Args:
        finalseg: that module, whose probabilities are used.
    """

    def __init__(self, finalseg: Any) -> None:
        self.finalseg = finalseg
        self._begin = tuple(finalseg.start_P[state] for state in "BMES")
        self._steps = tuple(finalseg.trans_P[step[0]][step[1]] for step in STEPS)
        self._emit = _Emissions(finalseg.emit_P)

    def cut(self, run: str) -> list[str]:
        """The words of `run`, one or more characters from U+4E00 to U+9FD5."""
        return _split(run, self._walk(run))

    def _walk(self, run: str) -> list[int]:
        """Viterbi's forward pass.

        Returns:
            for each character but the first, and for the end of the run, where the best ways come
            from: 1 is set where S comes from E and not S, 2 where B does, 4 where E comes from M
            and not B, 8 where M does; for the end, 1 where it comes from E and not S.
        """
        emit = self._emit
        eb, sb, es, ss, be, me, bm, mm = self._steps
        b, m, e, s = (begin + first for begin, first in zip(self._begin, emit[run[0]], strict=True))
        back = []
        for character in run[1:]:
            emit_b, emit_m, emit_e, emit_s = emit[character]
            source = 0
            next_s = s + ss + emit_s
            other = e + es + emit_s
            if other > next_s:
                next_s = other
                source = 1
            next_b = s + sb + emit_b
            other = e + eb + emit_b
            if other > next_b:
                next_b = other
                source += 2
            e = b + be + emit_e
            other = m + me + emit_e
            if other >= e:
                e = other
                source += 4
            other = b + bm + emit_m
            m = m + mm + emit_m
            if m >= other:
                source += 8
            else:
                m = other
            b = next_b
            s = next_s
            back.append(source)
        back.append(int(e > s))
        return back


def _split(run: str, back: list[int]) -> list[str]:
    """The words along the best path, followed from its end; see `_walk`."""
    words = []
    end = len(run)
    state = 4 if back[-1] else 1  # by the bit that tells where it comes from
    for place in range(len(run) - 1, 0, -1):
        first = back[place - 1] & state  # the first of the two states it may come from
        if state < 4:  # S or B: a word begins here
            words.append(run[place:end])
            end = place
            state = 4 if first else 1
        else:
            state = 8 if first else 2
    words.append(run[:end])
    words.reverse()
    return words


class _Emissions(dict[str, tuple[float, ...]]):
    """Logarithms of the probabilities of a character in the states B, M, E, S."""

    def __init__(self, table: dict[str, dict[str, float]]) -> None:
        self._tables = [table[state] for state in "BMES"]

    def __missing__(self, character: str) -> tuple[float, ...]:
        found = tuple(table.get(character, NEVER) for table in self._tables)
        self[character] = found
        return found
