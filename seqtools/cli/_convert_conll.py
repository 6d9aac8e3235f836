"""seq-convert conll: its options, and what becomes of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from seqtools.cli import _convert_run
from seqtools.cli._options import ListOption, NamesType, Streams, collect
from seqtools.errors import ConfigError

if TYPE_CHECKING:
    from seqtools.streams.encodings import Encoding
    from seqtools.text.convert.conll import Conll
    from seqtools.text.tags import Scheme

_SEPARATORS = {"auto": None, "tab": "\t", "blank": " "}


class SchemeType(click.ParamType[tuple["Scheme", "Scheme"]]):
    """`FROM:TO`, two schemes of tags, or one that tags are only checked against."""

    name = "FROM:TO"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Parse and look them up."""
        from seqtools.text.tags import Scheme

        old, _, new = str(value).partition(":")
        try:
            return Scheme(old), Scheme(new or old)
        except ConfigError as error:
            self.fail(str(error), param, ctx)


class EntriesType(click.ParamType[tuple[str, ...]]):
    """A list separated by commas."""

    name = "NAMES"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Parse."""
        return value if isinstance(value, tuple) else tuple(str(value).split(","))


@dataclass(frozen=True)
class Plan:
    """What the columns are; see the options of the same names."""

    format: str
    columns: tuple[str, ...] | None
    separator: str
    scheme: tuple[Scheme, Scheme] | None
    repair: bool
    scheme_field: tuple[str, ...]
    comments: tuple[str, ...] | None

    def __post_init__(self) -> None:
        if self.format == "columns" and self.columns is None:
            raise click.UsageError("--columns NAMES is needed, or --format conllu.")
        if self.format == "conllu" and self.separator == "blank":
            raise click.UsageError("--format conllu has tabs between columns.")
        if self.scheme is None and (self.repair or self.scheme_field):
            name = "repair" if self.repair else "scheme-field"
            raise click.UsageError(f"--{name} needs --scheme.")

    def make(self, encoding: Encoding) -> Conll:
        """What reads and writes sentences."""
        from seqtools.text.convert.columns import conllu_layout, plain_layout
        from seqtools.text.convert.conll import Conll
        from seqtools.text.convert.conllu import Conllu
        from seqtools.text.tags import Retag

        retag = None if self.scheme is None else Retag(*self.scheme, repair=self.repair)
        fields = self.scheme_field or ("tags",)
        if self.format == "conllu":
            return Conllu(
                layout=conllu_layout(self.columns), comments=self.comments or (),
                all_comments=self.comments is None, change_tags=retag, tag_fields=fields,
                encoding=encoding,
            )  # fmt: skip
        return Conll(
            layout=plain_layout(self.columns or ()), separator=_SEPARATORS[self.separator],
            comments=self.comments or (), change_tags=retag, tag_fields=fields, encoding=encoding,
        )  # fmt: skip


plan_options = collect(
    Plan,
    "plan",
    (
        click.option(
            "--columns", cls=ListOption, type=EntriesType(),
            help="Fields that the columns become: all in order, _ for none (tokens,_,tags); or some"
            " by number, from 1, or from -1 for the last (tokens=1,tags=-1); with --format conllu"
            " some by name (tokens=form,tags=upos).",
        ),
        click.option(
            "--format", type=click.Choice(["columns", "conllu"]), default="columns",
            show_default=True,
            help="conllu: the ten columns of CoNLL-U but for the first, all unless --columns says"
            " which; form becomes tokens. Ranges and empty nodes become fields of their own.",
        ),
        click.option(
            "--separator", type=click.Choice(["auto", "tab", "blank"]), default="auto",
            show_default=True,
            help="What stands between columns. auto: a tab where the line has one, else blanks;"
            " with --reverse a tab.",
        ),
        click.option(
            "--scheme", type=SchemeType(),
            help="Change tags from one scheme to another: iob1, iob2 (bio), iobes (bioes), bmes,"
            " bilou. Tags that break the rules of FROM are bad. FROM alone: only check.",
        ),
        click.option(
            "--repair", is_flag=True,
            help="With --scheme: no tag is bad for where it stands; as in conlleval, one that goes"
            " on with no chunk begins one.",
        ),
        click.option(
            "--scheme-field", multiple=True, metavar="NAME",
            help="The field with the tags; repeatable.  [default: tags]",
        ),
        click.option(
            "--comments", cls=ListOption, type=NamesType(),
            help="With --reverse: fields to write as comments. Default: none; with --format conllu"
            " all that are strings or true.",
        ),
    ),
)  # fmt: skip


def convert(streams: Streams, plan: Plan, encoding: Encoding, *, reverse: bool) -> None:
    """Run."""
    from functools import partial

    from seqtools.streams.grouping import group_lines
    from seqtools.text.convert.conll import Sentences

    conll = plan.make(encoding)
    if reverse:
        conll.layout.check_writable()
        _convert_run.write(streams, encoding, conll.write)
    elif plan.comments is not None:
        raise click.UsageError("--comments is for --reverse.")
    else:
        _convert_run.read(
            streams, encoding, conll.read, regroup=partial(group_lines, grouping=Sentences())
        )
