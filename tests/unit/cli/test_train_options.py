"""Commands name the library's choices again, as they must not load it: here they are compared."""

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import click
import pytest

from seqtools.batching.corpus import TRUNCATIONS
from seqtools.batching.stream import Header
from seqtools.batching.tasks import SAMPLINGS
from seqtools.cli import _train_models, batch, train
from seqtools.cli._train_models import PRESETS, RecurrentOptions, TransformerOptions
from seqtools.cli._train_options import planned_steps
from seqtools.errors import ConfigError
from seqtools.models import transformer
from seqtools.models.recurrent_seq2seq import WIRINGS, WRAPPERS
from seqtools.nn.attention import SCORES
from seqtools.nn.local import LOCAL
from seqtools.nn.positions import POSITIONS
from seqtools.nn.recurrent import MERGES, NONLINEARITIES
from seqtools.nn.transformer import ACTIVATIONS, NORMS
from seqtools.training.checkpoint import AVERAGES
from seqtools.training.loop import OPTIMIZERS, PRECISIONS
from seqtools.training.schedules import KINDS, Schedule


def choices(command: click.Command, name: str) -> set[str]:
    [kind] = [option.type for option in command.params if f"--{name}" in option.opts]
    assert isinstance(kind, click.Choice)
    return set(kind.choices)


def check_optimisation(command: click.Command) -> None:
    assert choices(command, "optimizer") == set(OPTIMIZERS)
    assert choices(command, "schedule") == set(KINDS)
    assert choices(command, "precision") == set(PRECISIONS)
    assert choices(command, "average") == set(AVERAGES)


@pytest.mark.parametrize("architecture", ["rnn", "lstm", "gru"])
def test_choices_of_training_are_the_librarys(architecture: str) -> None:
    command = train.cli.commands[architecture]
    assert choices(command, "attention") == {"none", *SCORES, *WRAPPERS}
    assert choices(command, "attention-score") == set(SCORES)
    assert choices(command, "local") == set(LOCAL)
    assert choices(command, "wiring") == set(WIRINGS)
    assert choices(command, "merge") == set(MERGES)
    check_optimisation(command)
    if architecture == "rnn":
        assert choices(command, "nonlinearity") == set(NONLINEARITIES)


def test_choices_of_transformers_are_the_librarys() -> None:
    command = train.cli.commands["transformer"]
    assert choices(command, "position") == set(POSITIONS)
    assert choices(command, "activation") == set(ACTIVATIONS)
    assert choices(command, "norm") == set(NORMS)
    assert _train_models.MAX_POSITIONS == transformer.MAX_POSITIONS
    check_optimisation(command)


def parse(*arguments: str) -> dict[str, Any]:
    command = train.cli.commands["transformer"]
    return command.make_context("transformer", [*arguments, "-o", "m"]).params


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_is_its_options_typed_out(name: str) -> None:
    typed = []
    for option, value in PRESETS[name].options.items():
        flag = f"--{option.replace('_', '-')}"
        typed += [flag] if value is True else [flag, str(value)]
    assert parse("--preset", name) == parse(*typed)


def test_an_option_given_wins_over_the_preset_wherever_it_stands() -> None:
    before = parse("--hidden", "64", "--no-tied", "--clip", "1", "--preset", "vaswani-base")
    after = parse("--preset", "vaswani-base", "--clip", "1", "--no-tied", "--hidden", "64")
    assert before == after
    assert (before["hidden"], before["tied"], before["clip"]) == (64, False, 1.0)
    assert (before["layers"], before["betas"]) == (6, (0.9, 0.98))


def test_the_rate_of_vaswani_et_al() -> None:
    """Section 5.3, equation 3: lrate = d^-0.5 min(step^-0.5, step warmup^-1.5)."""
    found = parse("--preset", "vaswani-base")
    schedule = Schedule(found["schedule"], warmup=found["warmup"])
    for step in (1, 2000, 4000, 100_000):
        rate = 512**-0.5 * min(step**-0.5, step * 4000**-1.5)
        assert found["lr"] * schedule.factor(step) == pytest.approx(rate)


@pytest.mark.parametrize("betas", ["0.9", "0.9,1", "0.9,x", "0.9,0.98,0.1", "-0.1,0.9"])
def test_betas_that_are_none(betas: str) -> None:
    with pytest.raises(click.BadParameter):
        parse("--betas", betas)


def test_steps_are_counted_by_epochs() -> None:
    assert planned_steps([5, 4, 0], 1, None) == 9
    assert planned_steps([5, 4, 0], 2, None) == 3 + 2
    assert planned_steps([5, 4], 2, 4) == 4
    assert planned_steps([5, 4], 2, 40) == 5


def header(task: str, **options: Any) -> Header:
    return Header(task, {}, [1], None, options)


def config(
    *arguments: str, head: Header, trained: Mapping[str, Any] = MappingProxyType({})
) -> dict[str, Any]:
    names = [field.name for field in dataclasses.fields(TransformerOptions)]
    command = train.cli.commands["transformer"]
    with command.make_context("transformer", [*arguments, "-o", "m"]) as context:
        options = TransformerOptions(**{name: context.params[name] for name in names})
        return options.config(head, trained)


def test_learned_positions_reach_as_far_as_the_batches() -> None:
    assert config(head=header("lm", steps=64)) == {"max_positions": 64}
    assert config(head=header("lm", steps=64, pad_to=80)) == {"max_positions": 80}
    assert config(head=header("mlm", max_length=100)) == {"max_positions": 100}
    assert config(head=header("mlm")) == {"max_positions": 512}
    assert config("--max-positions", "7", head=header("lm", steps=64)) == {"max_positions": 7}
    assert config(head=header("seq2seq", max_length=100)) == {}
    learned = config("--position", "learned", head=header("seq2seq", max_length=100))
    assert learned == {"position": "learned", "max_positions": 100}
    assert config("--position", "rotary", head=header("lm", steps=64)) == {"position": "rotary"}


def test_a_number_of_positions_is_for_learned_ones() -> None:
    trained = {"position": "rotary"}
    for task, known, position in (("seq2seq", {}, "sinusoidal"), ("lm", trained, "rotary")):
        with pytest.raises(ConfigError, match=f"needs --position learned, got {position}"):
            config("--max-positions", "9", head=header(task), trained=known)


def test_what_is_not_given_is_as_in_a_trained_model() -> None:
    trained = {"hidden": 32, "dropout": 0.3, "tied": True, "position": "learned"}
    trained["max_positions"] = 64
    found = config("--dropout", "0", "--no-tied", head=header("lm", steps=50), trained=trained)
    assert found == {**trained, "dropout": 0.0, "tied": False}
    longer = config(head=header("lm", steps=100), trained=trained)
    assert longer == {**trained, "max_positions": 100}
    other = config("--position", "rotary", head=header("lm", steps=100), trained=trained)
    assert other == {"hidden": 32, "dropout": 0.3, "tied": True, "position": "rotary"}


def test_sizes_follow_those_that_are_their_defaults() -> None:
    trained = {"layers": 1, "decoder_layers": 1, "hidden": 8, "feedforward": 32}
    head = header("seq2seq")
    assert config(head=head, trained=trained) == trained
    deeper = config("--layers", "2", head=head, trained=trained)
    assert deeper == {"layers": 2, "hidden": 8, "feedforward": 32}
    wider = config("--hidden", "16", head=head, trained=trained)
    assert wider == {"layers": 1, "decoder_layers": 1, "hidden": 16}
    both = config("--layers", "2", "--decoder-layers", "1", head=head, trained=trained)
    assert both == {**trained, "layers": 2}


def test_an_embedding_follows_the_width_of_a_recurrent_model() -> None:
    trained = {"hidden": 8, "embedding": 8, "tied": True, "label_smoothing": 0.1}
    arguments = ["--hidden", "16", "--label-smoothing", "0", "-o", "m"]
    with train.cli.commands["gru"].make_context("gru", arguments) as context:
        names = {field.name for field in dataclasses.fields(RecurrentOptions)}
        given = {name: value for name, value in context.params.items() if name in names}
        found = RecurrentOptions(**given).config(header("lm"), trained)
    assert found == {"hidden": 16, "tied": True, "label_smoothing": 0.0}


def test_options_given_come_before_those_trained_and_these_before_a_preset() -> None:
    trained = {"layers": 1, "decoder_layers": 1, "label_smoothing": 0.0, "position": "rotary"}
    preset = ["--preset", "vaswani-base"]
    found = config(*preset, head=header("seq2seq"), trained=trained)
    assert trained.items() <= found.items()
    assert (found["hidden"], found["activation"]) == (512, "relu")
    assert config(*preset, head=header("seq2seq"))["label_smoothing"] == 0.1
    typed = config(
        *preset,
        "--label-smoothing",
        "0.2",
        "--layers",
        "3",
        head=header("seq2seq"),
        trained=trained,
    )
    assert (typed["label_smoothing"], typed["layers"], typed["position"]) == (0.2, 3, "rotary")
    assert "decoder_layers" not in typed  # the trained model's own


def test_choices_of_batching_are_the_librarys() -> None:
    assert choices(batch.cli.commands["lm"], "sampling") == set(SAMPLINGS)
    for command in batch.cli.commands.values():
        assert choices(command, "truncate") == set(TRUNCATIONS)
