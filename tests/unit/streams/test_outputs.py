"""Outputs: straight through to pipes and devices, and files whole or not at all."""

import fcntl
import os
import signal
import stat
import subprocess
import sys
import threading
import time

import pytest

from seqtools.errors import ConfigError
from seqtools.streams.files import STDIN
from seqtools.streams.outputs import (
    ClosedReader,
    FileOutput,
    Output,
    OutputError,
    is_regular_target,
    open_output,
    replace_file,
)


def write(tmp_path, data, name):
    path = tmp_path / name
    path.write_bytes(data)
    return str(path)


def read(path):
    with open(path, "rb") as handle:
        return handle.read()


def test_the_file_appears_whole_at_commit_and_not_before(tmp_path):
    path = tmp_path / "out"
    output = open_output(str(path))
    output.write(b"x" * 1_000_000)
    output.flush()
    assert not path.exists()
    output.commit()
    assert path.read_bytes() == b"x" * 1_000_000
    assert os.listdir(tmp_path) == ["out"]


def test_discarding_leaves_the_target_and_nothing_beside_it(tmp_path):
    path = write(tmp_path, b"old", "out")
    output = open_output(path)
    output.write(b"x" * 1_000_000)
    output.discard()
    assert read(path) == b"old"
    assert os.listdir(tmp_path) == ["out"]


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o755, 0o444])
def test_the_mode_of_the_target_is_kept(tmp_path, mode):
    path = write(tmp_path, b"old", "out")
    os.chmod(path, mode)
    replace_file(path, b"new")
    assert stat.S_IMODE(os.stat(path).st_mode) == mode
    assert read(path) == b"new"


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_a_new_file_has_the_mode_of_the_umask(tmp_path, umask, mode):
    saved = os.umask(umask)
    try:
        replace_file(str(tmp_path / "out"), b"")
    finally:
        os.umask(saved)
    assert stat.S_IMODE(os.stat(tmp_path / "out").st_mode) == mode


@pytest.mark.parametrize("exists", [True, False], ids=["target", "dangling"])
def test_a_link_is_followed_and_stays_one(tmp_path, exists):
    (tmp_path / "far").mkdir()
    target, link = tmp_path / "far" / "target", tmp_path / "link"
    if exists:
        target.write_bytes(b"old")
    link.symlink_to("far/target")
    output = open_output(str(link))
    output.write(b"new")
    assert len(os.listdir(tmp_path / "far")) == 1 + exists  # the temporary file is beside it
    output.commit()
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    assert os.listdir(tmp_path / "far") == ["target"]


def test_a_pipe_is_written_straight_through(tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    assert not is_regular_target(str(fifo))
    received: list[bytes] = []

    def receive():
        with open(fifo, "rb") as handle:
            received.append(handle.readline())
            received.append(handle.read())

    reader = threading.Thread(target=receive)
    reader.start()
    output = open_output(str(fifo))
    output.write(b"a\n")
    output.flush()
    while not received:
        time.sleep(0.01)
    output.write(b"b\n")
    output.commit()
    reader.join()
    assert received == [b"a\n", b"b\n"]
    assert stat.S_ISFIFO(os.stat(fifo).st_mode)


def test_devices_are_written_to_and_full_ones_said(tmp_path):
    replace_file(os.devnull, b"x")
    with pytest.raises(OutputError, match="/dev/full: No space left on device"):
        replace_file("/dev/full", b"x")
    assert not is_regular_target("/dev/stdout")
    assert not is_regular_target("-")


@pytest.mark.parametrize("name", ["", ".", "new/", "missing/out", "file/out"])
def test_targets_that_cannot_be(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(ConfigError, match="cannot be written"):
        open_output(name)
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("name", ["n" * 255, "中" * 85, "a b\n*?[c]"])
def test_names_of_any_kind(tmp_path, name):
    replace_file(str(tmp_path / name), b"x")
    assert os.listdir(tmp_path) == [name]


KILLED = """
import os, signal, sys
from seqtools.streams.outputs import FileOutput
output = FileOutput(sys.argv[1])
output.write(b"x" * 1_000_000)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_kill_leaves_the_target_and_the_next_run_cleans_up(tmp_path):
    path = write(tmp_path, b"old", "out")
    done = subprocess.run([sys.executable, "-c", KILLED, path], check=False)
    assert done.returncode == -signal.SIGKILL
    assert read(path) == b"old"
    assert len(os.listdir(tmp_path)) == 2
    # Files like it that are not ours to remove.
    others = [".out.1.tmp", ".out.x.0123abcd.tmp", ".outer.1.0123abcd.tmp", "out.1.0123abcd.tmp"]
    for name in others:
        write(tmp_path, b"", name)
    open_output(path).discard()
    assert sorted(os.listdir(tmp_path)) == sorted([*others, "out"])


def test_the_temporary_file_of_one_who_lives_is_left(tmp_path):
    path = str(tmp_path / "out")
    slow = open_output(path)
    slow.write(b"slow")
    replace_file(path, b"quick")
    slow.commit()
    assert read(path) == b"slow"
    assert os.listdir(tmp_path) == ["out"]


def test_a_temporary_file_taken_for_a_stale_one_is_made_anew(tmp_path, monkeypatch):
    # Another run looks between the making of the file and its locking.
    lock, calls = fcntl.flock, []

    def late(descriptor, operation):
        calls.append(operation)
        if len(calls) == 1:
            [name] = os.listdir(tmp_path)
            os.unlink(tmp_path / name)
        return lock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", late)
    replace_file(str(tmp_path / "out"), b"x")
    assert len(calls) == 2
    assert (tmp_path / "out").read_bytes() == b"x"


def test_without_locks_files_are_written_and_none_removed(tmp_path, monkeypatch):
    def unsupported(descriptor, operation):
        raise OSError(37, "No locks available")

    monkeypatch.setattr(fcntl, "flock", unsupported)
    write(tmp_path, b"", ".out.1.0123abcd.tmp")
    replace_file(str(tmp_path / "out"), b"x")
    assert sorted(os.listdir(tmp_path)) == [".out.1.0123abcd.tmp", "out"]


def test_a_failing_commit_leaves_the_target(tmp_path, monkeypatch):
    path = write(tmp_path, b"old", "out")

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OutputError, match="out: No space left on device"):
        replace_file(path, b"new")
    assert read(path) == b"old"
    assert os.listdir(tmp_path) == ["out"]


def test_a_closed_reader_is_one_on_standard_output_alone():
    read_end, write_end = os.pipe()
    os.close(read_end)
    output = Output("pipe", write_end)
    output.write(b"x")
    with pytest.raises(OutputError, match="pipe: Broken pipe"):
        output.commit()
    saved = os.dup(1)
    os.dup2(write_end, 1)
    try:
        output = open_output(STDIN)
        output.write(b"x")
        with pytest.raises(ClosedReader):
            output.flush()
    finally:
        os.dup2(saved, 1)
        os.close(saved)
        os.close(write_end)


def test_a_full_pipe_that_does_not_block_is_waited_for():
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    received = []

    def drain():
        time.sleep(0.05)
        with open(read_end, "rb") as handle:
            received.append(handle.read())

    reader = threading.Thread(target=drain)
    reader.start()
    output = Output("pipe", write_end)
    output.write(b"x" * 1_000_000)
    output.commit()
    reader.join()
    assert len(received[0]) == 1_000_000


def test_file_output_flushes_nothing_early(tmp_path):
    output = FileOutput(str(tmp_path / "out"))
    output.write(b"a")
    output.flush()
    assert all(os.path.getsize(tmp_path / name) == 0 for name in os.listdir(tmp_path))
    output.discard()
