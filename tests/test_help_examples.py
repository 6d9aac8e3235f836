"""Every example in a `--help` is run as it is typed, and gives what stands below it.

Where an example has lines that begin with `$ `, the others are what comes out; where it has none,
all of it is typed.
"""

import importlib
import re
import tomllib

import pytest

from tests.cli.helpers import ROOT, shell

SCRIPTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]


def examples():
    """Program, kind and example of every kind there is."""
    for program, target in SCRIPTS.items():
        cli = importlib.import_module(target.partition(":")[0]).cli
        for kind, command in cli.commands.items():
            text = (command.epilog or "").partition("Example:\n")[2]
            yield pytest.param(program, text, id=f"{program}-{kind}")


# The files that examples speak of, as small as they can be.
FILES = r"""
printf 'a b c\nb c a\nc a b\n' | seq-tokenize char --text > chars.jsonl
seq-vocab build chars.jsonl > chars.vocab
printf 'ein Hund\ta dog\nzwei Hunde\ttwo dogs\n' | seq-convert tsv --columns src,tgt \
  | seq-tokenize whitespace --field src --field tgt > pairs.jsonl
"""


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("examples")
    assert shell(FILES, cwd=made).status == 0
    return made


@pytest.mark.parametrize(("program", "example"), [*examples()])
def test_example(program, example, folder):
    assert example, "a kind needs an example"
    assert program in example
    if program == "seq-decode":
        pytest.skip("tests/cli/test_decode.py runs them in one process, which loads torch once")
    for typed, shown in transcript(example):
        done = shell(typed, cwd=folder)
        assert done.status == 0, done.stderr
        if shown:
            assert re.sub(r"\s", "", done.stdout.decode()) == re.sub(r"\s", "", shown)


def transcript(example):
    """Pairs of what is typed and what is shown to come out, which may be nothing."""
    lines = [line.removeprefix("  ") for line in example.splitlines()]
    if not any(line.startswith("$ ") for line in lines):
        return [("\n".join(lines), "")]
    pairs = []
    for line in lines:
        if line.startswith("$ "):
            pairs.append((line.removeprefix("$ "), ""))
        elif pairs[-1][0].endswith("\\"):
            pairs[-1] = (pairs[-1][0] + "\n" + line, "")
        else:
            pairs[-1] = (pairs[-1][0], pairs[-1][1] + line)
    return pairs
