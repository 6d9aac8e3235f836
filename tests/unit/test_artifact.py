"""Our files: the same content is the same bytes, and nothing else is taken for one."""

import json
import os
import pickle
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load_file, save

from seqtools import artifact as artifacts
from seqtools.artifact import Artifact, load, load_mapped, pack
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


# Files of long arrays, written block by block and opened as maps.

KINDS = ["u8", "i8", "f8", "f4", "u4", "i4", "u1"]


class Column:
    """An array that is nowhere as a whole, and whose blocks are all in the same place."""

    def __init__(self, values):
        self.values, self.dtype = values, values.dtype
        self.block = np.empty(len(values), dtype=values.dtype)
        self.longest = 0

    def __len__(self):
        return len(self.values)

    def __getitem__(self, rows):
        found = self.values[rows]
        self.longest = max(self.longest, len(found))
        self.block[: len(found)] = found
        return self.block[: len(found)]


columns = st.dictionaries(
    st.text(st.characters(codec="utf-8"), min_size=1).filter(lambda name: name != "__metadata__"),
    st.builds(
        lambda kind, data: np.frombuffer(data[: len(data) // 8 * 8], dtype=kind),
        st.sampled_from(KINDS),
        st.binary(max_size=100),
    ),
    max_size=8,
)


def put_together(kind, made, columns):
    """What is written, in the pieces that it is written in, all kept to the end."""
    pieces = []
    artifacts.write(kind, made, columns, pieces.append)
    assert {type(piece) for piece in pieces} == {bytes}
    return pieces


@given(columns, st.integers(1, 40), st.booleans())
def test_what_is_written_in_blocks_is_what_is_packed(columns, block, anywhere):
    made = Artifact(3, {"a": "é\n", "b": [1.5, None]})
    given = {name: Column(array) if anywhere else array for name, array in columns.items()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(artifacts, "_BLOCK", block)
        found = b"".join(put_together("toy", made, given))
    expected = Artifact(3, made.metadata, columns)
    assert found == pack("toy", expected)
    assert not anywhere or all(column.longest <= block for column in given.values())


def test_blocks_are_some_megabytes_of_a_long_array():
    values = np.arange(3_000_000, dtype=np.uint32)
    pieces = put_together("toy", Artifact(1, {}), {"x": Column(values)})
    assert 1 << 20 < max(map(len, pieces)) < 1 << 24
    assert b"".join(pieces[1:]) == values.tobytes()


@given(columns)
def test_what_is_written_is_mapped(tmp_path_factory, columns):
    path = tmp_path_factory.getbasetemp() / "mapped"
    made = Artifact(1, {"a": "中"})
    write(path, b"".join(put_together("toy", made, columns)))
    found = load_mapped(str(path), "toy", newest=1)
    assert (found.version, found.metadata, found.strings) == (1, made.metadata, {})
    others = load_file(path)
    assert found.arrays.keys() == columns.keys() == others.keys()
    for name, array in columns.items():
        assert found.arrays[name].dtype == others[name].dtype == array.dtype
        assert found.arrays[name].tobytes() == others[name].tobytes() == array.tobytes()


def test_a_map_is_the_file_itself(tmp_path):
    values = np.arange(5000, dtype=np.float64)
    path = write(tmp_path / "f", b"".join(put_together("toy", Artifact(1, {}), {"x": values})))
    found = load_mapped(path, "toy", newest=1).arrays["x"]
    assert not found.flags.writeable
    assert found.flags.aligned
    with pytest.raises(ValueError):
        found.flags.writeable = True
    with open(path, "r+b") as handle:
        handle.seek(-8, os.SEEK_END)
        handle.write(np.float64(-1).tobytes())
    assert found[-1] == -1
    os.replace(write(tmp_path / "other", b"other"), path)
    assert np.array_equal(found[:-1], values[:-1])


def test_strings_of_a_mapped_file_stay_arrays(tmp_path):
    packed = pack("toy", Artifact(1, {}, strings={"s": ["a", "bc"]}))
    found = load_mapped(write(tmp_path / "f", packed), "toy", newest=1)
    assert found.strings == {}
    assert found.arrays["s.utf8"].tobytes() == b"abc"
    assert found.arrays["s.offsets"].tolist() == [0, 1, 3]


def test_other_files_are_not_mapped(tmp_path):
    def assert_refused(data, said):
        with pytest.raises(FormatError) as caught:
            load_mapped(write(tmp_path / "f", data), "toy", newest=2)
        assert str(caught.value) == f"{tmp_path / 'f'}: {said}"

    assert_refused(b"", "not a seqtools toy file (it is empty)")
    assert_refused(b"\\data\\\n" * 9, "not a seqtools toy file (it looks like an ARPA file)")
    assert_refused(save({"a": np.zeros(2)}), "a safetensors file, but not one of seqtools")
    assert_refused(pack("other", Artifact(1, {})), "is a seqtools other file, not a toy")
    newer = pack("toy", Artifact(3, {}))
    assert_refused(newer, "toy format 3 is newer than this program reads (2)")
    cut = pack("toy", Artifact(1, {}, {"a": np.zeros(2)}))
    for size in range(10, len(cut)):
        assert_refused(cut[:size], "not a seqtools toy file (it is cut short or damaged)")
    for path, reason in (
        (tmp_path / "missing", "No such file or directory"),
        (tmp_path, "Is a directory"),
    ):
        with pytest.raises(ConfigError, match=reason):
            load_mapped(str(path), "toy", newest=1)


def raw(header, data, size=None):
    """A safetensors file with any header."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return (len(text) if size is None else size).to_bytes(8, "little") + text + data


HEAD = {"seqtools": '{"kind":"toy","version":1,"metadata":{},"strings":[]}'}


def entry(start, end, dtype="U8", shape=None):
    return {"dtype": dtype, "shape": [end - start] if shape is None else shape,
            "data_offsets": [start, end]}  # fmt: skip


def test_a_header_that_is_right_is_mapped(tmp_path):
    data = raw({"__metadata__": HEAD, "b": entry(4, 8, "I32", [1]), "a": entry(0, 4)}, b"abcd" * 2)
    found = load_mapped(write(tmp_path / "f", data), "toy", newest=1)
    assert found.arrays["a"].tobytes() == b"abcd"
    assert found.arrays["b"].tobytes() == b"abcd"


@pytest.mark.parametrize(
    "arrays",
    [
        {"a": entry(0, 4)},  # more data than arrays
        {"a": entry(0, 9)},  # fewer
        {"a": entry(0, 4), "b": entry(0, 4)},
        {"a": entry(0, 4), "b": entry(5, 8)},
        {"a": entry(0, 4), "b": entry(3, 8)},
        {"a": entry(0, 8, "I32", [3])},
        {"a": entry(0, 8, "I32", [2, 1])},
        {"a": entry(0, 8, "I32", [])},
        {"a": entry(0, 8, "BF16", [4])},
        {"a": entry(0, 8, 5)},
        {"a": entry(0, 1), "b": entry(1, 5, "I32", [1]), "c": entry(5, 8)},
        {"a": {**entry(0, 8), "data_offsets": [0.0, 8.0]}},
        {"a": {**entry(0, 8), "data_offsets": [0, -1]}},
        {"a": {**entry(0, 8), "data_offsets": [-8, 0]}},
        {"a": {**entry(0, 8), "data_offsets": [0, 10**30]}},
        {"a": {**entry(0, 8), "data_offsets": [0]}},
        {"a": {**entry(0, 8), "shape": None}},
        {"a": [0, 8]},
        {"a": 8},
        {"a": {}},
    ],
    ids=str,
)
def test_arrays_that_are_not_in_the_file(tmp_path, arrays):
    path = write(tmp_path / "f", raw({"__metadata__": HEAD, **arrays}, bytes(8)))
    with pytest.raises(FormatError, match="not a seqtools toy file"):
        load_mapped(path, "toy", newest=1)


@pytest.mark.parametrize(
    "data",
    [
        raw(b"[]", b""),
        raw(b"5", b""),
        raw(b"null", b""),
        raw(b"{", b""),
        raw(b"{}x", b""),
        raw(b"\xff\xfe", b""),
        raw(b"[" * 100_000, b""),
        raw({"__metadata__": HEAD}, b"", size=1 << 62),
        raw({"__metadata__": HEAD}, b"", size=1),
        b"\3\0\0\0\0\0\0\0{} " + bytes(8),
        raw({}, b""),
        raw({"__metadata__": None}, b""),
        raw({"__metadata__": [HEAD]}, b""),
        raw({"__metadata__": "seqtools"}, b""),
    ],
    ids=lambda data: str(data[:20]),
)
def test_headers_that_are_none(tmp_path, data):
    with pytest.raises(FormatError):
        load_mapped(write(tmp_path / "f", data), "toy", newest=1)


def test_damage_of_a_mapped_file_is_never_anything_but_a_format_error(tmp_path):
    made = {"a": np.arange(9, dtype=np.float32), "b": np.arange(3, dtype=np.uint8)}
    data = b"".join(put_together("toy", Artifact(1, {"n": 1}), made))
    rng = random.Random(1)
    refused = 0
    for _ in range(500):
        changed = bytearray(data)
        changed[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        try:
            found = load_mapped(write(tmp_path / "f", bytes(changed)), "toy", newest=1)
        except FormatError:
            refused += 1
        else:
            assert sum(array.nbytes for array in found.arrays.values()) == 39
    assert refused > 100
