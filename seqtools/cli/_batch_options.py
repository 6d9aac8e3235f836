"""The options of `seq-batch` that its kinds share, as decorators that end in one typed value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click

from seqtools.cli._options import (
    POSITIVE,
    FiniteFloat,
    WholeNumber,
    collect,
    seed_option,
    stream_options,
)

if TYPE_CHECKING:
    from seqtools.batching.corpus import Options
    from seqtools.batching.spans import Corruption

F = TypeVar("F", bound=Callable[..., Any])


class OffsetType(click.ParamType[int | Literal["random"]]):
    """A number from 0, or `random`."""

    name = "N|random"

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        """What the help shows: the name, whose case matters."""
        return self.name

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | Literal["random"]:
        """Parse and check."""
        if value == "random":
            return "random"
        if not (str(value).isascii() and str(value).isdigit()):
            self.fail(f"{value!r} is neither a number from 0 nor random", param, ctx)
        return int(value)


@dataclass(frozen=True, slots=True)
class Cutting:
    """How records become batches; the names are those of the options."""

    ids: bool
    batch_size: int | None
    batch_tokens: int | None
    epochs: int
    no_shuffle: bool
    drop_last: bool
    max_length: int | None
    truncate: str | None
    pad_side: str
    pad_to: int
    seed: int

    def __post_init__(self) -> None:
        if self.truncate is not None and self.max_length is None:
            raise click.UsageError("--truncate needs --max-length N.")

    def options(self) -> Options:
        """The same for the library."""
        from seqtools.batching.corpus import Options

        return Options(
            ids=self.ids,
            max_length=self.max_length,
            truncate=self.truncate or "right",
            batch_size=self.batch_size,
            batch_tokens=self.batch_tokens,
            shuffle=not self.no_shuffle,
            drop_last=self.drop_last,
            pad_left=self.pad_side == "left",
            pad_to=self.pad_to,
            seed=self.seed,
        )


_CUTTING = (
    click.option(
        "--ids", is_flag=True, help="Take ids as they are, from the fields that end in ids."
    ),
    click.option("--batch-size", type=POSITIVE, help="Rows of a batch, at most."),
    click.option("--batch-tokens", type=POSITIVE, help="Rows x longest row, at most."),
    click.option(
        "--epochs", type=POSITIVE, default=1, show_default=True,
        help="Write so many epochs, each newly cut.",
    ),
    click.option("--no-shuffle", is_flag=True, help="Keep the order of the file."),
    click.option("--drop-last", is_flag=True, help="Leave out what fills no whole batch."),
    click.option("--max-length", type=POSITIVE, help="Longest sequence, its symbols counted."),
    click.option(
        "--truncate", type=click.Choice(["right", "left", "drop", "error"]),
        help="Longer ones: lose their end, lose their beginning, are left out, or are bad"
        " records; default: right.",
    ),
    click.option(
        "--pad-side", type=click.Choice(["right", "left"]), default="right", show_default=True,
        help="Where short rows are filled up.",
    ),
    click.option("--pad-to", type=POSITIVE, default=1, help="Make rows at least so long."),
    seed_option,
)  # fmt: skip


mask_rate_option = click.option(
    "--mask-rate", type=FiniteFloat(0, 1, low_open=True),
    help="Share of the tokens that is hidden; default: 0.15.",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Objective:
    """What a seq2seq learns from; the names are those of the options."""

    objective: str
    mask_rate: float | None
    span_length: float | None
    sentinels: int | None

    def __post_init__(self) -> None:
        given = (self.mask_rate, self.span_length, self.sentinels)
        if self.objective != "span" and any(value is not None for value in given):
            names = "--mask-rate, --span-length and --sentinels"
            raise click.UsageError(f"{names} need --objective span.")

    def corruption(self) -> Corruption | None:
        """The same for the library; None where the records are pairs."""
        if self.objective != "span":
            return None
        from seqtools.batching.spans import LENGTH, RATE, SENTINELS, Corruption

        return Corruption(
            self.mask_rate or RATE, self.span_length or LENGTH, self.sentinels or SENTINELS
        )


_OBJECTIVE = (
    click.option(
        "--objective", type=click.Choice(["pairs", "span"]), default="pairs", show_default=True,
        help="Records are pairs; or they have tokens, of which spans are taken out to be the"
        " target.",
    ),
    click.option(
        "--mask-rate", type=FiniteFloat(0, 1, low_open=True, high_open=True),
        help="With span: share of the tokens that is taken out; default: 0.15.",
    ),
    click.option(
        "--span-length", type=FiniteFloat(1), help="With span: mean length of one; default: 3."
    ),
    click.option(
        "--sentinels", type=WholeNumber(min=2),
        help="With span: symbols <extra_id_0>, ... that stand for spans; default: 100.",
    ),
)  # fmt: skip


def objective_options(function: F) -> F:
    """Give a kind what a seq2seq learns from, as its argument `objective`."""
    return collect(Objective, "objective", _OBJECTIVE)(function)


def cutting_options(function: F) -> F:
    """Give a kind its streams, and how records become batches as its argument `cutting`."""
    return collect(Cutting, "cutting", _CUTTING)(stream_options()(function))
