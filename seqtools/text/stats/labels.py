"""Labels and tags: how many of each, how balanced, and the entities that tags mark."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from seqtools.errors import RecordError
from seqtools.streams.records import Record, get_tokens, name_of
from seqtools.text.tags import guess_entities


class Labels:
    """Counts of labels: of a string, or of each string in a list (labels, tags).

    What is held is each label once.

    Args:
        fields: which; a record where one is missing, null or an empty list has no label.
        entities: the lists are tags like B-PER, I-PER and O, and entities are counted.
    """

    kind = "labels"
    places = None

    def __init__(self, fields: Sequence[str] = ("label",), *, entities: bool = False) -> None:
        self.options: Record = {"fields": [*fields], "entities": entities}
        self._counts = {field: _Counts() for field in fields}
        self._entities = entities

    def add(self, record: Record, number: int) -> None:
        """Take in a record.

        Raises:
            RecordError: a field is neither a string nor a list of strings; with `entities`, a tag
                is neither O nor a letter of a scheme, a hyphen and a type.
        """
        taken = []
        for field in self._counts:
            labels = _labels(record, field)
            types = entity_types(labels) if self._entities else []
            taken.append((labels, types))
        for counts, (labels, types) in zip(self._counts.values(), taken, strict=True):
            counts.add(labels, types)

    def dump(self) -> Iterator[Record]:
        """A record for each field."""
        for field, counts in self._counts.items():
            yield {"field": field, **counts.dump()}

    def merge(self, part: Record) -> None:
        """Take in a record of `dump`."""
        self._counts[part["field"]].merge(part)

    def report(self) -> Iterator[Record]:
        """Of each field one record with its measures, then `label` and `entity` by count."""
        for field, counts in self._counts.items():
            yield {"statistic": "labels", "field": field, **counts.summary()}
            for record in counts.each():
                yield {"statistic": "label", "field": field, **record}
            if self._entities:
                total = counts.entities.total()
                for kind, count in ranked(counts.entities):
                    share = count / total
                    record = {"type": kind, "count": count, "share": share}
                    yield {"statistic": "entity", "field": field, **record}

    def nowhere(self) -> list[str]:
        """The fields in which no record has a label, where there are records."""
        return [
            field for field, counts in self._counts.items() if 0 < counts.records == counts.missing
        ]


class _Counts:
    def __init__(self) -> None:
        self.records = 0
        self.missing = 0
        self.entities: Counter[str] = Counter()
        self._counts: Counter[str] = Counter()
        self._having: Counter[str] = Counter()

    def add(self, labels: list[str], types: list[str]) -> None:
        self.records += 1
        self.missing += not labels
        self._counts.update(labels)
        self._having.update(labels if len(labels) == 1 else {*labels})
        self.entities.update(types)

    def dump(self) -> Record:
        return {
            "records": self.records,
            "missing": self.missing,
            "counts": dict(self._counts),
            "having": dict(self._having),
            "entities": dict(self.entities),
        }

    def merge(self, part: Record) -> None:
        self.records += part["records"]
        self.missing += part["missing"]
        self._counts.update(part["counts"])
        self._having.update(part["having"])
        self.entities.update(part["entities"])

    def summary(self) -> Record:
        made: Record = {
            "records": self.records,
            "missing": self.missing,
            "labels": self._counts.total(),
            "types": len(self._counts),
        }
        return {**made, **balance(self._counts)} if self._counts else made

    def each(self) -> Iterator[Record]:
        total = self._counts.total()
        for label, count in ranked(self._counts):
            having = self._having[label]
            yield {
                "label": label,
                "count": count,
                "share": count / total,
                "records": having,
                "record_share": having / self.records,
            }


def _labels(record: Record, field: str) -> list[str]:
    value = record.get(field)
    if value is None:
        return []
    if type(value) is str:
        return [value]
    if type(value) is not list:
        raise RecordError(f'"{field}" must be a string or a list of strings, got {name_of(value)}')
    return get_tokens(record, field)


def ranked(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    """Labels by count, ties by code point."""
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def balance(counts: Mapping[str, int]) -> Record:
    """How even the shares p of the labels are.

    Returns:
        `entropy` -sum of p log p in nats; `effective`, its exponential, the number of labels that
        would have it if all were equally frequent; `evenness`, the entropy by its greatest value
        log K for K labels, 1 for one label; `imbalance`, the most frequent label's count by the
        rarest's.
    """
    total = sum(counts.values())
    # Each term is not negative, so a single label has 0.0 and not -0.0.
    entropy = math.fsum(count / total * math.log(total / count) for count in counts.values())
    return {
        "entropy": entropy,
        "effective": math.exp(entropy),
        "evenness": entropy / math.log(len(counts)) if len(counts) > 1 else 1.0,
        "imbalance": max(counts.values()) / min(counts.values()),
    }


def entity_types(tags: Sequence[str]) -> list[str]:
    """The type of each entity that tags of IOB1, IOB2, IOBES, BMES or BILOU mark.

    An entity begins at B, S or U; and at any other letter behind O, another type or the end of an
    entity, as conlleval has it.

    Raises:
        RecordError: a tag is of none of these schemes.
    """
    return [chunk.type for chunk in guess_entities(tags)]
