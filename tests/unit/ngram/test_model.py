"""Models in files: the same when opened again, and refused where they are damaged."""

from __future__ import annotations

import os
import pathlib
import random
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from seqtools import artifact
from seqtools.errors import ConfigError, FormatError
from seqtools.ngram.estimate import train
from seqtools.ngram.model import KIND, Model, load, save
from seqtools.ngram.scoring import Scorer
from seqtools.ngram.words import SPECIALS
from tests.cli.helpers import ROOT
from tests.unit.ngram import corpora
from tests.unit.ngram.corpora import K1
from tests.unit.ngram.models import language_model
from tests.unit.ngram.tables import whole
from tests.unit.ngram.test_estimate import Case, smoothing

ARRAYS = ("words", "begins", "log10probs", "log10backoffs")


def packed(model: Model) -> bytes:
    pieces: list[bytes] = []
    save(model, pieces.append)
    return b"".join(pieces)


def parts(data: bytes, folder: pathlib.Path) -> artifact.Artifact:
    """What is in a model's file, to be changed."""
    path = folder / "parts"
    path.write_bytes(data)
    return artifact.load(str(path), KIND, newest=1)


def opened(folder: pathlib.Path, data: bytes) -> Model:
    path = folder / "model"
    path.write_bytes(data)
    return load(str(path))


@settings(max_examples=50)
@given(corpora.cases())
def test_a_model_is_the_same_when_it_is_opened_again(
    tmp_path_factory: pytest.TempPathFactory, case: Case
) -> None:
    records, order, options = case
    prune = options.get("prune", (0,))
    model = train(records, order, smoothing(options), prune=prune).model
    data = packed(model)
    found = opened(tmp_path_factory.getbasetemp(), data)
    assert found.order == order
    assert found.metadata == model.metadata
    assert found.words.strings() == model.words.strings()
    for ours, theirs in zip(found.levels, model.levels, strict=True):
        for name in ARRAYS:
            if name == "begins" and ours is found.levels[-1]:
                continue
            assert whole(getattr(ours, name)).tolist() == whole(getattr(theirs, name)).tolist()
    assert packed(found) == data


def test_the_same_text_makes_the_same_file() -> None:
    assert packed(language_model(K1, 3)) == packed(language_model(K1, 3))


def test_unk_as_a_word_stays_one(tmp_path: pathlib.Path) -> None:
    made = train([["<unk>", "a"]], 2, smoothing({"method": "mle"}), unk_as_word=True).model
    found = opened(tmp_path, packed(made))
    assert found.words.unk_as_word
    assert found.words.find(b"<unk>") > 2


def test_arrays_are_maps_that_nobody_writes_to(tmp_path: pathlib.Path) -> None:
    found = opened(tmp_path, packed(language_model(K1, 3)))
    for level in found.levels:
        for name in ARRAYS:
            assert not getattr(level, name).flags.writeable


def test_a_file_of_another_kind(tmp_path: pathlib.Path) -> None:
    data = artifact.pack("vocabulary", artifact.Artifact(1, {}))
    with pytest.raises(FormatError, match="is a seqtools vocabulary file, not a ngram"):
        opened(tmp_path, data)
    with pytest.raises(FormatError, match="newer than this program"):
        opened(tmp_path, artifact.pack(KIND, artifact.Artifact(2, {})))
    with pytest.raises(FormatError):
        opened(tmp_path, b"")
    with pytest.raises(FormatError, match="KenLM"):
        opened(tmp_path, b"mmap lm http://kheafield.com/code format version 5\n\0" + bytes(99))
    with pytest.raises(ConfigError, match="No such file"):
        load(str(tmp_path / "missing"))


def test_a_file_that_is_cut_short(tmp_path: pathlib.Path) -> None:
    data = packed(language_model(K1, 3))
    for size in range(0, len(data), 13):
        with pytest.raises(FormatError):
            opened(tmp_path, data[:size])


def _drop(name: str) -> Any:
    return lambda found: found.arrays.pop(name)


def _set(name: str, change: Any) -> Any:
    return lambda found: found.arrays.update({name: change(found.arrays[name])})


def _metadata(**values: Any) -> Any:
    return lambda found: found.metadata.update(values)


def _longer(array: Any) -> Any:
    return np.append(array, array[-1:])


DAMAGES = {
    "no order": lambda found: found.metadata.pop("order"),
    "order 0": _metadata(order=0),
    "order of a word": _metadata(order="3"),
    "higher order": _metadata(order=4),
    "no probabilities": _drop("level2.log10probs"),
    "no begins": _drop("level1.begins"),
    "no words": _drop("words.utf8"),
    "more words": _set("level2.words", _longer),
    "more probabilities": _set("level3.log10probs", _longer),
    "more backoffs": _set("level1.log10backoffs", _longer),
    "more begins": _set("level1.begins", _longer),
    "other type": _set("level1.log10probs", lambda array: array.astype(np.float64)),
    "ids of another type": _set("level2.words", lambda array: array.astype(np.int32)),
    "text of another length": _set("words.utf8", _longer),
    "more offsets": _set("words.offsets", _longer),
    "offsets that go back": _set("words.offsets", lambda old: np.r_[0, old[-2:0:-1], old[-1]]),
    "table of another size": _set("words.table", _longer),
    "table without an end": _set("words.table", lambda array: np.full_like(array, 1)),
    "table of other words": _set("words.table", lambda array: array + (array > 0) * np.uint64(99)),
    "empty table": _set("words.table", lambda array: array[:0]),
    "last begin": _set("level2.begins", lambda array: array + np.uint32(1)),
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGES)
def test_arrays_that_do_not_fit_together(tmp_path: pathlib.Path, name: str) -> None:
    found = parts(packed(language_model(K1, 3)), tmp_path)
    assert opened(tmp_path, artifact.pack(KIND, found)).order == 3
    DAMAGES[name](found)
    with pytest.raises(FormatError, match="damaged: its arrays do not fit together"):
        opened(tmp_path, artifact.pack(KIND, found))


def test_damage_that_is_not_seen_makes_other_numbers_at_most(tmp_path: pathlib.Path) -> None:
    """In a process of its own, which must not fall."""
    path = tmp_path / "model"
    path.write_bytes(packed(language_model(K1, 3)))
    done = subprocess.run(
        [sys.executable, "-c", _BREAKING, str(path)], cwd=ROOT, capture_output=True, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    opened_anyway, refused = map(int, done.stdout.split())
    assert opened_anyway > 100
    assert refused > 100


_BREAKING = """
import random, sys
from tests.unit.ngram.test_model import break_and_use
break_and_use(sys.argv[1], random.Random(5))
"""


def break_and_use(path: str, source: random.Random) -> None:
    """Change some bits of a model, and look up what there is, many times."""
    with open(path, "rb") as handle:
        data = handle.read()
    opened_anyway = refused = 0
    for _ in range(1500):
        changed = bytearray(data)
        for _ in range(source.randrange(1, 4)):
            changed[source.randrange(len(data))] ^= 1 << source.randrange(8)
        with open(path, "wb") as handle:
            handle.write(changed)
        try:
            model = load(path)
        except FormatError:
            refused += 1
            continue
        opened_anyway += 1
        ids, ends = model.words.encode_tokens([["a", "b", "c"], ["b", "zz", "a", "c", "a"], []])
        if len(SPECIALS) < len(model.words) and ids.max(initial=0) < len(model.words):
            Scorer(model).score(ids, ends)
    print(opened_anyway, refused)
