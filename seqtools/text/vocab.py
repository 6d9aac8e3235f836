"""A vocabulary: the tokens a model knows, each with an id.

Invariants: ids are dense from 0; no token stands twice; specials stand first when the vocabulary is
built here, but for unused entries, which stand last. Text never becomes a special: a token that is
spelled like one is encoded as unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from seqtools.errors import FormatError, InputError, RecordError
from seqtools.text.specials import DEFAULT_SPECIALS, is_role, spelled, unused


class Vocabulary:
    """Tokens and their ids; not to be changed once made.

    Args:
        tokens: the token of each id.
        specials: role (see `specials.is_role`) to id; may be empty.
        counts: how often each token was seen, 0 for specials; None where it is not known.

    Raises:
        FormatError: a token stands twice, or a special's id is out of range or used twice.
    """

    def __init__(
        self, tokens: list[str], specials: dict[str, int], counts: list[int] | None = None
    ) -> None:
        self.tokens = tokens
        self.specials = specials
        self.counts = counts
        self._check()
        ids = {token: number for number, token in enumerate(tokens)}
        if len(ids) != len(tokens):
            twice = next(token for number, token in enumerate(tokens) if ids[token] != number)
            raise FormatError(f"token {twice!r} stands twice in the vocabulary")
        for number in specials.values():
            del ids[tokens[number]]
        self._ids = ids  # only what text may become

    def _check(self) -> None:
        for role, number in self.specials.items():
            if not is_role(role):
                raise FormatError(f"unknown special {role!r} in the vocabulary")
            if not 0 <= number < len(self.tokens):
                raise FormatError(f"special {role!r} has id {number}, out of range")
        if len(set(self.specials.values())) != len(self.specials):
            raise FormatError("two specials of the vocabulary share an id")
        if self.counts is not None and len(self.counts) != len(self.tokens):
            raise FormatError(f"{len(self.counts)} counts for {len(self.tokens)} tokens")

    @property
    def pad(self) -> int | None:
        """Id of the padding symbol."""
        return self.specials.get("pad")

    @property
    def unk(self) -> int | None:
        """Id that stands for every unknown token."""
        return self.specials.get("unk")

    @property
    def bos(self) -> int | None:
        """Id of the symbol before a sequence."""
        return self.specials.get("bos")

    @property
    def eos(self) -> int | None:
        """Id of the symbol after a sequence."""
        return self.specials.get("eos")

    def __len__(self) -> int:
        return len(self.tokens)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Vocabulary):
            return NotImplemented
        return self.tokens == other.tokens and self.specials == other.specials

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<Vocabulary of {len(self)} tokens, {len(self.specials)} of them special>"

    def encode(self, tokens: Sequence[str]) -> list[int]:
        """Ids of `tokens`; a token that is unknown or spelled like a special becomes `unk`.

        Raises:
            RecordError: there is such a token and the vocabulary has no `unk`.
        """
        unk = self.unk
        if unk is not None:
            get = self._ids.get
            return [get(token, unk) for token in tokens]
        try:
            return [self._ids[token] for token in tokens]
        except KeyError as error:
            raise RecordError(
                f"token {error.args[0]!r} is not in the vocabulary, which has no <unk>"
            ) from None

    def decode(self, ids: Iterable[int]) -> list[str]:
        """Tokens of `ids`, specials as they are spelled.

        Raises:
            RecordError: an id is negative or past the end.
        """
        tokens = self.tokens
        size = len(tokens)
        result = []
        for number in ids:
            if not 0 <= number < size:
                raise RecordError(f"id {number} is not in the vocabulary of {size} entries")
            result.append(tokens[number])
        return result

    def spellings(self) -> frozenset[str]:
        """How this vocabulary's specials are spelled."""
        return frozenset(self.tokens[number] for number in self.specials.values())

    @classmethod
    def build(
        cls,
        counts: Mapping[str, int],
        *,
        max_size: int | None = None,
        min_count: int = 1,
        specials: Iterable[str] | Mapping[str, str] = DEFAULT_SPECIALS,
        multiple: int = 1,
    ) -> Vocabulary:
        """Make a vocabulary from how often each token was seen.

        Specials first in their fixed order, then tokens by count descending, ties by code point,
        then unused entries. A token spelled like one of `specials` gets no entry of its own.

        Args:
            counts: token to count.
            max_size: how many entries at most, specials not counted.
            min_count: tokens seen less often are left out.
            specials: roles wanted, or how each of them is spelled.
            multiple: entries that stand for nothing are put at the end, until the size is one.

        Raises:
            ConfigError: a role is unknown.
        """
        names = spelled(specials)
        tokens = ranked(counts, names.values(), min_count)
        if max_size is not None:
            del tokens[max_size:]
        return cls._numbered(names, tokens, list(map(counts.__getitem__, tokens)), multiple)

    @classmethod
    def of_pieces(
        cls,
        pieces: Iterable[str],
        *,
        max_size: int | None = None,
        specials: Iterable[str] | Mapping[str, str] = DEFAULT_SPECIALS,
        multiple: int = 1,
    ) -> Vocabulary:
        """Make a vocabulary of pieces in their order, behind the specials; counts are not known.

        A piece spelled like one of `specials` gets no entry of its own.

        Args:
            pieces: what a text may become, each once.
            max_size: how many of them at most.
            specials: roles wanted, or how each of them is spelled.
            multiple: as for `build`.

        Raises:
            ConfigError: a role is unknown.
            FormatError: a piece stands twice.
        """
        names = spelled(specials)
        reserved = set(names.values())
        kept = islice((piece for piece in pieces if piece not in reserved), max_size)
        return cls._numbered(names, list(kept), None, multiple)

    @classmethod
    def _numbered(
        cls, names: Mapping[str, str], tokens: list[str], counts: list[int] | None, multiple: int
    ) -> Vocabulary:
        """Specials, tokens, and as many unused entries as it takes."""
        lacking = -(len(names) + len(tokens)) % multiple
        taken = {token for token in tokens if token.startswith("<unused")} if lacking else ()
        padding = dict(islice(unused(taken), lacking))
        roles = {role: number for number, role in enumerate(names)}
        roles |= {role: number for number, role in enumerate(padding, len(names) + len(tokens))}
        if counts is not None:
            counts = [0] * len(names) + counts + [0] * lacking
        return cls([*names.values(), *tokens, *padding.values()], roles, counts)

    def to_header(self) -> dict[str, Any]:
        """The vocabulary as one JSON-able value; `from_header` reads it back."""
        return {"tokens": self.tokens, "specials": self.specials, "counts": self.counts}

    @classmethod
    def from_header(cls, value: object) -> Vocabulary:
        """Read what `to_header` made.

        Raises:
            FormatError: the value is no vocabulary, or breaks an invariant of one.
        """
        if not isinstance(value, dict):
            raise FormatError("a vocabulary must be an object")
        tokens, specials, counts = (value.get(key) for key in ("tokens", "specials", "counts"))
        if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
            raise FormatError('"tokens" of a vocabulary must be a list of strings')
        if not isinstance(specials, dict) or not all(map(_is_count, specials.values())):
            raise FormatError('"specials" of a vocabulary must map roles to ids')
        if counts is not None and not (isinstance(counts, list) and all(map(_is_count, counts))):
            raise FormatError('"counts" of a vocabulary must be a list of whole numbers')
        return cls(tokens, specials, counts)

    def entries(self) -> Iterator[dict[str, Any]]:
        """Lines of the vocabulary file: `id`, `token`, and `special` or (if known) `count`."""
        roles = {number: role for role, number in self.specials.items()}
        for number, token in enumerate(self.tokens):
            entry: dict[str, Any] = {"id": number, "token": token}
            if number in roles:
                entry["special"] = roles[number]
            elif self.counts is not None:
                entry["count"] = self.counts[number]
            yield entry

    @classmethod
    def from_entries(cls, entries: Iterable[Mapping[str, Any]]) -> Vocabulary:
        """Read what `entries` made, in any order.

        Raises:
            RecordError: the entry last taken is no vocabulary entry.
            FormatError: the entries together are no vocabulary.
        """
        numbers: list[int] = []
        tokens: list[str] = []
        specials: dict[str, int] = {}
        counts: list[int | None] = []
        seen: set[int] = set()  # the ids, once one is not where it is expected
        for entry in entries:
            number, token, role, count = _fields_of(entry)
            if seen or number != len(numbers):
                seen = seen or set(numbers)
                if number in seen:
                    raise RecordError(f"id {number} stands twice in the vocabulary")
                seen.add(number)
            if role is not None:
                if role in specials:
                    raise RecordError(f"special {role!r} stands twice")
                specials[role] = number
                count = 0
            numbers.append(number)
            tokens.append(token)
            counts.append(count)
        if seen:
            order = _inverse(numbers)
            tokens = [tokens[place] for place in order]
            counts = [counts[place] for place in order]
        known = None if None in counts else counts
        return cls(tokens, specials, known)  # type: ignore[arg-type]

    @classmethod
    def read(cls, path: str) -> Vocabulary:
        """Read a vocabulary file.

        Raises:
            ConfigError: the file cannot be opened.
            InputError: a line is no vocabulary entry.
            FormatError: the lines together are no vocabulary.
        """
        from seqtools.streams.files import WHOLE, chomp, read_blocks
        from seqtools.streams.records import loads

        source, line = path, 0

        def entries() -> Iterator[dict[str, Any]]:
            nonlocal source, line
            for block in read_blocks([path]):
                source = block.source
                for line, _, raw in block.raw_lines(WHOLE, 1):  # noqa: B007
                    yield loads(chomp(raw))

        try:
            return cls.from_entries(entries())
        except RecordError as error:
            raise InputError(source, line, str(error)) from None
        except FormatError as error:
            raise FormatError(f"{path}: {error}") from None


def ranked(
    counts: Mapping[str, int], reserved: Iterable[str] = (), min_count: int = 1
) -> list[str]:
    """The tokens in the order of a vocabulary: by count descending, ties by code point.

    Args:
        counts: token to count.
        reserved: spellings of specials, which are no tokens.
        min_count: tokens seen less often are left out.
    """
    reserved = set(reserved)
    tokens = [
        token for token, count in counts.items() if count >= min_count and token not in reserved
    ]
    tokens.sort()
    tokens.sort(key=counts.__getitem__, reverse=True)  # which leaves ties as they are
    return tokens


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _fields_of(entry: Mapping[str, Any]) -> tuple[int, str, str | None, int | None]:
    """Id, token, role and count of an entry; RecordError where it is none."""
    number, token = entry.get("id"), entry.get("token")
    if type(number) is not int or number < 0 or type(token) is not str:
        raise RecordError(
            'not a vocabulary entry: {"id": number, "token": string, ...} is expected'
        )
    role = entry.get("special")
    if "special" in entry and not (isinstance(role, str) and is_role(role)):
        raise RecordError(f"unknown special {role!r}")
    count = entry.get("count")
    if "count" in entry and (type(count) is not int or count < 0):
        raise RecordError('"count" must be a whole number')
    return number, token, role, count


def _inverse(numbers: list[int]) -> list[int]:
    """Where each number from 0 stands; FormatError where one is not there."""
    order = sorted(range(len(numbers)), key=numbers.__getitem__)
    for number, place in enumerate(order):
        if numbers[place] != number:
            raise FormatError(
                f"the vocabulary has {len(numbers)} entries, but none with id {number}"
            )
    return order
