"""Options that several commands share, as decorators that end in one typed value.

`stream_options` and `filter_options` collect what concerns reading and writing into a `Streams`,
which the command receives as its first argument.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any, NoReturn, TypeVar

import click

from seqtools.cli._run import show_version
from seqtools.streams.files import STDIN, WHOLE, Shard

F = TypeVar("F", bound=Callable[..., Any])
Option = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Streams:
    """Where a command reads and writes, and what it does with bad records.

    Attributes:
        files: the inputs; `-` is standard input.
        output: target of `-o`, or None for standard output.
        rejects: file for bad lines, or None to stop at the first.
        max_rejects: how many are tolerated, or None for any number.
        jobs: processes.
        shard: which records are read.
        first_record: number of the first record.
        quiet: no bar and no summary.
    """

    files: tuple[str, ...] = (STDIN,)
    output: str | None = None
    rejects: str | None = None
    max_rejects: int | None = None
    jobs: int = 1
    shard: Shard = WHOLE
    first_record: int = 1
    quiet: bool = False


class FiniteFloat(click.ParamType[float]):
    """A float that is neither NaN nor infinite, within bounds.

    Args:
        low: smallest value, or None.
        high: largest value, or None.
        low_open: `low` itself is excluded.
        high_open: `high` itself is excluded.
    """

    name = "number"

    def __init__(
        self,
        low: float | None = None,
        high: float | None = None,
        *,
        low_open: bool = False,
        high_open: bool = False,
    ) -> None:
        self.low, self.high = low, high
        self.low_open, self.high_open = low_open, high_open

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Parse and check."""
        try:
            number = float(value)
        except (TypeError, ValueError):
            self.fail(f"{value!r} is not a number", param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number", param, ctx)
        if self.low is not None and (number < self.low or (self.low_open and number == self.low)):
            self.fail(f"{value} must be {'above' if self.low_open else 'at least'} {self.low:g}", param, ctx)  # fmt: skip # noqa: E501
        if self.high is not None and (
            number > self.high or (self.high_open and number == self.high)
        ):
            self.fail(f"{value} must be {'below' if self.high_open else 'at most'} {self.high:g}", param, ctx)  # fmt: skip # noqa: E501
        return number


class ShardType(click.ParamType[Shard]):
    """`I/N`: every N-th record, beginning with the I-th."""

    name = "I/N"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Shard:
        """Parse and check."""
        if isinstance(value, Shard):
            return value
        index, slash, count = str(value).partition("/")
        if not (
            slash and index.isascii() and index.isdigit() and count.isascii() and count.isdigit()
        ):
            self.fail(f"{value!r} is not of the form I/N", param, ctx)
        shard = Shard(int(index), int(count))
        if not 1 <= shard.index <= shard.count:
            self.fail(f"{value}: I must be from 1 to N", param, ctx)
        return shard


class ListOption(click.Option):
    """A list between commas; given again, the option adds to the list.

    The type takes all of it as one string, so what it refuses it refuses wherever it stands.
    """

    def __init__(self, *names: Any, **attributes: Any) -> None:
        super().__init__(*names, **{"default": None, **attributes, "multiple": True})

    def type_cast_value(self, ctx: click.Context, value: Any) -> Any:
        """Join what was given, and parse it."""
        if value is None:
            return None
        given = bool(value) and not isinstance(value, str)
        return self.type(",".join(value) if given else value, self, ctx)


class NameType(click.ParamType[str]):
    """The name of a field."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Check."""
        if not value:
            self.fail("a name cannot be empty", param, ctx)
        return str(value)


class NamesType(click.ParamType[tuple[str, ...]]):
    """A list of names separated by commas."""

    name = "NAMES"
    repeatable = frozenset[str]()  # what may stand there more than once

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...]:
        """Parse and check."""
        if isinstance(value, tuple):
            return value
        names = tuple(str(value).split(","))
        if not all(names):
            self.fail(f"{value!r} has an empty name", param, ctx)
        once = [each for each in names if each not in self.repeatable]
        if len(set(once)) != len(once):
            self.fail(f"{value!r} names one twice", param, ctx)
        return names


class WholeNumber(click.IntRange):
    """An integer within bounds, which the help calls N."""

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        """What the help shows."""
        return "N"


POSITIVE = WholeNumber(min=1)
NON_NEGATIVE = WholeNumber(min=0)
PROBABILITY = FiniteFloat(0, 1)

seed_option = click.option(
    "--seed", type=NON_NEGATIVE, default=0, show_default=True, help="Seed of all random choices."
)
version_option = click.option(
    "--version", is_flag=True, expose_value=False, is_eager=True, callback=show_version,
    help="Show the version and exit.",
)  # fmt: skip
debug_option = click.option(
    "--debug", is_flag=True, expose_value=False, help="Show a traceback when something fails."
)
quiet_option = click.option("--quiet", is_flag=True, help="No progress bar and no summary.")
output_option = click.option(
    "-o",
    "--output-file",
    metavar="FILE",
    help="Write FILE, whole or not at all, instead of stdout.",
)
files_argument = click.argument("files", nargs=-1, metavar="[FILE]...")

_REJECT_OPTIONS = (
    click.option("--rejects", metavar="FILE", help="Put bad records into FILE and go on."),
    click.option(
        "--max-rejects", type=NON_NEGATIVE, help="With --rejects: tolerate N bad records, no more."
    ),
)
_SHARD_OPTIONS = (
    click.option(
        "--shard", type=ShardType(), default="1/1", help="Read every N-th record, from the I-th."
    ),
    click.option(
        "--first-record", type=NON_NEGATIVE, default=1, help="Number of the first record."
    ),
)
_JOBS_OPTION = click.option(
    "--jobs", type=POSITIVE, default=1, show_default=True, help="Processes; same output."
)


class Kinds(click.Group):
    """A command whose first word is a kind; where it is forgotten, the error lists them."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse what stands before the kind."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            self._miss(ctx, f"A kind is missing before {error.option_name!r}")

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the kind; a word that is like one is left to click, which offers that."""
        from difflib import get_close_matches

        kinds = self.list_commands(ctx)
        if not (ctx.resilient_parsing or args[0] in kinds or get_close_matches(args[0], kinds)):
            self._miss(ctx, f"No such command {args[0]!r}; a kind is missing")
        return super().resolve_command(ctx, args)

    def _miss(self, ctx: click.Context, what: str) -> NoReturn:
        raise click.UsageError(f"{what}: {', '.join(self.list_commands(ctx))}.", ctx)


def group(name: str, help_text: str) -> Callable[[Callable[[], None]], click.Group]:
    """A command `seq-NAME` whose kinds are subcommands."""

    def decorate(function: Callable[[], None]) -> click.Group:
        made = click.group(
            name=f"seq-{name}",
            cls=Kinds,
            help=help_text,
            context_settings={"help_option_names": ["--help", "-h"], "max_content_width": 100},
        )(function)
        return version_option(made)

    return decorate


def collect(kind: type[Any], keyword: str, options: Sequence[Option]) -> Callable[[F], F]:
    """Give a command `options`; their values arrive as one `kind`, its argument `keyword`.

    Args:
        kind: a dataclass whose fields are called as the options are; those that this command does
            not have keep their defaults, and `__post_init__` may refuse what does not go together.
        keyword: name of the command's argument.
        options: in the order of the help.
    """
    names = [field.name for field in fields(kind)]

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def wrapper(*args: Any, **values: Any) -> Any:
            mine = {name: values.pop(name) for name in names if name in values}
            return function(*args, **{keyword: kind(**mine)}, **values)

        for option in reversed(options):
            wrapper = option(wrapper)
        return wrapper  # type: ignore[return-value]

    return decorate


def stream_options(
    *, rejects: bool = True, shard: bool = True, jobs: bool = False, inputs: bool = True
) -> Callable[[F], F]:
    """Give a command FILES, `-o` and what goes with them, as a `Streams` first argument.

    Without `inputs` there are no FILES, and stdin is not read.
    """
    options: list[Option] = [output_option]
    if rejects:
        options += _REJECT_OPTIONS
    if shard:
        options += _SHARD_OPTIONS
    if jobs:
        options.append(_JOBS_OPTION)
    options += [quiet_option, debug_option, version_option]
    if inputs:
        options.append(files_argument)

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def wrapper(*args: Any, **values: Any) -> Any:
            streams = Streams(
                files=(values.pop("files") or (STDIN,)) if inputs else (),
                output=values.pop("output_file"),
                rejects=values.pop("rejects", None),
                max_rejects=values.pop("max_rejects", None),
                jobs=values.pop("jobs", 1),
                shard=values.pop("shard", WHOLE),
                first_record=values.pop("first_record", 1),
                quiet=values.pop("quiet"),
            )
            if streams.max_rejects is not None and streams.rejects is None:
                raise click.UsageError("--max-rejects needs --rejects FILE.")
            if streams.rejects is not None and streams.rejects == (streams.output or STDIN):
                raise click.UsageError("Output and --rejects go to the same place.")
            return function(streams, *args, **values)

        for option in reversed(options):
            wrapper = option(wrapper)
        return wrapper  # type: ignore[return-value]

    return decorate


def refuse(names: Iterable[str], option: str) -> None:
    """See that none of these parameters was given beside an option that leaves them unheard.

    Raises:
        click.UsageError: one was.
    """
    context = click.get_current_context()
    for name in names:
        if context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
            raise click.UsageError(f"--{name.replace('_', '-')} makes no sense with {option}.")


def refuse_same_input(streams: Streams, option: str, path: str | None) -> None:
    """See that the file of an option and the records do not both come from stdin."""
    if path == STDIN and STDIN in streams.files:
        raise click.UsageError(f"{option} and the records cannot both come from stdin.")


def filter_options(function: F) -> F:
    """`stream_options` for a filter: N records in, N out, over `--jobs` processes."""
    return stream_options(jobs=True)(function)


def example(*lines: str) -> str:
    """An epilog that shows commands as they are typed."""
    return "\b\nExample:\n" + "\n".join(f"  {line}" for line in lines)
