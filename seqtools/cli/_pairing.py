"""Where seq-eval finds hypotheses and their references: fields of a record, or a second file."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from seqtools.cli._io import Session
from seqtools.cli._options import stream_options
from seqtools.streams.files import STDIN, check_inputs

if TYPE_CHECKING:
    from seqtools.evaluation.pairs import Key, Texts
    from seqtools.streams.records import Record

F = TypeVar("F", bound=Callable[..., Any])

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
    click.option("--lowercase", is_flag=True, help="Compare without case."),
)


@dataclass(frozen=True, slots=True)
class Pairing:
    """Where hypotheses and references come from: fields, and files for the references."""

    hypothesis: str
    references: tuple[str, ...]
    files: tuple[str, ...]
    by: str | None
    text: bool


def pair_options(function: F) -> F:
    """Give a kind its streams as first argument, and a `pairing`."""
    inner = stream_options(shard=False)(function)

    @functools.wraps(inner)
    def wrapper(**values: Any) -> Any:
        pairing = _pairing(
            values["files"] or (STDIN,),
            hypothesis=values.pop("hypothesis"),
            references=values.pop("reference"),
            files=values.pop("reference_file"),
            by=values.pop("by"),
            text=values.pop("text"),
        )
        return inner(pairing=pairing, **values)

    for option in reversed(_OPTIONS):
        wrapper = option(wrapper)
    return wrapper  # type: ignore[return-value]


def read_pairs(session: Session, pairing: Pairing) -> Iterator[tuple[str, Texts]]:
    """Every hypothesis with its references."""
    from seqtools.evaluation.pairs import ByKey, InOrder, get_key, get_string, parse_line
    from seqtools.streams.records import loads

    by, parse = pairing.by, parse_line if pairing.text else loads

    def key(record: Record) -> Key:
        return get_key(record, by) if by else ""

    def hypothesis(record: Record) -> tuple[Key, str, Texts]:
        inline = [] if pairing.files else references(record)
        return key(record), get_string(record, pairing.hypothesis), inline

    def references(record: Record) -> Texts:
        return [get_string(record, field) for field in pairing.references]

    sources: list[ByKey | InOrder] = [
        ByKey(path, by, lambda record: (key(record), references(record)))
        if by
        else InOrder(path, references, parse=parse, keep_blank=pairing.text)
        for path in pairing.files
    ]
    for place, (own, text, inline) in session.read(
        hypothesis, parse=parse, keep_blank=pairing.text
    ):
        found = [reference for source in sources for reference in source.find(place, own)]
        yield text, inline + found
    if not (by and session.rejected):  # a reference may belong to a rejected record
        for source in sources:
            source.finish(session.records)


def _pairing(
    inputs: tuple[str, ...],
    *,
    hypothesis: str | None,
    references: tuple[str, ...],
    files: tuple[str, ...],
    by: str | None,
    text: bool,
) -> Pairing:
    """The options as far as they make sense together."""
    if text and (hypothesis or references or by):
        raise click.UsageError("--text takes no --hypothesis, --reference or --by.")
    if (text or by) and not files:
        raise click.UsageError(f"--{'text' if text else 'by'} needs --reference-file FILE.")
    if [*inputs, *files].count(STDIN) > 1:
        raise click.UsageError("Only one of the files can be standard input.")
    if text:
        hypothesis, references = "text", ("text",)
    if hypothesis is None or not references:
        missing = "--hypothesis" if hypothesis is None else "--reference"
        raise click.UsageError(f"{missing} FIELD is needed (or --text, for plain lines).")
    check_inputs(files)
    return Pairing(hypothesis, references, files, by, text)
