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


class Usage(NamedTuple):
    """What a process took: wall time, and the most memory its largest process held (10^6 bytes)."""

    seconds: float
    megabytes: float


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


def usage(
    command: Sequence[str],
    stdin: str | os.PathLike[str] = os.devnull,
    environment: dict[str, str] | None = None,
) -> Usage:
    """Time and memory of a process that must succeed; what it prints is thrown away.

    Whatever earlier runs left to be written to disk is written first.
    """
    os.sync()
    with open(stdin, "rb") as source:
        start = time.perf_counter()
        process = subprocess.Popen(
            command, stdin=source, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            env=environment,
        )  # fmt: skip
        assert process.stderr is not None
        said = process.stderr.read()
        _, status, used = os.wait4(process.pid, 0)
        taken = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{command[0]} ended with {process.returncode}: {said.decode()}")
    return Usage(taken, used.ru_maxrss * 1024 / 1e6)


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


def row(name: str, aim: str, result: Ratio, unit: str) -> None:
    """A line of the table on stdout."""
    print(
        f"| {name} | {result.ours:.4g} {unit} | {result.theirs:.4g} {unit} "
        f"| {result.ratio:.2f} | {aim} | {result.rounds} |",
        flush=True,
    )
