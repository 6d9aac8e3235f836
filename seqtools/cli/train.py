"""seq-train: batches to a model and metric records."""

from __future__ import annotations

from seqtools.cli import _run
from seqtools.cli._device import Compute, compute_options, start_torch
from seqtools.cli._options import example, group
from seqtools.cli._train_models import (
    ModelOptions,
    RecurrentOptions,
    TransformerOptions,
    nonlinearity_option,
    recurrent_options,
    transformer_options,
)
from seqtools.cli._train_options import (
    OptimOptions,
    RunOptions,
    check_options,
    check_stream,
    make_settings,
    optim_options,
    planned_steps,
    run_options,
)
from seqtools.errors import FormatError

_EXAMPLE = example(
    "seq-batch lm --vocab chars.vocab --steps 64 --epochs 3 chars.jsonl \\",
    "  | seq-train {} --hidden 128 -o lm.safetensors > log.jsonl",
)


@group("train", "Train a model on batches; metric records go to stdout, the model to -o FILE.")
def cli() -> None:
    """The kinds are below."""


@cli.command(epilog=_EXAMPLE.replace("{}", "rnn"))
@recurrent_options
@nonlinearity_option
@optim_options
@compute_options
@run_options
def rnn(model: RecurrentOptions, optim: OptimOptions, run: RunOptions, compute: Compute) -> None:
    """Plain recurrent network (Elman), for lm and seq2seq."""
    _train("rnn", model, optim, run, compute)


@cli.command(epilog=_EXAMPLE.replace("{}", "lstm"))
@recurrent_options
@optim_options
@compute_options
@run_options
def lstm(model: RecurrentOptions, optim: OptimOptions, run: RunOptions, compute: Compute) -> None:
    """Long short-term memory, for lm and seq2seq."""
    _train("lstm", model, optim, run, compute)


@cli.command(epilog=_EXAMPLE.replace("{}", "gru"))
@recurrent_options
@optim_options
@compute_options
@run_options
def gru(model: RecurrentOptions, optim: OptimOptions, run: RunOptions, compute: Compute) -> None:
    """Gated recurrent units, for lm and seq2seq."""
    _train("gru", model, optim, run, compute)


@cli.command(epilog=_EXAMPLE.replace("{}", "transformer"))
@transformer_options
@optim_options
@compute_options
@run_options
def transformer(
    model: TransformerOptions, optim: OptimOptions, run: RunOptions, compute: Compute
) -> None:
    """Transformer: a GPT for lm, an encoder-decoder for seq2seq, a BERT for mlm."""
    _train("transformer", model, optim, run, compute)


def _train(
    kind: str, model: ModelOptions, optim: OptimOptions, run: RunOptions, compute: Compute
) -> None:
    check_options(model, optim, run)
    from seqtools.training.data import Batches, check_same_task

    batches = Batches(run.inputs, epochs=run.epochs, seed=run.seed)
    header = batches.header
    check_stream(kind, header, model)
    valid = Batches([run.valid]) if run.valid else None
    if valid is not None and run.valid is not None:
        check_same_task(header, valid.header, run.valid)
    steps = planned_steps(batches.counts, optim.accumulate, run.max_steps)
    device = start_torch(compute, tf32=True)

    from seqtools.cli._train_run import Runner
    from seqtools.cli._train_start import limits, start

    saved, begun = start(kind, header, model, run)
    saved.model.to(device)
    settings = make_settings(optim, run, compute.precision, steps)
    longest = limits(saved.model.config, header.task)
    # Training would come to them only after an epoch, and then be lost.
    tests = valid.validation(device, longest=longest) if valid else []
    if valid and not tests:
        raise FormatError(f"{run.valid}: no batch has a target to validate on")
    runner = Runner(saved, run.output_file, settings, steps=steps, quiet=run.quiet, begun=begun)
    runner.run(batches.tensors(device, longest=longest), tests)


def main() -> None:
    """Run from the shell."""
    _run.main(cli)
