"""Functions compiled by numba, kept compiled in a cache of the user's."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba.core import config, event
from numba.core.caching import FunctionCache

F = TypeVar("F", bound=Callable[..., Any])


def _cache_folder() -> str | None:
    """The user's own folder for compiled code, or None where none can be written."""
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    folder = os.path.join(home, "seqtools", "numba")
    with contextlib.suppress(OSError):
        os.makedirs(folder, exist_ok=True)
        if os.access(folder, os.W_OK | os.X_OK):
            return folder
    return None


_FOLDER = _cache_folder()
if _FOLDER is not None and not os.environ.get("NUMBA_CACHE_DIR"):
    config.CACHE_DIR = _FOLDER  # type: ignore[attr-defined]


def _state_of_files() -> tuple[tuple[str, int, int], ...]:
    """When each file of this folder was changed, and its size."""
    with os.scandir(os.path.dirname(__file__)) as entries:
        stats = sorted((entry.name, entry.stat()) for entry in entries if entry.is_file())
    return tuple((name, stat.st_mtime_ns, stat.st_size) for name, stat in stats)


_STATE = _state_of_files()


class _Cache(FunctionCache):
    """Numba's cache, but that a full disk is no error, and that it knows of all files here.

    Numba asks only whether the file of a function has changed; what that function calls, and has
    in itself once it is compiled, may be in another one.
    """

    def __init__(self, function: Any) -> None:
        super().__init__(function)  # type: ignore[no-untyped-call]
        self._cache_file._source_stamp = (self._cache_file._source_stamp, _STATE)

    def save_overload(self, signature: Any, data: Any) -> None:
        with contextlib.suppress(OSError):
            super().save_overload(signature, data)  # type: ignore[no-untyped-call]


def kernel(function: F) -> F:
    """Compile a function on its first call, without the interpreter's lock.

    Compiled code is kept for later runs; where there is no place for it that is no error, and every
    run compiles.
    """
    compiled: Any = numba.njit(nogil=True)(function)
    with contextlib.suppress(RuntimeError):  # numba finds no folder that it may write
        # As njit(cache=True) does with its own.
        compiled._cache = _Cache(function)
    return cast(F, compiled)


def inlined(function: F) -> F:
    """Make a function a part of those compiled functions that call it, so that a call is free."""
    return cast(F, numba.njit(inline="always")(function))


def frozen(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A read-only view: to numba a read-only array is a type of its own."""
    view = array[:]
    view.flags.writeable = False
    return view


class _Compiling(event.Listener):
    """Tells once when a function has to be compiled anew."""

    callback: Callable[[], None] | None = None

    def on_start(self, event: Any) -> None:
        once, self.callback = self.callback, None
        if once is not None:
            once()

    def on_end(self, event: Any) -> None:
        pass


_COMPILING = _Compiling()
event.register("numba:compile", _COMPILING)  # type: ignore[no-untyped-call]


def on_compile(callback: Callable[[], None] | None) -> None:
    """Call `callback` once, before the first function that has to be compiled anew.

    It takes the place of any that was given before, which a run of another command did; None: of
    none.
    """
    _COMPILING.callback = callback
