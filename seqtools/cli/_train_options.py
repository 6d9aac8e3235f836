"""The options of `seq-train`, as decorators that end in one typed value each."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from seqtools.cli._options import (
    NON_NEGATIVE,
    POSITIVE,
    FiniteFloat,
    Option,
    WholeNumber,
    collect,
    debug_option,
    files_argument,
    quiet_option,
    seed_option,
    version_option,
)
from seqtools.cli._train_models import SHARE, ModelOptions, need, of_preset
from seqtools.errors import ConfigError, FormatError
from seqtools.streams.compression import packer
from seqtools.streams.files import STDIN, check_inputs
from seqtools.streams.outputs import FileOutput, is_regular_target

if TYPE_CHECKING:
    from seqtools.batching.stream import Header
    from seqtools.training.loop import Settings

AVERAGES = ("last", "best")
SCHEDULES = ("constant", "linear", "step", "cosine", "inverse-sqrt")
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600}


class DurationType(click.ParamType[float]):
    """Seconds, or a number with the suffix s, m or h."""

    name = "SECONDS|Nm|Nh"

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        """What the help shows: the name, whose case matters."""
        return self.name

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Parse and check."""
        found = re.fullmatch(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)([smh]?)", str(value))
        seconds = float(found[1]) * _UNITS[found[2]] if found else 0.0
        if not seconds:
            self.fail(f"{value!r} is no time above 0, such as 90, 15m or 1.5h", param, ctx)
        return seconds


class PairType(click.ParamType[tuple[float, float]]):
    """Two shares with a comma between them."""

    name = "B1,B2"

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        """What the help shows."""
        return self.name

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[float, float]:
        """Parse and check."""
        parts = str(value).split(",")
        if len(parts) != 2:
            self.fail(f"{value!r} is not two numbers, such as 0.9,0.98", param, ctx)
        first, second = (SHARE.convert(part, param, ctx) for part in parts)
        return first, second


@dataclass(frozen=True, slots=True)
class OptimOptions:
    """The optimisation; None: not given."""

    optimizer: str
    momentum: float | None
    lr: float | None
    schedule: str
    warmup: int
    schedule_steps: int | None
    step_size: int | None
    gamma: float | None
    weight_decay: float | None
    betas: tuple[float, float] | None
    eps: float | None
    accumulate: int
    clip: float


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The run; None: not given, no limit."""

    files: tuple[str, ...]
    output_file: str
    init: str | None
    freeze: tuple[str, ...]
    valid: str | None
    valid_every: int | None
    patience: int | None
    average: str | None
    keep: int | None
    epochs: int | None
    max_steps: int | None
    max_time: float | None
    log_every: int
    seed: int
    quiet: bool

    @property
    def inputs(self) -> tuple[str, ...]:
        """The files, or standard input."""
        return self.files or (STDIN,)


_OPTIM: tuple[Option, ...] = (
    click.option(
        "--optimizer", type=click.Choice(["adamw", "sgd"]), default="adamw", show_default=True,
        help="AdamW, or gradient descent with momentum.",
    ),
    click.option(
        "--momentum", type=SHARE, help="Of sgd; default: 0.9."
    ),
    click.option(
        "--lr", type=FiniteFloat(0, low_open=True),
        help="Learning rate; default: 0.001, for sgd 0.1.",
    ),
    click.option(
        "--schedule", type=click.Choice(SCHEDULES), default="constant",
        show_default=True, help="How the learning rate changes.",
    ),
    click.option(
        "--warmup", type=NON_NEGATIVE, default=0, show_default=True,
        help="Steps in which the learning rate rises to its full height.",
    ),
    click.option(
        "--schedule-steps", type=POSITIVE,
        help="With linear and cosine: where they end; default: with the run (steps, --max-time).",
    ),
    click.option(
        "--step-size", type=POSITIVE, help="With step: steps between decays; default: 1000."
    ),
    click.option(
        "--gamma", type=FiniteFloat(0, 1, low_open=True),
        help="With step: factor of a decay; default: 0.5.",
    ),
    click.option(
        "--weight-decay", type=FiniteFloat(0),
        help="Not of biases and norms; default: 0.01, for sgd 0.",
    ),
    click.option(
        "--betas", type=PairType(),
        help="Of adamw: how slowly its two running means move; default: 0.9,0.999.",
    ),
    click.option(
        "--eps", type=FiniteFloat(0, low_open=True),
        help="Of adamw: added to what it divides by; default: 1e-8.",
    ),
    click.option(
        "--accumulate", type=POSITIVE, default=1, show_default=True,
        help="Batches that make one step, as if they were one batch.",
    ),
    click.option(
        "--clip", type=FiniteFloat(0), default=1.0, show_default=True,
        help="Largest norm of all gradients together; 0: no clipping.",
    ),
)  # fmt: skip

_RUN: tuple[Option, ...] = (
    click.option(
        "-o", "--output-file", required=True, metavar="FILE",
        help="The model; replaced at each new best and at the end.",
    ),
    click.option(
        "--init", metavar="FILE",
        help="Begin with the weights of a trained model, where they fit. Options of the model, not "
        "of the optimisation: those given, else FILE's if its kind is the same, else a preset's.",
    ),
    click.option(
        "--freeze", metavar="PATTERN", multiple=True,
        help="Do not train parameters with such names: 'encoder.*' (a Transformer's source "
        "embedding: 'source.*'); may be repeated.",
    ),
    click.option(
        "--valid", metavar="FILE", help="Batches to validate on, made with the same vocabularies."
    ),
    click.option(
        "--valid-every", type=POSITIVE,
        help="Validate every N steps too, not only after each epoch and at the end.",
    ),
    click.option(
        "--patience", type=POSITIVE,
        help="End after N validations in a row without a new best.",
    ),
    click.option(
        "--average", type=click.Choice(AVERAGES),
        help="End with the mean of the weights of the last or best validations, if no worse.",
    ),
    click.option(
        "--keep", type=WholeNumber(min=2), help="With --average: of how many; default: 5."
    ),
    click.option(
        "--epochs", type=POSITIVE,
        help="Read a FILE of one epoch N times; end a longer stream after N epochs.",
    ),
    click.option("--max-steps", type=POSITIVE, help="End after N steps."),
    click.option("--max-time", type=DurationType(), help="End after this time."),
    click.option(
        "--log-every", type=POSITIVE, default=50, show_default=True,
        help="Steps that one metric record averages over.",
    ),
    seed_option,
    quiet_option,
    debug_option,
    version_option,
    files_argument,
)  # fmt: skip


optim_options = collect(OptimOptions, "optim", _OPTIM)
run_options = collect(RunOptions, "run", _RUN)


def check_options(model: ModelOptions, optim: OptimOptions, run: RunOptions) -> None:
    """See that the options make sense together, before anything is read.

    Raises:
        click.UsageError: one needs another.
    """
    model.check()
    sgd, step = optim.optimizer == "sgd", optim.schedule == "step"
    ends = optim.schedule in ("linear", "cosine")
    need("--momentum", optim.momentum, "--optimizer sgd", sgd)
    need("--betas", optim.betas and not of_preset("betas"), "--optimizer adamw", not sgd)
    need("--eps", optim.eps and not of_preset("eps"), "--optimizer adamw", not sgd)
    need("--schedule-steps", optim.schedule_steps, "--schedule linear or cosine", ends)
    need("--step-size", optim.step_size, "--schedule step", step)
    need("--gamma", optim.gamma, "--schedule step", step)
    need("--valid-every", run.valid_every, "--valid FILE", run.valid)
    need("--patience", run.patience, "--valid FILE", run.valid)
    need("--average", run.average, "--valid FILE", run.valid)
    need("--keep", run.keep, "--average", run.average)
    if run.output_file == STDIN:
        raise click.UsageError("-o needs a file; standard output is for the metric records.")
    if packer(run.output_file) is not None:
        raise click.UsageError(f"-o {run.output_file}: a model file cannot be compressed.")
    if run.init == STDIN:
        raise click.UsageError("--init needs a file.")
    if [*run.inputs, run.valid].count(STDIN) > 1:
        raise click.UsageError("Only one of the files can be standard input.")
    check_inputs([*run.files, *(file for file in (run.valid, run.init) if file)])
    if is_regular_target(run.output_file):
        # Fails where it cannot be written, and clears away what a killed run left there.
        FileOutput(run.output_file).discard()


def check_stream(kind: str, header: Header, model: ModelOptions) -> None:
    """See that the stream and the options suit each other.

    Raises:
        ConfigError: the model does not serve the task, or an option means nothing for it.
        FormatError: there is a vocabulary with nothing in it.
    """
    from seqtools.models import architectures, model_class

    task = header.task
    if kind not in architectures(task):
        model_class(kind, task)  # says which do
    given = model.of_seq2seq_alone()
    if task != "seq2seq" and given:
        raise ConfigError(f"{', '.join(given)}: only for seq2seq, but the batches are for {task}")
    for name, vocabulary in header.vocabularies.items():
        if len(vocabulary) <= len(vocabulary.specials):
            raise FormatError(f'the vocabulary "{name}" has nothing but special entries')


def planned_steps(batches: Sequence[int], accumulate: int, limit: int | None) -> int:
    """How many steps there will be, from the number of batches of each epoch."""
    steps = sum(-(-count // accumulate) for count in batches)
    return min(steps, limit or steps)


def make_settings(optim: OptimOptions, run: RunOptions, precision: str, steps: int) -> Settings:
    """The options as settings of the training loop; `steps` is how many there will be."""
    from seqtools.training.loop import Settings
    from seqtools.training.schedules import Schedule

    sgd = optim.optimizer == "sgd"
    schedule = Schedule(
        kind=optim.schedule,
        warmup=optim.warmup,
        steps=optim.schedule_steps or steps,
        seconds=None if optim.schedule_steps else run.max_time,
        step_size=optim.step_size or 1000,
        gamma=optim.gamma or 0.5,
    )
    return Settings(
        optimizer=optim.optimizer,
        lr=optim.lr or (0.1 if sgd else 1e-3),
        momentum=0.9 if optim.momentum is None else optim.momentum,
        weight_decay=(0.0 if sgd else 0.01) if optim.weight_decay is None else optim.weight_decay,
        betas=optim.betas or (0.9, 0.999),
        eps=optim.eps or 1e-8,
        accumulate=optim.accumulate,
        clip=optim.clip or None,
        schedule=schedule,
        average=run.average,
        keep=run.keep or 5,
        precision=precision,
        valid_every=run.valid_every,
        patience=run.patience,
        max_steps=run.max_steps,
        max_time=run.max_time,
        log_every=run.log_every,
    )
