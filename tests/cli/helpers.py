"""Commands as subprocesses, the way a shell runs them."""

import os
import pathlib
import subprocess
import sys
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = ROOT / "bin"


class Completed(NamedTuple):
    """How a command ended."""

    status: int
    stdout: bytes
    stderr: str

    @property
    def lines(self) -> list[bytes]:
        """Lines of standard output, without their ends."""
        return self.stdout.split(b"\n")[:-1]


def environment(**extra: str) -> dict[str, str]:
    """Our environment with the launchers first on the path."""
    env = dict(os.environ, PATH=f"{BIN}{os.pathsep}{os.environ['PATH']}")
    for name in ("FORCE_COLOR", "NO_COLOR", "PYTHONWARNINGS"):
        env.pop(name, None)
    env.update(extra)
    return env


def command(name: str) -> list[str]:
    """The arguments that start a command with the Python that runs the tests."""
    return [sys.executable, str(BIN / name)]


def run(
    name: str,
    *arguments: str,
    stdin: bytes = b"",
    env: dict[str, str] | None = None,
    cwd: pathlib.Path | None = None,
    timeout: float = 120,
) -> Completed:
    """Run a command to its end."""
    done = subprocess.run(
        [*command(name), *arguments],
        input=stdin,
        capture_output=True,
        env=environment() if env is None else env,
        cwd=cwd,
        timeout=timeout,
        check=False,
    )
    return Completed(done.returncode, done.stdout, done.stderr.decode("utf-8", "replace"))


def shell(
    line: str, *, cwd: pathlib.Path | None = None, stdin: bytes = b"", timeout: float = 300
) -> Completed:
    """Run a line of bash, with the commands on the path."""
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", line],
        input=stdin,
        capture_output=True,
        env=environment(),
        cwd=cwd,
        timeout=timeout,
        check=False,
    )
    return Completed(done.returncode, done.stdout, done.stderr.decode("utf-8", "replace"))
