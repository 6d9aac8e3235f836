"""A new model that begins with the weights of a trained one, and parts that are not to be trained.

Parameters correspond by their names. Tables with a row for each token correspond row by row, as
vocabularies may differ; those of learned positions as far as the shorter one reaches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

import torch
from torch import nn

from seqtools.errors import ConfigError
from seqtools.models.store import SavedModel
from seqtools.text.vocab import Vocabulary

_SOURCE, _PREDICTED = "source", "predicted"
_POSITIONS = "positions.embedding.weight"
# Parameters with a row for each token, and whether it is a token of the source.
TOKEN_TABLES = {
    "embedding.weight": _PREDICTED,
    "embedded.embedding.weight": _PREDICTED,
    "decoder.embedded.embedding.weight": _PREDICTED,
    "target_embedding.weight": _PREDICTED,
    "source_embedding.weight": _SOURCE,
    "source.embedding.weight": _SOURCE,
    "output.weight": _PREDICTED,
    "output.bias": _PREDICTED,
    "decoder.output.weight": _PREDICTED,
    "decoder.output.bias": _PREDICTED,
}


@dataclass
class Transfer:
    """What became of the parameters of a new model and of a trained one, by name.

    Attributes:
        taken: of the new model, as they were in the other.
        rows: of the new model, with some rows from the other: how many of how many.
        new: of the new model, with first weights of their own.
        unused: of the trained model.
        share: of all numbers that the new model consists of, those from the other.
    """

    taken: list[str] = field(default_factory=list)
    rows: dict[str, tuple[int, int]] = field(default_factory=dict)
    new: list[str] = field(default_factory=list)
    unused: list[str] = field(default_factory=list)
    share: float = 0.0


@torch.no_grad()
def transfer(
    model: nn.Module, vocabularies: Mapping[str, Vocabulary], trained: SavedModel
) -> Transfer:
    """Give `model` the weights of a trained one wherever names and shapes agree.

    Raises ConfigError where they agree nowhere.
    """
    theirs = trained.model.state_dict()  # with all the names of a parameter that serves twice
    found = Transfer()
    copied = 0
    for name, parameter in model.named_parameters():
        other = theirs.get(name)
        if other is None or other.shape[1:] != parameter.shape[1:]:
            found.new.append(name)
            continue
        pairs = _rows(name, vocabularies, trained.vocabularies, len(parameter), len(other))
        into, rows = torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2).unbind(1)
        parameter[into] = other[rows].to(parameter)
        copied += parameter[into].numel()
        if len(pairs) == len(parameter):
            found.taken.append(name)
        elif pairs:
            found.rows[name] = (len(pairs), len(parameter))
        else:
            found.new.append(name)
    used = {*found.taken, *found.rows}
    if not used:
        why = difference(model, trained)
        raise ConfigError(
            "no part of the trained model has a name and a shape of the new one"
            + (f": {why}" if why else "")
        )
    found.share = copied / sum(parameter.numel() for parameter in model.parameters())
    # A parameter with several names is used if one of them is.
    there = {id(parameter) for name, parameter in _named(trained.model) if name in used}
    found.unused = [n for n, p in trained.model.named_parameters() if id(p) not in there]
    return found


def difference(model: nn.Module, trained: SavedModel) -> str | None:
    """Say why a trained model's weights do not fit, if names or shapes are why.

    That is the first parameter of `model` whose shape is another there; rows that go by tokens or
    positions may be any number.
    """
    theirs = trained.model.state_dict()
    common = [(name, p.shape) for name, p in model.named_parameters() if name in theirs]
    for name, shape in common:
        by_row = name in TOKEN_TABLES or name.endswith(_POSITIONS)
        if shape[by_row:] != theirs[name].shape[by_row:]:
            there, here = (" x ".join(map(str, s)) for s in (theirs[name].shape, shape))
            return f"{name} is {there} there and {here} here"
    return None if common else "they have no name in common"


def freeze(model: nn.Module, patterns: Sequence[str]) -> list[str]:
    """Leave out of training the parameters whose names match a pattern (`*`, `?`, `[...]`).

    Returns their names.

    Raises ConfigError where a pattern matches none, or nothing is left to train.
    """
    for pattern in patterns:
        matching = [p for name, p in _named(model) if fnmatchcase(name, pattern)]
        if not matching:
            parts = dict.fromkeys(name.partition(".")[0] for name, _ in _named(model))
            there = ", ".join(f"{part}.*" for part in parts)
            raise ConfigError(f"no parameter is called {pattern!r}: there are {there}")
        for parameter in matching:
            parameter.requires_grad = False
    frozen = [name for name, p in model.named_parameters() if not p.requires_grad]
    if all(not p.requires_grad for p in model.parameters()):
        raise ConfigError("nothing is left to train")
    return frozen


def _rows(
    name: str,
    mine: Mapping[str, Vocabulary],
    theirs: Mapping[str, Vocabulary],
    length: int,
    their_length: int,
) -> list[tuple[int, int]]:
    """Which rows of the new parameter are which of the trained one; none if they have no order."""
    role = TOKEN_TABLES.get(name)
    if role is not None:
        places = {token: row for row, token in enumerate(_tokens(theirs, role))}
        return [(i, places[t]) for i, t in enumerate(_tokens(mine, role)) if t in places]
    if name.endswith(_POSITIONS) or length == their_length:
        return [(row, row) for row in range(min(length, their_length))]
    return []


def _tokens(vocabularies: Mapping[str, Vocabulary], role: str) -> Sequence[str]:
    name = "source" if role == _SOURCE else "target" if "target" in vocabularies else "tokens"
    return vocabularies[name].tokens


def _named(model: nn.Module) -> list[tuple[str, nn.Parameter]]:
    """All names of all parameters, also where one has several."""
    return list(model.named_parameters(remove_duplicate=False))
