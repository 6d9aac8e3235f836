"""Schemes of tags that mark chunks of tokens: IOB1, IOB2, IOBES, BMES, BILOU.

A tag is `O`, or a letter that says where in its chunk the token stands, with the chunk's type after
a hyphen (`B-PER`; `B` alone is a chunk without a type). Ramshaw and Marcus (1995, IOB1): all of a
chunk is I, but its first token is B where the token before ends a chunk of the same type. Tjong Kim
Sang and Veenstra (1999, IOB2): the first token is always B. IOBES, and the same with other letters
BMES and BILOU: the last token has a letter of its own, and so has a chunk of one token.

Each scheme writes each set of chunks in just one way, so going over the chunks is exact, and a
sequence is sound where writing its chunks gives it again.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from seqtools.errors import ConfigError, RecordError


class Chunk(NamedTuple):
    """Tokens from `start` up to, not including, `end`."""

    start: int
    end: int
    type: str


class TagError(RecordError):
    """A tag breaks the rules of its scheme.

    Args:
        reason: what is wrong.
        place: which tag it is, from 0.
    """

    def __init__(self, reason: str, place: int) -> None:
        super().__init__(reason)
        self.place = place


class Letters(NamedTuple):
    """Letters for the first, the other, the last and the only token of a chunk."""

    first: str
    inside: str
    last: str
    only: str


LETTERS = {
    "iob1": Letters("I", "I", "I", "I"),  # and B between two chunks of a type
    "iob2": Letters("B", "I", "I", "B"),
    "iobes": Letters("B", "I", "E", "S"),
    "bmes": Letters("B", "M", "E", "S"),
    "bilou": Letters("B", "I", "L", "U"),
}
_OTHER_NAMES = {"bio": "iob2", "bioes": "iobes", "bmeso": "bmes"}
SCHEMES = tuple(LETTERS)
_ENTITIES = "entities, like O or B-PER"


class Scheme:
    """One way to write chunks as tags.

    Args:
        name: one of `SCHEMES`, or another name for one: bio, bioes, bmeso; upper case will do.

    Raises:
        ConfigError: there is no such scheme.
    """

    def __init__(self, name: str) -> None:
        self.name = _OTHER_NAMES.get(name.lower(), name.lower())
        if self.name not in LETTERS:
            raise ConfigError(f"no scheme of tags is called {name!r}: {', '.join(SCHEMES)}")
        self._letters = letters = LETTERS[self.name]
        self._known = {*letters, "B"}
        self._begins = {"B", letters.only} - {letters.inside}
        self._ends = {letters.last, letters.only} - {letters.inside, "B"}

    def read(self, tags: Sequence[str]) -> list[Chunk]:
        """The chunks of tags.

        Raises:
            TagError: one is not in the scheme, or stands where it cannot.
        """
        chunks = self.guess(tags)
        written = self.write(chunks, len(tags))
        if written != list(tags):
            place = next(place for place, tag in enumerate(tags) if tag != written[place])
            raise TagError(self._explain(tags, written[place], place), place)
        return chunks

    def write(self, chunks: Sequence[Chunk], size: int) -> list[str]:
        """The tags of chunks among so many tokens; the chunks are in order and do not overlap."""
        tags = ["O"] * size
        first, inside, last, only = self._letters
        before = Chunk(0, 0, "")
        for chunk in chunks:
            start, end, kind = chunk
            tail = f"-{kind}" if kind else ""
            if end - start == 1:
                tags[start] = only + tail
            else:
                tags[start] = first + tail
                tags[start + 1 : end - 1] = [inside + tail] * (end - start - 2)
                tags[end - 1] = last + tail
            if self.name == "iob1" and before.end == start > 0 and before.type == kind:
                tags[start] = "B" + tail
            before = chunk
        return tags

    def guess(self, tags: Sequence[str]) -> list[Chunk]:
        """The chunks, where a letter in a wrong place ends or begins one all the same.

        As in conlleval, a chunk begins wherever none of its type goes on, and ends where the next
        tag does not go on with it.

        Raises:
            TagError: a tag is not in the scheme.
        """
        return _chunks(tags, self._known, self._begins, self._ends, self.name)

    def _explain(self, tags: Sequence[str], written: str, place: int) -> str:
        before = f"after {tags[place - 1]!r}" if place else "at the beginning"
        after = f"before {tags[place + 1]!r}" if place + 1 < len(tags) else "at the end"
        return (
            f"{tags[place]!r} {before} and {after} is not {self.name}, which has {written!r} there"
        )


def guess_entities(tags: Sequence[str]) -> list[Chunk]:
    """The chunks of tags in any of the schemes, as `Scheme.guess` has them; all have a type.

    Raises:
        TagError: a tag is in no scheme, or without a type.
    """
    chunks = _chunks(tags, set("BIMELSU"), set("BSU"), set("ESLU"), _ENTITIES)
    for chunk in chunks:
        if not chunk.type:
            raise _no_tag(tags, chunk.start, _ENTITIES)
    return chunks


def _chunks(
    tags: Sequence[str],
    known: AbstractSet[str],
    begins: AbstractSet[str],
    ends: AbstractSet[str],
    name: str,
) -> list[Chunk]:
    """The chunks, by the letters before which, and after which, a chunk always ends."""
    chunks: list[Chunk] = []
    start, kind, is_open = 0, "", False
    for place, tag in enumerate(tags):
        if tag == "O":
            if is_open:
                chunks.append(Chunk(start, place, kind))
                is_open = False
            continue
        letter, hyphen, new = tag.partition("-")
        if letter not in known or (hyphen and not new):
            raise _no_tag(tags, place, name)
        if not is_open or letter in begins or new != kind:
            if is_open:
                chunks.append(Chunk(start, place, kind))
            start, kind, is_open = place, new, True
        if letter in ends:
            chunks.append(Chunk(start, place + 1, kind))
            is_open = False
    if is_open:
        chunks.append(Chunk(start, len(tags), kind))
    return chunks


def _no_tag(tags: Sequence[str], place: int, name: str) -> TagError:
    return TagError(f"{tags[place]!r} is no tag of {name}", place)


class Retag:
    """Tags of one scheme to those of another, over their chunks.

    Args:
        old: the scheme the tags are in.
        new: the scheme they go to; the same one only checks.
        repair: take tags in wrong places for what `Scheme.guess` says.
    """

    def __init__(self, old: Scheme, new: Scheme, *, repair: bool = False) -> None:
        self._read = old.guess if repair else old.read
        self._write = new.write

    def __call__(self, tags: Sequence[str]) -> list[str]:
        """The tags in the new scheme.

        Raises:
            TagError: the tags break the rules of the old one.
        """
        return self._write(self._read(tags), len(tags))
