"""Records that stand in a corpus twice, or nearly."""

from __future__ import annotations

import sys
from array import array
from base64 import b64decode, b64encode
from collections.abc import Iterator
from hashlib import blake2b
from typing import TYPE_CHECKING, Literal, NamedTuple

from seqtools.errors import FormatError
from seqtools.streams.records import Record

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from seqtools.text.stats.quality_sketches import Sketches

_BATCH = 1 << 14  # code points that are sketched at once
_CHUNK = 1 << 14  # records in a record of a dumped state


class Copies(NamedTuple):
    """Records that are like an earlier one, in the order of their numbers.

    Attributes:
        numbers: of the records.
        originals: numbers of the earlier ones.
        likeness: estimates of the resemblance; 1 for exact duplicates.
    """

    numbers: array[int]
    originals: array[int]
    likeness: array[float]


class Duplicates:
    """Fingerprints of texts: 16 bytes a record, and 128 more for near-duplicates.

    To find duplicates at the end takes some 50 more (100 where all are), to find near-duplicates
    some 100.

    Exact duplicates have the same hash of 64 bits (BLAKE2b). That among n different texts any two
    have it by chance has a probability below n² / 2^65: 3 in a million for ten million.

    Args:
        threshold: resemblance of near-duplicates (see `quality_sketches`), or None: not looked for.
        shingle: code points of their shingles.
    """

    def __init__(self, threshold: float | None = None, shingle: int = 4) -> None:
        self._threshold = threshold
        self._shingle = shingle
        self._numbers = array("Q")
        self._hashes = array("Q")
        self._sketches = bytearray()
        self._pending: list[str] = []
        self._held = 0

    def add(self, text: str, number: int) -> None:
        """Take in the text of a record."""
        self._numbers.append(number)
        digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        self._hashes.append(int.from_bytes(digest, "little"))
        if self._threshold is not None:
            self._pending.append(text)
            self._held += len(text)
            if self._held >= _BATCH:
                self._sketch()

    def _sketch(self) -> None:
        if not self._pending:
            return
        from seqtools.text.stats.quality_sketches import normal, sketch

        texts = [normal(text) for text in self._pending]
        self._sketches += sketch(texts, self._shingle).tobytes()
        self._pending, self._held = [], 0

    def dump(self) -> Iterator[Record]:
        """The state: arrays of 64-bit numbers, the lowest byte first, and bytes, in base64."""
        self._sketch()
        size = len(self._sketches) // max(1, len(self._numbers))
        for start in range(0, len(self._numbers), _CHUNK):
            end = start + _CHUNK
            yield {
                "numbers": pack(self._numbers[start:end]),
                "hashes": pack(self._hashes[start:end]),
                "sketches": b64encode(self._sketches[start * size : end * size]).decode(),
            }

    def merge(self, part: Record) -> None:
        """Take in a record of another's state."""
        self._sketch()
        numbers, hashes = unpack(part["numbers"]), unpack(part["hashes"])
        sketches = b64decode(part["sketches"])
        if len(numbers) != len(hashes):
            raise ValueError("as many hashes as numbers are needed")
        self._numbers += numbers
        self._hashes += hashes
        self._sketches += sketches

    def exact(self) -> Copies:
        """The records whose text is that of an earlier one, with the first such.

        Raises:
            FormatError: two records have the same number, so which is the earlier one is unknown.
        """
        import numpy as np

        if not self._numbers:
            return Copies(array("Q"), array("Q"), array("d"))
        numbers, hashes = (np.frombuffer(each, np.uint64) for each in (self._numbers, self._hashes))
        _refuse_twice(numbers)
        order = np.lexsort((numbers, hashes))
        numbers, hashes = numbers[order], hashes[order]
        same = np.zeros(len(order), bool)
        same[1:] = hashes[1:] == hashes[:-1]
        first = np.where(same, 0, np.arange(len(order)))
        first = np.maximum.accumulate(first, out=first)[same]
        copies, originals = numbers[same], numbers[first]
        del order, numbers, hashes, first
        by_number = np.argsort(copies)
        return _copies(copies[by_number], originals[by_number], np.ones(len(copies)))

    def near(self, exact: Copies) -> Copies:
        """The records that are like an earlier one but are no `exact` duplicates."""
        import numpy as np

        from seqtools.text.stats.quality_sketches import SIZE, find_near

        assert self._threshold is not None, "made without a threshold"
        self._sketch()
        if not self._numbers:
            return exact
        numbers = np.frombuffer(self._numbers, np.uint64)
        order = np.argsort(numbers)
        kept = order[~np.isin(numbers[order], np.array(exact.numbers, np.uint64))]
        sketches: Sketches = np.frombuffer(self._sketches, np.uint8).reshape(-1, SIZE)
        match, likeness = find_near(sketches, self._threshold, kept)
        found = np.flatnonzero(match >= 0)
        numbers = numbers[kept]
        return _copies(numbers[found], numbers[match[found]], likeness[found])


def _refuse_twice(numbers: NDArray[np.uint64]) -> None:
    """See that each number is there once."""
    import numpy as np

    ordered = np.sort(numbers)
    twice = ordered[1:][ordered[1:] == ordered[:-1]]
    if len(twice):
        raise FormatError(
            f"there are two records {twice[0]}: parts of a corpus need its numbers"
            " (--first-record), and each goes in once"
        )


def _copies(
    numbers: NDArray[np.uint64], originals: NDArray[np.uint64], likeness: NDArray[np.float64]
) -> Copies:
    """The columns as arrays, which need fewer bytes than lists."""
    columns = [column.tobytes() for column in (numbers, originals, likeness)]
    return Copies(array("Q", columns[0]), array("Q", columns[1]), array("d", columns[2]))


def pack(numbers: array[int]) -> str:
    """An array of 64-bit numbers in base64, the lowest byte first."""
    return b64encode(_in_order(numbers).tobytes()).decode()


def unpack(text: str, kind: Literal["Q", "q"] = "Q") -> array[int]:
    """What `pack` packed; `kind` is the array's."""
    numbers = array(kind)
    numbers.frombytes(b64decode(text))
    return _in_order(numbers)


def _in_order(numbers: array[int]) -> array[int]:
    """The numbers with the lowest byte first, or from there; the array itself where it is so."""
    if sys.byteorder == "little":
        return numbers
    swapped = array(numbers.typecode, numbers)
    swapped.byteswap()
    return swapped
