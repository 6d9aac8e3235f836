"""What every command owes, whatever it does: streams, records, bad input, signals, statuses.

A new command gets all of it by a row in `COMMANDS`.
"""

import contextlib
import fcntl
import gzip
import json
import os
import pathlib
import re
import shlex
import signal
import stat
import struct
import subprocess
import termios
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from .helpers import Completed, command, environment, run, shell


@dataclass(frozen=True)
class Command:
    """A command with a kind, and what it reads.

    Attributes:
        argv: name, kind and options; `{vocab}`, `{model}` are files, `{out}` is a new one.
        fields: makes the fields of a valid record from a text and the record's number.
        field: the field that must be there and of the right type; None where lines are plain text.
        filter: it writes a record for each record, before it waits for the next.
        shows: what it writes has the text in it.
        passes: what it writes is the record with fields more.
        numbered: what it writes has numbers of records in it.
        product: `-o` names a model, which only the whole run makes.
        rejects, shard, jobs: it has these options.
        empty: exit status where there is no input.
        children: processes that it starts itself.
        torch: it loads torch once a record proved valid, so a run costs seconds.
    """

    argv: tuple[str, ...]
    fields: Callable[[str, int], dict[str, Any]]
    field: str | None
    filter: bool = True
    shows: bool = True
    passes: bool = False
    numbered: bool = False
    product: bool = False
    rejects: bool = True
    shard: bool = True
    jobs: bool = False
    empty: int = 0
    children: int = 0
    torch: bool = False

    def __str__(self) -> str:
        words = [self.program.removeprefix("seq-"), self.argv[1]]
        return "-".join(words + ["reverse"] * ("--reverse" in self.argv))

    @property
    def program(self) -> str:
        return self.argv[0]

    def line(self, text: str, number: int = 1) -> bytes:
        """A valid line, without its end."""
        fields = self.fields(text, number)
        return text.encode() if self.field is None else dump({"id": f"r{number}", **fields})

    def stream(self, *lines: bytes) -> bytes:
        """The lines as the command wants them."""
        head = [batch_header(len(lines))] if self.program == "seq-train" else []
        return b"".join(line + b"\n" for line in [*head, *lines])

    def good(self, count: int, text: str = "a b") -> bytes:
        """A stream of valid lines."""
        return self.stream(*(self.line(text, number) for number in range(1, count + 1)))


VOCABULARY = ["<pad>", "<unk>", "<s>", "</s>", "a", "b"]
SPECIALS = {"pad": 0, "unk": 1, "bos": 2, "eos": 3}


def dump(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def batch_header(batches: int) -> bytes:
    return dump(
        {
            "seqtools": "batches",
            "version": 1,
            "task": "lm",
            "vocabularies": {"tokens": {"tokens": VOCABULARY, "specials": SPECIALS}},
            "batches": [batches],
            "targets": [2 * batches],
            "options": {"sampling": "records", "pad_side": "right"},
        }
    )


def batch(text: str, number: int) -> dict[str, Any]:
    return {
        "epoch": 1,
        "index": number,
        "inputs": [[2, 4]],
        "targets": [[4, 3]],
        "lengths": [2],
        "carry": False,
        "records": [text],
    }


def text_fields(text: str, number: int) -> dict[str, Any]:
    return {"text": text}


def token_fields(text: str, number: int) -> dict[str, Any]:
    return {"tokens": text.split()}


def attention_fields(text: str, number: int) -> dict[str, Any]:
    return {"attention": {"rows": [text], "columns": ["x"], "cross": [[[[1.0]]]]}}


COMMANDS = [
    Command(
        ("seq-tokenize", "whitespace", "--quiet"), text_fields, "text", passes=True, jobs=True
    ),
    Command(
        ("seq-tokenize", "sentencepiece", "--subword-model", "{subwords}", "--quiet"),
        text_fields, "text", passes=True, jobs=True,
    ),
    Command(("seq-convert", "text", "--quiet"), text_fields, None, jobs=True),
    Command(("seq-convert", "csv", "--columns", "text", "--quiet"), text_fields, None, jobs=True),
    Command(
        ("seq-vocab", "build", "--quiet"), token_fields, "tokens", filter=False, jobs=True
    ),
    Command(
        ("seq-vocab", "subword", "--kind", "bpe", "--size", "99", "--soft-size", "-o", "{out}",
         "--quiet"),
        text_fields, "text", filter=False, shows=False, product=True, empty=1,
    ),
    Command(("seq-augment", "swap", "--quiet"), token_fields, "tokens", jobs=True),
    Command(
        ("seq-augment", "pipe", "--lines", "--command", "cat", "--quiet"),
        text_fields, "text", children=1,
    ),
    Command(
        ("seq-batch", "lm", "--sampling", "records", "--vocab", "{vocab}", "--quiet"),
        token_fields, "tokens", filter=False, shows=False,
    ),
    Command(("seq-stats", "tokens", "--quiet"), token_fields, "tokens", filter=False, jobs=True),
    Command(
        ("seq-stats", "keywords", "--method", "textrank", "--quiet"),
        token_fields, "tokens", passes=True, jobs=True,
    ),
    Command(
        ("seq-ngram", "extract", "--order", "1", "--quiet"),
        token_fields, "tokens", passes=True, jobs=True,
    ),
    Command(
        ("seq-eval", "exact", "--hypothesis", "h", "--reference", "r", "--quiet"),
        lambda text, number: {"h": text, "r": "a b"}, "h",
        filter=False, shows=False, shard=False, empty=1,
    ),
    Command(("seq-attnviz", "terminal", "--quiet"), attention_fields, "attention", numbered=True),
    Command(
        ("seq-decode", "greedy", "--model", "{model}", "--max-length", "2", "--device", "cpu",
         "--threads", "1", "--quiet"),
        token_fields, "tokens", passes=True, jobs=True, torch=True,
    ),
    Command(
        ("seq-train", "lstm", "-o", "{out}", "--hidden", "4", "--device", "cpu", "--threads", "1",
         "--quiet"),
        batch, "inputs", filter=False, shows=False, product=True, rejects=False, shard=False,
        empty=1, torch=True,
    ),
]  # fmt: skip


def rows(wanted: Callable[[Command], bool] = lambda row: True) -> pytest.MarkDecorator:
    """Run a test for the commands that are `wanted`."""
    found = [row for row in COMMANDS if wanted(row)]
    return pytest.mark.parametrize("row", found, ids=str)


def of_records(row: Command) -> bool:
    return row.field is not None


def light(row: Command) -> bool:
    return not row.torch


class Files:
    """Files that commands are given, made when they are asked for."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder

    def fill(self, word: str, tmp_path: pathlib.Path) -> str:
        return re.sub(r"\{(\w+)\}", lambda found: str(self.path(found[1], tmp_path)), word)

    def path(self, kind: str, tmp_path: pathlib.Path) -> pathlib.Path:
        if kind == "out":
            return tmp_path / "product"
        path = self.folder / kind
        if not path.exists():
            getattr(self, kind)(path)
        return path

    def vocab(self, path: pathlib.Path) -> None:
        special = {number: role for role, number in SPECIALS.items()}
        entries = [
            {"id": number, "token": token}
            | ({"special": special[number]} if number in special else {"count": 1})
            for number, token in enumerate(VOCABULARY)
        ]
        path.write_bytes(b"".join(dump(entry) + b"\n" for entry in entries))

    def subwords(self, path: pathlib.Path) -> None:
        learn = ("seq-vocab", "subword", "--size", "99", "--soft-size", "--quiet", "-o", str(path))
        assert run(*learn, stdin=b'{"text":"a b"}\n').status == 0

    def model(self, path: pathlib.Path) -> None:
        train = COMMANDS[-1]
        arguments = [str(path) if word == "{out}" else word for word in train.argv]
        assert run(*arguments, stdin=train.good(2)).status == 0


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    return Files(tmp_path_factory.mktemp("files"))


class Runner:
    """Runs a command of the table."""

    def __init__(self, made: Files, tmp_path: pathlib.Path) -> None:
        self.made, self.tmp_path = made, tmp_path

    def arguments(self, row: Command, *options: str) -> list[str]:
        return [self.made.fill(word, self.tmp_path) for word in row.argv] + [*options]

    def __call__(self, row: Command, data: bytes, *options: str, **settings: Any) -> Completed:
        return run(*self.arguments(row, *options), stdin=data, **settings)

    def shown(self, row: Command, *options: str) -> str:
        """The command for a shell; with our Python, which spares the launcher finding its own."""
        first, *rest = self.arguments(row, *options)
        return shlex.join([*command(first), *rest])

    @contextlib.contextmanager
    def started(self, row: Command, *options: str, **settings: Any):
        """The command as a process that can be written to and read from."""
        first, *rest = self.arguments(row, *options)
        settings = {
            "env": environment(),
            "stderr": subprocess.PIPE,
            "preexec_fn": answer_signals,
            **settings,
        }
        with subprocess.Popen(
            [*command(first), *rest], stdin=subprocess.PIPE, stdout=subprocess.PIPE, **settings
        ) as process:
            try:
                yield process
            finally:
                process.kill()


def answer_signals() -> None:
    """Signals that are ignored here, as behind nohup, are not for the command."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)


@pytest.fixture
def go(made, tmp_path):
    return Runner(made, tmp_path)


def send(process: subprocess.Popen, data: bytes) -> None:
    process.stdin.write(data)
    process.stdin.flush()


def wait_until(condition: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def has_read(process: subprocess.Popen) -> bool:
    """Whether the process has taken all that was written to it."""
    waiting = fcntl.ioctl(process.stdin, termios.FIONREAD, bytes(4))
    return struct.unpack("i", waiting) == (0,)


def children(process: int) -> list[int]:
    with open(f"/proc/{process}/task/{process}/children") as handle:
        return [int(word) for word in handle.read().split()]


def gone(process: int) -> bool:
    try:
        with open(f"/proc/{process}/stat") as handle:
            return handle.read().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def one_line(text: str) -> str:
    """The text, which must be one line."""
    assert text.count("\n") == 1, text
    assert text.endswith("\n")
    return text.removesuffix("\n")


# Input


@rows()
def test_no_input(go, row):
    done = go(row, b"")
    assert done.status == row.empty
    if row.empty:
        assert one_line(done.stderr).startswith(f"{row.program}: ")
        assert "no records" in done.stderr or "empty" in done.stderr
    if row.filter:
        assert (done.stdout, done.stderr) == (b"", "")
    assert not (go.tmp_path / "product").exists()


@rows(lambda row: of_records(row) and light(row))
def test_blank_lines_are_no_records_but_are_counted_as_lines(go, row):
    one, two = row.line("a", 1), row.line("b", 2)
    plain = go(row, row.stream(one, two))
    assert (plain.status, plain.stderr) == (0, "")
    done = go(row, row.stream(b"", one, b" \t\r", b"", two, b""))
    assert done == plain
    bad = go(row, row.stream(b"", one, b" ", b"{}"))
    assert bad.status == 1
    assert one_line(bad.stderr).startswith(f"{row.program}: <stdin>:4: ")


@rows(lambda row: not of_records(row))
def test_plain_lines_are_records_when_they_are_blank(go, row):
    assert go(row, b"\n\na\n \n").stdout.count(b"\n") == 4


BAD = {
    "JSON": b'{"text":"a',
    "nothing else": b"{} {}",
    "UTF-8": b'{"text":"a\xe9"}',
    "surrogate": b'{"text":"\\ud800"}',
    "control": b'{"text":"a\tb"}',
    "NUL": b'{"text":"a"}\0',
    "NaN": b'{"text":NaN}',
    "list": b'["a"]',
    "string": b'"a"',
    "number": b"5",
    "null": b"null",
    "deep": b'{"a":' + b"[" * 2000 + b"]" * 2000 + b"}",
    "deeper": b"[" * 100_000,
}


def bad_lines(row: Command) -> dict[str, bytes]:
    """Lines that are bad whatever the command, and those whose field is."""
    good = row.fields("a", 1)
    others = {key: value for key, value in good.items() if key != row.field}
    wrong = [5, True, None, {"x": 1}, [1], [["a"], 1], [None]]
    return {
        **BAD,
        "missing": dump(others),
        **{f"field {value!r}": dump({**others, row.field: value}) for value in wrong},
    }


@rows(of_records)
def test_a_bad_record_ends_the_run_in_its_place(go, row):
    good, bad = row.line("a", 1), bad_lines(row)["missing"]
    lines = [b"", bad] if row.torch else [good, b"", bad, good]
    path = go.tmp_path / "in é.jsonl"
    path.write_bytes(row.stream(*lines))
    line = row.stream(*lines).split(b"\n").index(bad) + 1
    for data, options, source in (
        (row.stream(*lines), (), "<stdin>"),
        (b"", (str(path),), str(path)),
    ):
        done = go(row, data, *options)
        assert done.status == 1
        prefix = f"{row.program}: {source}:{line}: "
        assert one_line(done.stderr).startswith(prefix)
        assert f'"{row.field}"' in done.stderr
        if row.filter and not row.torch:
            assert done.stdout == go(row, row.stream(good)).stdout
    assert not (go.tmp_path / "product").exists()


@rows(lambda row: of_records(row) and row.jobs)
def test_a_bad_record_ends_the_run_in_its_place_with_jobs(go, row):
    lines = [row.line("a", number) for number in range(1, 4)]
    data = row.stream(*lines, b"{", *lines)
    alone = go(row, data)
    assert alone.status == 1
    assert go(row, data, "--jobs", "2") == alone


@rows(lambda row: of_records(row) and row.rejects)
def test_every_kind_of_bad_line_is_rejected_as_it_is(go, row):
    rejects = go.tmp_path / "bad.txt"
    bad = bad_lines(row)
    good = [] if row.torch else [row.line("a", 1)]
    after = [] if row.numbered else good
    lines = [*good, *bad.values(), *after]
    done = go(row, row.stream(*lines), "--rejects", str(rejects))
    assert done.status == (1 if row.torch and row.empty else 3), done.stderr
    count = f"{len(bad)} of {len(lines)} records rejected"
    assert count in one_line(done.stderr)
    assert done.stderr.startswith(f"{row.program}: ")
    assert rejects.read_bytes() == b"".join(line + b"\n" for line in bad.values())
    reasons = (go.tmp_path / "bad.txt.reasons.jsonl").read_bytes()
    found = [json.loads(line) for line in reasons.split(b"\n")[:-1]]
    assert [(reason["file"], reason["line"]) for reason in found] == [
        ("<stdin>", line) for line in range(1 + len(good), 1 + len(good) + len(bad))
    ]
    for kind, reason in zip(bad, found, strict=True):
        if kind.startswith(("missing", "field")):
            assert f'"{row.field}"' in reason["reason"]
    if row.filter:
        assert done.stdout == go(row, row.stream(*good, *after)).stdout


@rows(lambda row: of_records(row) and row.rejects and light(row))
def test_how_many_rejects_are_tolerated(go, row):
    rejects = go.tmp_path / "bad.txt"
    data = row.stream(row.line("a", 1), row.line("b", 2), b"{", b"[]")
    options = ("--rejects", str(rejects), "--max-rejects")
    done = go(row, data, *options, "2")
    assert done.status == 0
    assert "2 of 4 records rejected" in one_line(done.stderr)
    assert done.stdout == go(row, row.stream(row.line("a", 1), row.line("b", 2))).stdout
    target = go.tmp_path / "out"
    target.write_bytes(b"old")
    done = go(row, data, *options, "1", "-o", str(target))
    assert done.status == 1
    assert "<stdin>:4: more than 1 record" in one_line(done.stderr)
    assert target.read_bytes() == b"old"
    assert rejects.read_bytes() == b"{\n[]\n"


@rows(lambda row: of_records(row) and row.rejects and light(row) and not row.product)
def test_rejects_go_to_a_device_and_need_a_name(go, row):
    data = row.stream(row.line("a", 1), b"{")
    done = go(row, data, "--rejects", "/dev/null", cwd=go.tmp_path)
    assert done.status == 3
    assert not os.path.exists("/dev/null.reasons.jsonl")
    done = go(row, data, "--rejects", "/dev/stderr")
    assert "{\n" in done.stderr
    for options, word in (
        (("--max-rejects", "1"), "--rejects"),
        (("--rejects", "x", "--max-rejects", "-1"), "--max-rejects"),
        (("--rejects", "x", "-o", "x"), "--rejects"),
        (("--rejects", "-"), "--rejects"),
        (("--rejects", "missing/x"), "missing/x"),
    ):
        done = go(row, b"", *options, cwd=go.tmp_path)
        assert done.status == 2
        assert word in done.stderr
    assert os.listdir(go.tmp_path) == []


@rows(light)
def test_returns_marks_and_a_missing_last_newline_make_no_difference(go, row):
    data = row.good(3, "a b")
    plain = go(row, data)
    assert (plain.status, plain.stderr) == (0, "")
    for other in (
        data.replace(b"\n", b"\r\n"),
        b"\xef\xbb\xbf" + data,
        data.removesuffix(b"\n"),
        data.removesuffix(b"\n") + b"\r\n",
    ):
        assert go(row, other) == plain
    path = go.tmp_path / "in.gz"
    path.write_bytes(gzip.compress(b"\xef\xbb\xbf" + data))
    assert go(row, b"", str(path)) == plain


@rows(lambda row: light(row) and not row.product)
def test_several_files_and_standard_input_among_them(go, row):
    lines = [row.line("a b", number) for number in range(1, 4)]
    for number, line in enumerate(lines):
        # Without a last newline: it ends the line all the same.
        (go.tmp_path / str(number)).write_bytes(line)
    paths = [str(go.tmp_path / "0"), "-", str(go.tmp_path / "2")]
    assert go(row, lines[1], *paths) == go(row, row.stream(*lines))


@rows(light)
def test_a_line_of_ten_megabytes(go, row):
    if row.field is None:
        line = b"x" * 10_500_000
    else:
        line = row.line("a", 1)[:-1] + b',"more":"' + b"x" * 10_500_000 + b'"}'
    done = go(row, row.stream(line, row.line("a", 2)), timeout=60)
    assert (done.status, done.stderr) == (0, "")
    if row.filter and row.passes:
        assert [len(line) > 10_500_000 for line in done.lines] == [True, False]


@rows(light)
def test_text_beyond_the_basic_plane(go, row):
    done = go(row, row.good(1, "𠮷\u2028\U0001f600 a"))
    assert done.status == 0
    assert done.stdout.decode() or row.product  # UTF-8
    if row.shows:
        assert "𠮷" in done.stdout.decode()
    if row.passes:
        assert "\\u" not in done.stdout.decode()
    if row.filter and not row.numbered:
        assert len(done.lines) == 1


@rows(lambda row: row.passes and light(row))
def test_what_is_not_asked_for_passes_through(go, row):
    fields = dump(row.fields("a b", 1)).strip(b"{}")
    more = (
        b'"id":12345678901234567890123,"b":[9007199254740993,18446744073709551616,'
        b'-9223372036854775809],"meta":{"z":null,"a":[true,1.5,"\xf0\xa0\xae\xb7\\u0000"]},'
        b'"deep":' + b"[" * 500 + b"]" * 500
    )
    for data in (b"{%s,%s}" % (more, fields), b"{%s,%s}" % (fields, more)):
        done = go(row, data + b"\n")
        assert (done.status, done.stderr) == (0, "")
        assert done.stdout.startswith(data[:-1] + b",")
    twice = b'{"id":1,%s,%s,"id":2,"x":{"a":1,"a":2}}' % (
        dump(row.fields("b b b", 1))[1:-1],
        fields,
    )
    once = b'{"id":2,%s,"x":{"a":2}}' % fields
    assert go(row, twice) == go(row, once)


# Output


@rows(lambda row: not row.product and light(row))
def test_output_files(go, row):
    data = row.good(3)
    plain = go(row, data)
    for ending in ("", ".gz", ".zst"):
        target = go.tmp_path / f"out{ending}"
        done = go(row, data, "-o", str(target))
        assert (done.status, done.stdout, done.stderr) == (0, b"", "")
        assert stat.S_IMODE(target.stat().st_mode) == 0o666 & ~umask()
    assert (go.tmp_path / "out").read_bytes() == plain.stdout
    unpacked = shell("gzip -dc out.gz; zstd -dc out.zst", cwd=go.tmp_path)
    assert unpacked.stdout == plain.stdout * 2
    # In place, standard output by its name, and a pipe.
    source = go.tmp_path / "in"
    source.write_bytes(data)
    assert go(row, b"", str(source), "-o", str(source)).status == 0
    assert source.read_bytes() == plain.stdout
    assert go(row, data, "-o", "-") == plain
    assert go(row, data, "-o", "/dev/stdout") == plain
    os.mkfifo(go.tmp_path / "fifo")
    piped = shell(f"cat fifo & {go.shown(row, '-o', 'fifo')}; wait", stdin=data, cwd=go.tmp_path)
    assert (piped.stdout, piped.stderr) == (plain.stdout, "")
    assert sorted(os.listdir(go.tmp_path)) == ["fifo", "in", "out", "out.gz", "out.zst"]


def umask() -> int:
    value = os.umask(0)
    os.umask(value)
    return value


@rows(lambda row: not row.product and light(row))
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_run_ended_half_way_leaves_the_target(go, row, number):
    target = go.tmp_path / "out"
    target.write_bytes(b"old")
    data = row.good(3000, "a b " * 30)
    with go.started(row, "-o", str(target)) as process:
        send(process, data)
        wait_until(lambda: has_read(process))
        process.send_signal(number)
        assert process.wait(10) == -number
        assert process.stderr.read() == b""
    assert target.read_bytes() == b"old"
    assert len(os.listdir(go.tmp_path)) == 1 + (number == signal.SIGKILL)
    assert go(row, row.good(1), "-o", str(target)).status == 0
    assert os.listdir(go.tmp_path) == ["out"]


@rows(lambda row: not row.product and light(row))
def test_a_full_device_is_said(go, row):
    data = row.good(2)
    done = shell(f"{go.shown(row)} > /dev/full", stdin=data)
    assert done.status == 1
    assert one_line(done.stderr) == f"{row.program}: <stdout>: No space left on device"
    done = go(row, data, "-o", "/dev/full")
    assert (done.status, done.stdout) == (1, b"")
    assert one_line(done.stderr) == f"{row.program}: /dev/full: No space left on device"


@rows(lambda row: row.filter)
def test_what_came_before_a_damage_is_written(go, row):
    whole = row.good(3)
    path = go.tmp_path / "in.gz"
    path.write_bytes(gzip.compress(whole) + gzip.compress(whole)[:-9])
    done = go(row, b"", str(path))
    assert done.status == 1
    assert one_line(done.stderr) == f"{row.program}: {path}: compressed file ends too early"
    plain = go(row, row.good(3)).stdout
    assert done.stdout.startswith(plain)
    if row.jobs:
        assert go(row, b"", str(path), "--jobs", "2") == done


# Readers and writers at the other ends


@rows(lambda row: not row.product)
def test_a_reader_that_is_gone_before_the_start(go, row):
    read, write = os.pipe()
    os.close(read)
    first, *rest = go.arguments(row)
    done = subprocess.run(
        [*command(first), *rest],
        input=row.good(3), stdout=write, stderr=subprocess.PIPE, env=environment(), check=False,
    )  # fmt: skip
    os.close(write)
    assert (done.returncode, done.stderr) == (0, b"")


@rows(lambda row: row.filter and light(row))
@pytest.mark.parametrize("between", ["", "| cat"], ids=["last", "middle"])
@pytest.mark.parametrize("jobs", [None, "2"])
def test_a_reader_that_has_enough_ends_the_command_quietly(go, row, between, jobs):
    if jobs and not row.jobs:
        pytest.skip("one process")
    options = ["--jobs", jobs] if jobs else []
    line = shlex.quote(row.line("a b").decode())
    done = shell(
        f"yes {line} | {go.shown(row, *options)} {between} | head -n 1;"
        ' echo "${PIPESTATUS[1]}" >&2',
        timeout=30,
    )
    assert done.stderr == "0\n"
    assert done.stdout.split(b"\n")[0] == go(row, row.good(1)).stdout.split(b"\n")[0]


@rows(lambda row: row.filter)
def test_a_record_is_out_before_the_next_comes_in(go, row):
    for options in ((), ("--jobs", "2")) if row.jobs else ((),):
        with go.started(row, *options) as process:
            for number in (1, 2):
                send(process, row.stream(row.line("a b", number)))
                assert process.stdout.readline().strip()
                while row.numbered and process.stdout.readline().strip():
                    pass  # a picture ends with an empty line
            process.stdin.close()
            assert process.stdout.read() == b""
            assert process.wait(30) == 0


@rows(lambda row: row.filter and light(row))
def test_what_came_before_a_named_pipe_is_out_before_its_writer_comes(go, row):
    fifo, file = go.tmp_path / "fifo", go.tmp_path / "file"
    os.mkfifo(fifo)
    file.write_bytes(row.good(1))
    with go.started(row, str(file), str(fifo)) as process:
        assert process.stdout.readline().strip()
        with open(fifo, "wb") as writer:
            writer.write(row.good(1))
        process.stdin.close()
        assert process.stdout.read().strip()
        assert process.wait(30) == 0


# Signals


@rows(lambda row: not row.product)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_end_the_command_by_themselves(go, row, number):
    if row.torch and number == signal.SIGHUP:
        pytest.skip("as the others")
    options = ("--jobs", "3") if row.jobs else ()
    with go.started(row, *options) as process:
        send(process, row.good(2))
        wait_until(lambda: has_read(process))
        if row.filter and not row.torch:
            process.stdout.readline()
        workers = children(process.pid)
        assert len(workers) == (3 if row.jobs else row.children)
        process.send_signal(number)
        assert process.wait(10) == -number
        assert process.stderr.read() == b""
        assert all(gone(worker) for worker in workers)


@rows(lambda row: row.jobs)
def test_a_signal_to_the_whole_group_is_answered_once(go, row):
    for number in (signal.SIGINT, signal.SIGTERM):
        with go.started(row, "--jobs", "2", start_new_session=True) as process:
            send(process, row.good(2))
            wait_until(lambda: has_read(process))
            workers = children(process.pid)
            os.killpg(process.pid, number)
            assert process.wait(10) == -number
            assert process.stderr.read() == b""
            assert all(gone(worker) for worker in workers)


@rows(lambda row: row.filter and light(row))
def test_signals_that_the_caller_ignores_stay_ignored(go, row):
    options = ("--jobs", "2") if row.jobs else ()
    line = f"trap '' HUP INT TERM; exec {go.shown(row, *options)}"
    with subprocess.Popen(
        ["bash", "-c", line], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, env=environment(), start_new_session=True,
    ) as process:  # fmt: skip
        send(process, row.stream(row.line("a b", 1)))
        first = process.stdout.readline()
        for number in (signal.SIGHUP, signal.SIGINT):
            os.killpg(process.pid, number)
        send(process, row.stream(row.line("a b", 2)))
        process.stdin.close()
        assert first + process.stdout.read() == go(row, row.good(2)).stdout
        assert process.stderr.read() == b""
        assert process.wait(10) == 0


# Mistakes in what is asked for


@rows()
@pytest.mark.parametrize(
    ("options", "word"),
    [
        (("--no-such-option",), "--no-such-option"),
        (("missing é 中.jsonl",), "missing é 中.jsonl: No such file or directory"),
        ((".",), ".: is a directory"),
        (("-o", "no-folder/out"), "no-folder/out: cannot be written: No such file or directory"),
        (("-o", "."), ".: cannot be written: Is a directory"),
        (("file/x",), "file/x: Not a directory"),
    ],
    ids=["option", "file", "directory", "folder", "target", "no folder"],
)
def test_mistakes_in_what_is_asked_for(go, row, options, word):
    if row.product and options == ("-o", "."):
        pytest.skip("a model")
    (go.tmp_path / "file").write_bytes(b"")
    # Input is offered, but must not be waited for.
    with go.started(row, *options, cwd=go.tmp_path) as process:
        assert process.wait(60) == 2
        message = process.stderr.read().decode()
        assert process.stdout.read() == b""
    assert word in message
    assert "Traceback" not in message
    if "No such option" not in message:
        assert one_line(message).startswith(f"{row.program}: ")
    assert os.listdir(go.tmp_path) == ["file"]


@rows(lambda row: row.jobs or row.shard)
def test_numbers_that_make_no_sense(go, row):
    wrong = [("--jobs", "0")] * row.jobs + [("--shard", "3/2")] * row.shard
    for option, value in wrong:
        done = go(row, b"", option, value)
        assert (done.status, done.stdout) == (2, b"")
        assert option in done.stderr


PROGRAMS = sorted({row.program for row in COMMANDS})


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_kind_is_needed_and_must_be_one(program):
    for arguments in ((), ("no-such-kind",), ("--no-such-option",)):
        done = run(program, *arguments)
        assert (done.status, done.stdout) == (2, b"")
        assert "Usage: " in done.stderr


@rows()
def test_help(go, row):
    kind = row.argv[1]
    for arguments, word in ((("--help",), kind), ((kind, "--help"), "Example:")):
        done = run(row.program, *arguments)
        assert (done.status, done.stderr) == (0, "")
        assert done.stdout.decode().startswith(f"Usage: {row.program}")
        assert word in done.stdout.decode()
        words = shlex.join([*command(row.program), *arguments])
        closed = shell(f'{words} | exec true; echo "${{PIPESTATUS[0]}}"')
        assert (closed.stdout, closed.stderr) == (b"0\n", "")


@rows()
def test_version(row):
    from seqtools import __version__

    for arguments in (("--version",), (row.argv[1], "--version")):
        done = run(row.program, *arguments)
        assert (done.status, done.stderr) == (0, "")
        assert done.stdout.decode() == f"{row.program} (seqtools) {__version__}\n"


# Shards and jobs


@rows(lambda row: row.filter and row.shard and light(row) and not row.numbered)
def test_shards_are_every_nth_record(go, row):
    lines = [row.line(f"a{number}", number) for number in range(1, 8)]
    whole = go(row, row.stream(*lines)).lines
    for index, first in ((1, "1"), (2, "0"), (3, "1000")):
        options = ("--shard", f"{index}/3", "--first-record", first)
        assert go(row, row.stream(*lines), *options).lines == whole[index - 1 :: 3]


@rows(lambda row: row.jobs)
def test_any_number_of_jobs_gives_the_same_bytes(go, row):
    lines = [
        row.line(" ".join("ab"[n % 7 % 2] for n in range(number * 7919 % 200)) or "b", number)
        for number in range(1, 8001)
    ]
    # A file: where a pipe pauses, records are decoded in other batches, which rounds otherwise.
    path = go.tmp_path / "data"
    path.write_bytes(row.stream(*lines))
    assert path.stat().st_size > 3 << 19  # some blocks
    alone = go(row, b"", str(path))
    assert (alone.status, alone.stderr) == (0, "")
    assert go(row, b"", str(path), "--jobs", "3") == alone


# Surroundings


@rows(light)
def test_the_locale_makes_no_difference(go, row):
    path = go.tmp_path / "é 中.jsonl"
    bad = row.stream(row.line("é 中", 1), b'{"\xff"' if row.field else b"\xff")
    path.write_bytes(bad)
    plain = environment()
    ascii_only = {
        "PATH": plain["PATH"],
        "LC_ALL": "POSIX",
        "PYTHONCOERCECLOCALE": "0",
        "PYTHONUTF8": "0",
        "PYTHONIOENCODING": "ascii",
    }
    target = go.tmp_path / "out 中"
    for options in (("missing é 中",), (str(path),), ("--é",)):
        assert go(row, b"", *options, env=ascii_only) == go(row, b"", *options, env=plain)
    data = row.good(1, "é 中")
    assert go(row, data, "-o", str(target), env=ascii_only).status == 0
    done = go(row, data)
    product = go.tmp_path / "product"
    assert target.read_bytes() == (product.read_bytes() if row.product else done.stdout)


@rows(light)
def test_no_control_codes_in_files(go, row):
    env = environment(FORCE_COLOR="1", CLICOLOR_FORCE="1", TERM="xterm-256color")
    for data, options in ((row.good(3), ()), (b"{\n", ()), (b"", ("--help",))):
        done = go(row, data, *options, env=env)
        for codes in ("\x1b", "\r"):
            assert codes not in done.stdout.decode()
            assert codes not in done.stderr


@rows(lambda row: of_records(row) and light(row))
def test_debug_shows_a_traceback_and_keeps_the_status(go, row):
    done = go(row, row.stream(b"{"), "--debug")
    assert done.status == 1
    assert done.stderr.startswith("Traceback (most recent call last):\n")
    assert done.stderr.split("\n")[-2].startswith(f"{row.program}: <stdin>:1: ")
    done = go(row, b"", "--debug", "missing")
    assert done.status == 2
    assert "Traceback" in done.stderr


@rows(lambda row: not row.product and light(row))
def test_closed_descriptors(go, row):
    good = go.tmp_path / "good"
    good.write_bytes(row.good(2))
    shown = go.shown(row)
    done = shell(f"{shown} <&-")
    assert done.status == 1
    assert one_line(done.stderr) == f"{row.program}: <stdin>: Bad file descriptor"
    done = shell(f"{shown} {good} >&-")
    assert done.status == 1
    assert one_line(done.stderr) == f"{row.program}: <stdout>: Bad file descriptor"
    # The output file must not become descriptor 1, where nothing else may end up.
    done = shell(f"{shown} {good} -o out <&- >&- 2>&-", cwd=go.tmp_path)
    assert done.status == 0
    assert (go.tmp_path / "out").read_bytes() == go(row, row.good(2)).stdout


def test_the_table_has_every_command():
    import tomllib

    from .helpers import ROOT

    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert sorted(scripts) == PROGRAMS


# Inputs that have broken tools like these.


def rejected_lines(tmp_path: pathlib.Path, data: bytes, *command_line: str) -> list[int]:
    """Numbers of the lines that a command rejects."""
    done = run(*command_line, "--rejects", "bad", "--quiet", stdin=data, cwd=tmp_path)
    assert done.status == 3, done.stderr
    reasons = (tmp_path / "bad.reasons.jsonl").read_bytes()
    return [json.loads(line)["line"] for line in reasons.split(b"\n")[:-1]]


def test_wrong_types_are_not_guessed_at(tmp_path, made):
    texts = b"""{"id":"a","text":"fine"}
{"id":"b","text":123}
{"id":"c","text":null}
{"id":"d"}
["e"]
"f"
42
{"id":"h","text":["a","b"]}
{"id":"i","text":true}
"""
    subwords = ("sentencepiece", "--subword-model", str(made.path("subwords", tmp_path)))
    for kind in (("whitespace",), ("word",), ("char",), ("jieba",), subwords):
        found = rejected_lines(tmp_path, texts, "seq-tokenize", *kind)
        assert found == [2, 3, 4, 5, 6, 7, 8, 9]
    tokens = b"""{"id":"a","tokens":["x","y"]}
{"id":"b","tokens":"abc"}
{"id":"c","tokens":["a",1]}
{"id":"d","tokens":[["a"]]}
{"id":"e","tokens":null}
"""
    vocab = str(made.path("vocab", tmp_path))
    for command_line in (
        ("seq-vocab", "build"),
        ("seq-vocab", "encode", "--vocab", vocab),
        ("seq-batch", "lm", "--vocab", vocab, "--sampling", "records"),
    ):
        assert rejected_lines(tmp_path, tokens, *command_line) == [2, 3, 4, 5]
    ids = b"""{"id":"a","ids":[1,2]}
{"id":"b","ids":[1,true]}
{"id":"c","ids":[1.0]}
{"id":"d","ids":[-1]}
{"id":"e","ids":["3"]}
"""
    for command_line in (
        ("seq-vocab", "decode", "--vocab", vocab),
        ("seq-batch", "lm", "--ids", "--vocab", vocab, "--sampling", "records"),
    ):
        assert rejected_lines(tmp_path, ids, *command_line) == [2, 3, 4, 5]


def test_large_integers_and_duplicate_ids_and_keys():
    numbers = [
        b"9007199254740993",
        b"18446744073709551615",
        b"18446744073709551616",
        b"12345678901234567890123",
    ]
    done = run(
        "seq-tokenize", "char", stdin=b"".join(b'{"id":%s,"text":"a"}\n' % n for n in numbers)
    )
    assert done.lines == [b'{"id":%s,"text":"a","tokens":["a"]}' % n for n in numbers]
    done = run(
        "seq-tokenize",
        "char",
        stdin=b'{"id":"a","text":"x","meta":{"k":[1,{"z":null}]}}\n'
        b'{"id":"a","text":"y","meta":{"k":[1,{"z":null}]}}\n'
        b'{"id":"b","text":"x","text":"y"}\n',
    )
    assert done.lines == [
        b'{"id":"a","text":"x","meta":{"k":[1,{"z":null}]},"tokens":["x"]}',
        b'{"id":"a","text":"y","meta":{"k":[1,{"z":null}]},"tokens":["y"]}',
        b'{"id":"b","text":"y","tokens":["y"]}',
    ]


def test_ten_megabytes_of_text_in_one_record():
    text = "ab " * 3_500_000
    done = run("seq-tokenize", "whitespace", stdin=dump({"id": "a", "text": text}), timeout=60)
    [line] = done.lines
    assert json.loads(line)["tokens"] == ["ab"] * 3_500_000


def test_a_pipe_of_commands_ends_when_its_last_reader_has_enough():
    done = shell(
        """yes '{"text":"x y"}' | head -n 50000 | seq-tokenize whitespace --jobs 2"""
        """ | seq-vocab build | head -n 1; echo "${PIPESTATUS[@]:1}" """,
        timeout=60,
    )
    assert done.lines == [b'{"id":0,"token":"<pad>","special":"pad"}', b"0 0 0 0"]
    assert done.stderr == ""
