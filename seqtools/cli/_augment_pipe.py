"""The kind pipe of seq-augment: records through a program from outside, and back in place."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import click

from seqtools.cli._augment_options import tell, tell_left
from seqtools.cli._io import Session
from seqtools.cli._options import Streams, collect
from seqtools.errors import InputError, RecordError, SeqtoolsError
from seqtools.streams import records
from seqtools.streams.files import Block, Line, Place, chomp, read_blocks
from seqtools.streams.parallel import Reject

if TYPE_CHECKING:
    from seqtools.streams.parallel import Counts
    from seqtools.text.augment.program import Program

_SHOWN = 60  # characters of an id


@dataclass(frozen=True)
class Pipe:
    """What is sent, and what is kept; see the options of the same names."""

    command: str
    lines: bool
    field: str | None
    keep: bool
    drop_unchanged: bool

    def __post_init__(self) -> None:
        if self.field is not None and not self.lines:
            raise click.UsageError("--field needs --lines: without it whole records are sent.")
        if not self.command.strip():
            raise click.UsageError("--command is empty.")


pipe_options = collect(
    Pipe,
    "plan",
    (
        click.option(
            "--command", metavar="COMMAND", required=True,
            help="For the shell: reads JSONL, and writes a record for each, in order.",
        ),
        click.option(
            "--lines", is_flag=True,
            help="Send plain lines, of one field, and take plain lines for it.",
        ),
        click.option("--field", help="With --lines: a text field.  [default: text]"),
        click.option("--keep", is_flag=True, help="Write each record, too, before its copy."),
        click.option(
            "--drop-unchanged", is_flag=True,
            help="Leave out copies that came back as the record is; with --lines, as the text is.",
        ),
    ),
)  # fmt: skip


class Sent(NamedTuple):
    """What one has to know of a record until it comes back.

    Attributes:
        place: where it was read.
        head: its fields that say what a copy is made of.
        raw: itself, where that is wanted.
    """

    place: Place
    head: records.Record
    raw: bytes


class _Beside(Session):
    """A session whose reader runs beside its writer, in a thread, and leaves the output to it."""

    def blocks(self, *, keep_blank: bool = False) -> Iterator[Block]:
        """Blocks of raw lines."""
        for block in read_blocks(
            self.streams.files,
            first_record=self.streams.first_record,
            keep_blank=keep_blank,
            meter=self._meter,
        ):
            yield block
            if block.pause and self._rejects is not None:
                self._rejects.flush()


def pipe_records(streams: Streams, plan: Pipe) -> None:
    """Send the records, and write what comes back as copies of them."""
    from seqtools.text.augment.program import Program

    with _Beside(streams) as session, Program(plan.command) as program:
        exchange = Exchange(session, plan)
        exchange.run(program)
        tell(session, exchange.counts, dropped=plan.drop_unchanged)
        tell_left(session, exchange.tokens, exchange.counts, hint="")


class Exchange:
    """Records on their way through a program.

    Attributes:
        tokens: what the tokens of the text field are called.
        counts: of `copies`, with --drop-unchanged of those that are `unchanged`, and, with --lines,
            of lists as long as the tokens that were left out, as `left FIELD`.
    """

    def __init__(self, session: Session, plan: Pipe) -> None:
        from collections import Counter
        from queue import SimpleQueue

        from seqtools.text.augment.copies import ORIGIN, as_copy, lists_beside, of_text
        from seqtools.text.fields import derived

        self._session, self._plan = session, plan
        self._field = plan.field or "text"
        self._head = ("id", ORIGIN)
        self._as_copy, self._beside = as_copy, lists_beside
        self._whole = plan.keep or plan.lines or plan.drop_unchanged
        self.tokens = derived(self._field, "tokens")
        self.counts: Counts = Counter()
        self._stale = of_text(self._field)
        self._under_way: SimpleQueue[Sent | None] = SimpleQueue()  # None: there are no more
        self._sent = self._back = 0

    def run(self, program: Program) -> None:
        """Write all that comes back.

        Raises:
            SeqtoolsError: the program failed, or gave back other records than it was sent.
        """
        output = self._session.output
        program.feed(self._parts())
        for line in program.lines(output.flush):
            if self._plan.lines or line.strip():
                output.write(self._take(chomp(line)))
        self._check()
        output.flush()
        program.join()
        self._check()

    def _check(self) -> None:
        if self._back < self._sent:
            raise SeqtoolsError(
                f"the command gave back {self._back} of the {self._sent} records sent so far:"
                f" {self._plan.command}"
            )

    def _parts(self) -> Generator[bytes, None, None]:
        """What is sent, a block at a time; this runs in a thread of its own."""
        try:
            for block in self._session.blocks():
                yield from self._part(block)
                self._session.progress()
        finally:
            self._under_way.put(None)

    def _part(self, block: Block) -> Iterator[bytes]:
        session, streams = self._session, self._session.streams
        part = []
        for line in block.lines(streams.shard, streams.first_record):
            session.records += 1
            try:
                part.append(self._send(line))
            except RecordError as error:
                try:
                    session.reject(Reject(line.place, line.raw, str(error)))
                except SeqtoolsError:
                    yield b"".join(part)
                    raise
        yield b"".join(part)

    def _send(self, line: Line) -> bytes:
        raw = chomp(line.raw)
        record = records.loads(raw)
        data = self._line(record) if self._plan.lines else raw
        head = {name: record[name] for name in self._head if name in record}
        kept = raw if self._whole else b""
        self._sent += 1
        self._under_way.put(Sent(line.place, head, kept))
        return data + b"\n"

    def _line(self, record: records.Record) -> bytes:
        text = records.get_text(record, self._field)
        if "\n" in text:
            raise RecordError(f'"{self._field}" has a newline, a line cannot hold it')
        return text.encode()

    def _take(self, line: bytes) -> bytes:
        """What is written for a line that came back."""
        if self._under_way.empty():  # it writes ahead of what it reads
            self._session.output.flush()
        sent = self._under_way.get()
        if sent is None:
            raise SeqtoolsError(
                f"the command gave back more than the {self._sent} records it was sent:"
                f" {self._plan.command}"
            )
        self._back += 1
        record = records.loads(sent.raw) if sent.raw else sent.head
        try:
            copy = self._replaced(record, line) if self._plan.lines else self._checked(record, line)
        except RecordError as error:
            place = sent.place
            raise InputError(place.source, place.line, f"the command gave back {error}") from None
        self.counts["copies"] += 1
        if self._plan.drop_unchanged and self._is_unchanged(record, copy):
            self.counts["unchanged"] += 1
            data = b""
        else:
            data = records.to_line(self._as_copy(copy, record, sent.place.number))
        return records.to_line(record) + data if self._plan.keep else data

    def _is_unchanged(self, record: records.Record, copy: records.Record) -> bool:
        if self._plan.lines:
            return bool(record[self._field] == copy[self._field])
        return records.dumps(record) == records.dumps(copy)

    def _replaced(self, record: records.Record, line: bytes) -> records.Record:
        """The record with another text, and without what was made of the old one."""
        from seqtools.text.convert import read_text

        beside = self._beside(record, self.tokens, self._stale)
        self.counts.update(f"left {name}" for name in beside)
        left = self._stale.union(beside)
        kept = {key: value for key, value in record.items() if key not in left}
        return kept | read_text(line, self._field)

    def _checked(self, record: records.Record, line: bytes) -> records.Record:
        made = records.loads(line)
        if record.get("id") is not None and "id" not in made:
            raise RecordError(f"no id for {_show(records.dumps(record['id']))}")
        if "id" in record:
            sent, back = records.dumps(record["id"]), records.dumps(made.get("id"))
            if sent != back:
                raise RecordError(f"id {_show(back)} for {_show(sent)}")
        return made


def _show(value: bytes) -> str:
    text = value.decode()
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
