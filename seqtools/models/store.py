"""Models as files: all that is needed to use one, in one safetensors file, never unpickled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import nn

from seqtools import artifact
from seqtools.artifact import Artifact
from seqtools.errors import ConfigError, FormatError
from seqtools.models import model_class
from seqtools.models.config import options_of
from seqtools.models.description import COUNTS, KIND, TOKENS, VERSION, read_vocabularies
from seqtools.streams.outputs import replace_file
from seqtools.text.vocab import Vocabulary

_WEIGHT = "weight."


@dataclass
class SavedModel:
    """A model and what is known of it.

    Attributes:
        model: implements `Loss` of `seqtools.models.protocols`, and what its task needs besides.
        architecture: such as `gru`.
        task: `lm`, `seq2seq` or `mlm`.
        config: what `build_model` made it from, JSON-able.
        vocabularies: by role: `source` and `target` for seq2seq, else `tokens`.
        batching: how its batches were cut, from the header of their stream.
        training: what it was trained on, and how far it came.
    """

    model: nn.Module
    architecture: str
    task: str
    config: dict[str, Any]
    vocabularies: dict[str, Vocabulary]
    batching: dict[str, Any] = field(default_factory=dict)
    training: dict[str, Any] = field(default_factory=dict)


def build_model(
    architecture: str,
    task: str,
    config: Mapping[str, Any],
    vocabularies: Mapping[str, Vocabulary],
    *,
    seed: int = 0,
) -> nn.Module:
    """Make a model with first weights drawn from `seed`; torch's own seed is left as it was.

    `config` has the options of such a model by name; those missing or None take their defaults.

    Raises ConfigError for a model that does not exist, an option that it does not have, or values
    that cannot be.
    """
    kind = model_class(architecture, task)
    with torch.random.fork_rng(devices=[]):  # layers draw weights as they are made; we draw again
        model: nn.Module = kind.build(architecture, config, vocabularies, seed=seed)
    return model


def model_config(model: nn.Module) -> dict[str, Any]:
    """Give the complete options of a model, defaults filled in; `build_model` takes them."""
    return options_of(model.config)  # all our models have one


def summary(model: nn.Module) -> list[tuple[str, tuple[int, ...], int]]:
    """Give name, shape and size of each parameter; one that serves twice is listed once."""
    return [(name, tuple(p.shape), p.numel()) for name, p in model.named_parameters()]


def save_model(path: str, saved: SavedModel) -> None:
    """Write `saved` to `path`, replacing a file there at once; the same model is the same bytes.

    Raises ConfigError where the file cannot be made, FormatError where it cannot be written.
    """
    metadata = {
        "architecture": saved.architecture,
        "task": saved.task,
        "config": saved.config,
        "specials": {name: v.specials for name, v in saved.vocabularies.items()},
        "batching": saved.batching,
        "training": saved.training,
    }
    arrays = {
        _WEIGHT + name: parameter.detach().cpu().numpy()
        for name, parameter in saved.model.named_parameters()
    }
    for name, vocabulary in saved.vocabularies.items():
        if vocabulary.counts is not None:
            arrays[COUNTS + name] = np.array(vocabulary.counts, dtype=np.int64)
    strings = {TOKENS + name: vocabulary.tokens for name, vocabulary in saved.vocabularies.items()}
    replace_file(path, artifact.pack(KIND, Artifact(VERSION, metadata, arrays, strings)))


def load_model(path: str, *, device: torch.device | str = "cpu") -> SavedModel:
    """Read a model, ready to be used (not to be trained: its dropout is off) on `device`.

    Raises ConfigError where the file cannot be opened, FormatError where it is none of our models
    or damaged.
    """
    found = artifact.load(path, KIND, newest=VERSION)
    head = found.metadata
    try:
        vocabularies = read_vocabularies(found)
        model = build_model(head["architecture"], head["task"], head["config"], vocabularies)
        _fill(model, found.arrays)
        saved = SavedModel(
            model=model.to(device).eval(),
            architecture=head["architecture"],
            task=head["task"],
            config=head["config"],
            vocabularies=vocabularies,
            batching=dict(head["batching"]),
            training=dict(head["training"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise FormatError(f"{path}: damaged: its model cannot be made from it") from error
    except (ConfigError, FormatError) as error:
        raise FormatError(f"{path}: damaged: {error}") from error
    return saved


@torch.no_grad()
def _fill(model: nn.Module, arrays: Mapping[str, Any]) -> None:
    """Copy weights into `model`.

    Raises FormatError where one is missing, left over, of another shape or type.
    """
    weights = {
        name.removeprefix(_WEIGHT): array
        for name, array in arrays.items()
        if name.startswith(_WEIGHT)
    }
    for name, parameter in model.named_parameters():
        array = weights.pop(name, None)
        if array is None or array.shape != parameter.shape or array.dtype.kind != "f":
            raise FormatError(f"weight {name} is missing or not {tuple(parameter.shape)}")
        parameter.copy_(torch.from_numpy(array))
    if weights:
        raise FormatError(f"weight {min(weights)} belongs to no part of the model")
