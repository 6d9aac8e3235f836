"""Objects named by a string, imported when they are needed."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from typing import Any

from seqtools.errors import ConfigError


def load(reference: str) -> Any:
    """Import `"package.module:attribute"` and return the attribute."""
    module, _, attribute = reference.partition(":")
    return getattr(importlib.import_module(module), attribute)


def lookup(table: Mapping[str, str], name: str, what: str) -> Any:
    """Load `table[name]`.

    Raises:
        ConfigError: the name is not in the table; the message offers the nearest names.
    """
    if name not in table:
        raise ConfigError(unknown(name, table, what))
    return load(table[name])


def unknown(name: str, names: Iterable[str], what: str) -> str:
    """Say that `name` is no `what`, and which names are near it, or all of them."""
    import difflib

    names = list(names)
    near = difflib.get_close_matches(name, names, n=3)
    hint = f"did you mean {' or '.join(near)}?" if near else f"choose from {', '.join(names)}"
    return f"unknown {what} {name!r}: {hint}"
