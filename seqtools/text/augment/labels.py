"""Tags that mark spans of tokens, and what keeps them valid when tokens move.

A span is one token or more: a name, a chunk, a word of characters. Its tokens are moved and left
out together, and nothing comes between them, so that no tag is ever parted from the one before it
that it needs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from seqtools.errors import RecordError
from seqtools.streams.records import name_of
from seqtools.text.tags import LETTERS, Letters, Scheme, TagError

SCHEMES = ("iob2", "iobes", "bmes", "bilou")  # not IOB1, where a tag hangs on the span before
_TAG = re.compile(r"O|[BIMELSU](-.+)?", re.DOTALL)


class Labels(NamedTuple):
    """How the values of one field of a record go with its tokens.

    Attributes:
        letters: of the tags of spans, that of an inner token empty where it is not known; None
            where each value stands for itself (parts of speech).
        joined: for each token, whether it is of the same span as the one before it.
        outside: the tag of a token that is no part of any span there is; None without letters.
    """

    letters: Letters | None
    joined: list[bool]
    outside: str | None


def read_labels(field: str, values: Sequence[Any], scheme: str) -> Labels:
    """Look at the tags of a record.

    Args:
        field: what they are called.
        values: one for each token.
        scheme: one of `SCHEMES`; `none`; or `auto`, to tell it by the letters.

    Raises:
        RecordError: a tag that cannot stand where it does.
    """
    joined = [False] * len(values)
    if scheme == "none" or (scheme == "auto" and not look_like_tags(values)):
        return Labels(None, joined, None)
    for value in values:
        if type(value) is not str:
            raise RecordError(f'"{field}" must be a list of tags, got {name_of(value)} among them')
    name = _tell(values) if scheme == "auto" else scheme
    try:
        chunks = Scheme(name).read(values)
    except TagError as error:
        raise RecordError(
            f'"{field}": tag {error.place + 1}, {error}'
            " (see --scheme; seq-convert conll turns one scheme into another)"
        ) from None
    for start, end, _ in chunks:
        joined[start + 1 : end] = [True] * (end - start - 1)
    letters = LETTERS[name]
    if scheme == "auto" and name == "iobes" and not any(tag[0] == "I" for tag in values):
        letters = letters._replace(inside="")  # BMES looks the same
    words = "O" not in values and all(len(tag) == 1 for tag in values)
    return Labels(letters, joined, letters.only if words else "O")


def stretch(tag: Any, size: int, letters: Letters | None) -> list[Any]:
    """The tags of `size` tokens that stand in the place of one with this tag.

    Raises:
        RecordError: what an inner token has is not known.

    >>> stretch("S-PER", 3, LETTERS["bmes"])
    ['B-PER', 'M-PER', 'E-PER']
    >>> stretch("I-PER", 2, LETTERS["iob2"])
    ['I-PER', 'I-PER']
    """
    if letters is None or tag == "O" or size == 1:
        return [tag] * size
    letter, kind = tag[0], tag[1:]
    first = letters.first if letter in (letters.first, letters.only) else letters.inside
    last = letters.last if letter in (letters.last, letters.only) else letters.inside
    if not letters.inside and (size > 2 or not (first and last)):
        raise RecordError(f"{tag} may be iobes or bmes: --scheme has to say which")
    return [first + kind, *[letters.inside + kind] * (size - 2), last + kind]


def look_like_tags(values: Sequence[Any]) -> bool:
    """Whether each is what some scheme calls a tag."""
    return all(type(tag) is str and _TAG.fullmatch(tag) for tag in values)


def _tell(tags: Sequence[str]) -> str:
    """The scheme of tags, by their letters."""
    letters = {tag[0] for tag in tags}
    if "M" in letters:
        return "bmes"
    if letters & {"L", "U"}:
        return "bilou"
    if not letters & {"E", "S"}:
        return "iob2"
    # Without an inner token nothing tells these two apart but custom: words are cut by BMES.
    return "iobes" if "I" in letters or any("-" in tag for tag in tags) else "bmes"
