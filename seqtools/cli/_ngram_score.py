"""The kinds of seq-ngram: score."""

from __future__ import annotations

import click

kinds: tuple[click.Command, ...] = ()
