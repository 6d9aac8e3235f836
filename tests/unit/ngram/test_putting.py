"""Text that compiled functions write."""

import numpy as np
import pytest

from seqtools.ngram.putting import put_bytes, put_whole


@pytest.mark.parametrize("number", [0, 7, 9, 10, 99, 100, 1234567890, 10**15, (1 << 63) - 1])
def test_whole_numbers(number: int) -> None:
    out = np.zeros(30, dtype=np.uint8)
    end = put_whole(number, out, 2)
    assert out[:end].tobytes() == b"\0\0" + str(number).encode()
    assert not out[end:].any()


def test_bytes_of_another_array() -> None:
    out = np.zeros(6, dtype=np.uint8)
    assert put_bytes(np.frombuffer(b"abcdef", dtype=np.uint8), 1, 4, out, 2) == 5
    assert out.tobytes() == b"\0\0bcd\0"
    assert put_bytes(out, 3, 3, out, 6) == 6  # nothing
