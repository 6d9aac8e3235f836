"""What can go wrong for a user, as exceptions that know nothing of the command line.

The commands turn them into one line on stderr and an exit status: `ConfigError` is a mistake in
what was asked for (2), everything else is a mistake in the data (1).
"""


class SeqtoolsError(Exception):
    """Base of all errors that are the user's to mend; its text is one line."""


class RecordError(SeqtoolsError):
    """A record is bad; whoever reads the stream knows where, and makes an `InputError` of it.

    Args:
        reason: what is wrong.
        line: how many lines below the record's first the fault is.
    """

    def __init__(self, reason: str, line: int = 0) -> None:
        super().__init__(reason)
        self.line = line


class InputError(SeqtoolsError):
    """A record or line is bad, with its place.

    Args:
        source: the file's name as the user gave it, or `<stdin>`.
        line: physical line number from 1, blank lines counted.
        reason: what is wrong, without the place.
    """

    def __init__(self, source: str, line: int, reason: str) -> None:
        super().__init__(f"{source}:{line}: {reason}")
        self.source = source
        self.line = line
        self.reason = reason

    def __reduce__(self) -> tuple[type, tuple[str, int, str]]:
        return InputError, (self.source, self.line, self.reason)


class FormatError(SeqtoolsError):
    """A file is not in the format it should be in, or is damaged."""


class ConfigError(SeqtoolsError):
    """Options that contradict each other, or a named file that cannot be opened."""
