"""The kinds of seq-ngram: extract, count and merge."""

from __future__ import annotations

import click

kinds: tuple[click.Command, ...] = ()
