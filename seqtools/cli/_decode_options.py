"""The options of decoding, as decorators that end in one typed value each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from seqtools.cli._decode_length import Length, LengthType
from seqtools.cli._device import Compute, compute_options
from seqtools.cli._options import (
    NON_NEGATIVE,
    POSITIVE,
    PROBABILITY,
    FiniteFloat,
    Option,
    collect,
    seed_option,
)

_DIVERSITY = 0.5  # Vijayakumar et al. (2018), section 5, found 0.2 to 0.8 to serve well

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Setup:
    """The models and how records are put before them.

    Attributes:
        models: paths of the model files; several are an ensemble.
        batch_size: records decoded together.
        batch_tokens: records x longest at most, None for no such limit.
        compute: device, threads, precision.
    """

    batch_size: int
    batch_tokens: int | None
    compute: Compute
    models: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Search:
    """What all searches share.

    Attributes:
        output_field: the output is written to `FIELD_tokens`.
        max_length: tokens produced at most, the end included; None for the task's default.
        min_length: tokens produced at least, the end included.
        ban, force: tokens that are never proposed; that each output must hold.
        no_repeat_ngram: of this size, no n-gram comes twice; None for no such rule.
        repetition_penalty: above 1, what was produced already is less likely.
        lm: a language model that ranks beside the model, None for none.
        lm_weight: how much its log-probabilities count.
    """

    output_field: str
    max_length: Length | None
    min_length: int = 0
    ban: tuple[str, ...] = ()
    force: tuple[str, ...] = ()
    no_repeat_ngram: int | None = None
    repetition_penalty: float = 1.0
    lm: str | None = None
    lm_weight: float | None = None

    def __post_init__(self) -> None:
        if (self.lm is None) != (self.lm_weight is None):
            raise click.UsageError("--lm and --lm-weight need one another.")
        longest = self.max_length
        if longest is not None and not longest.multiple and self.min_length > longest.plus:
            raise click.UsageError(f"--min-length {self.min_length} is above --max-length.")


@dataclass(frozen=True, slots=True)
class Ranking:
    """How beam search ranks, and what it keeps.

    Attributes:
        beam: live hypotheses.
        nbest: hypotheses written.
        length_penalty: alpha.
        length_penalty_form: `power` or `gnmt`.
        coverage_penalty: beta.
        diverse_groups: groups that the beam is split into.
        diversity: how much a group is held off what the groups before it took.
    """

    beam: int
    nbest: int
    length_penalty: float
    length_penalty_form: str
    coverage_penalty: float
    diverse_groups: int
    diversity: float | None

    def __post_init__(self) -> None:
        if self.nbest > self.beam:
            raise click.UsageError(
                f"--nbest {self.nbest} is more than --beam {self.beam} can hold."
            )
        if self.beam % self.diverse_groups:
            raise click.UsageError(
                f"--beam {self.beam} cannot be split into {self.diverse_groups} groups of one size."
            )
        if self.diversity is not None and self.diverse_groups == 1:
            raise click.UsageError("--diversity needs --diverse-groups above 1.")

    @property
    def strength(self) -> float:
        """The diversity, or what it is where nothing is said."""
        return _DIVERSITY if self.diversity is None else self.diversity


@dataclass(frozen=True, slots=True)
class Drawing:
    """How sequences are drawn.

    Attributes:
        samples: how many for each record.
        temperature: 0 is greedy.
        top_k: only the k likeliest tokens, None for all.
        top_p: only the fewest likeliest tokens that have this probability together.
        min_p: only tokens with at least this share of the likeliest one's probability.
        seed: of all random choices.
    """

    samples: int
    temperature: float
    top_k: int | None
    top_p: float
    min_p: float
    seed: int


@dataclass(frozen=True, slots=True)
class Windows:
    """How texts longer than the model's context are scored.

    Attributes:
        window: inputs at a time; None for whole texts.
        stride: inputs from one window to the next.
    """

    window: int | None
    stride: int | None

    def __post_init__(self) -> None:
        if self.stride is not None and (self.window is None or self.stride > self.window):
            raise click.UsageError("--stride needs a --window that is at least as long.")

    @property
    def step(self) -> int:
        """The stride, or half the window."""
        return self.stride or max(1, (self.window or 0) // 2)


models_option = click.option(
    "--model", "models", required=True, multiple=True, metavar="FILE",
    help="Model file that seq-train made; given several times, the mean of them decides.",
)  # fmt: skip
model_option = click.option(
    "--model", required=True, metavar="FILE", help="Model file that seq-train made."
)

candidates_option = click.option(
    "--top-k", type=POSITIVE, default=10, show_default=True, help="How many tokens."
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
        "--max-length", type=LengthType(), help=f"Tokens produced at most, </s> counted; {default}."
    )


_FIELD = click.option(
    "--output-field", default="output", show_default=True, metavar="NAME",
    help="Write NAME_tokens (for text: tokens).",
)  # fmt: skip

_RULES = (
    click.option(
        "--min-length", type=NON_NEGATIVE, default=0, show_default=True,
        help="Tokens produced at least, </s> counted.",
    ),
    _length("x times the source. Default: 2x+10, lm 100"),
    click.option(
        "--ban", multiple=True, metavar="TOKEN",
        help="Never propose it (prefix_tokens may hold it); repeatable.",
    ),
    click.option(
        "--force", multiple=True, metavar="TOKEN", help="Each output must hold it; repeatable."
    ),
    click.option("--no-repeat-ngram", type=POSITIVE, help="Let no N tokens in a row come twice."),
    click.option(
        "--repetition-penalty", type=FiniteFloat(0, low_open=True), default=1.0, show_default=True,
        metavar="F", help="Above 1: what was produced already is less likely.",
    ),
    click.option(
        "--lm", metavar="FILE",
        help="Rank by ln P + W ln P_lm: n-grams of seq-ngram train (ARPA or .safetensors), or an lm"
        " of seq-train with the very vocabulary of the output.",
    ),
    click.option(
        "--lm-weight", type=FiniteFloat(0, low_open=True), metavar="W", help="Weight of --lm."
    ),
)  # fmt: skip

search_options = collect(Search, "search", (*_RULES, _FIELD))
"""Give a command what all searches share, as its argument `search`."""

plain_search_options = collect(Search, "search", (_length("default: 100"), _FIELD))
"""The same for models of n-grams, which know no rules."""

ranking_options = collect(
    Ranking,
    "ranking",
    (
        click.option(
            "--beam", type=POSITIVE, default=5, show_default=True, help="Live hypotheses."
        ),
        click.option(
            "--nbest", type=POSITIVE, default=1, show_default=True, help="Hypotheses written."
        ),
        click.option(
            "--length-penalty", type=FiniteFloat(-10, 10), default=0.0, show_default=True,
            metavar="ALPHA", help="Rank by sum / T^ALPHA, T counting </s>.",
        ),
        click.option(
            "--length-penalty-form", type=click.Choice(["power", "gnmt"]), default="power",
            show_default=True, help="gnmt: sum / ((5 + T) / 6)^ALPHA.",
        ),
        click.option(
            "--coverage-penalty", type=FiniteFloat(0), default=0.0, show_default=True,
            metavar="BETA", help="Rank down what leaves parts of the source unattended.",
        ),
        click.option(
            "--diverse-groups", type=POSITIVE, default=1, show_default=True,
            help="Split the beam into N groups, each held off the tokens of those before it.",
        ),
        click.option(
            "--diversity", type=FiniteFloat(0), metavar="STRENGTH",
            help=f"How much: taken from ln P for each time.  [default: {_DIVERSITY}]",
        ),
    ),
)  # fmt: skip
"""Give a command how beam search ranks, as its argument `ranking`."""

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
        click.option(
            "--min-p", type=PROBABILITY, default=0.0, show_default=True,
            help="Draw from the tokens at least this times as probable as the likeliest.",
        ),
        seed_option,
    ),
)  # fmt: skip
"""Give a command what says how tokens are drawn, as its argument `drawing`."""

windows_options = collect(
    Windows,
    "windows",
    (
        click.option(
            "--window", type=POSITIVE, help="Of an lm: score long texts by windows of N inputs."
        ),
        click.option(
            "--stride", type=POSITIVE, help="From one window to the next.  [default: half of it]"
        ),
    ),
)  # fmt: skip
"""Give a command what cuts long texts, as its argument `windows`."""
