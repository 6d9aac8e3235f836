"""seq-stats: what is in a corpus, as records, with tables and histograms on a terminal."""

from __future__ import annotations

from seqtools.cli import _run
from seqtools.cli._options import group


@group("stats", "Say what is in a corpus: records out, tables and histograms on a terminal.")
def cli() -> None:
    """The kinds are below."""


def main() -> None:
    """Run from the shell."""
    _run.main(cli)
