"""examples/ngram makes anew what was made of something else."""

import json
import os
import pathlib
import sys

from seqtools.ngram import model
from tests.cli.helpers import ROOT, shell


def make(target: pathlib.Path, **asked: object) -> None:
    settings = " ".join(f"{name}={value}" for name, value in asked.items())
    line = f"make PYTHON={sys.executable} OUT={target.parents[1]} {settings} {target}"
    done = shell(line, cwd=ROOT / "examples" / "ngram")
    assert done.status == 0, done.stderr


def test_other_texts_and_orders_make_other_models(tmp_path: pathlib.Path) -> None:
    new, old = tmp_path / "new", tmp_path / "old"
    new.write_text("a cat\na dog\n")
    old.write_text("one bird\n")
    os.utime(old, (0, 0))  # by its time alone nothing has to be done
    tokens = tmp_path / "en" / "train.jsonl"
    made = tmp_path / "en" / "model.safetensors"
    make(made, EN_TRAIN=new, ORDER=2)
    assert model.load(str(made)).order == 2
    make(made, EN_TRAIN=new, ORDER=1)
    assert model.load(str(made)).order == 1
    before = made.stat().st_mtime_ns
    make(made, EN_TRAIN=new, ORDER=1)
    assert made.stat().st_mtime_ns == before
    make(tokens, EN_TRAIN=old)
    assert [json.loads(line)["tokens"] for line in tokens.read_bytes().splitlines()] == [
        ["one", "bird"]
    ]
