import os
import signal
import threading
import time

import pytest

from seqtools.errors import SeqtoolsError
from seqtools.text.augment.program import Program


def nothing():
    pass


def through_lazily(command, parts):
    with Program(command) as program:
        program.feed(part for part in parts)
        yield from program.lines(nothing)
        program.join()


def through(command, parts):
    return list(through_lazily(command, parts))


def interrupt(program):
    with program:
        time.sleep(0.1)
        raise KeyboardInterrupt


BIG = [b"x" * 999 + b"\n"] * 2000  # more than the pipes hold, at both ends


@pytest.mark.parametrize("command", ["cat", "tac", "cat; sleep 0.1", "cat | cat"])
def test_neither_end_waits_for_the_other(command):
    assert through(command, BIG) == [b"x" * 999] * 2000


def test_lines():
    assert through("cat", [b"a\n", b"", b"b\n\nc"]) == [b"a", b"b", b"", b"c"]
    assert through("cat", []) == []
    assert through("cat >/dev/null; printf 'a\\n\\nb'", BIG) == [b"a", b"", b"b"]


def test_a_program_that_reads_nothing():
    assert through("true", BIG) == []
    assert through("exec <&-; printf 'a\\n'; sleep 0.1", BIG) == [b"a"]


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("cat; exit 3", "the command failed with status 3: cat; exit 3"),
        ("kill -KILL $$", "the command was ended by SIGKILL: kill"),
    ],
)
def test_a_program_that_fails(command, said):
    with pytest.raises(SeqtoolsError, match=said):
        through(command, [b"a\n"])


def test_an_error_of_the_feeder_comes_after_the_lines_before():
    def parts():
        yield b"a\n"
        raise SeqtoolsError("bad")

    lines = through_lazily("cat; exit 1", parts())
    assert next(lines) == b"a"
    with pytest.raises(SeqtoolsError, match="bad"):
        next(lines)


def test_the_end_is_seen_while_the_feeder_waits():
    wait = threading.Event()

    def parts():
        yield b"a\n"
        wait.wait()

    with pytest.raises(SeqtoolsError, match="status 1"):
        through("head -n 1; exit 1", parts())
    wait.set()


def test_it_is_idle_before_each_wait():
    calls = []
    with Program("cat") as program:
        turn = threading.Event()

        def parts():
            yield b"a\n"
            turn.wait(60)
            yield b"b\n"

        def idle():
            calls.append(list(seen))

        seen = []
        program.feed(parts())
        for line in program.lines(idle):
            seen.append(line)
            threading.Timer(0.1, turn.set).start()
    assert seen == [b"a", b"b"]
    assert [b"a"] in calls


@pytest.mark.parametrize(
    "command",
    [
        "cat",
        "trap '' TERM; while :; do sleep 0.05; done",
        "cat | cat",
        "(trap '' TERM; sleep 300) | cat",
    ],
)
def test_no_process_is_left_on_an_error(command, monkeypatch):
    monkeypatch.setattr("seqtools.text.augment.program._PATIENCE", 0.3)
    program = Program(command)
    with pytest.raises(KeyboardInterrupt):
        interrupt(program)
    assert program._process.returncode in (-signal.SIGTERM, -signal.SIGKILL)
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            os.killpg(program._process.pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.01)
    raise AssertionError("a process of the group is left")
