"""The symbols that are no text: their roles, how they are spelled, and the order they stand in."""

from __future__ import annotations

from collections.abc import Iterable

from seqtools.errors import ConfigError
from seqtools.lazy import unknown

SPECIALS = {
    "pad": "<pad>",
    "unk": "<unk>",
    "bos": "<s>",
    "eos": "</s>",
    "mask": "<mask>",
    "cls": "<cls>",
    "sep": "<sep>",
}
"""Role to spelling, in the order in which a vocabulary lists them."""

DEFAULT_SPECIALS = ("pad", "unk", "bos", "eos")
"""Roles every vocabulary has unless it is told otherwise."""


def ordered(roles: Iterable[str]) -> tuple[str, ...]:
    """Put `roles` into the fixed order, each once.

    Raises:
        ConfigError: a role is not in `SPECIALS`.
    """
    wanted = set(roles)
    for role in sorted(wanted - SPECIALS.keys()):
        raise ConfigError(unknown(role, SPECIALS, "special"))
    return tuple(role for role in SPECIALS if role in wanted)
