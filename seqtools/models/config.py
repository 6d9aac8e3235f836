"""What the configurations of models have in common: checked, frozen, JSON-able."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, TypeVar

from seqtools.errors import ConfigError

C = TypeVar("C")


def configure(kind: type[C], architecture: str, task: str, options: Mapping[str, Any]) -> C:
    """Make the configuration `kind` from `options`; those that are None take their defaults.

    Raises ConfigError for an option that such a model does not have, or that `kind` refuses.
    """
    given = {name: value for name, value in options.items() if value is not None}
    known = {field.name for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    for name in given:
        if name not in known:
            raise ConfigError(f"{architecture} for {task} has no option {name!r}")
    return kind(**{"architecture": architecture, **given})


def options_of(config: Any) -> dict[str, Any]:
    """Give what `configure` needs to make this configuration again, JSON-able."""
    options = dataclasses.asdict(config)
    del options["architecture"]
    return options


def check_sizes(config: object, *names: str) -> None:
    """Raise ConfigError where one of the attributes named is not an integer of at least 1."""
    for name in names:
        value = getattr(config, name)
        if not isinstance(value, int) or value < 1:
            raise ConfigError(f"{_spaced(name)} must be at least 1, got {value}")


def check_shares(config: object, *names: str) -> None:
    """Raise ConfigError where one of the attributes named is not in [0, 1)."""
    for name in names:
        value = getattr(config, name)
        if not 0.0 <= value < 1.0:
            raise ConfigError(f"{_spaced(name)} must be at least 0 and below 1, got {value}")


def _spaced(name: str) -> str:
    return name.replace("_", " ")
