"""Timing two things in turn, so that a noisy machine is noisy for both."""

import os
import pathlib
import statistics
import subprocess
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[2]
PYTHON = str(ROOT / ".venv" / "bin" / "python")


class Ratio(NamedTuple):
    """Medians of two measurements taken in turn, and of their ratios round by round."""

    ours: float
    theirs: float
    ratio: float
    rounds: int


def tool(name: str) -> str:
    """The installed command."""
    return str(ROOT / ".venv" / "bin" / name)


def seconds(command: Sequence[str], stdin: str | os.PathLike[str] = os.devnull) -> float:
    """Wall time of a process that must succeed; what it prints is thrown away."""
    with open(stdin, "rb") as source:
        start = time.perf_counter()
        subprocess.run(
            command, stdin=source, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True
        )
        return time.perf_counter() - start


def compare(ours: Callable[[], float], theirs: Callable[[], float], rounds: int) -> Ratio:
    """Measure both `rounds` times in turn; the ratio is ours over theirs."""
    ours(), theirs()  # warm the file cache
    pairs = [(ours(), theirs()) for _ in range(rounds)]
    return Ratio(
        statistics.median(pair[0] for pair in pairs),
        statistics.median(pair[1] for pair in pairs),
        statistics.median(pair[0] / pair[1] for pair in pairs),
        rounds,
    )
