"""Random numbers that belong to a record: the same whatever batch it is in, and wherever in it.

Every record is a stream of splitmix64 (Steele, Lea and Flood 2014, figure 17), whose n-th number
can be had without those before: all numbers of a batch come from a few operations on arrays. What
stream it is follows from the seed, the epoch and the record's name.
"""

from __future__ import annotations

from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from seqtools.streams.records import dumps

Keys = NDArray[np.uint64]
Draws = NDArray[np.float64]
Flags = NDArray[np.bool_]
Counts = NDArray[np.int64]

_STEP = 0x9E3779B97F4A7C15
_PURPOSE = 1 << 40  # numbers that each purpose has to itself


def key_of(name: str | int) -> int:
    """64 bits for a record's `id` or number; `1` and `"1"` differ."""
    return int.from_bytes(blake2b(dumps(name), digest_size=8).digest(), "little")


def epoch_keys(keys: Keys, seed: int, epoch: int) -> Keys:
    """Give the streams of records, by their `keys` (rows,), in one epoch; `seed` any integer."""
    entropy = [seed % 2**64, int(seed < 0), epoch, 1]
    return _mix(keys ^ np.random.SeedSequence(entropy).generate_state(1, np.uint64))


def uniforms(streams: Keys, purpose: int, count: int) -> Draws:
    """Draw from [0, 1), (rows, count); the same first ones for any larger count.

    Args:
        streams: (rows,) as `epoch_keys` gives them.
        purpose: what the numbers are for: other ones for each.
        count: how many for each row.
    """
    draws: Draws = (bits(streams, purpose, count) >> np.uint64(11)) * np.float64(2**-53)
    return draws


def bits(streams: Keys, purpose: int, count: int) -> Keys:
    """Draw 64 bits, (rows, count): numbers 1 to `count` of splitmix64 where `purpose` is 0."""
    places = np.arange(1, count + 1, dtype=np.uint64) + np.uint64(purpose * _PURPOSE)
    return _mix(streams[:, None] + places * np.uint64(_STEP))


def _mix(numbers: Keys) -> Keys:
    mixed = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def round_at_random(values: Draws, draws: Draws) -> Counts:
    """Round `values` (rows,) up or down, so that they are kept on average; `draws` (rows,)."""
    return np.floor(values + draws).astype(np.int64)


def choose(draws: Draws, allowed: Flags, counts: Counts) -> Flags:
    """Choose places of each row, every set of so many allowed ones being equally likely.

    Args:
        draws: (rows, width) from [0, 1), independent.
        allowed: (rows, width) which may be chosen.
        counts: (rows,) how many are, not above the number of allowed ones.

    Returns:
        (rows, width), True for the chosen: those with the smallest draws.
    """
    order = np.argsort(np.where(allowed, draws, np.inf), axis=1, kind="stable")
    chosen = np.zeros_like(allowed)
    np.put_along_axis(chosen, order, np.arange(draws.shape[1]) < counts[:, None], axis=1)
    return chosen
