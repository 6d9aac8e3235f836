"""What fields made from a text field are called."""

from __future__ import annotations


def derived(field: str, suffix: str) -> str:
    """`src`, `tokens` to `src_tokens`; the prefix of the field `text` is dropped: `tokens`."""
    return suffix if field == "text" else f"{field}_{suffix}"


def base(field: str, suffix: str) -> str:
    """`src_tokens`, `tokens` to `src`, and `tokens` to `text`; any other name is its own base."""
    return "text" if field == suffix else field.removesuffix(f"_{suffix}")
