"""Reading, writing and rejecting for one run of a command."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import TypeVar

import click

from seqtools.cli import _run
from seqtools.cli._options import Streams
from seqtools.cli._progress import Bar
from seqtools.errors import InputError, RecordError, SeqtoolsError
from seqtools.streams import records
from seqtools.streams.encodings import UTF_8, Encoding
from seqtools.streams.files import (
    Block,
    Line,
    Meter,
    Place,
    check_inputs,
    chomp,
    native,
    read_blocks,
)
from seqtools.streams.outputs import (
    ClosedReader,
    FileOutput,
    Output,
    is_regular_target,
    open_output,
)
from seqtools.streams.parallel import Counts, Filter, MakeTransform, Parse, Reject, map_blocks

T = TypeVar("T")


class Session:
    """The inputs, the output and the rejects of a run, as a context manager.

    On a normal end the output is put in place, and the exit status is 3 where records were
    rejected. On an error the target of `-o` is left as it was; rejects are kept either way.

    Args:
        streams: the options.
        unit: what the bar counts.
        encoding: of the inputs.
    """

    def __init__(self, streams: Streams, unit: str = "records", encoding: Encoding = UTF_8) -> None:
        self.streams = streams
        self._encoding = encoding
        self.records = 0
        self.rejected = 0
        check_inputs(streams.files)
        self._output = _run.stdout if streams.output is None else open_output(streams.output)
        try:
            self._rejects = None if streams.rejects is None else _Rejects(streams.rejects)
        except BaseException:
            self._output.discard()
            raise
        self._meter = Meter(streams.files)
        self._bar = Bar(unit, quiet=streams.quiet)

    def __enter__(self) -> Session:
        self._bar.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.__exit__(kind, error, trace)
        try:
            if self._rejects is not None:
                self._rejects.commit()
            if error is None:
                self._output.commit()
        except BaseException:
            self._abandon()
            raise
        if error is None:
            self._count_rejected()
        else:
            if isinstance(error, SeqtoolsError):
                # What came before a bad record belongs to the output, where it is no file.
                with contextlib.suppress(SeqtoolsError, ClosedReader):
                    self._output.flush()
            self._abandon()

    def _abandon(self) -> None:
        if self._output is not _run.stdout:
            self._output.discard()

    def _count_rejected(self) -> None:
        if not self.rejected:
            return
        reasons = self._rejects and self._rejects.reasons
        _run.message(
            f"{_run.program()}: {self.rejected} of {self.records} records rejected,"
            f" see {self.streams.rejects}{f' (why: {reasons})' if reasons else ''}"
        )
        if self.streams.max_rejects is None:
            raise click.exceptions.Exit(3)

    @property
    def output(self) -> Output:
        """Where the command writes."""
        return self._output

    def write(self, record: records.Record) -> None:
        """Write one record."""
        self._output.write(records.to_line(record))

    def blocks(self, *, keep_blank: bool = False) -> Iterator[Block]:
        """Blocks of raw lines; what was written is flushed before a wait for more."""
        for block in read_blocks(
            self.streams.files,
            first_record=self.streams.first_record,
            keep_blank=keep_blank,
            meter=self._meter,
            encoding=self._encoding,
        ):
            yield block
            if block.pause:
                self._output.flush()
                if self._rejects is not None:
                    self._rejects.flush()

    def lines(self, *, keep_blank: bool = False) -> Iterator[Line]:
        """Raw lines that belong to the shard."""
        streams = self.streams
        for block in self.blocks(keep_blank=keep_blank):
            for line in block.lines(streams.shard, streams.first_record):
                self.records += 1
                yield line
            self.progress()

    def read(
        self,
        check: Callable[[records.Record], T],
        *,
        parse: Parse = records.loads,
        keep_blank: bool = False,
    ) -> Iterator[tuple[Place, T]]:
        """The records, each through `check`; a bad one stops the run or is rejected.

        Args:
            check: takes what is needed out of a record, RecordError where it is not there.
            parse: line to record.
            keep_blank: blank lines are records.
        """
        for place, raw in self.lines(keep_blank=keep_blank):
            try:
                value = check(parse(chomp(raw)))
            except RecordError as error:
                self.reject(Reject(place, raw, str(error)))
                continue
            yield place, value

    def filter(
        self,
        make: MakeTransform,
        *,
        parse: Parse = records.loads,
        keep_blank: bool = False,
        sink: Callable[[bytes], None] | None = None,
        regroup: Callable[[Iterator[Block]], Iterator[Block]] | None = None,
    ) -> Counts:
        """Put every record through a transform, over `--jobs` processes, in order.

        Args:
            make: makes the transform.
            parse: line to record.
            keep_blank: blank lines are records.
            sink: takes what the transforms make, instead of the output.
            regroup: makes blocks of other records of the blocks of lines.

        Returns:
            What the transforms counted.
        """
        streams = self.streams
        take = sink or self._output.write
        job = Filter(make, parse, streams.shard, streams.first_record, streams.rejects is not None)
        counts: Counts = Counter()
        blocks = self.blocks(keep_blank=keep_blank)
        if regroup is not None:
            blocks = regroup(blocks)
        with contextlib.closing(map_blocks(blocks, job.start, streams.jobs)) as results:
            for result in results:
                self.records += result.records
                counts.update(result.counts)
                take(result.data)
                for reject in result.rejects:
                    self.reject(reject)
                self.progress()
        return counts

    def reject(self, reject: Reject) -> None:
        """Take note of a bad record.

        Raises:
            InputError: bad records end the run.
            SeqtoolsError: there are more than `--max-rejects`.
        """
        if self._rejects is None:
            raise InputError(reject.place.source, reject.place.line, reject.reason)
        self._rejects.write(reject)
        self.rejected += 1
        limit = self.streams.max_rejects
        if limit is not None and self.rejected > limit:
            place = f"{reject.place.source}:{reject.place.line}"
            raise SeqtoolsError(f"{place}: more than {limit} records rejected: {reject.reason}")

    def progress(self, note: str = "") -> None:
        """Move the bar."""
        self._bar.update(self.records, self._meter.done, self._meter.total, note)

    def summary(self, text: str) -> None:
        """A line on stderr about the whole run; not with `--quiet`."""
        if not self.streams.quiet:
            _run.message(f"{_run.program()}: {text}")


class _Rejects:
    """Bad lines as they were, and beside them a file that says where and why.

    Attributes:
        reasons: path of that file; None where there is none, beside a pipe.
    """

    def __init__(self, path: str) -> None:
        self._lines = open_output(path)
        self._outputs = [self._lines]
        self._reasons: Output | None = None
        self.reasons = f"{path}.reasons.jsonl" if is_regular_target(path) else None
        if self.reasons is not None:
            try:
                self._reasons = FileOutput(self.reasons)
            except BaseException:
                self._lines.discard()
                raise
            self._outputs.append(self._reasons)

    def write(self, reject: Reject) -> None:
        self._lines.write(reject.raw + b"\n")
        if self._reasons is not None:
            place = reject.place
            name = native(place.source).decode("utf-8", "replace")
            reason = {"file": name, "line": place.line, "reason": reject.reason}
            self._reasons.write(records.to_line(reason))

    def flush(self) -> None:
        for output in self._outputs:
            output.flush()

    def commit(self) -> None:
        for output in self._outputs:
            output.commit()


@contextlib.contextmanager
def hint_at_text() -> Iterator[None]:
    """Add to the message about a line that is no record that lines are read with `--text`."""
    try:
        yield
    except InputError as error:
        if not error.reason.startswith(("not JSON", "a record must be")):
            raise
        reason = f"{error.reason} (--text reads plain lines)"
        raise InputError(error.source, error.line, reason) from None
