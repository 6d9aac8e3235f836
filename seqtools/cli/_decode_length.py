"""How long an output may be, as it is typed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import click


@dataclass(frozen=True, slots=True)
class Length:
    """A number of tokens: a multiple of the source's, and some more."""

    multiple: float
    plus: int

    def of(self, source: int) -> int:
        """The number for a source of that many tokens, at least 1."""
        multiple = Fraction(repr(self.multiple))  # 1.15 x 100 is 115, not a little less
        return max(1, int(multiple * source) + self.plus)

    def __str__(self) -> str:
        parts = [f"{self.multiple:g}x"] * bool(self.multiple) + [str(self.plus)] * bool(self.plus)
        return "+".join(parts)


class LengthType(click.ParamType[Length]):
    """`N`, or as a multiple of the source `2x` or `2x+10`."""

    name = "N|Fx|Fx+N"
    _FORM = re.compile(r"(?:(?P<multiple>\d{1,9}(?:\.\d{1,9})?)x(?:\+|$))?(?P<plus>\d{1,9})?")

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        """What the help shows."""
        return self.name

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Length:
        """Parse and check."""
        if isinstance(value, Length):
            return value
        found = None if str(value).endswith("+") else self._FORM.fullmatch(str(value))
        length = found and Length(float(found["multiple"] or 0), int(found["plus"] or 0))
        if not length or not (length.multiple or length.plus):
            self.fail(f"{value!r} is no length, such as 50, 2x or 2x+10", param, ctx)
        return length
