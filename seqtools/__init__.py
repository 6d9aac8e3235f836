"""Sequence models as Unix tools."""

__version__ = "0.1.0"
