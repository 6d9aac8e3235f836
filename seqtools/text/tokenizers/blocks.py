"""Tokenizers that do many texts in one call, over the fields of a block of records."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import orjson

from seqtools.streams.records import Record, get_text, get_tokens, to_line
from seqtools.text.fields import derived, forget, of_tokens
from seqtools.text.normalize import Normalizer, Offsets
from seqtools.text.tokenizers.records import kept, trace, would_not_come_back
from seqtools.text.tokenizers.sentencepiece import SentencePieceTokenizer


class BlockTokenizer(Protocol):
    """What `Tokenizer` says, for many texts at once."""

    def tokenize_all(self, texts: Sequence[str], /) -> list[list[str]]:
        """The tokens of each text."""

    def spans_all(self, texts: Sequence[str], /) -> list[tuple[list[str], Offsets]]:
        """The tokens of each text and where each stands in it, `[start, end)`, or is empty."""

    def join_all(self, texts: Sequence[Sequence[str]], /) -> list[str]:
        """The text of each list of tokens."""

    def look_back(self, texts: Sequence[Sequence[str]], /) -> list[tuple[str, int]]:
        """The same, each with how many tokens are unknown."""


class Made(NamedTuple):
    """What became of one text; `changed` where its tokens do not give it back."""

    tokens: list[str]
    offsets: Offsets | None
    changed: bool


@dataclass(frozen=True)
class Care:
    """What is looked after beside the tokens.

    Attributes:
        offsets: add `F_offsets`, places in the field as it stands in the record.
        compare: count texts that the tokens do not give back, and unknown tokens.
        lossless: a text that the tokens do not give back makes a bad record.
    """

    offsets: bool = False
    compare: bool = False
    lossless: bool = False


class SplitBlock:
    """Add the tokens of each field F, as `F_tokens`, to all records of a block together.

    What was made of tokens that were there before, as `of_tokens` says, leaves the record.
    Counts, where asked to compare: `texts`, `changed`, `tokens`, `unknown`.
    """

    def __init__(
        self,
        fields: Sequence[str],
        tokenizer: BlockTokenizer,
        normalizer: Normalizer,
        care: Care,
        counts: Counter[str],
    ) -> None:
        self._fields = fields
        keep = kept(fields, offsets=care.offsets)
        self._names = [
            (derived(field, "tokens"), derived(field, "offsets"), of_tokens(field, keep))
            for field in fields
        ]
        self._tokenizer = tokenizer
        self._normalizer = normalizer
        self._care = care
        self._counts = counts

    def take(self, record: Record) -> list[str]:
        """The texts of the record."""
        return [get_text(record, field) for field in self._fields]

    def work(self, taken: Sequence[list[str]]) -> Iterable[tuple[Made, ...]]:
        """What becomes of the texts of each record."""
        made = iter(self._split(list(itertools.chain.from_iterable(taken))))
        return zip(*[made] * len(self._fields), strict=True)

    def write(self, record: Record, made: tuple[Made, ...]) -> bytes:
        """The record with its tokens."""
        for field, (tokens_name, offsets_name, stale), each in zip(
            self._fields, self._names, made, strict=True
        ):
            if each.changed and self._care.lossless:
                raise would_not_come_back(field)
            if tokens_name in record:
                forget(record, stale)
            record[tokens_name] = each.tokens
            if each.offsets is not None:
                record[offsets_name] = each.offsets
        return write_line(record)

    def _split(self, texts: list[str]) -> list[Made]:
        normal = list(map(self._normalizer, texts)) if self._normalizer.changes else texts
        offsets: Iterable[Offsets | None] = itertools.repeat(None, len(texts))
        if self._care.offsets:
            found = self._tokenizer.spans_all(normal)
            tokens = [each for each, _ in found]
            offsets = [
                trace(self._normalizer, text, spans)
                for text, (_, spans) in zip(texts, found, strict=True)
            ]
        else:
            tokens = self._tokenizer.tokenize_all(normal)
        changed: Iterable[bool] = itertools.repeat(False, len(texts))
        if self._care.compare or self._care.lossless:
            found_back = self._tokenizer.look_back(tokens)
            changed = [text != back for text, (back, _) in zip(texts, found_back, strict=True)]
            self._counts["texts"] += len(texts)
            self._counts["changed"] += sum(changed)
            self._counts["tokens"] += sum(map(len, tokens))
            self._counts["unknown"] += sum(unknown for _, unknown in found_back)
        return list(map(Made, tokens, offsets, changed))


class JoinBlock:
    """Put the text of `F_tokens` into each field F of all records of a block together."""

    def __init__(self, fields: Sequence[str], tokenizer: BlockTokenizer) -> None:
        self._fields = fields
        self._names = [derived(field, "tokens") for field in fields]
        self._tokenizer = tokenizer

    def take(self, record: Record) -> list[list[str]]:
        """The token lists of the record."""
        return [get_tokens(record, name) for name in self._names]

    def work(self, taken: Sequence[list[list[str]]]) -> Iterable[tuple[str, ...]]:
        """The texts of each record."""
        joined = iter(self._tokenizer.join_all(list(itertools.chain.from_iterable(taken))))
        return zip(*[joined] * len(self._fields), strict=True)

    def write(self, record: Record, made: tuple[str, ...]) -> bytes:
        """The record with its texts."""
        record.update(zip(self._fields, made, strict=True))
        return write_line(record)


class SplitDrawn:
    """Add a random segmentation of each field F, as `F_tokens`; a transform of one record.

    What was made of tokens that were there before, as `of_tokens` says, leaves the record.
    """

    def __init__(
        self,
        fields: Sequence[str],
        tokenizer: SentencePieceTokenizer,
        normalizer: Normalizer,
        *,
        offsets: bool = False,
    ) -> None:
        keep = kept(fields, offsets=offsets)
        self._names = [
            (field, derived(field, "tokens"), derived(field, "offsets"), of_tokens(field, keep))
            for field in fields
        ]
        self._tokenizer = tokenizer
        self._normalizer = normalizer
        self._offsets = offsets

    def __call__(self, record: Record, number: int) -> bytes:
        """The record with its tokens; what is drawn depends on its `id`, or its number."""
        name = record.get("id")
        key: str | int = name if type(name) in (str, int) else number  # type: ignore[assignment]
        for field, tokens_name, offsets_name, stale in self._names:
            text = get_text(record, field)
            tokens, spans = self._tokenizer.draw(self._normalizer(text), key, field)
            if tokens_name in record:
                forget(record, stale)
            record[tokens_name] = tokens
            if self._offsets:
                record[offsets_name] = trace(self._normalizer, text, spans)
        return write_line(record)


def write_line(record: Record) -> bytes:
    """The record as a line; as it was parsed, it has nothing that JSON has not."""
    try:
        return orjson.dumps(record, None, orjson.OPT_APPEND_NEWLINE)
    except orjson.JSONEncodeError:
        return to_line(record)  # it holds an integer that takes a slower writer
