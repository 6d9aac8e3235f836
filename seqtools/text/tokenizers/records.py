"""Tokenizers over the fields of records: `src` to `src_tokens` and back, `text` to `tokens`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import orjson

from seqtools.errors import RecordError
from seqtools.streams.records import Record, get_text, get_tokens
from seqtools.text.fields import derived, forget, of_tokens
from seqtools.text.normalize import Normalizer, Offsets
from seqtools.text.tokenizers import JsonTokenizer, Tokenizer, locate

# A record and its number to the same record, changed, or to the line that it makes.
Transform = Callable[[Record, int], Record | bytes]
Tag = Callable[[str], tuple[list[str], list[str]]]  # text to tokens, and to the tag of each


def split_fields(
    fields: Sequence[str],
    tokenizer: Tokenizer,
    normalizer: Normalizer,
    *,
    offsets: bool = False,
    lossless: bool = False,
    tag: Tag | None = None,
) -> Transform:
    """Make the function that adds the tokens of each field F, as `F_tokens`.

    What was made of tokens that were there before, as `of_tokens` says, leaves the record. The
    function raises `RecordError` where a text does not come back, with `lossless`.

    Args:
        fields: names of text fields.
        tokenizer: what splits them.
        normalizer: what the text goes through before; the field itself stays as it is.
        offsets: add `F_offsets`, places in the field as it stands in the record.
        lossless: the tokens joined must be the field as it stands in the record; the tokenizer has
            to keep white space.
        tag: splits in the tokenizer's place, and adds `F_pos`.
    """
    if not (offsets or lossless or tag is not None):
        return _split_only(fields, tokenizer, normalizer)
    keep = kept(fields, offsets=offsets, pos=tag is not None)
    names = [(field, derived(field, "tokens"), of_tokens(field, keep)) for field in fields]

    def split(record: Record, number: int) -> Record:
        for field, name, stale in names:
            text = get_text(record, field)
            if name in record:
                forget(record, stale)
            normal = normalizer(text)
            if tag is not None:
                record[name], record[derived(field, "pos")] = tag(normal)
                spans = locate(normal, record[name])
            elif offsets:
                record[name], spans = tokenizer.spans(normal)
            else:
                record[name] = tokenizer.tokenize(normal)
            if offsets:
                record[derived(field, "offsets")] = trace(normalizer, text, spans)
            if lossless and tokenizer.join(record[name]) != text:
                raise would_not_come_back(field)
        return record

    return split


def _split_only(fields: Sequence[str], tokenizer: Tokenizer, normalizer: Normalizer) -> Transform:
    """`split_fields` where nothing but the tokens is asked for.

    This is what most runs spend their time on: what can be asked without a call is, no token need
    be a Python object, and as a parsed record has nothing that JSON has not, it is written without
    a second look.
    """
    keep = kept(fields)
    names = [(field, derived(field, "tokens"), of_tokens(field, keep)) for field in fields]
    made = [name for _, name, _ in names]
    tokenize, dumps = tokenizer.tokenize, orjson.dumps
    normal = normalizer if normalizer.changes else None
    to_json, json_from = None, 0
    if isinstance(tokenizer, JsonTokenizer):
        to_json, json_from = tokenizer.to_json, tokenizer.json_from

    def split(record: Record, number: int) -> Record | bytes:
        for field, name, stale in names:
            text = record.get(field)
            if type(text) is not str:
                # Only what was written here: of the record's own, long integers are fragments, too.
                text = get_text(_unfolded(record, made[: fields.index(field)]), field)
            if normal is not None:
                text = normal(text)
            if name in record:
                forget(record, stale)
            if to_json is None or len(text) < json_from:
                record[name] = tokenize(text)
            else:
                record[name] = orjson.Fragment(to_json(text))
        try:
            return dumps(record, None, orjson.OPT_APPEND_NEWLINE)
        except orjson.JSONEncodeError:  # it holds an integer that takes a slower writer
            return _unfolded(record, made)

    return split


def _unfolded(record: Record, names: Sequence[str]) -> Record:
    """The record with tokens that any writer of JSON can take."""
    for name in names:
        if isinstance(record.get(name), orjson.Fragment):
            record[name] = orjson.loads(orjson.dumps(record[name]))
    return record


def kept(fields: Sequence[str], *, offsets: bool = False, pos: bool = False) -> frozenset[str]:
    """Fields that are read or written anew as the tokens are."""
    suffixes = [suffix for suffix, made in (("offsets", offsets), ("pos", pos)) if made]
    return frozenset((*fields, *(derived(field, each) for field in fields for each in suffixes)))


def would_not_come_back(field: str) -> RecordError:
    """What is wrong with a text that its tokens do not give back, where that was asked for."""
    return RecordError(f'"{field}" would not come back from its tokens as it is')


def join_fields(fields: Sequence[str], tokenizer: Tokenizer) -> Transform:
    """Make the function that puts the text of `F_tokens` into each field F."""
    names = [(field, derived(field, "tokens")) for field in fields]

    def join(record: Record, number: int) -> Record:
        for field, name in names:
            tokens = get_tokens(record, name)
            try:
                record[field] = tokenizer.join(tokens)
            except RecordError as error:
                raise RecordError(f'"{name}": {error}') from None
        return record

    return join


def trace(normalizer: Normalizer, text: str, offsets: Offsets) -> Offsets:
    """`Normalizer.trace` for spans that may be empty, which stay so."""
    if not normalizer.changes or not offsets:
        return offsets
    size = len(normalizer(text))
    if not size:
        return [(0, 0)] * len(offsets)
    wide = [
        (start, end) if start < end else (min(start, size - 1), min(start, size - 1) + 1)
        for start, end in offsets
    ]
    traced = []
    for (start, end), (first, last) in zip(offsets, normalizer.trace(text, wide), strict=True):
        place = last if start == size else first
        traced.append((first, last) if start < end else (place, place))
    return traced
