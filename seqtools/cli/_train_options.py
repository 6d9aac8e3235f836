"""The options of `seq-train`, as decorators that end in one typed value each."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from seqtools.cli._options import (
    NON_NEGATIVE,
    POSITIVE,
    PROBABILITY,
    FiniteFloat,
    Option,
    collect,
    debug_option,
    files_argument,
    quiet_option,
    seed_option,
    version_option,
)
from seqtools.errors import ConfigError, FormatError
from seqtools.streams.compression import packer
from seqtools.streams.files import STDIN, check_inputs
from seqtools.streams.outputs import FileOutput, is_regular_target

if TYPE_CHECKING:
    from seqtools.batching.stream import Header
    from seqtools.training.loop import Settings

ATTENTIONS = (
    "none", "dot", "scaled-dot", "general", "additive", "concat", "tanh-sum", "location",
)  # fmt: skip
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


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """The model. None: not given, the default is the model's own, or it has no such part.

    `nonlinearity` is of the plain rnn; from `attention` on all are of sequence-to-sequence models.
    """

    layers: int
    hidden: int
    embedding: int | None
    dropout: float
    tied: bool
    nonlinearity: str | None = None
    bidirectional: bool = False
    merge: str | None = None
    attention: str | None = None
    max_source: int | None = None
    wiring: str | None = None
    input_feeding: bool = False

    def of_seq2seq_alone(self) -> list[str]:
        """The options that were given and mean nothing where there is no source."""
        names = [field.name for field in dataclasses.fields(self)]
        later = names[names.index("bidirectional") :]
        return [f"--{name.replace('_', '-')}" for name in later if getattr(self, name)]


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
    clip: float
    label_smoothing: float
    teacher_forcing: float | None


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The run; None: not given, no limit."""

    files: tuple[str, ...]
    output_file: str
    valid: str | None
    valid_every: int | None
    patience: int | None
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


_MODEL: tuple[Option, ...] = (
    click.option("--layers", type=POSITIVE, default=1, show_default=True, help="Layers."),
    click.option(
        "--hidden", type=POSITIVE, default=256, show_default=True, help="Width of the layers."
    ),
    click.option("--embedding", type=POSITIVE, help="Width of the embeddings; default: hidden."),
    click.option(
        "--dropout", type=FiniteFloat(0, 1, high_open=True), default=0.0, show_default=True,
        help="Share of units dropped in training.",
    ),
    click.option("--tied", is_flag=True, help="Output layer and embeddings share their weights."),
    click.option("--bidirectional", is_flag=True, help="seq2seq: the encoder reads both ways."),
    click.option(
        "--merge", type=click.Choice(["concat", "sum", "mean"]),
        help="With --bidirectional: how both ways are joined; default: concat.",
    ),
    click.option(
        "--attention", type=click.Choice(ATTENTIONS),
        help="seq2seq: how source positions are scored; default: additive.",
    ),
    click.option(
        "--max-source", type=POSITIVE, help="With --attention location: the longest source."
    ),
    click.option(
        "--wiring", type=click.Choice(["bahdanau", "luong"]),
        help="seq2seq: attend before the cell or after it; default: bahdanau.",
    ),
    click.option(
        "--input-feeding", is_flag=True, help="With --wiring luong: feed what was attended to."
    ),
)  # fmt: skip

nonlinearity_option = click.option(
    "--nonlinearity", type=click.Choice(["tanh", "relu"]), default="tanh", show_default=True,
    help="What follows the sum in a cell.",
)  # fmt: skip

_OPTIM: tuple[Option, ...] = (
    click.option(
        "--optimizer", type=click.Choice(["adamw", "sgd"]), default="adamw", show_default=True,
        help="AdamW, or gradient descent with momentum.",
    ),
    click.option(
        "--momentum", type=FiniteFloat(0, 1, high_open=True), help="Of sgd; default: 0.9."
    ),
    click.option(
        "--lr", type=FiniteFloat(0, low_open=True),
        help="Learning rate; default: 0.001, for sgd 0.1.",
    ),
    click.option(
        "--schedule", type=click.Choice(["constant", "step", "cosine", "inverse-sqrt"]),
        default="constant", show_default=True, help="How the learning rate changes.",
    ),
    click.option(
        "--warmup", type=NON_NEGATIVE, default=0, show_default=True,
        help="Steps in which the learning rate rises to its full height.",
    ),
    click.option(
        "--schedule-steps", type=POSITIVE,
        help="With cosine: where it ends; default: with the run, by steps or --max-time.",
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
        "--clip", type=FiniteFloat(0), default=1.0, show_default=True,
        help="Largest norm of all gradients together; 0: no clipping.",
    ),
    click.option(
        "--label-smoothing", type=FiniteFloat(0, 1, high_open=True), default=0.0,
        show_default=True, help="Share of the target's probability that all tokens get.",
    ),
    click.option(
        "--teacher-forcing", type=PROBABILITY,
        help="seq2seq: how often a step is fed the true token, not the model's; default: 1.",
    ),
)  # fmt: skip

_RUN: tuple[Option, ...] = (
    click.option(
        "-o", "--output-file", required=True, metavar="FILE",
        help="The model; replaced at each new best and at the end.",
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


model_options = collect(ModelOptions, "model", _MODEL)
optim_options = collect(OptimOptions, "optim", _OPTIM)
run_options = collect(RunOptions, "run", _RUN)


def check_options(model: ModelOptions, optim: OptimOptions, run: RunOptions) -> None:
    """See that the options make sense together, before anything is read.

    Raises:
        click.UsageError: one needs another.
    """
    sgd, cosine, step = (
        optim.optimizer == "sgd",
        optim.schedule == "cosine",
        optim.schedule == "step",
    )
    location, attends = model.attention == "location", model.attention != "none"
    needs: list[tuple[str, object, str, object]] = [
        ("--merge", model.merge, "--bidirectional", model.bidirectional),
        ("--attention location", location, "--max-source N", model.max_source),
        ("--max-source", model.max_source, "--attention location", location),
        ("--wiring", model.wiring, "an attention", attends),
        ("--input-feeding", model.input_feeding, "--wiring luong", model.wiring == "luong"),
        ("--momentum", optim.momentum, "--optimizer sgd", sgd),
        ("--schedule-steps", optim.schedule_steps, "--schedule cosine", cosine),
        ("--step-size", optim.step_size, "--schedule step", step),
        ("--gamma", optim.gamma, "--schedule step", step),
        ("--valid-every", run.valid_every, "--valid FILE", run.valid),
        ("--patience", run.patience, "--valid FILE", run.valid),
    ]
    for name, given, other, there in needs:
        if given and not there:
            raise click.UsageError(f"{name} needs {other}.")
    if run.output_file == STDIN:
        raise click.UsageError("-o needs a file; standard output is for the metric records.")
    if packer(run.output_file) is not None:
        raise click.UsageError(f"-o {run.output_file}: a model file cannot be compressed.")
    if [*run.inputs, run.valid].count(STDIN) > 1:
        raise click.UsageError("Only one of the files can be standard input.")
    check_inputs([*run.files, *([run.valid] if run.valid else [])])
    if is_regular_target(run.output_file):
        # Fails where it cannot be written, and clears away what a killed run left there.
        FileOutput(run.output_file).discard()


def check_stream(kind: str, header: Header, model: ModelOptions, optim: OptimOptions) -> None:
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
    if optim.teacher_forcing is not None:
        given.append("--teacher-forcing")
    if task != "seq2seq" and given:
        raise ConfigError(f"{', '.join(given)}: only for seq2seq, but the batches are for {task}")
    for name, vocabulary in header.vocabularies.items():
        if len(vocabulary) <= len(vocabulary.specials):
            raise FormatError(f'the vocabulary "{name}" has nothing but special entries')


def make_config(model: ModelOptions, optim: OptimOptions) -> dict[str, Any]:
    """The options of the model that were given, by the names that models know."""
    options = dataclasses.asdict(model)
    options["label_smoothing"] = optim.label_smoothing
    options["teacher_forcing"] = optim.teacher_forcing
    return {
        name: value for name, value in options.items() if value is not None and value is not False
    }


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
        clip=optim.clip or None,
        schedule=schedule,
        precision=precision,
        valid_every=run.valid_every,
        patience=run.patience,
        max_steps=run.max_steps,
        max_time=run.max_time,
        log_every=run.log_every,
    )
