"""The options of `seq-decode`, as decorators that end in one typed value each."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from seqtools.cli._device import Compute, compute_options
from seqtools.cli._options import POSITIVE

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
        field: the output is written to `FIELD_tokens`.
    """

    max_length: int | None
    attention: bool
    field: str


model_option = click.option(
    "--model", required=True, metavar="FILE", help="Model file that seq-train made."
)
attention_option = click.option(
    "--attention", is_flag=True, help="Write the attention, for seq-attnviz."
)


def setup_options(function: F) -> F:
    """Give a command batch sizes and a device: with its --model, a `Setup` named `setup`."""
    options = [
        click.option(
            "--batch-size", type=POSITIVE, default=64, show_default=True,
            help="Records decoded together; same output.",
        ),
        click.option(
            "--batch-tokens", type=POSITIVE, help="Records x longest input at most; same output."
        ),
    ]  # fmt: skip

    @functools.wraps(function)
    def wrapper(*args: Any, **values: Any) -> Any:
        names = ("model", "batch_size", "batch_tokens", "compute")
        setup = Setup(**{name: values.pop(name) for name in names})
        return function(*args, setup=setup, **values)

    wrapper = compute_options(wrapper)
    for option in reversed(options):
        wrapper = option(wrapper)
    return wrapper  # type: ignore[return-value]


def search_options(function: F) -> F:
    """Give a command what all searches share, as a `Search` named `search`."""
    options = [
        click.option(
            "--max-length", type=POSITIVE,
            help="Tokens produced at most, </s> counted; default: twice the source + 10, lm 100.",
        ),
        attention_option,
        click.option(
            "--output-field", default="output", show_default=True, metavar="NAME",
            help="Write NAME_tokens (for text: tokens).",
        ),
    ]  # fmt: skip

    @functools.wraps(function)
    def wrapper(*args: Any, **values: Any) -> Any:
        search = Search(
            values.pop("max_length"), values.pop("attention"), values.pop("output_field")
        )
        return function(*args, search=search, **values)

    for option in reversed(options):
        wrapper = option(wrapper)
    return wrapper  # type: ignore[return-value]
