"""Where seq-eval finds hypotheses and their references: fields of a record, or a second file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from seqtools.cli._io import Session
from seqtools.cli._options import collect, stream_options
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


def read_pairs(session: Session, pairing: Pairing) -> Iterator[tuple[str, Texts]]:
    """Every hypothesis with its references.

    Raises:
        ConfigError: a file with references cannot be opened.
    """
    from seqtools.evaluation.pairs import ByKey, InOrder, get_key, get_string
    from seqtools.streams.records import loads
    from seqtools.text.convert import read_text

    if [*session.streams.files, *pairing.reference_file].count(STDIN) > 1:
        raise click.UsageError("Only one of the files can be standard input.")
    check_inputs(pairing.reference_file)
    by, parse = pairing.by, read_text if pairing.text else loads
    output, answers = pairing.hypothesis or "text", pairing.reference or ("text",)

    def key(record: Record) -> Key:
        return get_key(record, by) if by else ""

    def hypothesis(record: Record) -> tuple[Key, str, Texts]:
        inline = [] if pairing.reference_file else references(record)
        return key(record), get_string(record, output), inline

    def references(record: Record) -> Texts:
        return [get_string(record, field) for field in answers]

    sources: list[ByKey | InOrder] = [
        ByKey(path, by, lambda record: (key(record), references(record)))
        if by
        else InOrder(path, references, parse=parse, keep_blank=pairing.text)
        for path in pairing.reference_file
    ]
    for place, (own, text, inline) in session.read(
        hypothesis, parse=parse, keep_blank=pairing.text
    ):
        found = [reference for source in sources for reference in source.find(place, own)]
        yield text, inline + found
    if not (by and session.rejected):  # a reference may belong to a rejected record
        for source in sources:
            source.finish(session.records)
