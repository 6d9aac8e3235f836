"""seq-convert: files of other tools to records and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from seqtools.cli import _convert_conll, _run
from seqtools.cli._convert_run import encoding_option, read, reverse_option, write
from seqtools.cli._convert_tables import ColumnsType, read_table, write_table
from seqtools.cli._options import ListOption, NameType, Streams, example, filter_options, group

if TYPE_CHECKING:
    from seqtools.streams.encodings import Encoding


@group("convert", "Files of other tools to records and back.")
def cli() -> None:
    """The kinds are below."""


@cli.command(
    epilog=example(
        r"$ printf 'a dog\n\n一只狗\n' | seq-convert text",
        '{"text":"a dog"}',
        '{"text":""}',
        '{"text":"一只狗"}',
        """$ echo '{"id":7,"text":"a dog"}' | seq-convert text --reverse""",
        "a dog",
    )
)
@click.option(
    "--field", type=NameType(), default="text", show_default=True, help="Name of the field."
)
@encoding_option
@reverse_option
@filter_options
def text(streams: Streams, field: str, encoding: Encoding, *, reverse: bool) -> None:
    """Each line a record; an empty line is an empty text."""
    from seqtools.text.convert import read_text, write_text

    if reverse:
        write(streams, encoding, lambda record: write_text(record, field))
    else:
        read(streams, encoding, lambda line: read_text(line, field, encoding))


_columns_option = click.option(
    "--columns", cls=ListOption, type=ColumnsType(),
    help="Names of the columns, separated by commas; without --header, _ for one not wanted.",
)  # fmt: skip
_header_option = click.option(
    "--header",
    is_flag=True,
    help="Line 1 of each file names the columns, and --columns says which to take (default: all)."
    " With --reverse: write such a line.",
)


@cli.command(
    epilog=example(
        r"$ printf 'ein Hund\ta dog\n' | seq-convert tsv --columns src,tgt",
        '{"src":"ein Hund","tgt":"a dog"}',
        r"$ printf 'id\tde\ten\n7\tein Hund\ta dog\n' | seq-convert tsv --header --columns en",
        '{"en":"a dog"}',
        """$ echo '{"src":"ein Hund","tgt":"a dog"}' | seq-convert tsv --reverse --columns tgt""",
        "a dog",
    )
)
@_columns_option
@_header_option
@encoding_option
@reverse_option
@filter_options
def tsv(
    streams: Streams, columns: tuple[str, ...] | None, encoding: Encoding, *, header: bool,
    reverse: bool,
) -> None:  # fmt: skip
    """Columns separated by tabs, without quotation marks; each line a record of strings.

    A line that is empty is skipped, unless there is but one column.
    """
    from seqtools.text.convert.tables import Tabs

    if reverse:
        write_table(streams, encoding, Tabs(), columns, header=header)
    else:
        read_table(streams, encoding, Tabs(), columns, header=header)


@cli.command(
    epilog=example(
        r"""$ printf 'label,text\ngood,"Warm, and dry"\n' | seq-convert csv --header""",
        '{"label":"good","text":"Warm, and dry"}',
        """$ echo '{"a":"x","b":"1, 2"}' | seq-convert csv --reverse --columns b,a""",
        '"1, 2",x',
    )
)
@_columns_option
@_header_option
@click.option(
    "--delimiter", default=",", show_default=True,
    help="What stands between columns: one character of ASCII, or the word tab.",
)  # fmt: skip
@click.option(
    "--quote-all", is_flag=True,
    help="With --reverse: quotation marks around every field, not only where they are needed.",
)  # fmt: skip
@encoding_option
@reverse_option
@filter_options
def csv(
    streams: Streams, columns: tuple[str, ...] | None, delimiter: str, encoding: Encoding, *,
    header: bool, quote_all: bool, reverse: bool,
) -> None:  # fmt: skip
    """Comma-separated values as in RFC 4180; each row a record of strings.

    A field between quotation marks may hold delimiters, line ends, and marks that are doubled.
    Marks anywhere else are an error. White space is part of a field. A line that is empty is
    skipped, unless there is but one column. --reverse ends lines with a newline alone.
    """
    from functools import partial

    from seqtools.streams.grouping import group_lines
    from seqtools.text.convert.tables import Csv

    if quote_all and not reverse:
        raise click.UsageError("--quote-all is for --reverse.")
    table = Csv("\t" if delimiter == "tab" else delimiter, quote_all=quote_all)
    if reverse:
        write_table(streams, encoding, table, columns, header=header)
    else:
        regroup = partial(group_lines, grouping=table)
        read_table(streams, encoding, table, columns, header=header, regroup=regroup)


@cli.command(
    epilog=example(
        "$ echo '__label__spam Call now' | seq-convert fasttext",
        '{"label":"spam","text":"Call now"}',
        """$ echo '{"labels":["tea","milk"],"text":"How hot?"}' \\""",
        "    | seq-convert fasttext --multi --reverse",
        "__label__tea __label__milk How hot?",
    )
)
@click.option(
    "--prefix", default="__label__", show_default=True, help="What each label begins with."
)
@click.option("--multi", is_flag=True, help="A list of labels, any number of them.")
@click.option(
    "--field", type=NameType(), default="text", show_default=True, help="Field of the text."
)
@click.option(
    "--label-field", type=NameType(), metavar="NAME",
    help="Field of the label.  [default: label, labels]",
)  # fmt: skip
@encoding_option
@reverse_option
@filter_options
def fasttext(
    streams: Streams, prefix: str, field: str, label_field: str | None, encoding: Encoding, *,
    multi: bool, reverse: bool,
) -> None:  # fmt: skip
    """Labelled text as fastText reads it; each line a record.

    A word that begins with the prefix is a label, wherever it stands, and goes from the text with
    the white space after it. Blank lines are skipped.
    """
    from seqtools.text.convert.fasttext import Labelled

    labelled = Labelled(
        prefix, multi=multi, field=field, encoding=encoding,
        label_field=label_field or ("labels" if multi else "label"),
    )  # fmt: skip
    if reverse:
        write(streams, encoding, labelled.write)
    else:
        read(streams, encoding, labelled.read, keep_blank=False)


@cli.command(
    epilog=example(
        r"$ printf 'U.N. NNP I-ORG\nofficial NN O\n\n' > ner.txt",
        "$ seq-convert conll --columns tokens,_,tags --scheme iob1:iob2 ner.txt",
        '{"tokens":["U.N.","official"],"tags":["B-ORG","O"]}',
        """$ echo '{"tokens":["a","dog"],"pos":["DT","NN"]}' \\""",
        "    | seq-convert conll --reverse --columns tokens,pos",
        "a\tDT",
        "dog\tNN",
        "",
    )
)
@_convert_conll.plan_options
@encoding_option
@reverse_option
@filter_options
def conll(
    streams: Streams, plan: _convert_conll.Plan, encoding: Encoding, *, reverse: bool
) -> None:
    """Sentences in columns, a token a line, a blank line after each; each sentence a record.

    Lines `# key = value` before a sentence become fields; so does the line -DOCSTART- of CoNLL-2003
    before the first sentence of a document, `docstart`.
    """
    _convert_conll.convert(streams, plan, encoding, reverse=reverse)


def main() -> None:
    """Run from the shell."""
    _run.main(cli)
