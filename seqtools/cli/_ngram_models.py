"""The kinds of seq-ngram: sample and check."""

from __future__ import annotations

import click

kinds: tuple[click.Command, ...] = ()
