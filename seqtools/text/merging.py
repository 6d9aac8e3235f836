"""Several vocabularies into one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from seqtools.errors import ConfigError, FormatError
from seqtools.text.specials import is_unused, spelled
from seqtools.text.vocab import Vocabulary


class Merger:
    """Adds up vocabularies, one after the other; none is held.

    Args:
        specials: roles of the result; None where all have to have the same, which are then its own.

    Raises:
        ConfigError: a role is unknown.
    """

    def __init__(self, specials: Iterable[str] | None = None) -> None:
        self._free = specials is None
        self._names = None if specials is None else spelled(specials)
        self._counted: bool | None = None  # not known before the first token
        self.counts: Counter[str] = Counter()
        """How often each token was seen in all of them, 0 where that is not known."""

    def add(self, vocabulary: Vocabulary) -> None:
        """Add one; its unused entries stand for nothing and are left out.

        Raises:
            FormatError: its specials are not those of the first; or one of the two has counts, and
                the other has not.
        """
        roles = {role: n for role, n in vocabulary.specials.items() if not is_unused(role)}
        names = spelled({role: vocabulary.tokens[number] for role, number in roles.items()})
        if self._names is None:
            self._names = names
        elif self._free and names != self._names:
            raise FormatError(f"its specials are {_shown(names)}, and not {_shown(self._names)}")
        if len(vocabulary) == len(vocabulary.specials):
            return
        counted = vocabulary.counts is not None
        if self._counted not in (None, counted):
            raise FormatError(
                "it has counts, which those before it lack" if counted
                else "it has no counts, which those before it have"
            )  # fmt: skip
        self._counted = counted
        self._sum(vocabulary)

    def result(
        self, *, max_size: int | None = None, min_count: int = 1, multiple: int = 1
    ) -> Vocabulary:
        """The vocabulary of all: in the order of `Vocabulary.build` or, without counts, as met.

        Args:
            max_size: how many entries at most, specials not counted.
            min_count: tokens seen less often, in all of them together, are left out.
            multiple: as for `Vocabulary.build`.

        Raises:
            ConfigError: a least count is asked for, and there are no counts.
        """
        names = self._names or {}
        if self._counted is not False:
            return Vocabulary.build(
                self.counts,
                max_size=max_size, min_count=min_count, specials=names, multiple=multiple,
            )  # fmt: skip
        if min_count > 1:
            raise ConfigError("a least count needs counts, which these vocabularies do not have")
        return Vocabulary.of_pieces(
            self.counts, max_size=max_size, specials=names, multiple=multiple
        )

    def _sum(self, vocabulary: Vocabulary) -> None:
        total = self.counts
        special = set(vocabulary.specials.values())
        counts = vocabulary.counts or [0] * len(vocabulary)
        for number, (token, count) in enumerate(zip(vocabulary.tokens, counts, strict=True)):
            if number not in special:
                total[token] = total.get(token, 0) + count


def _shown(names: dict[str, str]) -> str:
    return " ".join(names.values()) or "none"
