"""Models in files: written from anywhere, opened as maps, and refused when they are damaged."""

from __future__ import annotations

import contextlib
import mmap
import os
import pathlib
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqtools import artifact
from seqtools.errors import ConfigError, FormatError, InputError
from seqtools.ngram import model as models
from seqtools.ngram.model import Level, Model, load, save
from seqtools.ngram.scoring import Scorer
from seqtools.ngram.storage import Store
from seqtools.ngram.words import SPECIALS, Words
from tests.unit.ngram.corpora import K1
from tests.unit.ngram.models import language_model
from tests.unit.ngram.test_arpa import TOY, Values, model_of, same, tables

KENLM = b"mmap lm http://kheafield.com/code format version 5\n\0"
ARRAYS = ("words", "begins", "log10probs", "log10backoffs")


def written(model: Model) -> bytes:
    """The bytes of a model's file."""
    pieces: list[bytes] = []
    save(model, pieces.append)
    return b"".join(pieces)


def at(folder: pathlib.Path, data: bytes, name: str = "model.safetensors") -> str:
    path = folder / name
    path.write_bytes(data)
    return str(path)


def trigrams() -> Model:
    return language_model(K1, 3)


@given(tables(), st.booleans())
def test_what_is_saved_is_loaded(
    tmp_path_factory: pytest.TempPathFactory, table: tuple[list[bytes], int, Values], flag: bool
) -> None:
    strings, order, values = table
    model = model_of(strings, order, values)
    model.words = Words.from_strings(strings, unk_as_word=flag)
    model.metadata = {"smoothing": "é", "discounts": [[0.5, 1.0, 1.5]], "additive": None}
    found = load(at(tmp_path_factory.getbasetemp(), written(model)))
    assert same(found, model)
    assert found.order == order
    assert found.words.unk_as_word == flag
    assert found.metadata == {**model.metadata, "order": order, "unk_as_word": flag}
    for word in strings[3:]:
        assert found.words.find(word) == strings.index(word)
    assert written(found) == written(model)


def test_the_file_holds_no_array_twice(tmp_path: pathlib.Path) -> None:
    model = trigrams()
    found = artifact.load(at(tmp_path, written(model)), models.KIND, newest=1)
    assert sorted(found.arrays) == [
        "level1.begins", "level1.log10backoffs", "level1.log10probs",
        "level2.begins", "level2.log10backoffs", "level2.log10probs", "level2.words",
        "level3.log10probs", "level3.words",
        "words.offsets", "words.table", "words.utf8",
    ]  # fmt: skip


def test_columns_on_disk_are_saved_like_arrays() -> None:
    model = trigrams()
    with Store(0) as store:

        def column(array: Any) -> Any:
            made = store.column(array.dtype, len(array))
            made.append(array)
            assert made.on_disk or not len(array)
            return made

        levels = [
            Level(*(column(getattr(level, name)) for name in ARRAYS)) for level in model.levels
        ]
        assert written(Model(model.words, levels, model.metadata)) == written(model)


def test_the_arrays_stay_in_the_file(tmp_path: pathlib.Path) -> None:
    model = trigrams()
    found = load(at(tmp_path, written(model)))
    for level in found.levels:
        for name in ARRAYS:
            array = getattr(level, name)
            assert not array.flags.writeable
            if array.size and not (name == "words" and level is found.levels[0]):
                while isinstance(array.base, np.ndarray):
                    array = array.base
                assert isinstance(array.base, mmap.mmap)
    os.unlink(tmp_path / "model.safetensors")
    assert same(found, model)


def test_arpa_is_known_by_its_text(tmp_path: pathlib.Path) -> None:
    found = load(at(tmp_path, TOY.encode(), "any name"))
    assert found.words.strings() == [*SPECIALS, b"a", b"b"]
    assert (
        found.levels[1].log10probs.tolist()
        == np.float32([-0.5228787, -0.3010300, -0.1249387, -0.3010300]).tolist()
    )  # a </s>, b </s>, <s> a, a b
    binary = load(at(tmp_path, written(found), "model.arpa"))
    assert same(binary, found)


def test_a_pipe_is_arpa(tmp_path: pathlib.Path) -> None:
    read, write = os.pipe()
    os.write(write, TOY.encode())
    os.close(write)
    try:
        assert load(f"/dev/fd/{read}").order == 2
    finally:
        os.close(read)


def test_other_files(tmp_path: pathlib.Path) -> None:
    packed = artifact.pack("lm", artifact.Artifact(1, {}))
    newer = artifact.pack(models.KIND, artifact.Artifact(9, {}))
    for data, said in (
        (b"", "not a seqtools ngram file (it is empty)"),
        (packed, "is a seqtools lm file, not a ngram"),
        (newer, "ngram format 9 is newer than this program reads (1)"),
        (bytes(100), "not a seqtools ngram file (it is something else or damaged)"),
        (b"\x1f\x8b\x08\0\0\0\0\0", "not a seqtools ngram file (it is compressed)"),
        (KENLM, "a binary model of KenLM, which only KenLM reads (not so ARPA)"),
        (b"hello\n", "not an ARPA file: it has no line \\data\\"),
    ):
        path = at(tmp_path, data)
        with pytest.raises(FormatError) as caught:
            load(path)
        assert str(caught.value) == f"{path}: {said}"
    with pytest.raises(InputError) as broken:
        load(at(tmp_path, TOY.encode().replace(b"-0.3010300\ta b", b"x\ta b")))
    assert broken.value.line == 15
    with pytest.raises(ConfigError, match="No such file"):
        load(str(tmp_path / "missing"))
    with pytest.raises(ConfigError, match="s a directory"):
        load(str(tmp_path))


def changes() -> Iterator[tuple[str, Any]]:
    """Arrays that do not fit the others, or metadata that do not."""
    yield from {
        "level1.log10probs": np.zeros(5, dtype=np.float32),
        "level1.log10backoffs": np.zeros(7, dtype=np.float32),
        "level1.begins": np.zeros(7, dtype=np.uint32),
        "level2.words": np.zeros(1, dtype=np.uint32),
        "level2.begins": np.zeros(0, dtype=np.uint32),
        "level2.log10probs": None,
        "level3.log10probs": np.zeros(0, dtype=np.float32),
        "level3.words": None,
        "words.offsets": np.zeros(0, dtype=np.int64),
        "words.utf8": np.zeros(3, dtype=np.uint8),
        "order": 4,
        "unk_as_word": None,
    }.items()
    yield "level1.log10probs", np.zeros(6, dtype=np.float64)
    yield "level2.begins", np.zeros(20, dtype=np.float32)
    yield "words.table", np.zeros(0, dtype=np.uint64)
    yield "words.table", np.zeros(24, dtype=np.uint64)
    yield "words.table", np.ones(16, dtype=np.uint64)  # full: a word that is not there has no end
    yield "words.table", np.array([99] + [0] * 15, dtype=np.uint64)
    yield "words.table", np.zeros(16, dtype=np.int64)
    yield "words.offsets", np.array([0, 1, 2], dtype=np.int64)
    yield "words.offsets", np.array([0, 5, 8, 12, 9, 14, 15], dtype=np.int64)
    yield "words.offsets", np.array([1, 5, 8, 12, 13, 14, 15], dtype=np.int64)
    yield "words.offsets", np.array([0, 5, 8, 12, 13, 14, 16], dtype=np.int64)
    yield "order", 0
    yield "order", 256
    yield "order", 2.5
    yield "order", "3"


@pytest.mark.parametrize(("name", "value"), [*changes()], ids=lambda value: str(value)[:30])
def test_what_does_not_fit_together_is_refused(
    tmp_path: pathlib.Path, name: str, value: Any
) -> None:
    whole_file = artifact.load(at(tmp_path, written(trigrams())), models.KIND, newest=1)
    place = whole_file.arrays if name in whole_file.arrays else whole_file.metadata
    if value is None:
        del place[name]
    else:
        place[name] = value
    path = at(tmp_path, artifact.pack(models.KIND, whole_file))
    with pytest.raises(FormatError) as caught:
        load(path)
    assert str(caught.value) == f"{path}: damaged: its arrays do not fit together"


def test_damage_that_is_not_seen_does_no_harm(tmp_path: pathlib.Path) -> None:
    """The scores may be any, but all is found within the arrays."""
    data = written(trigrams())
    source = random.Random(1)
    opened = 0
    start = 8 + int.from_bytes(data[:8], "little")
    for _ in range(400):
        changed = bytearray(data)
        for _ in range(source.randrange(1, 9)):
            changed[source.randrange(start, len(data))] = source.randrange(256)
        try:
            model = load(at(tmp_path, bytes(changed)))
        except FormatError:
            continue
        opened += 1
        texts = [source.choices("abcz", k=5) for _ in range(5)]
        found = Scorer(model).score(*model.words.encode_tokens(texts))
        assert len(found.log10probs) == 30
        with contextlib.suppress(FormatError):
            assert model.distributions(np.array([[1, 3], [4, 0]])).shape == (2, 6)
    assert opened > 50
