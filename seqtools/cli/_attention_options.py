"""The options that say what is written of the attention, as decorators that end in one value."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import click

from seqtools.cli._options import collect


class IndicesType(click.ParamType[tuple[int, ...]]):
    """Numbers from 0 and ranges of them, as `0,2-5`."""

    name = "LIST"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        """Parse and check; sorted, each number once."""
        if isinstance(value, tuple):
            return value
        found: set[int] = set()
        for part in str(value).split(","):
            ends = re.fullmatch(r"(\d{1,4})(?:-(\d{1,4}))?", part)
            if ends is None or int(ends[2] or ends[1]) < int(ends[1]):
                self.fail(f"{value!r} is no list such as 0,2-5", param, ctx)
            found.update(range(int(ends[1]), int(ends[2] or ends[1]) + 1))
        return tuple(sorted(found))


@dataclass(frozen=True, slots=True)
class AttentionChoice:
    """What is written of the attention.

    Attributes:
        attention: write it.
        attention_layers, attention_heads: which, from 0; None for all.
        attention_mean: over `layers`, `heads` or `all`; None for no mean.
        align: write hard alignments.
    """

    attention: bool = False
    attention_layers: tuple[int, ...] | None = None
    attention_heads: tuple[int, ...] | None = None
    attention_mean: str | None = None
    align: bool = False

    def __post_init__(self) -> None:
        wanted = {
            "--attention-layers": self.attention_layers,
            "--attention-heads": self.attention_heads,
        }
        for name, value in wanted.items():
            if value is not None and not self:
                raise click.UsageError(
                    f"{name} needs --attention (or --align, where there is one)."
                )
        if self.attention_mean is not None and not self.attention:
            raise click.UsageError("--attention-mean needs --attention.")

    def __bool__(self) -> bool:
        """Whether attention is needed at all."""
        return self.attention or self.align


_LAYERS = click.option(
    "--attention-layers", type=IndicesType(), help="Of these layers, from 0, as 0,2-5."
)
_HEADS = click.option(
    "--attention-heads", type=IndicesType(), help="Of these heads, from 0, as 0,2-5."
)
_MEAN = click.option(
    "--attention-mean",
    type=click.Choice(["layers", "heads", "all"]),
    help="Write the mean of them.",
)
_ATTENTION = click.option("--attention", is_flag=True, help="Write the attention, for seq-attnviz.")
_ALIGN = click.option(
    "--align", is_flag=True,
    help="Write alignment, in each hypothesis (score: in the record): pairs of a token and the"
    " source token most attended to, from 0.",
)  # fmt: skip

attention_options = collect(
    AttentionChoice, "attended", (_ATTENTION, _LAYERS, _HEADS, _MEAN, _ALIGN)
)
"""Give a command what is written of the attention, as its argument `attended`."""

plain_attention_options = collect(AttentionChoice, "attended", (_ATTENTION, _LAYERS, _HEADS, _MEAN))
"""The same where nothing is produced that could be aligned."""
