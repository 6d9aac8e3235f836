"""The kinds of seq-ngram: convert."""

from __future__ import annotations

import click

kinds: tuple[click.Command, ...] = ()
