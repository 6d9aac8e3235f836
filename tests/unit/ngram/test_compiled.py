"""Where compiled functions are kept, and where they cannot be."""

import errno
import os
import pathlib
import subprocess
import sys
from typing import Any

import numba
import numpy as np
import pytest
from numba.core.caching import FunctionCache, IndexDataCacheFile

from seqtools.ngram import compiled
from seqtools.ngram.compiled import frozen, inlined, kernel, on_compile


def twice(number: int) -> int:
    return 2 * number


def test_a_full_disk_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []

    def save(*arguments: Any) -> None:
        tried.append(arguments)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(IndexDataCacheFile, "save", save)
    assert kernel(twice)(21) == 42
    assert len(tried) == 1


def test_what_a_function_calls_may_change_in_another_file(tmp_path: pathlib.Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "compiled.py").write_bytes(pathlib.Path(compiled.__file__).read_bytes())
    (package / "outer.py").write_text(
        "from package.compiled import kernel\nfrom package.inner import inner\n\n"
        "@kernel\ndef outer():\n    return inner()\n\nprint(outer())\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
    environment.pop("NUMBA_CACHE_DIR", None)
    for number in (1, 2):
        (package / "inner.py").write_text(
            f"from package.compiled import kernel\n\n@kernel\ndef inner():\n    return {number}\n"
        )
        os.utime(package / "inner.py", ns=(number, number))
        done = subprocess.run(
            [sys.executable, "-B", "-m", "package.outer"],
            env=environment, capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert done.stdout == f"{number}\n"


def test_no_folder_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere(*arguments: Any) -> None:
        raise RuntimeError("no locator available")

    monkeypatch.setattr(FunctionCache, "__init__", nowhere)
    assert kernel(twice)(21) == 42


def test_who_asked_last_is_told_of_the_first_compilation() -> None:
    told: list[str] = []
    on_compile(lambda: told.append("first"))
    on_compile(lambda: told.append("last"))
    for _ in range(2):
        numba.njit(lambda number: number + 1)(1)
    on_compile(lambda: told.append("nobody"))
    on_compile(None)
    numba.njit(lambda number: number + 2)(1)
    assert told == ["last"]


def test_a_compiled_function_takes_others_in() -> None:
    part = inlined(twice)

    def more(number: int) -> int:
        return part(number) + 1

    assert kernel(more)(21) == 43


def test_what_is_frozen_is_not_copied() -> None:
    array = np.zeros(3)
    view = frozen(array)
    array[1] = 5
    assert view.tolist() == [0, 5, 0]
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 1
