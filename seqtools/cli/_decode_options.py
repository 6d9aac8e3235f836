"""The options of decoding, as decorators that end in one typed value each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from seqtools.cli._device import Compute, compute_options
from seqtools.cli._options import POSITIVE, PROBABILITY, FiniteFloat, Option, collect, seed_option

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Setup:
    """The model and how records are put before it.

    Attributes:
        model: path of the model file.
        batch_size: records decoded together.
        batch_tokens: records x longest at most, None for no such limit.
        compute: device, threads, precision.
    """

    model: str
    batch_size: int
    batch_tokens: int | None
    compute: Compute


@dataclass(frozen=True, slots=True)
class Search:
    """What all searches share.

    Attributes:
        max_length: tokens produced at most, the end included; None for the task's default.
        output_field: the output is written to `FIELD_tokens`.
        attention: write it.
    """

    max_length: int | None
    output_field: str
    attention: bool = False


@dataclass(frozen=True, slots=True)
class Drawing:
    """How sequences are drawn.

    Attributes:
        samples: how many for each record.
        temperature: 0 is greedy.
        top_k: only the k likeliest tokens, None for all.
        top_p: only the fewest likeliest tokens that have this probability together.
        seed: of all random choices.
    """

    samples: int
    temperature: float
    top_k: int | None
    top_p: float
    seed: int


model_option = click.option(
    "--model", required=True, metavar="FILE", help="Model file that seq-train made."
)
attention_option = click.option(
    "--attention", is_flag=True, help="Write the attention, for seq-attnviz."
)


_BATCHES = (
    click.option(
        "--batch-size", type=POSITIVE, default=64, show_default=True,
        help="Records decoded together; same output.",
    ),
    click.option(
        "--batch-tokens", type=POSITIVE, help="Records x longest input at most; same output."
    ),
)  # fmt: skip


def setup_options(function: F) -> F:
    """Give a command, with its `--model`, batch sizes and a device, as its argument `setup`."""
    return compute_options(collect(Setup, "setup", _BATCHES)(function))


def _length(default: str) -> Option:
    return click.option(
        "--max-length", type=POSITIVE, help=f"Tokens produced at most, </s> counted; {default}."
    )


_FIELD = click.option(
    "--output-field", default="output", show_default=True, metavar="NAME",
    help="Write NAME_tokens (for text: tokens).",
)  # fmt: skip

search_options = collect(
    Search, "search", (_length("default: twice the source + 10, lm 100"), attention_option, _FIELD)
)
"""Give a command what all searches share, as its argument `search`."""

plain_search_options = collect(Search, "search", (_length("default: 100"), _FIELD))
"""The same for models that have no attention."""

drawing_options = collect(
    Drawing,
    "drawing",
    (
        click.option(
            "--samples", type=POSITIVE, default=1, show_default=True, help="Samples a record."
        ),
        click.option(
            "--temperature", type=FiniteFloat(0), default=1.0, show_default=True,
            help="0 is greedy.",
        ),
        click.option("--top-k", type=POSITIVE, help="Draw from the K likeliest tokens."),
        click.option(
            "--top-p", type=PROBABILITY, default=1.0, show_default=True,
            help="Draw from the fewest likeliest tokens that have this probability together.",
        ),
        seed_option,
    ),
)  # fmt: skip
"""Give a command what says how tokens are drawn, as its argument `drawing`."""
