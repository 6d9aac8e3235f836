"""seq-attnviz through its command line."""

import json
import os
import pathlib
import pty
import subprocess
from typing import Any

import pytest

from tests.cli.helpers import command, environment, run, shell


def decoded(
    rows: list[str], columns: list[str], matrix: list[list[float]], **extra: Any
) -> dict[str, Any]:
    attention = {"rows": rows, "inputs": ["<s>", *rows[:-1]], "columns": columns}
    hypothesis = {"tokens": rows[:-1], "attention": {**attention, "cross": [[matrix]]}}
    return {**extra, "hypotheses": [hypothesis]}


GOOD = decoded(["5", "</s>"], ["五", "日"], [[0.9, 0.1], [0.25, 0.75]], id="a")
ODD = decoded(["5", "</s>"], ["五", "日"], [[0.9, 0.1], [0.25, 0.5]], id=12345678901234567890123)
DEEP = {
    "attention": {
        "inputs": ["<s>", "x"],
        "decoder": [
            [[[1, 0], [0.5, 0.5]], [[1, 0], [0, 1]]],
            [[[1, 0], [0.2, 0.8]], [[1, 0], [0.6, 0.4]]],
        ],
    }
}


def stream(*values: Any) -> bytes:
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


def terminal(env: dict[str, str], *arguments: str, stdin: bytes) -> bytes:
    """What the command writes to a terminal."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*command("seq-attnviz"), "terminal", *arguments],
        stdin=subprocess.PIPE, stdout=theirs, stderr=subprocess.DEVNULL, env=environment(**env),
    ) as process:  # fmt: skip
        os.close(theirs)
        assert process.stdin is not None
        process.stdin.write(stdin)
        process.stdin.close()
        parts = []
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            parts.append(part)
        assert process.wait(60) == 0
    os.close(ours)
    return b"".join(parts)


def test_shades() -> None:
    done = run("seq-attnviz", "terminal", stdin=stream(GOOD))
    assert (done.status, done.stderr) == (0, "")
    assert done.stdout.decode() == (
        "record 1 (a): cross\n     五日\n   5 ██  \n</s> ░░▓▓\n0   ░░▒▒▓▓██ 0.9\n\n"
    )


def test_rows_that_do_not_sum_to_one_are_drawn_with_a_warning() -> None:
    done = run("seq-attnviz", "terminal", "-", stdin=b"\n" + stream(GOOD, ODD))
    assert done.status == 0
    assert done.stderr == (
        "seq-attnviz: warning: <stdin>:3: record 2: cross, row 2 (</s>) sums to 0.75, not to 1\n"
    )
    assert "record 2 (12345678901234567890123): cross" in done.stdout.decode()
    assert "</s>!" in done.stdout.decode()


@pytest.mark.parametrize(
    "cross",
    [
        [[[[0.5, 0.5]]]],
        [[[[1.0], [1.0]]]],
        [[[[0.5, 0.5], [0.5, "0.5"]]]],
        [[[[0.5, 0.5], None]]],
        [],
    ],
)
@pytest.mark.parametrize("kind", ["terminal", "html"])
def test_matrices_that_do_not_fit_are_bad_records(kind: str, cross: Any) -> None:
    bad = json.loads(json.dumps(GOOD))
    bad["hypotheses"][0]["attention"]["cross"] = cross
    done = run("seq-attnviz", kind, stdin=stream(GOOD, bad, GOOD))
    assert done.status == 1
    assert done.stderr.startswith('seq-attnviz: <stdin>:2: "hypotheses[0].attention.cross')
    assert len(done.stderr.splitlines()) == 1


def test_rejects(tmp_path: pathlib.Path) -> None:
    done = run(
        "seq-attnviz", "terminal", "--rejects", "bad",
        stdin=stream(GOOD, {"id": 1}, GOOD), cwd=tmp_path,
    )  # fmt: skip
    assert done.status == 3
    assert done.stdout.count(b"record ") == 2
    reason = json.loads((tmp_path / "bad.reasons.jsonl").read_bytes())
    assert reason["reason"] == 'no "hypotheses" and no "attention": decode with --attention'


def test_layers_heads_and_means() -> None:
    def caption(*arguments: str) -> str:
        done = run("seq-attnviz", "terminal", "--numbers", *arguments, stdin=stream(DEEP))
        lines = done.stdout.decode().splitlines()
        return f"{lines[0]} {lines[-3].split()[1:]}"

    assert caption() == "record 1: decoder, layer 2 of 2, mean of 2 heads ['40', '60']"
    assert caption("--layer", "1", "--head", "1") == (
        "record 1: decoder, layer 1 of 2, head 1 of 2 ['50', '50']"
    )
    assert caption("--mean", "--head", "2") == (
        "record 1: decoder, mean of 2 layers, head 2 of 2 ['30', '70']"
    )
    done = run("seq-attnviz", "html", "--head", "3", stdin=stream(DEEP))
    assert done.status == 1
    assert done.stderr == "seq-attnviz: <stdin>:1: head 3 was asked for, but there are 2\n"


def test_which_and_limit() -> None:
    done = run("seq-attnviz", "terminal", "--which", "encoder", stdin=stream(GOOD))
    assert "has no encoder attention, only: cross" in done.stderr
    done = run("seq-attnviz", "terminal", "--limit", "2", stdin=stream(GOOD, GOOD, GOOD))
    assert (done.status, done.stdout.count(b"record ")) == (0, 2)


def test_colours_are_for_terminals() -> None:
    rich = {"TERM": "xterm-256color", "COLORTERM": "truecolor", "NO_COLOR": "", "FORCE_COLOR": "1"}
    assert b"\x1b[38;5;16;48;2;206;235;255m" in terminal(rich, stdin=stream(GOOD))
    assert b"\x1b[38;5;16;48;5;195m" in terminal({**rich, "COLORTERM": ""}, stdin=stream(GOOD))
    for plain in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        text = terminal({**rich, **plain}, stdin=stream(GOOD))
        assert b"\x1b" not in text
        assert "░░▓▓".encode() in text


def test_no_control_codes_in_files(tmp_path: pathlib.Path) -> None:
    forced = environment(FORCE_COLOR="1", COLORTERM="truecolor", TERM="xterm-256color")
    evil = decoded(
        ["\x1b[2J", "</s>"], ["\r", "\u202e"], [[1.0, 0.0], [0.0, 1.0]], id="\x1b]0;x\x07"
    )
    done = run("seq-attnviz", "terminal", stdin=stream(evil), env=forced)
    assert done.status == 0
    assert not set(done.stdout.decode()) & set("\x1b\x07\r\u202e")
    text = terminal(
        {"FORCE_COLOR": "1", "COLORTERM": "truecolor", "TERM": "xterm-256color"},
        "-o", str(tmp_path / "map.txt"), stdin=stream(GOOD),
    )  # fmt: skip
    assert text == b""
    assert b"\x1b" not in (tmp_path / "map.txt").read_bytes()


def test_eighty_columns_where_there_is_no_terminal() -> None:
    wide = decoded(["r" * 90, "</s>"], [f"c{i}" for i in range(99)], [[1 / 99] * 99] * 2)
    lines = run("seq-attnviz", "terminal", stdin=stream(wide)).stdout.decode().splitlines()
    assert max(map(len, lines)) in (79, 80)
    narrow = run("seq-attnviz", "terminal", "--width", "40", stdin=stream(wide))
    assert max(map(len, narrow.stdout.decode().splitlines())) <= 40


def test_one_page_for_all_records(tmp_path: pathlib.Path) -> None:
    done = run(
        "seq-attnviz",
        "html",
        "-o",
        "a.html",
        "--title",
        "<A>",
        stdin=stream(GOOD, DEEP),
        cwd=tmp_path,
    )
    assert (done.status, done.stderr, done.stdout) == (0, "", b"")
    text = (tmp_path / "a.html").read_text("utf-8")
    assert text.startswith("<!doctype html>")
    assert text.endswith("</html>\n")
    assert "<title>&lt;A&gt;</title>" in text
    assert text.count('<script type="application/json">') == 2


def test_nothing_in() -> None:
    assert run("seq-attnviz", "terminal") == (0, b"", "")
    page = run("seq-attnviz", "html")
    assert (page.status, page.stderr) == (0, "")
    assert page.stdout.endswith(b"</html>\n")


def test_a_bad_record_leaves_a_page_that_shows_what_came_before() -> None:
    done = run("seq-attnviz", "html", stdin=stream(GOOD, {}))
    assert done.status == 1
    assert b'<a href="#1">' in done.stdout


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        (("terminal", "--layer", "0"), "--layer"),
        (("html", "--head", "-1"), "--head"),
        (("terminal", "--width", "10"), "--width"),
        (("html", "--which", "self"), "--which"),
        (("html", "--limit", "0"), "--limit"),
        (("html", "--rank", "0"), "--rank"),
    ],
)
def test_usage(arguments: tuple[str, ...], option: str) -> None:
    done = run("seq-attnviz", *arguments, stdin=stream(GOOD))
    assert (done.status, done.stdout) == (2, b"")
    assert option in done.stderr


@pytest.mark.parametrize("kind", ["terminal", "html"])
def test_the_example_of_the_help(kind: str, tmp_path: pathlib.Path) -> None:
    text = run("seq-attnviz", kind, "--help").stdout.decode()
    example = text[text.index("Example:") + len("Example:") :]
    done = shell(example, cwd=tmp_path)
    assert (done.status, done.stderr) == (0, "")
    assert done.stdout or (tmp_path / "attention.html").stat().st_size
