"""Which column of a file becomes which field of a record: `--columns` of `seq-convert conll`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from seqtools.errors import ConfigError

CONLLU = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
_FIELDS = {name: "tokens" if name == "form" else name for name in CONLLU[1:]}


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns of a file.

    Attributes:
        taken: fields with their columns, counted from 0, or from -1 backwards.
        size: how many columns there are, None where all that matters is that the taken are there.
    """

    taken: tuple[tuple[str, int], ...]
    size: int | None

    def __post_init__(self) -> None:
        names = [name for name, _ in self.taken]
        if not names:
            raise ConfigError("no column becomes a field")
        if "" in names or len({*names}) < len(names):
            raise ConfigError(f"columns need names that differ: {','.join(names)}")
        for name in names:
            if name in RESERVED:
                raise ConfigError(f"no column can be called {name!r}")

    @property
    def least(self) -> int:
        """How many columns there must be."""
        return max(place + 1 if place >= 0 else -place for _, place in self.taken)

    def check_writable(self) -> None:
        """See that each column has a place when files are written.

        Raises:
            ConfigError: some are counted from the last.
        """
        if any(place < 0 for _, place in self.taken):
            raise ConfigError("to write columns, count them from the first")

    def rows(self, columns: Mapping[str, Sequence[str]], count: int) -> list[list[str]]:
        """So many lines of a file that has these columns, and `_` in all others."""
        blanks = ["_"] * count
        places = [blanks for _ in range(self.size or self.least)]
        for name, place in self.taken:
            if name in columns:
                places[place] = list(columns[name])
        return list(map(list, zip(*places, strict=True)))


RESERVED = ("docstart", "ranges", "empty_nodes")
"""Fields that hold what is no token."""


def plain_layout(entries: Sequence[str]) -> Layout:
    """`tokens,_,tags` (all columns in order, `_` for none) or `tokens=1,tags=-1` (by number).

    Raises:
        ConfigError: the entries are neither, or a name comes twice.
    """
    if not any("=" in entry for entry in entries):
        taken = [(name, place) for place, name in enumerate(entries) if name != "_"]
        return Layout(tuple(taken), len(entries))
    taken = []
    for entry in entries:
        name, equals, number = entry.partition("=")
        digits = number.removeprefix("-")
        if not (equals and digits.isascii() and digits.isdigit() and int(digits)):
            raise ConfigError(f"{entry!r} is not FIELD=NUMBER, as in tokens=1,tags=-1")
        taken.append((name, int(number) - (int(number) > 0)))
    return Layout(tuple(taken), None)


def conllu_layout(entries: Sequence[str] | None) -> Layout:
    """`form,upos`, or `tokens=form,tags=upos`, or all columns but the first where none is named.

    Raises:
        ConfigError: CoNLL-U has no such column, or a name comes twice.
    """
    if entries is None:
        entries = CONLLU[1:]
    taken = []
    for entry in entries:
        name, equals, column = entry.partition("=")
        if not equals:
            name, column = _FIELDS.get(entry, entry), entry
        if column not in _FIELDS:
            raise ConfigError(f"no column of CoNLL-U is called {column!r}: {', '.join(_FIELDS)}")
        taken.append((name, CONLLU.index(column)))
    return Layout(tuple(taken), len(CONLLU))
