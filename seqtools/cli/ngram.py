"""seq-ngram: n-grams, their counts, and the language models made from them."""

from __future__ import annotations

from seqtools.cli import (
    _ngram_convert,
    _ngram_models,
    _ngram_score,
    _ngram_tables,
    _ngram_train,
    _run,
)
from seqtools.cli._options import group


@group("ngram", "Count n-grams, estimate smoothed language models, score and sample with them.")
def cli() -> None:
    """The kinds are below."""


for module in (_ngram_tables, _ngram_train, _ngram_score, _ngram_models, _ngram_convert):
    for kind in module.kinds:
        cli.add_command(kind)


def main() -> None:
    """Run from the shell."""
    _run.main(cli)
