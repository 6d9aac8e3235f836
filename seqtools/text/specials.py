"""The symbols that are no text: their roles, how they are spelled, and the order they stand in."""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterable, Iterator, Mapping

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

_UNUSED = re.compile(r"unused(0|[1-9][0-9]*)")


def is_role(name: str) -> bool:
    """Whether a special may have that role: those of `SPECIALS`, and `unused0`, `unused1`, ...

    The unused ones stand for nothing; they fill a vocabulary up to a size that suits the machine.
    """
    return name in SPECIALS or is_unused(name)


def is_unused(role: str) -> bool:
    """Whether a special of that role stands for nothing."""
    return _UNUSED.fullmatch(role) is not None


def unused(taken: Collection[str]) -> Iterator[tuple[str, str]]:
    """Roles of entries that stand for nothing, and how they are spelled: as none of `taken`."""
    for number in itertools.count():
        if f"<unused{number}>" not in taken:
            yield f"unused{number}", f"<unused{number}>"


def spelled(roles: Iterable[str] | Mapping[str, str]) -> dict[str, str]:
    """Put `roles` into the fixed order, each with how it is spelled: as in a mapping, or as usual.

    Raises:
        ConfigError: a role is not in `SPECIALS`.
    """
    spellings = roles if isinstance(roles, Mapping) else SPECIALS
    return {role: spellings[role] for role in ordered(roles)}


def ordered(roles: Iterable[str]) -> tuple[str, ...]:
    """Put `roles` into the fixed order, each once.

    Raises:
        ConfigError: a role is not in `SPECIALS`.
    """
    wanted = set(roles)
    for role in sorted(wanted - SPECIALS.keys()):
        raise ConfigError(unknown(role, SPECIALS, "special"))
    return tuple(role for role in SPECIALS if role in wanted)
