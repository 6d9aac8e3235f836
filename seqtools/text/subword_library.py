"""The library sentencepiece, and what it says when something goes wrong."""

from __future__ import annotations

import re
from typing import Any

from seqtools.errors import SeqtoolsError

_CODE = re.compile(r"^[A-Z_]+: (src/\S+ )?(\[.*?\] )?")  # of an error: kind, place, condition


def library() -> Any:
    """The module sentencepiece, without what it has to say."""
    import sentencepiece

    sentencepiece.SetMinLogLevel(3)  # above all but what ends the process
    return sentencepiece


def call(method: Any, *arguments: Any, **settings: Any) -> Any:
    """Call the library.

    Raises:
        SeqtoolsError: something went wrong there.
    """
    try:
        return method(*arguments, **settings)
    except (RuntimeError, ValueError) as error:
        raise SeqtoolsError(f"sentencepiece: {explain(error)}") from None


def explain(error: Exception) -> str:
    """What the library says went wrong, without the place in its source."""
    text = " ".join(str(error).split())
    return _CODE.sub("", text) or text
