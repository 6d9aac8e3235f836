"""The model that `seq-train` begins with: new or with weights of a trained one; loads torch."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import torch

from seqtools.batching.stream import Header
from seqtools.cli import _run
from seqtools.cli._train_models import ModelOptions
from seqtools.cli._train_options import RunOptions
from seqtools.errors import ConfigError
from seqtools.models.store import SavedModel, build_model, load_model, model_config
from seqtools.models.transfer import Transfer, difference, freeze, transfer

_NAMES = 4  # of parameters that a message lists
_HARDLY = 0.1  # of the numbers of a model; where fewer are taken over, something is amiss


def start(
    kind: str, header: Header, model: ModelOptions, run: RunOptions
) -> tuple[SavedModel, dict[str, Any]]:
    """Make the model that is trained, on CPU, with what its record says of its first weights.

    Raises ConfigError for options that cannot be, an `--init` that fits nowhere, or a `--freeze`
    that names nothing.
    """
    seed = run.seed % 2**64  # more than torch's generators take
    torch.manual_seed(seed)  # of dropout; the first weights have their own
    trained = load_model(run.init) if run.init else None
    alike = trained and (trained.architecture, trained.task) == (kind, header.task)
    options = model.config(header, trained.config if trained and alike else {})
    network = build_model(kind, header.task, options, header.vocabularies, seed=seed)
    begun: dict[str, Any] = {}
    if trained is not None:
        try:
            found = transfer(network, header.vocabularies, trained)
        except ConfigError as error:
            raise ConfigError(f"--init {run.init}: {error}") from None
        begun["init"] = dataclasses.asdict(found)
        if found.share < _HARDLY:
            why = difference(network, trained)
            _run.warn(
                f"--init {run.init}: just {100 * found.share:.2g} % of the new model's weights "
                "are from it" + (f"; {why}" if why else "")
            )
        if not run.quiet:
            _tell(f"{run.init}", found)
    if run.freeze:
        begun["frozen"] = freeze(network, run.freeze)
        if not run.quiet:
            _run.message(f"not trained: {_names(begun['frozen'])}")
    saved = SavedModel(
        model=network,
        architecture=kind,
        task=header.task,
        config=model_config(network),
        vocabularies=header.vocabularies,
        batching=header.options,
        training={"unknown_share": header.options.get("unknown_share", {})},
    )
    return saved, begun


def limits(config: Any, task: str) -> dict[str, int]:
    """The longest that columns of a batch may be for a model of this configuration, by name."""
    source, inputs = getattr(config, "max_source", None), getattr(config, "max_positions", None)
    found = {"inputs": inputs, "source": source or (inputs if task == "seq2seq" else None)}
    return {column: limit for column, limit in found.items() if limit is not None}


def _tell(path: str, found: Transfer) -> None:
    """Say on stderr what was taken from the trained model and what is new."""
    _run.message(f"from {path}: {_names(found.taken)}")
    for name, (rows, all_rows) in found.rows.items():
        _run.message(f"from {path}: {rows:,} of {all_rows:,} rows of {name}")
    if found.new:
        _run.message(f"new: {_names(found.new)}")
    if found.unused:
        _run.message(f"not used of {path}: {_names(found.unused)}")


def _names(names: Sequence[str]) -> str:
    few = ", ".join(names[:_NAMES]) + (", ..." if len(names) > _NAMES else "")
    return f"{len(names)} parameter{'' if len(names) == 1 else 's'} ({few})"
