"""Where seq-eval finds hypotheses and their references: fields of a record, or a second file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from seqtools.cli._io import Session
from seqtools.cli._options import collect, stream_options
from seqtools.errors import RecordError
from seqtools.streams.files import STDIN, check_inputs

if TYPE_CHECKING:
    from seqtools.streams.records import Record

F = TypeVar("F", bound=Callable[..., Any])
H = TypeVar("H")
R = TypeVar("R")

_OPTIONS = (
    click.option("--hypothesis", metavar="FIELD", help="Field of the output."),
    click.option(
        "--reference",
        metavar="FIELD",
        multiple=True,
        help="Field of the right answer; repeat it where there are several.",
    ),
    click.option(
        "--reference-file",
        metavar="FILE",
        multiple=True,
        help="Take references from FILE: one record for each of the input, in the same order.",
    ),
    click.option("--by", metavar="FIELD", help="Join with --reference-file by FIELD, as in id."),
    click.option("--text", is_flag=True, help="Input and --reference-file are plain lines."),
)
lowercase_option = click.option("--lowercase", is_flag=True, help="Compare without case.")


@dataclass(frozen=True, slots=True)
class Pairing:
    """Where hypotheses and references come from; see the options of the same names."""

    hypothesis: str | None
    reference: tuple[str, ...]
    reference_file: tuple[str, ...]
    by: str | None
    text: bool

    def __post_init__(self) -> None:
        if self.text and (self.hypothesis or self.reference or self.by):
            raise click.UsageError("--text takes no --hypothesis, --reference or --by.")
        if (self.text or self.by) and not self.reference_file:
            option = "--text" if self.text else "--by"
            raise click.UsageError(f"{option} needs --reference-file FILE.")
        if not self.text and not (self.hypothesis and self.reference):
            missing = "--reference" if self.hypothesis else "--hypothesis"
            raise click.UsageError(f"{missing} FIELD is needed (or --text, for plain lines).")


def pair_options(function: F) -> F:
    """Give a kind its streams, `--lowercase`, and as `pairing` where the pairs are."""
    wrapper = lowercase_option(stream_options(shard=False)(function))
    return collect(Pairing, "pairing", _OPTIONS)(wrapper)


def read_pairs(
    session: Session,
    pairing: Pairing,
    take: Callable[[H, list[R]], None],
    read_output: Callable[[Record, str], H],
    read_reference: Callable[[Record, str], R],
) -> None:
    """Give every hypothesis with its references to `take`; RecordError there: they are bad.

    Args:
        session: the run.
        pairing: where they are.
        take: is called for each record in turn.
        read_output: takes the hypothesis out of a record's field.
        read_reference: takes a reference out of a record's field.

    Raises:
        ConfigError: a file with references cannot be opened.
        InputError: a reference or a hypothesis is left over, or a key stands twice.
    """
    from seqtools.evaluation.pairs import ByKey, InOrder, Key, get_key
    from seqtools.streams.files import chomp
    from seqtools.streams.parallel import Reject
    from seqtools.streams.records import loads
    from seqtools.text.convert import read_text

    if [*session.streams.files, *pairing.reference_file].count(STDIN) > 1:
        raise click.UsageError("Only one of the files can be standard input.")
    check_inputs(pairing.reference_file)
    by, parse = pairing.by, read_text if pairing.text else loads
    output, answers = pairing.hypothesis or "text", pairing.reference or ("text",)

    def key(record: Record) -> Key:
        return get_key(record, by) if by else ""

    def references(record: Record) -> list[R]:
        return [read_reference(record, field) for field in answers]

    sources: list[ByKey[R] | InOrder[R]] = [
        ByKey(path, by, lambda record: (key(record), references(record)))
        if by
        else InOrder(path, references, parse=parse, keep_blank=pairing.text)
        for path in pairing.reference_file
    ]
    for place, raw in session.lines(keep_blank=pairing.text):
        try:
            record = parse(chomp(raw))
            own, hypothesis = key(record), read_output(record, output)
            found = [] if sources else references(record)
            found += [reference for source in sources for reference in source.find(place, own)]
            take(hypothesis, found)
        except RecordError as error:
            session.reject(Reject(place, raw, str(error)))
    if not (by and session.rejected):  # a reference may belong to a rejected record
        for source in sources:
            source.finish(session.records)
