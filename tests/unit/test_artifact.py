"""Our files: the same content is the same bytes, and nothing else is taken for one."""

import json
import os
import pickle
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save

from seqtools.artifact import Artifact, load, pack
from seqtools.errors import ConfigError, FormatError

WORDS = ["<pad>", "", "a b", "\n\r\t\0", "𠮷", "\u2028", "é", "é" * 300]


def artifact(**changes):
    arrays = {
        "weights": np.arange(6, dtype=np.float32).reshape(2, 3),
        "counts": np.array([1, 2**60], dtype=np.int64),
        "scalar": np.array(1.5),
        "empty": np.zeros((0, 4), dtype=np.float32),
        "view": np.arange(12, dtype=np.int32)[::-2],
        "turned": np.arange(6, dtype=np.int16).reshape(2, 3).T,
        "flags": np.array([True, False]),
    }
    settings = {"b": 1, "a": [1.5, "中", None], "n": 2**70}
    content = {"metadata": settings, "arrays": arrays, "strings": {"words": WORDS, "none": []}}
    return Artifact(**{"version": 1, **content, **changes})


def write(path, data):
    path.write_bytes(data)
    return str(path)


def test_what_is_packed_is_loaded(tmp_path):
    made = artifact()
    found = load(write(tmp_path / "f", pack("toy", made)), "toy", newest=1)
    assert (found.version, found.metadata, found.strings) == (1, made.metadata, made.strings)
    assert found.arrays.keys() == made.arrays.keys()
    for name, array in made.arrays.items():
        assert found.arrays[name].dtype == array.dtype
        assert np.array_equal(found.arrays[name], array)


def test_the_same_content_is_the_same_bytes():
    made = artifact()
    turned = Artifact(
        1,
        dict(reversed(made.metadata.items())),
        dict(reversed(made.arrays.items())),
        dict(reversed(made.strings.items())),
    )
    assert pack("toy", made) == pack("toy", turned)


@given(st.lists(st.text(st.characters(codec="utf-8"))))
def test_any_strings(tmp_path_factory, strings):
    path = tmp_path_factory.getbasetemp() / "strings"
    write(path, pack("toy", Artifact(1, {}, strings={"s": strings})))
    assert load(str(path), "toy", newest=1).strings == {"s": strings}


def test_the_metadata_is_one_key_with_sorted_json(tmp_path):
    data = pack("toy", artifact())
    length = int.from_bytes(data[:8], "little")
    metadata = json.loads(data[8 : 8 + length])["__metadata__"]
    assert list(metadata) == ["seqtools"]
    head = json.loads(metadata["seqtools"])
    assert head == {
        "kind": "toy",
        "version": 1,
        "metadata": artifact().metadata,
        "strings": ["none", "words"],
    }
    assert metadata["seqtools"] == json.dumps(head, sort_keys=True, ensure_ascii=False)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "it is empty"),
        ((0x680).to_bytes(8, "little") + b'{"__metadata__":{"a', "it is cut short or damaged"),
        (pickle.dumps([1]), "it looks like a pickle, which is never loaded"),
        (b"PK\x03\x04" + bytes(99), "it looks like a pickle, which is never loaded"),
        (b'{"id":0,"token":"<pad>"}\n', "it is a text file"),
        ("中文\n".encode(), "it is a text file"),
        (b"\\data\\\nngram 1=5\n", "it looks like an ARPA file"),
        (b"\x1f\x8b\x08\x00" + bytes(99), "it is compressed"),
        (bytes(range(1, 200)), "it is something else or damaged"),
        (b"\xff" * 8 + b"{}", "it is something else or damaged"),
    ],
)
def test_other_files_are_told_apart(tmp_path, data, said):
    path = write(tmp_path / "f", data)
    with pytest.raises(FormatError) as caught:
        load(path, "toy", newest=1)
    assert str(caught.value) == f"{path}: not a seqtools toy file ({said})"


def test_safetensors_of_others_and_of_other_kinds_and_of_later_versions(tmp_path):
    array = {"a": np.zeros(2, dtype=np.float32)}
    foreign = "a safetensors file, but not one of seqtools"
    for data, said in (
        (save(array), foreign),
        (save(array, {"format": "pt"}), foreign),
        (save(array, {"seqtools": "{"}), foreign),
        (save(array, {"seqtools": "[1]"}), foreign),
        (save(array, {"seqtools": "[" * 100_000}), foreign),
        (save(array, {"seqtools": '{"kind":"toy"}'}), foreign),
        (pack("other", artifact()), "is a seqtools other file, not a toy"),
        (pack("toy", artifact(version=3)), "toy format 3 is newer than this program reads (2)"),
        (pack("toy", artifact(version=0)), "damaged: its header cannot be read"),
        (pack("toy", artifact(version="1")), "damaged: its header cannot be read"),
        (pack("toy", artifact(metadata=[])), "damaged: its header cannot be read"),
    ):
        with pytest.raises(FormatError) as caught:
            load(write(tmp_path / "f", data), "toy", newest=2)
        assert str(caught.value) == f"{tmp_path / 'f'}: {said}"


@pytest.mark.parametrize(
    "offsets",
    [[], [0], [0, 1], [1, 2], [0, 2, 1, 2], [0, -1, 2], [0, 9], [0.0, 2.0], [[0, 2]]],
    ids=str,
)
def test_strings_that_are_cut_wrongly(tmp_path, offsets):
    arrays = {
        "s.utf8": np.frombuffer(b"ab", np.uint8),
        "s.offsets": np.array(offsets, dtype=None if offsets else np.int64),
    }
    head = {"kind": "toy", "version": 1, "metadata": {}, "strings": ["s"]}
    path = write(tmp_path / "f", save(arrays, {"seqtools": json.dumps(head)}))
    with pytest.raises(FormatError, match="damaged: its strings cannot be read"):
        load(path, "toy", newest=1)


@pytest.mark.parametrize("names", [[1], [["s"]], [None], ["t"]])
def test_strings_whose_names_are_none(tmp_path, names):
    head = {"kind": "toy", "version": 1, "metadata": {}, "strings": names}
    data = save({"x": np.zeros(1)}, metadata={"seqtools": json.dumps(head)})
    with pytest.raises(FormatError, match="damaged: its strings cannot be read"):
        load(write(tmp_path / "f", data), "toy", newest=1)


def test_damage_is_never_anything_but_a_format_error(tmp_path):
    data = pack("toy", artifact())
    rng = random.Random(1)
    path = tmp_path / "f"
    broken = [data[:cut] for cut in range(0, len(data) - 1, 37)]
    for _ in range(300):
        changed = bytearray(data)
        changed[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        broken.append(bytes(changed))
    refused = 0
    for each in broken:
        path.write_bytes(each)
        try:
            load(str(path), "toy", newest=1)
        except FormatError:
            refused += 1
    assert refused > len(data) // 40  # each cut, at least


def test_numbers_that_numpy_does_not_know_are_refused(tmp_path):
    import torch
    from safetensors.torch import save as save_torch

    head = {"kind": "toy", "version": 1, "metadata": {}, "strings": []}
    tensors = {"a": torch.zeros(2, dtype=torch.bfloat16)}
    path = write(tmp_path / "f", save_torch(tensors, {"seqtools": json.dumps(head)}))
    with pytest.raises(FormatError):
        load(path, "toy", newest=1)


def test_what_cannot_be_opened(tmp_path):
    for path, reason in (
        (tmp_path / "missing 中", "No such file or directory"),
        (tmp_path, "Is a directory"),
    ):
        with pytest.raises(ConfigError) as caught:
            load(str(path), "toy", newest=1)
        assert str(caught.value) == f"{path}: {reason}"


def test_a_name_that_is_no_unicode(tmp_path):
    path = os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9")
    with open(path, "wb") as handle:
        handle.write(pack("toy", artifact()))
    assert load(path, "toy", newest=1).metadata == artifact().metadata
