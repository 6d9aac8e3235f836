"""How many outputs are equal to a reference, character for character."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class Exact:
    """Share of hypotheses equal to one of their references.

    Nothing is stripped or normalised: a blank more is a difference.

    Args:
        lowercase: compare without case.
    """

    def __init__(self, *, lowercase: bool = False) -> None:
        self._lowercase = lowercase
        self._equal = 0
        self._records = 0

    def add(self, hypothesis: str, references: Sequence[str]) -> None:
        """Count one hypothesis against one or more references."""
        if self._lowercase:
            hypothesis = hypothesis.lower()
            references = [reference.lower() for reference in references]
        self._equal += hypothesis in references
        self._records += 1

    def advice(self) -> str | None:
        """Nothing."""
        return None

    def result(self) -> dict[str, Any]:
        """`score` is a share from 0 to 1; needs at least one record."""
        found: dict[str, Any] = {"metric": "exact", "score": self._equal / self._records}
        if self._lowercase:  # a score says how it was made
            found["lowercase"] = True
        return {**found, "equal": self._equal, "records": self._records}
