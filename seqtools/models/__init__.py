"""Which model serves which task, as strings: nothing is imported until it is asked for."""

from __future__ import annotations

from typing import Any

from seqtools import lazy
from seqtools.errors import ConfigError

_MODELS = {
    ("rnn", "lm"): "seqtools.models.recurrent_lm:RecurrentLm",
    ("lstm", "lm"): "seqtools.models.recurrent_lm:RecurrentLm",
    ("gru", "lm"): "seqtools.models.recurrent_lm:RecurrentLm",
    ("rnn", "seq2seq"): "seqtools.models.recurrent_seq2seq:RecurrentSeq2Seq",
    ("lstm", "seq2seq"): "seqtools.models.recurrent_seq2seq:RecurrentSeq2Seq",
    ("gru", "seq2seq"): "seqtools.models.recurrent_seq2seq:RecurrentSeq2Seq",
    ("transformer", "lm"): "seqtools.models.transformer_lm:TransformerLm",
    ("transformer", "seq2seq"): "seqtools.models.transformer_seq2seq:TransformerSeq2Seq",
    ("transformer", "mlm"): "seqtools.models.transformer_mlm:TransformerMlm",
}


def architectures(task: str) -> list[str]:
    """Give the names of the models that serve `task`, none for an unknown task."""
    return [architecture for architecture, served in _MODELS if served == task]


def model_class(architecture: str, task: str) -> Any:
    """Give the class of that model for that task.

    Raises ConfigError for a pair that does not exist; the message lists those that do.
    """
    reference = _MODELS.get((architecture, task))
    if reference is None:
        serving = architectures(task)
        if not serving:
            tasks = ", ".join(dict.fromkeys(task for _, task in _MODELS))
            raise ConfigError(f"no model serves the task {task!r}; there are models for {tasks}")
        names = ", ".join(serving)
        raise ConfigError(f"{architecture} does not serve {task}: choose from {names}")
    return lazy.load(reference)
