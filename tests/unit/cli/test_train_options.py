"""Commands name the library's choices again, as they must not load it: here they are compared."""

import click
import pytest

from seqtools.batching.corpus import TRUNCATIONS
from seqtools.batching.tasks import SAMPLINGS
from seqtools.cli import batch, train
from seqtools.models.recurrent_seq2seq import WIRINGS
from seqtools.nn.attention import SCORES
from seqtools.nn.recurrent import MERGES, NONLINEARITIES
from seqtools.training.loop import OPTIMIZERS, PRECISIONS
from seqtools.training.schedules import KINDS


def choices(command: click.Command, name: str) -> set[str]:
    [kind] = [option.type for option in command.params if f"--{name}" in option.opts]
    assert isinstance(kind, click.Choice)
    return set(kind.choices)


@pytest.mark.parametrize("architecture", ["rnn", "lstm", "gru"])
def test_choices_of_training_are_the_librarys(architecture: str) -> None:
    command = train.cli.commands[architecture]
    assert choices(command, "attention") == {"none", *SCORES}
    assert choices(command, "wiring") == set(WIRINGS)
    assert choices(command, "merge") == set(MERGES)
    assert choices(command, "optimizer") == set(OPTIMIZERS)
    assert choices(command, "schedule") == set(KINDS)
    assert choices(command, "precision") == set(PRECISIONS)
    if architecture == "rnn":
        assert choices(command, "nonlinearity") == set(NONLINEARITIES)


def test_choices_of_batching_are_the_librarys() -> None:
    assert choices(batch.cli.commands["lm"], "sampling") == set(SAMPLINGS)
    for command in batch.cli.commands.values():
        assert choices(command, "truncate") == set(TRUNCATIONS)
