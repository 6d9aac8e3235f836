"""The bar: on a terminal only, with rate and time left, and messages above it."""

import os
import pty
import re
import subprocess
import sys

import pytest

from tests.cli.helpers import ROOT, environment

# Two seconds of work, as the bar's clock has it.
SCRIPT = """
import sys, time
from seqtools.cli import _progress, _run
clock = iter(range(1000))
time.monotonic = lambda: next(clock) / 10
with _progress.Bar("records", quiet="--quiet" in sys.argv) as bar:
    for step in range(1, 21):
        bar.update(step * 1000, step, 20 if "--total" in sys.argv else None, f"note {step}")
        if step == 15:
            _run.message("one message \\x1b[31m, one line")
print("out")
"""


def run(*arguments, on_terminal=True, **env):
    """What the script writes on stdout and stderr."""
    ours, theirs = pty.openpty() if on_terminal else os.pipe()
    environ = environment(**{"TERM": "xterm-256color", "COLUMNS": "100", **env})
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *arguments],
        stdout=subprocess.PIPE, stderr=theirs, env=environ, cwd=ROOT, check=False,
    )  # fmt: skip
    os.close(theirs)
    written = b""
    try:
        while chunk := os.read(ours, 1 << 16):
            written += chunk
    except OSError:  # the end of a terminal
        pass
    os.close(ours)
    assert (done.returncode, done.stdout) == (0, b"out\n")
    return written.decode()


MESSAGE = "one message \\x1b[31m, one line"


def test_on_a_terminal_there_are_rate_note_and_time_left():
    shown = run("--total")
    assert "20,000 records" in shown
    assert "note 19" in shown
    assert re.search(r"\d,\d{3} records/s", shown)
    assert re.search(r"0:00:0\d", shown)
    assert shown.count(MESSAGE) == 1
    assert "\x1b[2K" in shown  # it goes away


def test_where_the_total_is_unknown_there_is_no_time_left():
    shown = run()
    assert "20,000 records" in shown
    assert not re.search(r"0:00:0\d", shown)


@pytest.mark.parametrize(
    ("arguments", "env", "on_terminal"),
    [
        (["--quiet"], {}, True),
        ([], {"TERM": "dumb"}, True),
        ([], {}, False),
        ([], {"FORCE_COLOR": "1"}, False),
    ],
)
def test_elsewhere_there_is_none(arguments, env, on_terminal):
    shown = run(*arguments, on_terminal=on_terminal, **env)
    assert shown.replace("\r\n", "\n") == f"{MESSAGE}\n"


def test_without_colour_the_text_is_still_there():
    shown = run("--total", NO_COLOR="1")
    assert "20,000 records" in shown
    colours = [code for code in re.findall(r"\x1b\[([\d;]*)m", shown) if code not in ("", "0")]
    assert colours == []
