"""Trained models as they are when they have been written and opened again."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Sequence
from typing import Any

from seqtools.ngram.estimate import train
from seqtools.ngram.model import Model, load, save
from seqtools.ngram.smoothing import Smoothing


def opened(model: Model) -> Model:
    """The model read from its file."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.safetensors")
        with open(path, "wb") as handle:

            def put(data: bytes) -> None:
                handle.write(data)

            save(model, put)
        return load(path)  # what is mapped stays, though the name goes


def language_model(
    records: Iterable[Sequence[str]], order: int, method: str = "witten-bell", **options: Any
) -> Model:
    """A model of some records."""
    return opened(train(records, order, Smoothing(method, **options)).model)
