"""The options of `seq-decode`, as decorators that end in one typed value each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from seqtools.cli._device import Compute, compute_options
from seqtools.cli._options import POSITIVE, collect

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
        attention: write it.
        output_field: the output is written to `FIELD_tokens`.
    """

    max_length: int | None
    attention: bool
    output_field: str


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


search_options = collect(
    Search,
    "search",
    (
        click.option(
            "--max-length", type=POSITIVE,
            help="Tokens produced at most, </s> counted; default: twice the source + 10, lm 100.",
        ),
        attention_option,
        click.option(
            "--output-field", default="output", show_default=True, metavar="NAME",
            help="Write NAME_tokens (for text: tokens).",
        ),
    ),
)  # fmt: skip
"""Give a command what all searches share, as its argument `search`."""
