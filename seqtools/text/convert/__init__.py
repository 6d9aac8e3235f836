"""Files of other tools, to records and back."""

from seqtools.text.convert.lines import read_text, write_text

__all__ = ["read_text", "write_text"]
