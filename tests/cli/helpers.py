"""Commands as subprocesses, the way a shell runs them."""

import atexit
import functools
import os
import pathlib
import subprocess
import sys
import tempfile
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = ROOT / "bin"
WARM = {f"seq-{name}": f"seqtools.cli.{name}" for name in ("ngram", "train", "decode")}
"""Programs that load much, and their modules; see `tests.cli.warm`."""


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


@functools.cache
def warm() -> pathlib.Path:
    """A folder with programs that need not load much, as long as this process lives."""
    folder = tempfile.TemporaryDirectory(prefix="seqtools-warm-")
    script = str(ROOT / "tests" / "cli" / "warm.py")
    server = subprocess.Popen(
        [sys.executable, script, folder.name, str(BIN), *map("=".join, WARM.items())],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, env=environment(),
    )  # fmt: skip
    assert server.stdout.readline() == b"ready\n"

    def end() -> None:
        server.communicate()
        folder.cleanup()

    atexit.register(end)
    return pathlib.Path(folder.name)


def run(
    name: str,
    *arguments: str,
    stdin: bytes = b"",
    env: dict[str, str] | None = None,
    cwd: pathlib.Path | None = None,
    timeout: float = 120,
) -> Completed:
    """Run a command to its end."""
    started = [str(warm() / name)] if name in WARM and env is None else command(name)
    done = subprocess.run(
        [*started, *arguments],
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
    env = environment()
    if any(name in line for name in WARM):
        env["PATH"] = f"{warm()}{os.pathsep}{env['PATH']}"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", line],
        input=stdin,
        capture_output=True,
        env=env,
        cwd=cwd,
        timeout=timeout,
        check=False,
    )
    return Completed(done.returncode, done.stdout, done.stderr.decode("utf-8", "replace"))
