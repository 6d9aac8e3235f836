"""What a model's file says of it beside its weights; read without torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from seqtools import artifact
from seqtools.artifact import Artifact
from seqtools.errors import FormatError
from seqtools.text.vocab import Vocabulary

KIND = "model"
VERSION = 1
TOKENS = "vocabulary."
COUNTS = "counts."


@dataclass(frozen=True)
class Description:
    """A saved model but for its weights.

    Attributes:
        architecture: such as `gru`.
        task: `lm` or `seq2seq`.
        config: what it was made from, JSON-able.
        vocabularies: by role: `tokens` for lm, `source` and `target` for seq2seq.
        batching: how its batches were cut, from the header of their stream.
        training: what it was trained on, and how far it came.
    """

    architecture: str
    task: str
    config: dict[str, Any]
    vocabularies: dict[str, Vocabulary]
    batching: dict[str, Any]
    training: dict[str, Any]


def describe(path: str) -> Description:
    """Read the description of a model.

    Raises ConfigError where the file cannot be opened, FormatError where it is none of our models
    or damaged.
    """
    found = artifact.load(path, KIND, newest=VERSION)
    head = found.metadata
    try:
        return Description(
            architecture=str(head["architecture"]),
            task=str(head["task"]),
            config=dict(head["config"]),
            vocabularies=read_vocabularies(found),
            batching=dict(head["batching"]),
            training=dict(head["training"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise FormatError(f"{path}: damaged: its description cannot be read") from error
    except FormatError as error:
        raise FormatError(f"{path}: damaged: {error}") from error


def read_vocabularies(found: Artifact) -> dict[str, Vocabulary]:
    """Read the vocabularies of a model's file.

    Raises FormatError, KeyError, TypeError or AttributeError where they are damaged.
    """
    result = {}
    for name, specials in found.metadata["specials"].items():
        counts = found.arrays.get(COUNTS + name)
        result[name] = Vocabulary.from_header(
            {
                "tokens": found.strings[TOKENS + name],
                "specials": specials,
                "counts": None if counts is None else counts.tolist(),
            }
        )
    return result
