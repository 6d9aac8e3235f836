"""A language model of n-grams as arrays: levels of probabilities and backoff weights.

The n-grams of an order are rows of a level, sorted by their last word, then the one before it, and
so on (suffix order). Those that end with the same words stand together, so a row of one level knows
where the n-grams that extend it to the left begin in the next, and a word after a history is looked
up by walking from the word leftwards, as far as the history is known.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from seqtools import artifact
from seqtools.errors import FormatError
from seqtools.ngram.sorting import HIGHEST
from seqtools.ngram.words import SPECIALS, Words
from seqtools.streams.compression import unpacker
from seqtools.streams.files import STDIN, is_regular

if TYPE_CHECKING:
    from collections.abc import Callable

    from seqtools.ngram.distributions import Distributions

Array: TypeAlias = np.ndarray[Any, Any]

KIND = "ngram"
_VERSION = 1
_KENLM = b"mmap lm http://kheafield.com/code"
_TYPES = {"words": np.uint32, "begins": np.uint32, "log10probs": np.float32, "log10backoffs": np.float32}  # fmt: skip # noqa: E501


@dataclass
class Level:
    """The n-grams of one order; the arrays may be long columns that are not in memory.

    Attributes:
        words: uint32 (n,), the leftmost word of each n-gram; at the lowest level all ids.
        begins: uint32 (n + 1,), rows begins[i] to begins[i + 1] of the next level extend row i to
            the left; (0,) at the highest level.
        log10probs: float32 (n,), -inf for a probability of 0. That of `<s>` is 0: it is given.
        log10backoffs: float32 (n,), 0 for what is not a context, -inf for a weight of 0; (0,) at
            the highest level.
    """

    words: artifact.Long
    begins: artifact.Long
    log10probs: artifact.Long
    log10backoffs: artifact.Long

    def __len__(self) -> int:
        return len(self.log10probs)


@dataclass
class Model:
    """A language model.

    Attributes:
        words: the vocabulary; ids 0, 1, 2 are `<unk>`, `<s>`, `</s>`.
        levels: the lowest order first.
        metadata: how it was made, and what scoring has to know: `has_unk`, and above order 1
            `additive` (what add-k added, or None) and `unseen_backoff` (log10 of the weight of a
            context that was never seen).
    """

    words: Words
    levels: list[Level]
    metadata: dict[str, Any] = field(default_factory=dict)

    @property
    def order(self) -> int:
        """Words of the longest n-grams."""
        return len(self.levels)

    def distributions(self, histories: Array) -> Array:
        """The next word after each history.

        Args:
            histories: integers (B, order - 1), ids with the latest last; -1 before the first one.

        Returns:
            float32 (B, V), natural logarithms; `<s>` is never next and has -inf.
        """
        return self._distributions(histories)

    @cached_property
    def _distributions(self) -> Distributions:
        from seqtools.ngram.distributions import Distributions

        return Distributions(self)


def save(model: Model, put: Callable[[bytes], None]) -> None:
    """Write a model in our own format.

    Args:
        model: whose arrays need not be in memory.
        put: takes the bytes.
    """
    words = model.words
    columns: dict[str, artifact.Long] = {
        "words.utf8": words.utf8, "words.offsets": words.offsets, "words.table": words.table,
    }  # fmt: skip
    for order, level in enumerate(model.levels, 1):
        for name in _names(order, model.order):
            columns[f"level{order}.{name}"] = getattr(level, name)
    metadata = {**model.metadata, "order": model.order, "unk_as_word": words.unk_as_word}
    artifact.write(KIND, artifact.Artifact(_VERSION, metadata), columns, put)


def load(path: str) -> Model:
    """Open a model, ARPA or our own format; the arrays of the latter stay in the file.

    Raises:
        ConfigError: the file cannot be opened.
        FormatError: it is neither, or damaged.
        InputError: a line of an ARPA file is bad.
    """
    if _is_arpa(path):
        from seqtools.ngram import arpa

        return arpa.read(path)
    found = artifact.load_mapped(path, KIND, newest=_VERSION)
    try:
        return _checked(found)
    except (KeyError, ValueError) as error:
        raise FormatError(f"{path}: damaged: its arrays do not fit together") from error


def _names(order: int, highest: int) -> list[str]:
    """The arrays of a level that are stored."""
    names = ["words"] if order > 1 else []
    names.append("log10probs")
    return names + (["begins", "log10backoffs"] if order < highest else [])


def _checked(found: artifact.Artifact) -> Model:
    """The model, if its arrays fit together, as far as that is seen without going through them."""
    arrays, metadata = found.arrays, found.metadata
    highest = metadata["order"]
    if type(highest) is not int or not 1 <= highest <= HIGHEST:
        raise ValueError("no order")
    words = _checked_words(arrays, unk_as_word=bool(metadata["unk_as_word"]))
    levels: list[Level] = []
    count = len(words)
    for order in range(1, highest + 1):
        given: dict[str, Array] = {name: np.empty(0, dtype=kind) for name, kind in _TYPES.items()}
        if order == 1:
            given["words"] = np.arange(count, dtype=np.uint32)
        for name in _names(order, highest):
            given[name] = array = arrays[f"level{order}.{name}"]
            if array.dtype != _TYPES[name] or len(array) != count + (name == "begins"):
                raise ValueError(f"level {order}: {name}")
        for array in given.values():
            array.flags.writeable = False
        levels.append(Level(**given))
        if order < highest:
            count = int(given["begins"][-1])
    return Model(words, levels, metadata)


def _checked_words(arrays: dict[str, Array], *, unk_as_word: bool) -> Words:
    """The vocabulary; whatever the file says, looking up words will end, and within the arrays."""
    utf8, offsets, table = (arrays[f"words.{name}"] for name in ("utf8", "offsets", "table"))
    if (utf8.dtype, offsets.dtype, table.dtype) != (np.uint8, np.int64, np.uint64):
        raise ValueError("types of the words")
    if len(offsets) <= len(SPECIALS) or offsets[0] or offsets[-1] != len(utf8):
        raise ValueError("words that are not the text")
    if (offsets[1:] < offsets[:-1]).any():
        raise ValueError("words that overlap")
    entries = table & np.uint64(0xFFFFFFFF)  # the id plus one, 0 for none
    if len(table).bit_count() != 1 or entries.max() >= len(offsets) or table.all():
        raise ValueError("a table of other words")
    return Words(utf8, offsets, table, unk_as_word=unk_as_word)


def _is_arpa(path: str) -> bool:
    """Whether it must be ARPA if it is a model: text, compressed, or what cannot be mapped."""
    try:
        if path == STDIN or not is_regular(path):
            return True
        with open(path, "rb") as handle:
            start = handle.read(len(_KENLM))
    except OSError:
        return False  # told by who opens it next
    if start == _KENLM:
        raise FormatError(f"{path}: a binary model of KenLM, which only KenLM reads (not so ARPA)")
    return unpacker(path, path) is not None or (bool(start) and b"\0" not in start[:8])
