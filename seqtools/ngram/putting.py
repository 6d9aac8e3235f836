"""Bytes of text into an array, for compiled functions that write."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from seqtools.ngram.compiled import inlined

Array: TypeAlias = np.ndarray[Any, Any]


@inlined
def put_bytes(source: Array, begin: int, end: int, out: Array, at: int) -> int:
    """Write source[begin:end] at a place; the place after it."""
    for position in range(end - begin):
        out[at + position] = source[begin + position]
    return at + end - begin


@inlined
def put_whole(number: Any, out: Array, at: int) -> int:
    """Write a whole number, not negative, in decimal; the place after it."""
    ten = np.uint64(10)  # int64 would make floats of uint64
    rest = np.uint64(number)
    end = at + 1
    while rest >= ten:
        rest //= ten
        end += 1
    rest = np.uint64(number)
    for position in range(end - 1, at - 1, -1):
        out[position] = np.uint64(48) + rest % ten
        rest //= ten
    return end
