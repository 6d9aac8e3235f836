"""Options that kinds of seq-vocab share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from seqtools.cli import _run
from seqtools.cli._options import POSITIVE, ListOption, NamesType, NameType, collect

if TYPE_CHECKING:
    from seqtools.text.vocab import Vocabulary


@dataclass(frozen=True)
class Size:
    """What is kept, and how many entries that makes; see the options of the same names."""

    max_size: int | None
    min_count: int
    pad_to_multiple: int


size_options = collect(
    Size,
    "size",
    (
        click.option(
            "--max-size", type=POSITIVE, help="Keep so many tokens, specials not counted."
        ),
        click.option(
            "--min-count", type=POSITIVE, default=1, show_default=True,
            help="Leave out tokens seen less often.",
        ),
        click.option(
            "--pad-to-multiple", type=POSITIVE, default=1, metavar="N",
            help="Add entries that stand for nothing until the size is a multiple of N.",
        ),
    ),
)  # fmt: skip

field_option = click.option(
    "--field", type=NameType(), multiple=True, default=("tokens",), show_default=True,
    help="A list of tokens, or a string (a label); repeatable, for one vocabulary of several.",
)  # fmt: skip

specials_option = click.option(
    "--specials", cls=ListOption, type=NamesType(), default=(), metavar="LIST|none",
    help="Specials besides pad, unk, bos and eos (mask, cls, sep), or none for none at all.",
)  # fmt: skip


def roles(specials: tuple[str, ...]) -> tuple[str, ...]:
    """The roles that `--specials` asks for.

    Raises:
        ConfigError: there is no such role.
    """
    from seqtools.text.specials import DEFAULT_SPECIALS, ordered

    return () if specials == ("none",) else ordered((*DEFAULT_SPECIALS, *specials))


def judge(vocabulary: Vocabulary, counts: Mapping[str, int], min_count: int) -> None:
    """Warn of a vocabulary without tokens, and of tokens that are left out for their spelling."""
    if len(vocabulary) == len(vocabulary.specials):
        why = f" seen {min_count} times or more" if counts else ""
        _run.warn(f"no tokens{why}, so the vocabulary has none")
    warn_of_spelled({token: counts[token] for token in vocabulary.spellings() if token in counts})


def warn_of_spelled(counts: Mapping[str, int]) -> None:
    """Warn of tokens that are spelled like specials, if there are any."""
    if counts:
        names = ", ".join(f"{token} {counts[token]}" for token in sorted(counts))
        _run.warn(f"tokens spelled like specials got no entry of their own: {names}")
