"""Batches for training and evaluation: a batch stream read as tensors, once or several times.

The header and the first batch are read and checked when a `Batches` is made, before torch is
loaded; torch is imported by the first call that makes tensors.
"""

from __future__ import annotations

import os
import stat
from array import array
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from types import MappingProxyType
from typing import TYPE_CHECKING, BinaryIO

import numpy as np
from numpy.typing import NDArray

from seqtools.batching.padding import pad_right
from seqtools.batching.sampling import generator
from seqtools.batching.stream import Batch, Header, Reader, parse_batch
from seqtools.errors import ConfigError, FormatError, InputError
from seqtools.streams.files import STDIN, WHOLE, Line, Place, native, read_blocks

if TYPE_CHECKING:
    import torch

    from seqtools.models.protocols import TensorBatch

NO_LIMIT: Mapping[str, int] = MappingProxyType({})
_COMPRESSED = (".gz", ".zst", ".xz", ".bz2")


class Batches:
    """A batch stream from files, read one after the other, or from standard input.

    Args:
        files: names, `-` for standard input.
        epochs: stop after so many; more than the stream has means to read a file of one epoch
            again, its batches in a new order each time (in the file's where they continue one
            another). None reads what there is.
        seed: of these orders.

    Attributes:
        header: the stream's header.
        epochs: how many epochs come, as far as the header tells.
        counts: how many batches each of them has.
        steps: how many they have together.

    Raises:
        ConfigError: more epochs are wanted than can be had.
        FormatError: the stream is empty.
        InputError: the header or the first batch is malformed; when it is read, so is a later
            batch, or it is out of place, or the stream ends short of what the header promises.
    """

    def __init__(
        self, files: Sequence[str] = (STDIN,), *, epochs: int | None = None, seed: int = 0
    ) -> None:
        self._file = _Again(files[0]) if len(files) == 1 else None
        name = self._name = ", ".join("<stdin>" if file == STDIN else file for file in files)
        self._reader = Reader(_lines(files), name)
        self._seed = seed
        self.header = self._reader.header
        promised = self.header.batches
        self.epochs = len(promised) if epochs is None else epochs
        self._whole = epochs is None
        self._repeats = self.epochs > len(promised)
        if self._repeats and (self._file is None or not self._file.possible):
            raise ConfigError(
                f"{self.epochs} epochs are wanted, but the stream has {len(promised)} "
                "and cannot be read again: it comes from a pipe or several files"
            )
        if self._repeats and len(promised) != 1:
            raise ConfigError(
                f"{self.epochs} epochs are wanted, but the stream has {len(promised)}; "
                "only a file with one epoch is read again"
            )
        self.counts = promised * self.epochs if self._repeats else promised[: self.epochs]
        self.steps = sum(self.counts)
        if not self.steps:
            raise FormatError(f"{name}: no records: the stream has no batches")
        stream = iter(self._reader)
        self._stream = chain(list(islice(stream, 1)), stream)  # the first one is checked now

    def tensors(
        self, device: torch.device | str, *, longest: Mapping[str, int] = NO_LIMIT
    ) -> Iterator[tuple[int, TensorBatch | None]]:
        """Give each batch on `device` with its epoch, from 1; None for one without any target.

        Rows are padded on the right, whatever the stream has. `longest` limits columns by name, as
        the model does; FormatError where a batch is wider.
        """
        left = self.header.options.get("pad_side") == "left"
        for batch in self._batches():
            for column, limit in longest.items():
                width = getattr(batch, column).shape[1]
                if width > limit:
                    raise FormatError(
                        f'{self._name}: batch {batch.index} of epoch {batch.epoch}: "{column}" has '
                        f"{width} positions, but the model takes {limit}"
                    )
            if batch.target_count:
                yield batch.epoch, to_tensors(batch, device, left=left)
            else:
                yield batch.epoch, None

    def _batches(self) -> Iterator[Batch]:
        """Give the batches in the order in which they are to be learned from."""
        if not self._repeats:
            # With a limit, do not wait for a line behind the last batch that is wanted.
            yield from islice(self._stream, None if self._whole else self.steps)
            return
        assert self._file is not None
        carry = False
        for batch in self._stream:
            if batch.epoch > 1:
                raise ConfigError(
                    f"{self.epochs} epochs are wanted, but the file holds several streams; "
                    "only a file with one epoch is read again"
                )
            carry = carry or batch.carry
            yield batch
        count = self.header.batches[0]
        for epoch in range(2, self.epochs + 1):
            order = np.arange(count) if carry else generator(self._seed, epoch).permutation(count)
            for line in self._file.batches(order):
                batch = parse_batch(line, self.header)
                if batch.index != line.place.number:
                    raise InputError(line.place.source, line.place.line, "changed since last read")
                batch.epoch = epoch
                yield batch

    def validation(
        self, device: torch.device | str, *, longest: Mapping[str, int] = NO_LIMIT
    ) -> list[TensorBatch]:
        """Give all batches with targets as a list, to be evaluated over and over."""
        found = self.tensors(device, longest=longest)
        return [batch for _, batch in found if batch is not None]


def to_tensors(batch: Batch, device: torch.device | str, *, left: bool = False) -> TensorBatch:
    """Put a batch on a device, int64, padded on the right.

    Args:
        batch: as it stands in the stream.
        device: where it goes; to a GPU without waiting for the copy.
        left: the batch is padded on the left.
    """
    import torch

    from seqtools.models.protocols import TensorBatch

    device = torch.device(device)

    def tensor(array: NDArray[np.int32]) -> torch.Tensor:
        found = torch.from_numpy(array)
        if device.type == "cuda":
            found = found.pin_memory().to(device, non_blocking=True)
        return found.long()

    def rows(array: NDArray[np.int32], lengths: NDArray[np.int32]) -> torch.Tensor:
        return tensor(pad_right(array, lengths) if left else array)

    source, lengths = batch.source, batch.source_lengths
    segments, follows = batch.segments, batch.next_sentence
    return TensorBatch(
        inputs=rows(batch.inputs, batch.lengths),
        targets=rows(batch.targets, batch.lengths),
        lengths=tensor(batch.lengths),
        source=None if source is None or lengths is None else rows(source, lengths),
        source_lengths=None if lengths is None else tensor(lengths),
        carry=batch.carry,
        segments=None if segments is None else rows(segments, batch.lengths),
        next_sentence=None if follows is None else tensor(follows),
    )


def check_same_task(header: Header, other: Header, name: str) -> None:
    """See that a second stream, as for validation, can be used with the model of the first.

    Raises:
        FormatError: its task or its vocabularies are others.
    """
    if other.task != header.task:
        raise FormatError(f"{name}: its task is {other.task}, not {header.task}")
    if other.vocabularies != header.vocabularies:
        raise FormatError(f"{name}: its vocabularies are not those of the training data")


def _lines(files: Sequence[str]) -> Iterator[Line]:
    for block in read_blocks(files):
        yield from block.lines(WHOLE, 1)


class _Again:
    """A file whose batches are read a second time and more, in any order.

    Of a plain file only the places of the lines are kept; of a compressed one, which cannot be
    entered in the middle, the lines themselves, as long as memory holds them.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._name = "<stdin>" if path == STDIN else path
        self._lines: list[Line] = []
        self._starts, self._sizes, self._numbers = array("q"), array("q"), array("q")
        self.possible = self._is_possible()

    def _is_possible(self) -> bool:
        try:
            if self._path == STDIN:
                # A file behind standard input will do, if it is read from its beginning.
                return stat.S_ISREG(os.fstat(0).st_mode) and os.lseek(0, 0, os.SEEK_CUR) == 0
            return stat.S_ISREG(os.stat(native(self._path)).st_mode)
        except OSError:
            return False

    def batches(self, order: NDArray[np.int64]) -> Iterator[Line]:
        """Give the lines of the batches in this order, numbers from 0.

        Raises:
            FormatError: the file does not have as many batches.
        """
        if self._path.endswith(_COMPRESSED):
            self._lines = self._lines or list(_lines([self._path]))[1:]  # without the header
            self._check(len(self._lines), len(order))
            for i in order.tolist():
                place, raw = self._lines[i]
                yield Line(place._replace(number=i + 1), raw)
            return
        with self._open() as file:
            if not self._starts:
                self._find_lines(file)
            self._check(len(self._starts), len(order))
            for i in order.tolist():
                raw = os.pread(file.fileno(), self._sizes[i], self._starts[i])
                yield Line(Place(self._name, self._numbers[i], i + 1), raw)

    def _open(self) -> BinaryIO:
        return os.fdopen(os.dup(0), "rb") if self._path == STDIN else open(self._path, "rb")

    def _find_lines(self, file: BinaryIO) -> None:
        file.seek(0)
        start, header = 0, True
        for number, raw in enumerate(file, start=1):
            if raw.strip():
                if not header:
                    self._starts.append(start)
                    self._sizes.append(len(raw))
                    self._numbers.append(number)
                header = False
            start += len(raw)

    def _check(self, found: int, promised: int) -> None:
        if found != promised:
            raise FormatError(f"{self._name}: changed while it was read")
