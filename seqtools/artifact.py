"""Our files: one safetensors file with a kind, a version, sorted metadata, arrays and strings.

The single metadata key `seqtools` holds a JSON text with sorted keys, so the same content is the
same bytes. Lists of strings (vocabularies, names) are stored as two arrays, `NAME.utf8` (uint8) and
`NAME.offsets` (int64, one more than there are strings), so two million entries fit. Nothing is ever
unpickled.
"""

from __future__ import annotations

import codecs
import itertools
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from seqtools.errors import ConfigError, FormatError

_KEY = "seqtools"
_UTF8 = ".utf8"
_OFFSETS = ".offsets"
_BLOCK = 1 << 20
_LONGEST_HEADER = 100_000_000  # as the safetensors library has it
# In the order that the safetensors library writes them in.
_TYPES: dict[np.dtype[Any], str] = {
    np.dtype(np.uint64): "U64",
    np.dtype(np.int64): "I64",
    np.dtype(np.float64): "F64",
    np.dtype(np.float32): "F32",
    np.dtype(np.uint32): "U32",
    np.dtype(np.int32): "I32",
    np.dtype(np.uint8): "U8",
}


@dataclass
class Artifact:
    """What is in one of our files.

    Attributes:
        version: version of the format of this kind of file.
        metadata: JSON-able settings.
        arrays: named arrays of any shape.
        strings: named lists of strings.
    """

    version: int
    metadata: dict[str, Any]
    arrays: dict[str, np.ndarray[Any, Any]] = field(default_factory=dict)
    strings: dict[str, list[str]] = field(default_factory=dict)


class Long(Protocol):
    """One array, wherever it is: what is needed to write it in blocks. Numpy's arrays are such."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the values."""

    def __len__(self) -> int:
        """How many values there are."""

    def __getitem__(self, rows: slice, /) -> np.ndarray[Any, Any]:
        """Some of the values."""


def pack(kind: str, artifact: Artifact) -> bytes:
    """The bytes of the file; the same content gives the same bytes."""
    from safetensors.numpy import save

    arrays = dict(artifact.arrays)
    for name, strings in artifact.strings.items():
        arrays[name + _UTF8], arrays[name + _OFFSETS] = _encode_strings(strings)
    text = _head_text(kind, artifact)
    contiguous = {name: np.asarray(arrays[name], order="C") for name in sorted(arrays)}
    return bytes(save(contiguous, metadata={_KEY: text}))


def write(
    kind: str, artifact: Artifact, columns: Mapping[str, Long], put: Callable[[bytes], None]
) -> None:
    """Write a file whose arrays are long, block by block.

    It is what `pack` would give if the columns were among the arrays; but the strings of the
    artifact must be empty.

    Args:
        kind: of file.
        artifact: version and metadata.
        columns: arrays of one dimension.
        put: takes the bytes.
    """
    types = list(_TYPES)
    names = sorted(columns, key=lambda name: (types.index(columns[name].dtype), name))
    header: dict[str, Any] = {"__metadata__": {_KEY: _head_text(kind, artifact)}}
    end = 0
    for name in names:
        column = columns[name]
        start, end = end, end + len(column) * column.dtype.itemsize
        header[name] = {
            "dtype": _TYPES[column.dtype],
            "shape": [len(column)],
            "data_offsets": [start, end],
        }
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # as that library does, too
    put(len(text).to_bytes(8, "little") + text)
    for name in names:
        for start in range(0, len(columns[name]), _BLOCK):
            put(np.ascontiguousarray(columns[name][start : start + _BLOCK]).tobytes())


def _head_text(kind: str, artifact: Artifact) -> str:
    head = {
        "kind": kind,
        "version": artifact.version,
        "metadata": artifact.metadata,
        "strings": sorted(artifact.strings),
    }
    return json.dumps(head, sort_keys=True, ensure_ascii=False, allow_nan=False)


def load(path: str, kind: str, *, newest: int) -> Artifact:
    """Read a file of this kind, at most of version `newest`.

    Raises:
        ConfigError: the file cannot be opened.
        FormatError: it is not one of our files, of another kind, damaged or too new.
    """
    from safetensors import SafetensorError, safe_open

    _check_readable(path)
    try:
        with safe_open(path, framework="numpy") as handle:
            head = _read_head(path, handle.metadata(), kind, newest)
            arrays = {name: handle.get_tensor(name) for name in handle.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, TypeError) as error:  # a type that numpy does not know
        raise FormatError(f"{path}: not a seqtools {kind} file ({_guess(path)})") from error
    try:
        strings = {
            name: _decode_strings(arrays.pop(name + _UTF8), arrays.pop(name + _OFFSETS))
            for name in head["strings"]
        }
    except (KeyError, ValueError, TypeError) as error:
        raise FormatError(f"{path}: damaged: its strings cannot be read") from error
    return Artifact(head["version"], head["metadata"], arrays, strings)


def load_mapped(path: str, kind: str, *, newest: int) -> Artifact:
    """Open a file as `write` makes them, without reading the arrays: they are maps of the file.

    The maps are read-only, and hold the file as it is now, even when another one takes its place.

    Raises:
        ConfigError: the file cannot be opened.
        FormatError: it is not one of our files, of another kind, damaged or too new.
    """
    _check_readable(path)
    try:
        header, data = _map(path)
        head = _read_head(path, header.pop("__metadata__", None), kind, newest)
        arrays = dict(_mapped_arrays(header, data))
    except (ValueError, KeyError, TypeError, OSError, OverflowError, RecursionError) as error:
        raise FormatError(f"{path}: not a seqtools {kind} file ({_guess(path)})") from error
    return Artifact(head["version"], head["metadata"], arrays)


def _map(path: str) -> tuple[dict[str, Any], np.ndarray[Any, Any]]:
    """The header, and the bytes behind it."""
    size = os.path.getsize(path)
    with open(path, "rb") as handle:
        length = int.from_bytes(handle.read(8), "little")
        if not 2 <= length <= min(size - 8, _LONGEST_HEADER) or length % 8:
            raise ValueError("no header of safetensors")
        header = json.loads(handle.read(length))
    if not isinstance(header, dict):
        raise ValueError("a header that is no object")
    if size == 8 + length:
        return header, np.empty(0, dtype=np.uint8)
    return header, np.memmap(path, dtype=np.uint8, mode="r", offset=8 + length)


def _mapped_arrays(
    header: Mapping[str, Any], data: np.ndarray[Any, Any]
) -> Iterator[tuple[str, np.ndarray[Any, Any]]]:
    """The arrays, which must follow each other without gaps, as they do in a file of ours."""
    types: dict[str, np.dtype[Any]] = {name: dtype for dtype, name in _TYPES.items()}
    last = 0
    for name, entry in sorted(header.items(), key=lambda item: _place(item[1])):
        dtype, [count], (start, end) = types[entry["dtype"]], entry["shape"], _place(entry)
        if start != last or start % dtype.itemsize or end - start != count * dtype.itemsize:
            raise ValueError("an array that is not where the one before it ends")
        last = end
        if last > len(data):
            raise ValueError("an array that is not within the file")
        yield name, np.asarray(data[start:end]).view(dtype)
    if last != len(data):
        raise ValueError("the arrays are not all of the file")


def _place(entry: Mapping[str, Any]) -> tuple[int, int]:
    """The bytes of an array behind the header."""
    start, end = entry["data_offsets"]
    if type(start) is not int or type(end) is not int or not 0 <= start <= end:
        raise ValueError("offsets that are none")
    return start, end


def _read_head(
    path: str, metadata: Mapping[str, str] | None, kind: str, newest: int
) -> dict[str, Any]:
    try:
        head = json.loads((metadata or {})[_KEY])
        found, version = head["kind"], head["version"]
        complete = isinstance(head["metadata"], dict) and isinstance(head["strings"], list)
    except (KeyError, ValueError, TypeError, RecursionError) as error:
        raise FormatError(f"{path}: a safetensors file, but not one of seqtools") from error
    if found != kind:
        raise FormatError(f"{path}: is a seqtools {found} file, not a {kind}")
    if not complete or not isinstance(version, int) or version < 1:
        raise FormatError(f"{path}: damaged: its header cannot be read")
    if version > newest:
        raise FormatError(
            f"{path}: {kind} format {version} is newer than this program reads ({newest})"
        )
    return dict(head)


def _check_readable(path: str) -> None:
    try:
        with open(path, "rb"):
            pass
    except OSError as error:
        raise ConfigError(f"{path}: {os.strerror(error.errno or 0)}") from error


def _guess(path: str) -> str:
    """What the file seems to be, so that the message can say it."""
    with open(path, "rb") as handle:
        start = handle.read(64)
    if not start:
        return "it is empty"
    if start[6:10] == b'\0\0{"':  # eight bytes of length, then JSON: safetensors, but not whole
        return "it is cut short or damaged"
    if start[:2] == b"PK" or start[:1] == b"\x80":
        return "it looks like a pickle, which is never loaded"
    if start.lstrip()[:6] in (b"\\data\\", b"ngram "):
        return "it looks like an ARPA file"
    if start[:2] == b"\x1f\x8b":
        return "it is compressed"
    try:
        text, _ = codecs.utf_8_decode(start)  # whose last character may be cut
    except UnicodeDecodeError:
        text = "\0"
    if all(character.isprintable() or character in "\t\r\n" for character in text):
        return "it is a text file"
    return "it is something else or damaged"


def _encode_strings(strings: Sequence[str]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    encoded = [string.encode("utf-8") for string in strings]
    offsets = np.zeros(len(encoded) + 1, dtype=np.int64)
    np.cumsum([len(part) for part in encoded], out=offsets[1:])
    return np.frombuffer(b"".join(encoded), dtype=np.uint8), offsets


def _decode_strings(utf8: np.ndarray[Any, Any], offsets: np.ndarray[Any, Any]) -> list[str]:
    if utf8.dtype != np.uint8 or offsets.dtype != np.int64 or utf8.ndim != 1 or offsets.ndim != 1:
        raise ValueError("not as _encode_strings makes them")
    data = utf8.tobytes()
    ends: list[int] = offsets.tolist()
    if ends[:1] != [0] or ends[-1] != len(data) or ends != sorted(ends):
        raise ValueError("the offsets do not cut the text")
    return [data[start:end].decode("utf-8") for start, end in itertools.pairwise(ends)]
