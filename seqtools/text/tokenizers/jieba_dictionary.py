"""jieba's module and its own dictionary, which is read from a cache of the user's."""

from __future__ import annotations

import contextlib
import marshal
import os
import stat
import sys
import warnings
from typing import Any

_Words = tuple[
    dict[str, int], int
]  # count of each word and of each beginning of one (0), and total


def load() -> Any:
    """The module jieba, without what it has to say."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Where there is a pkg_resources jieba would load it, slowly, only to find its dictionary.
        known = sys.modules.get("pkg_resources")
        sys.modules["pkg_resources"] = None  # type: ignore[assignment]
        try:
            import jieba
        finally:
            del sys.modules["pkg_resources"]
            if known is not None:
                sys.modules["pkg_resources"] = known
    jieba.setLogLevel(100)  # above CRITICAL
    return jieba


def words(jieba: Any) -> _Words:
    """jieba's own dictionary, from a cache of the user's where there is one.

    jieba's cache is in the folder for temporary files, which all users share, and it is slower.
    """
    path = _cache_path(f"jieba-{jieba.__version__}.{sys.implementation.cache_tag}")
    if path is not None:
        with contextlib.suppress(OSError, ValueError, EOFError, TypeError):
            with open(path, "rb") as file:
                counts, total = marshal.loads(file.read())
            return counts, total
    made: _Words = jieba.Tokenizer.gen_pfdict(jieba.Tokenizer().get_dict_file())
    if path is not None:
        _write(path, marshal.dumps(made))
    return made


def _cache_path(name: str) -> str | None:
    """A path in our cache folder, or None where that cannot be used or is not ours alone."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    folder = os.path.join(base, "seqtools")
    if not os.path.isabs(folder):
        return None
    try:
        os.makedirs(base, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            os.mkdir(folder, 0o700)
        status = os.stat(folder)
    except OSError:
        return None
    ours = status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return os.path.join(folder, name) if ours else None


def _write(path: str, data: bytes) -> None:
    """Put the file in place whole, or leave it."""
    temporary = f"{path}.{os.getpid()}.tmp"
    with contextlib.suppress(OSError):
        try:
            with open(temporary, "xb") as file:
                file.write(data)
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
