"""Columns in memory and on disk, and sizes of memory."""

import pathlib
import tempfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqtools.errors import ConfigError
from seqtools.ngram.storage import Store, parse_memory, roomy


@given(st.lists(st.lists(st.integers(0, 1 << 31), max_size=20), max_size=10), st.integers(0, 400))
def test_a_column_holds_what_was_appended_wherever_it_is(
    pieces: list[list[int]], memory: int
) -> None:
    everything = [value for piece in pieces for value in piece]
    with Store(memory) as store:
        column = store.column(np.uint32, len(everything))
        for piece in pieces:
            column.append(np.array(piece, dtype=np.uint32))
        assert len(column) == len(everything)
        assert column.on_disk == (4 * len(everything) > memory)
        for start in range(0, len(everything) + 1, 3):
            assert column[start : start + 5].tolist() == everything[start : start + 5]
        assert [block.tolist() for block in column.blocks(4)] == [
            everything[start : start + 4] for start in range(0, len(everything), 4)
        ]


@pytest.mark.parametrize("memory", [0, 1 << 20])
def test_values_are_replaced_in_place(memory: int) -> None:
    with Store(memory) as store:
        column = store.column(np.int32, 3)
        column.append(np.array([2, 0, 1]))
        column.replace(np.array([10, 11, 12]))
        assert column[0:3].tolist() == [12, 10, 11]


def test_what_is_borrowed_sends_columns_to_disk() -> None:
    with Store(100) as store:
        column = store.column(np.uint8, 80)
        column.append(np.arange(80))
        assert not column.on_disk
        array = store.borrow(90, np.uint8)
        assert column.on_disk
        assert column[0:80].tolist() == list(range(80))
        store.give_back(array)


def test_a_store_without_columns_lends_more_than_it_may_hold() -> None:
    with Store(10) as store:
        assert len(store.borrow(90, np.uint8)) == 90


def test_a_limit_beyond_the_memory_of_the_machine_is_none() -> None:
    with Store(1 << 80) as store:
        column = store.column(np.int32)
        column.append(np.arange(5))
        assert not column.on_disk
        assert column[0:5].tolist() == [0, 1, 2, 3, 4]


def test_more_than_was_foreseen_goes_to_disk() -> None:
    with Store(1 << 10) as store:
        column = store.column(np.uint8, 4)
        column.append(np.arange(3))
        column.append(np.arange(3, 6))
        assert column.on_disk
        assert column[0:9].tolist() == [0, 1, 2, 3, 4, 5]


def test_memory_that_cannot_be_had_is_told_as_numpy_tells_it() -> None:
    for make in (roomy, np.empty):
        with pytest.raises(MemoryError):
            make(1 << 60, np.uint8)


def test_memory_of_a_freed_column_is_used_again() -> None:
    with Store(1 << 20) as store:
        first = store.column(np.uint8, 1000)
        first.append(np.zeros(1000))
        first.free()
        second = store.column(np.float32, 250)
        second.append(np.arange(250))
        assert store.held == 1000
        assert second[0:3].tolist() == [0, 1, 2]
        assert len(first) == 0


def test_a_folder_that_is_not_there_is_named(tmp_path: pathlib.Path) -> None:
    with pytest.raises(ConfigError, match="nowhere: no temporary files there: No such file"):
        Store(1, str(tmp_path / "nowhere"))


def test_a_machine_without_a_folder_for_temporary_files(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere() -> str:
        raise FileNotFoundError(2, "No usable temporary directory found")

    monkeypatch.setattr(tempfile, "gettempdir", nowhere)
    with pytest.raises(ConfigError, match="no folder for temporary files can be written"):
        Store(1)


def test_no_file_is_left_behind(tmp_path: pathlib.Path) -> None:
    store = Store(0, str(tmp_path))
    column = store.column(np.uint8, 10)
    column.append(np.zeros(10))
    assert column.on_disk
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("text", "size"),
    [("4G", 4 << 30), ("500M", 500 << 20), ("1.5k", 1536), ("7", 7), ("7b", 7), ("2GiB", 2 << 30)],
)
def test_sizes_of_memory(text: str, size: int) -> None:
    assert parse_memory(text) == size


def test_a_share_of_the_memory() -> None:
    assert parse_memory("50%") * 2 == pytest.approx(parse_memory("100%"), abs=2)


@pytest.mark.parametrize("text", ["", "x", "-1", "4X", "0", "1 2", "%", "9" * 300 + "T"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(ConfigError, match="is no size of memory"):
        parse_memory(text)
