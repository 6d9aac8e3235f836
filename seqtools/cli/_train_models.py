"""The options of the models that `seq-train` knows, kind by kind, and presets of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import click

from seqtools.cli._options import POSITIVE, PROBABILITY, FiniteFloat, Option, collect
from seqtools.errors import ConfigError

if TYPE_CHECKING:
    from seqtools.batching.stream import Header

SCORES = (
    "dot", "scaled-dot", "general", "additive", "concat", "tanh-sum", "location",
)  # fmt: skip
ATTENTIONS = ("none", *SCORES, "local", "hard")
ACTIVATIONS = ("relu", "gelu", "swiglu", "geglu")
NORMS = ("pre", "post")
POSITIONS = ("sinusoidal", "learned", "shaw", "t5", "rotary", "alibi", "none")
SHARE = FiniteFloat(0, 1, high_open=True)
MAX_POSITIONS = 512  # of learned positions, where the batches do not say
# Sizes whose default is another one.
FOLLOWS = {"decoder_layers": "layers", "feedforward": "hidden", "embedding": "hidden"}


class ModelOptions(Protocol):
    """What training asks of the options of any model."""

    def check(self) -> None:
        """Raise click.UsageError where one option needs another."""
        ...

    def of_seq2seq_alone(self) -> list[str]:
        """The options that were given and mean nothing where there is no source."""
        ...

    def config(self, header: Header, trained: Mapping[str, Any]) -> dict[str, Any]:
        """What was typed, else what a `trained` model has, else a preset, by the names there."""
        ...


@dataclass(frozen=True, slots=True)
class RecurrentOptions:
    """A recurrent model. None: not given, the default is the model's own, or it has no such part.

    `nonlinearity` is of the plain rnn; from `bidirectional` on all are of sequence-to-sequence
    models.
    """

    layers: int | None
    hidden: int | None
    embedding: int | None
    dropout: float | None
    tied: bool
    label_smoothing: float | None
    nonlinearity: str | None = None
    bidirectional: bool = False
    merge: str | None = None
    attention: str | None = None
    attention_score: str | None = None
    attention_window: int | None = None
    local: str | None = None
    max_source: int | None = None
    wiring: str | None = None
    input_feeding: bool = False
    teacher_forcing: float | None = None

    def check(self) -> None:
        """See `ModelOptions`."""
        attends, windowed = self.attention != "none", self.attention == "local"
        location = "location" in (self.attention, self.attention_score)
        wraps = windowed or self.attention == "hard"
        need("--merge", self.merge, "--bidirectional", self.bidirectional)
        need("--attention-score", self.attention_score, "--attention local or hard", wraps)
        need("--attention-window", self.attention_window, "--attention local", windowed)
        need("--local", self.local, "--attention local", windowed)
        need("--attention location", location, "--max-source N", self.max_source)
        need("--max-source", self.max_source, "--attention location", location)
        need("--wiring", self.wiring, "an attention", attends)
        need("--input-feeding", self.input_feeding, "--wiring luong", self.wiring == "luong")

    def of_seq2seq_alone(self) -> list[str]:
        """See `ModelOptions`."""
        names = [field.name for field in dataclasses.fields(self)]
        return _given(self, *names[names.index("bidirectional") :])

    def config(self, header: Header, trained: Mapping[str, Any]) -> dict[str, Any]:
        """See `ModelOptions`."""
        given = dataclasses.asdict(self).items()
        return _settle({n: v for n, v in given if v is not None and v is not False}, trained)


@dataclass(frozen=True, slots=True)
class TransformerOptions:
    """A Transformer. None: not given, the default is the model's own."""

    layers: int | None
    decoder_layers: int | None
    hidden: int | None
    heads: int | None
    feedforward: int | None
    dropout: float | None
    attention_dropout: float | None
    activation: str | None
    norm: str | None
    rms_norm: bool | None
    position: str | None
    max_positions: int | None
    tied: bool | None
    share_embeddings: bool | None
    label_smoothing: float | None

    def check(self) -> None:
        """See `ModelOptions`."""
        learned = self.position in (None, "learned")
        need("--max-positions", self.max_positions, "--position learned", learned)

    def of_seq2seq_alone(self) -> list[str]:
        """See `ModelOptions`."""
        return _given(self, "decoder_layers", "share_embeddings")

    def config(self, header: Header, trained: Mapping[str, Any]) -> dict[str, Any]:
        """See `ModelOptions`; learned positions reach at least as far as the batches say.

        Raises ConfigError for a number of positions where they are not learned.
        """
        given = {n: v for n, v in dataclasses.asdict(self).items() if v is not None}
        options = _settle(given, trained)
        position = options.get("position", "sinusoidal" if header.task == "seq2seq" else "learned")
        if position != "learned":
            if self.max_positions is not None:
                raise ConfigError(f"--max-positions needs --position learned, got {position}")
            options.pop("max_positions", None)
        elif self.max_positions is None:
            cut = header.options
            longest = cut.get("steps") or cut.get("max_length") or MAX_POSITIONS
            known = options.get("max_positions") or 0
            options["max_positions"] = max(longest, cut.get("pad_to") or 0, known)
        return options


@dataclass(frozen=True)
class Preset:
    """Options of one published set-up: those of the model, and how it was trained.

    Attributes:
        paper: where they are from.
        options: the defaults that options take, by the names of `seq-train transformer`.
    """

    paper: str
    options: Mapping[str, Any]


PRESETS = {
    "vaswani-base": Preset(
        "Vaswani et al. 2017, sections 3.4, 5.3 and 5.4, and table 3",
        {
            "layers": 6, "hidden": 512, "heads": 8, "feedforward": 2048, "dropout": 0.1,
            "activation": "relu", "norm": "post", "position": "sinusoidal", "tied": True,
            "label_smoothing": 0.1, "betas": "0.9,0.98", "eps": 1e-9, "weight_decay": 0.0,
            # Their rate is (512 * max(step, 4000))^-1/2 after the warm-up; this is its peak.
            "schedule": "inverse-sqrt", "warmup": 4000, "lr": (512 * 4000) ** -0.5, "clip": 0.0,
        },
    ),
    "nanogpt": Preset(
        "Karpathy, nanoGPT: the character model for a CPU of its README",
        {
            "layers": 4, "hidden": 128, "heads": 4, "feedforward": 512, "dropout": 0.0,
            "activation": "gelu", "norm": "pre", "position": "learned", "tied": True,
            "betas": "0.9,0.99", "weight_decay": 0.1, "schedule": "cosine", "warmup": 100,
            "lr": 1e-3, "clip": 1.0,
        },
    ),
    "bert-small": Preset(
        "Turc et al. 2019, table 1; the rest from Devlin et al. 2019, section A.2",
        {
            "layers": 4, "hidden": 512, "heads": 8, "feedforward": 2048, "dropout": 0.1,
            "attention_dropout": 0.1, "activation": "gelu", "norm": "post", "position": "learned",
            "tied": True, "betas": "0.9,0.999", "eps": 1e-6, "weight_decay": 0.01,
            "schedule": "linear", "warmup": 10000, "lr": 1e-4, "clip": 1.0,
        },
    ),
}  # fmt: skip


def need(name: str, given: object, other: str, there: object) -> None:
    """Raise click.UsageError where option `name` was given without the `other` one it needs."""
    if given and not there:
        raise click.UsageError(f"{name} needs {other}.")


def of_preset(name: str) -> bool:
    """Whether this option of the command that runs was left to a preset."""
    context = click.get_current_context(silent=True)
    source = context and context.get_parameter_source(name)
    return source is click.core.ParameterSource.DEFAULT_MAP


def _settle(given: Mapping[str, Any], trained: Mapping[str, Any]) -> dict[str, Any]:
    """What was typed comes first, then what a trained model has, then a preset.

    A size of the trained model that has another one for its default goes where that is typed.
    """
    typed = {name: value for name, value in given.items() if not of_preset(name)}
    kept = {name: value for name, value in trained.items() if FOLLOWS.get(name) not in typed}
    return {**given, **kept, **typed}


def _given(options: Any, *names: str) -> list[str]:
    return [
        f"--{name.replace('_', '-')}"
        for name in names
        if getattr(options, name) is not None and getattr(options, name) is not False
    ]


def _choose_preset(context: click.Context, _: click.Parameter, name: str | None) -> None:
    """Put the options of a preset where click looks for those that are not given."""
    if name is not None:
        context.default_map = dict(PRESETS[name].options)


nonlinearity_option = click.option(
    "--nonlinearity", type=click.Choice(["tanh", "relu"]),
    help="What follows the sum in a cell; default: tanh.",
)  # fmt: skip

_label_smoothing_option = click.option(
    "--label-smoothing", type=SHARE,
    help="Share of the target's probability that all tokens get; default: 0.",
)  # fmt: skip

_RECURRENT: tuple[Option, ...] = (
    click.option("--layers", type=POSITIVE, help="Layers; default: 1."),
    click.option("--hidden", type=POSITIVE, help="Width of the layers; default: 256."),
    click.option("--embedding", type=POSITIVE, help="Width of the embeddings; default: hidden."),
    click.option("--dropout", type=SHARE, help="Share of units dropped in training; default: 0."),
    click.option("--tied", is_flag=True, help="Output layer and embeddings share their weights."),
    _label_smoothing_option,
    click.option("--bidirectional", is_flag=True, help="seq2seq: the encoder reads both ways."),
    click.option(
        "--merge", type=click.Choice(["concat", "sum", "mean"]),
        help="With --bidirectional: how both ways are joined; default: concat.",
    ),
    click.option(
        "--attention", type=click.Choice(ATTENTIONS),
        help="seq2seq: how source positions are scored; default: additive. local: in a window; "
        "hard: one position, drawn in training.",
    ),
    click.option(
        "--attention-score", type=click.Choice(SCORES),
        help="With --attention local or hard: how they score; default: general, additive.",
    ),
    click.option(
        "--attention-window", type=POSITIVE,
        help="With --attention local: positions to each side of the centre; default: 10.",
    ),
    click.option(
        "--local", type=click.Choice(["monotonic", "predictive"]),
        help="With --attention local: the centre is the step's own place, or predicted (default).",
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
    click.option(
        "--teacher-forcing", type=PROBABILITY,
        help="seq2seq: how often a step is fed the true token, not the model's; default: 1.",
    ),
)  # fmt: skip

_TRANSFORMER: tuple[Option, ...] = (
    click.option(
        "--preset", type=click.Choice(list(PRESETS)), is_eager=True, expose_value=False,
        callback=_choose_preset,
        help="Other defaults, of the model and its optimisation: those of a paper. With --init, "
        "FILE's options of the model come before them.",
    ),
    click.option("--layers", type=POSITIVE, help="Layers (seq2seq: of the encoder); default: 4."),
    click.option("--decoder-layers", type=POSITIVE, help="seq2seq; default: as many as --layers."),
    click.option("--hidden", type=POSITIVE, help="Width of the layers; default: 256."),
    click.option("--heads", type=POSITIVE, help="Attention heads of a layer; default: 4."),
    click.option("--feedforward", type=POSITIVE, help="Width within; default: 4 times hidden."),
    click.option("--dropout", type=SHARE, help="Share of units dropped in training; default: 0.1."),
    click.option("--attention-dropout", type=SHARE, help="Of attention weights; default: 0."),
    click.option(
        "--activation", type=click.Choice(ACTIVATIONS), help="Of the feed-forward; default: gelu."
    ),
    click.option(
        "--norm", type=click.Choice(NORMS),
        help="Normalise before each part of a layer or after it; default: pre.",
    ),
    click.option(
        "--rms-norm/--layer-norm", default=None,
        help="How: by the root mean square alone, or as layer norm does; default: layer norm.",
    ),
    click.option(
        "--position", type=click.Choice(POSITIONS),
        help="How positions are told apart; default: learned, for seq2seq sinusoidal.",
    ),
    click.option(
        "--max-positions", type=POSITIVE,
        help="With learned positions: longest input; default: as the batches were cut, else 512.",
    ),
    click.option(
        "--tied/--no-tied", default=None,
        help="Output layer and embeddings share their weights; default: in mlm they do.",
    ),
    click.option(
        "--share-embeddings", is_flag=True, default=None,
        help="seq2seq over one vocabulary: source and target share their embeddings.",
    ),
    _label_smoothing_option,
)  # fmt: skip

recurrent_options = collect(RecurrentOptions, "model", _RECURRENT)
transformer_options = collect(TransformerOptions, "model", _TRANSFORMER)
