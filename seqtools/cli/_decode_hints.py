"""The tokens of a record, and where they are missing, what would make them."""

from __future__ import annotations

from seqtools.errors import RecordError
from seqtools.streams.records import Record, get_tokens

_TASKS = {"tokens": "lm and mlm", "src_tokens": "seq2seq"}  # whose records hold the field


def read_tokens(record: Record, field: str) -> list[str]:
    """The field `tokens` or `F_tokens` as a list of strings.

    Raises:
        RecordError: it is missing, with a hint if the record holds the text or other tokens, or it
            is something else.
    """
    if field not in record:
        raise RecordError(f'"{field}" is missing{hint(record, field)}')
    return get_tokens(record, field)


def hint(record: Record, field: str) -> str:
    """What helps where tokens are missing; nothing, if the record does not show it.

    >>> hint({"src": "a b"}, "src_tokens")
    ' (seq-tokenize --field src makes it)'
    >>> hint({"tokens": ["a"]}, "src_tokens")
    ' ("tokens" is for models of lm and mlm)'
    >>> hint({"id": 1}, "tokens")
    ''
    """
    text = "text" if field == "tokens" else field.removesuffix("_tokens")
    if isinstance(record.get(text), str):
        return f" (seq-tokenize --field {text} makes it)"
    others = [f'"{name}" is for models of {tasks}' for name, tasks in _TASKS.items()
              if name in record and name != field]  # fmt: skip
    return f" ({others[0]})" if others and field in _TASKS else ""
