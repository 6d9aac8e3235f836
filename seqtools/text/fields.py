"""What fields made from a text field are called, and what they may hold."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from seqtools.streams.records import Record, get_ids, get_tokens


def derived(field: str, suffix: str) -> str:
    """`src`, `tokens` to `src_tokens`; the prefix of the field `text` is dropped: `tokens`."""
    return suffix if field == "text" else f"{field}_{suffix}"


def base(field: str, suffix: str) -> str:
    """`src_tokens`, `tokens` to `src`, and `tokens` to `text`; any other name is its own base."""
    return "text" if field == suffix else field.removesuffix(f"_{suffix}")


OF_TOKENS = ("pos", "ids", "offsets", "onehot", "ngrams")
"""What is made of tokens and holds for no others; `tags` are not, which others may have given."""


def of_tokens(field: str, keep: Collection[str] = ()) -> tuple[str, ...]:
    """Fields that are made of the tokens of the text field F, but for those to keep.

    >>> of_tokens("src", keep=["src_pos", "src_ids"])
    ('src_offsets', 'src_onehot', 'src_ngrams')
    """
    names = (derived(field, suffix) for suffix in OF_TOKENS)
    return tuple(name for name in names if name not in keep)


def forget(record: Record, names: Iterable[str]) -> None:
    """Take fields out of the record, those that it has."""
    for name in names:
        record.pop(name, None)


def get_tokens_or_label(record: Record, field: str) -> list[str] | str:
    """The field as a list of strings or, where its name does not say that it is one, a string.

    Raises:
        RecordError: it is missing or something else.
    """
    value = record.get(field)
    if type(value) is str and may_be_label(field):
        return value
    return get_tokens(record, field)


def get_all_tokens(record: Record, field: str) -> list[str]:
    """The field as `get_tokens_or_label` has it, a string as a list of one.

    Raises:
        RecordError: it is missing or something else.
    """
    value = get_tokens_or_label(record, field)
    return [value] if isinstance(value, str) else value


def may_be_label(field: str) -> bool:
    """Whether the field's name leaves open that it holds one string instead of a list of them."""
    return field not in ("tokens", "tags") and not field.endswith("_tokens")


def get_ids_or_id(record: Record, field: str, size: int) -> list[int] | int:
    """The field as a list of ids, or one id, all below `size`.

    Raises:
        RecordError: it is missing, something else, or an id is out of range.
    """
    value = record.get(field)
    if type(value) is int:
        return get_ids({field: [value]}, field, size)[0]
    return get_ids(record, field, size)
