"""Whole texts to ids, to be filled or turned into vectors, as `seq-batch mlm` puts them in rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from seqtools.batching.masking import shorten
from seqtools.cli._decode_hints import read_tokens
from seqtools.cli._decode_items import Item
from seqtools.cli._encoding import Encoder, refuse_long
from seqtools.cli._run import warn
from seqtools.errors import ConfigError, RecordError
from seqtools.streams.files import Place
from seqtools.streams.records import Record

_OTHER_MASK = "[MASK]"  # how other tools spell a gap
_FIELDS = ("", "text_pair_")  # prefixes of the first text's field and of the second's


@dataclass
class Text(Item):
    """A record whose text, or pair of texts, is looked at as a whole: `prefix` is all of it.

    Attributes:
        segments: for each input 0, or 1 in the second text and its end.
        places: the inputs that are the record's own tokens.
        gaps: the inputs that are to be filled.
    """

    segments: list[int] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    gaps: list[int] = field(default_factory=list)


class TextEncoder(Encoder):
    """What a model's file says about whole texts; for an lm they are fed as a prompt is."""

    def text(self, place: Place, raw: bytes, record: Record) -> Text:
        """Encode one text or two.

        Raises:
            RecordError: a field is of another type, or cannot be encoded.
        """
        if self.task == "lm":
            ids = self._encode_targets(record, place)
            inputs = self._started(ids)
            refuse_long(len(inputs), self.positions, "the text")
            start = len(inputs) - len(ids)
            return Text(place, raw, record, inputs, places=[*range(start, len(inputs))])
        parts = [self._part(record, prefix, place) for prefix in self._there(record)]
        return self._row(place, raw, record, parts)

    def gapped(self, place: Place, raw: bytes, record: Record) -> Text:
        """Encode texts with `<mask>` where something is missing.

        Raises:
            RecordError: a field is of another type, or cannot be encoded; a gap is in the part
                that is too long for the model.
        """
        mask = self.vocabulary.specials.get("mask")
        if mask is None:
            raise ConfigError("the model's vocabulary has no <mask>")
        parts = [self._part(record, prefix, place, mask) for prefix in self._there(record)]
        item = self._row(place, raw, record, parts)
        item.gaps = [column for column in item.places if item.prefix[column] == mask]
        if len(item.gaps) < sum(part.count(mask) for part in parts):
            raise RecordError("a <mask> stands in the part that is too long for the model")
        if not item.gaps:
            self.counts["without a gap"] += 1
            fields = self.fields(record)
            self.counts[_OTHER_MASK] += any(_OTHER_MASK in record[name] for name in fields)
        return item

    def report(self) -> None:
        """Warn about what was not there to fill, beside the rest."""
        super().report()
        if self.counts["without a gap"]:
            kind = "id" if self._kind == "ids" else "token"
            other = f"; {_OTHER_MASK} is text" if self.counts[_OTHER_MASK] else ""
            warn(
                f"records without a gap: {self.counts['without a gap']};"
                f" a gap is the {kind} {self.gap(self._kind)}{other}"
            )

    @property
    def begins_with_cls(self) -> bool:
        """Whether the first input of each text is `<cls>`."""
        return self.task == "mlm" and self._wrapped

    @property
    def banned(self) -> list[int]:
        """Ids that are never proposed: all special ones, but for `<unk>`."""
        return [number for role, number in self.vocabulary.specials.items() if role != "unk"]

    def gap(self, name: str) -> Any:
        """What stands for something missing in a field of that name: a token, or an id."""
        mask = self.vocabulary.specials["mask"]
        return mask if name.endswith("ids") else self.vocabulary.decode([mask])[0]

    def fields(self, record: Record) -> list[str]:
        """The fields that hold the record's texts."""
        return [f"{prefix}{self._kind}" for prefix in self._there(record)]

    @property
    def _wrapped(self) -> bool:
        """Whether there are symbols around texts."""
        return self._kind == "tokens" and {"cls", "sep"} <= self.vocabulary.specials.keys()

    def _there(self, record: Record) -> list[str]:
        """What the fields of the record's texts begin with; an empty second text is none."""
        return [*_FIELDS] if record.get(f"{_FIELDS[1]}{self._kind}") else [_FIELDS[0]]

    def _part(
        self, record: Record, prefix: str, place: Place, mask: int | None = None
    ) -> list[int]:
        """The ids of one text; its gaps are `mask` where that is given."""
        if mask is None or self._kind == "ids":
            return self._encode(record, prefix, self._target_name, self.vocabulary, place)
        [spelled] = self.vocabulary.decode([mask])
        tokens = read_tokens(record, f"{prefix}tokens")
        plain: Record = {"tokens": [token for token in tokens if token != spelled]}
        rest = iter(self._encode(plain, "", self._target_name, self.vocabulary, place))
        return [mask if token == spelled else next(rest) for token in tokens]

    def _row(self, place: Place, raw: bytes, record: Record, parts: list[list[int]]) -> Text:
        """The texts with the symbols around them that the vocabulary has."""
        specials = self.vocabulary.specials
        wrapped = self._wrapped
        if len(parts) == 2 and not wrapped and self._kind == "tokens":
            raise RecordError("the vocabulary has no <cls> and <sep>, which pairs of texts need")
        self.counts["unseen pairs"] += len(parts) == 2 and self._options.get("pairs") is False
        item = Text(place, raw, record, [specials["cls"]] if wrapped else [])
        for number, ids in enumerate(self._fit(parts, (1 + len(parts)) * wrapped)):
            start = len(item.prefix)
            item.places += range(start, start + len(ids))
            item.prefix += [*ids, specials["sep"]] if wrapped else ids
            item.segments += [number] * (len(item.prefix) - len(item.segments))
        if not item.prefix:
            raise RecordError("there are no tokens")
        refuse_long(len(item.prefix), self.positions, "the text")
        return item

    def _fit(self, parts: list[list[int]], symbols: int) -> list[list[int]]:
        """Cut what is longer than in training, of a pair the longer text first."""
        limit, truncate = self._options.get("max_length"), self._options.get("truncate")
        total = sum(map(len, parts)) + symbols
        if limit is None or truncate == "drop" or total <= limit:
            return parts
        if truncate == "error":
            raise RecordError(f"the text takes {total} inputs, more than {limit}")
        self.counts["truncated"] += 1
        rooms = [limit - symbols]
        if len(parts) == 2:
            first, second = (np.array([len(part)]) for part in parts)
            rooms = [int(size[0]) for size in shorten(first, second, limit - symbols)]
        cut = zip(parts, rooms, strict=True)
        return [ids[len(ids) - room :] if truncate == "left" else ids[:room] for ids, room in cut]


def filled(values: list[Any], gap: Any, found: list[Any]) -> list[Any]:
    """The values with each gap replaced by the next one of `found`.

    >>> filled(["a", "<mask>", "c"], "<mask>", ["b"])
    ['a', 'b', 'c']
    """
    rest = iter(found)
    return [next(rest) if value == gap else value for value in values]
