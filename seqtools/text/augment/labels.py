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

_TAG = re.compile(r"O|[BIMELSU](-.*)?", re.DOTALL)


class Scheme(NamedTuple):
    """Letters of the tags of a span; its first tag has a B, what is outside of all is O.

    Attributes:
        name: what it is called.
        inside: neither the first nor the last of a span; empty where it is not known.
        end: the last of several.
        single: the only one.
    """

    name: str
    inside: str
    end: str
    single: str

    @property
    def marks_ends(self) -> bool:
        """Whether one sees from a tag that its span is over."""
        return self.end != self.inside


SCHEMES = {
    "iob2": Scheme("iob2", "I", "I", "B"),
    "iobes": Scheme("iobes", "I", "E", "S"),
    "bmes": Scheme("bmes", "M", "E", "S"),
    "bilou": Scheme("bilou", "I", "L", "U"),
}
_UNDECIDED = Scheme("iobes or bmes", "", "E", "S")  # no span is long enough to tell them apart


class Labels(NamedTuple):
    """How the values of one field of a record go with its tokens.

    Attributes:
        scheme: of spans, or None where each value stands for itself (parts of speech).
        joined: for each token, whether it is of the same span as the one before it.
        outside: the tag of a token that is no part of any span there is; None without a scheme.
    """

    scheme: Scheme | None
    joined: list[bool]
    outside: str | None


def read_labels(field: str, values: Sequence[Any], scheme: str) -> Labels:
    """Look at the tags of a record.

    Args:
        field: what they are called.
        values: one for each token.
        scheme: a key of `SCHEMES`; `none`; or `auto`, to tell it by the letters.

    Raises:
        RecordError: a tag that cannot stand where it does.
    """
    found = _guess(values) if scheme == "auto" else SCHEMES.get(scheme)
    if found is None:
        return Labels(None, [False] * len(values), None)
    words = "O" not in values and all(len(tag) == 1 for tag in values if type(tag) is str)
    return Labels(found, _join(field, values, found), found.single if words else "O")


def stretch(tag: Any, size: int, scheme: Scheme | None) -> list[Any]:
    """The tags of `size` tokens that stand in the place of one with this tag.

    Raises:
        RecordError: what an inner token has is not known.

    >>> stretch("S-PER", 3, SCHEMES["bmes"])
    ['B-PER', 'M-PER', 'E-PER']
    >>> stretch("I-PER", 2, SCHEMES["iob2"])
    ['I-PER', 'I-PER']
    """
    if scheme is None or tag == "O" or size == 1:
        return [tag] * size
    letter, kind = tag[0], tag[1:]
    first = "B" if letter in ("B", scheme.single) else scheme.inside
    last = scheme.end if letter in (scheme.end, scheme.single) else scheme.inside
    if not scheme.inside and (size > 2 or not (first and last)):
        raise RecordError(f"{tag} may be {scheme.name}: --scheme has to say which")
    return [first + kind, *[scheme.inside + kind] * (size - 2), last + kind]


def look_like_tags(values: Sequence[Any]) -> bool:
    """Whether each is what some scheme calls a tag."""
    return all(type(tag) is str and _TAG.fullmatch(tag) for tag in values)


def _guess(values: Sequence[Any]) -> Scheme | None:
    if not look_like_tags(values):
        return None
    letters = {tag[0] for tag in values}
    if "M" in letters:
        return SCHEMES["bmes"]
    if letters & {"L", "U"}:
        return SCHEMES["bilou"]
    if not letters & {"E", "S"}:
        return SCHEMES["iob2"]
    if "I" in letters:
        return SCHEMES["iobes"]
    # Without an inner token nothing tells these two apart but custom: words are cut by BMES.
    return _UNDECIDED if any("-" in tag for tag in values) else SCHEMES["bmes"]


def _join(field: str, values: Sequence[Any], scheme: Scheme) -> list[bool]:
    """Which tokens go on with a span; the tags must be as the scheme has them."""
    joined: list[bool] = []
    within: str | None = None  # the kind of the span that may go on here
    before = "the start"
    for tag in values:
        letter, kind = (tag[:1], tag[1:]) if type(tag) is str else ("", "")
        goes_on = letter in (scheme.inside, scheme.end)
        known = goes_on or tag == "O" or letter in ("B", scheme.single)
        cut = scheme.marks_ends and within is not None and not goes_on
        if not known or cut or (goes_on and kind != within):
            raise _misplaced(field, tag, before, scheme)
        joined.append(goes_on)
        within = kind if letter in ("B", scheme.inside) else None
        before = tag
    if scheme.marks_ends and within is not None:
        raise _misplaced(field, "its end", before, scheme)
    return joined


def _misplaced(field: str, tag: Any, before: str, scheme: Scheme) -> RecordError:
    return RecordError(
        f'"{field}" has {tag} after {before}, which is not {scheme.name}'
        " (see --scheme; seq-convert conll turns one scheme into another)"
    )
