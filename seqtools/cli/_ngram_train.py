"""The kinds of seq-ngram: train."""

from __future__ import annotations

import click

kinds: tuple[click.Command, ...] = ()
