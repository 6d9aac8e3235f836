"""A run of seq-stats: records into statistics, here or in workers, and parts of them merged.

A kind gives `run_statistic` a function that makes its `Statistic` and one that says what of its
report is to be drawn; options that concern all kinds come from `statistic_options`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from seqtools.cli._io import Session
from seqtools.cli._options import Streams, collect, stream_options
from seqtools.cli._stats_show import Drawing, draw, will_draw
from seqtools.errors import RecordError, SeqtoolsError
from seqtools.streams.parallel import Filter, map_blocks
from seqtools.streams.records import Record, dumps, loads, to_line

if TYPE_CHECKING:
    from seqtools.streams.files import Block
    from seqtools.streams.parallel import Result
    from seqtools.text.stats import Statistic

F = TypeVar("F", bound=Callable[..., Any])
S = TypeVar("S", bound="Statistic")
Make = Callable[[], S]
# The records of a report, or the first of them, to what is drawn.
Show = Callable[[list[Record]], Iterable[Drawing]]
# Says on stderr what a user should know of the statistics.
Remark = Callable[[Session, S], None]

_MAGIC = "statistics"
_VERSION = 1


@dataclass(frozen=True)
class Mode:
    """What is read and what is written; see the options of the same names."""

    merge: bool
    partial: bool
    table: bool


def statistic_options(function: F) -> F:
    """Give a kind what all kinds have: `Streams` first, and `mode`."""
    options = (
        click.option(
            "--partial", is_flag=True,
            help="Write the state instead, for --merge: of a shard, or of a piece of the corpus.",
        ),
        click.option(
            "--merge", is_flag=True, help="Read what --partial wrote, in the corpus's order."
        ),
        click.option(
            "--table", is_flag=True, help="Draw on stderr where it is no terminal, too."
        ),
    )  # fmt: skip
    return collect(Mode, "mode", options)(stream_options(jobs=True)(function))


def run_statistic(
    streams: Streams,
    mode: Mode,
    make: Make[S],
    show: Show,
    *,
    most: int | None = None,
    remark: Remark[S] | None = None,
) -> None:
    """Gather the statistics and write them, as records and, on a terminal, as pictures.

    Args:
        streams: the records, or with `mode.merge` what earlier runs wrote with `--partial`.
        mode: what is read and written.
        make: makes empty statistics.
        show: what is drawn of the report.
        most: how many records of the report `show` is given; None: all.
        remark: says what else there is to say.

    Raises:
        InputError: with `mode.merge`, a part is damaged, or of another kind or other options.
    """
    if mode.merge:
        _refuse_reading(streams)
    drawn = not mode.partial and will_draw(always=mode.table, quiet=streams.quiet)
    kept: list[Record] = []
    left = 0
    try:
        with Session(streams) as session:
            whole = make()
            gather = _merge if mode.merge else _add if streams.jobs == 1 else _gather
            gather(session, whole, make)
            for record in _state(whole) if mode.partial else whole.report():
                session.write(record)
                if drawn and (most is None or len(kept) < most):
                    kept.append(record)
                else:
                    left += drawn
            session.output.flush()
            if remark is not None and not mode.partial:
                remark(session, whole)
    except click.exceptions.Exit:  # all is done, but records were rejected
        draw(show(kept) if drawn else (), left)
        raise
    draw(show(kept) if drawn else (), left)


def _refuse_reading(streams: Streams) -> None:
    """See that nothing was asked for that is about records of a corpus."""
    context = click.get_current_context()
    for name in ("rejects", "shard", "first_record", "jobs"):
        if context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
            option = name.replace("_", "-")
            raise click.UsageError(f"--{option} makes no sense with --merge.")


class _Gathering:
    """Takes blocks; in a worker each becomes the state of its own statistics."""

    def __init__(self, make: Make[S], streams: Streams) -> None:
        self._make = make
        self._part = make()
        self._work = Filter(
            lambda counts: self._add,
            shard=streams.shard,
            first_record=streams.first_record,
            keep_going=streams.rejects is not None,
        ).start()

    def _add(self, record: Record, number: int) -> bytes:
        self._part.add(record, number)
        return b""

    def __call__(self, block: Block) -> Result:
        self._part = self._make()
        result = self._work(block)
        result.data = b"".join(map(to_line, self._part.dump()))
        return result


def _gather(session: Session, whole: S, make: Make[S]) -> None:
    """Take in all records, by the statistics of blocks, each from a worker, merged in order."""
    streams = session.streams
    blocks = session.blocks()
    if whole.places is not None:
        blocks = whole.places.watch(blocks)
    done = map_blocks(blocks, lambda: _Gathering(make, streams), streams.jobs)
    with contextlib.closing(done) as results:
        for result in results:
            session.records += result.records
            for reject in result.rejects:
                session.reject(reject)
            for line in result.data.split(b"\n")[:-1]:
                whole.merge(loads(line))
            session.progress()


def _add(session: Session, whole: S, make: Make[S]) -> None:
    """Take in all records, in this process."""

    def transform(record: Record, number: int) -> bytes:
        whole.add(record, number)
        return b""

    watch = None if whole.places is None else whole.places.watch
    session.filter(lambda counts: transform, regroup=watch)


def _state(statistic: Statistic) -> Iterator[Record]:
    """The state between a header, which says of what, and an end, which says how much."""
    head = {"seqtools": _MAGIC, "version": _VERSION}
    yield {**head, "kind": statistic.kind, "options": statistic.options}
    count = 0
    for count, part in enumerate(statistic.dump(), 1):  # noqa: B007
        yield part
    yield {"seqtools": _MAGIC, "end": count}


def _merge(session: Session, whole: S, make: Make[S]) -> None:
    merging = _Merging(whole)
    name = ""
    for place, _ in session.read(merging.take):
        name = place.source
    if merging.open:
        raise SeqtoolsError(f"{name}: the statistics end too early")
    if not merging.parts:
        raise SeqtoolsError("there are no statistics to merge")


class _Merging:
    """Takes parts, record by record; each begins with a header and ends with a count."""

    def __init__(self, whole: Statistic) -> None:
        self.whole = whole
        self.open = False
        self.parts = 0
        self._count = 0

    def take(self, record: Record) -> None:
        if record.get("seqtools") != _MAGIC:
            self._take_state(record)
        elif "end" in record:
            if not self.open or record["end"] != self._count:
                raise RecordError("records of the statistics are missing")
            self.open = False
        else:
            self._check(record)
            self.open, self._count = True, 0
            self.parts += 1

    def _check(self, head: Record) -> None:
        if self.open:
            raise RecordError("the statistics before this line end too early")
        if head.get("version") != _VERSION:
            raise RecordError(f"statistics of version {head.get('version')}, not {_VERSION}")
        if head.get("kind") != self.whole.kind:
            raise RecordError(f"statistics of kind {head.get('kind')}, not {self.whole.kind}")
        theirs, ours = head.get("options"), self.whole.options
        if theirs != ours:
            raise RecordError(f"statistics with {_spell(theirs)}, not {_spell(ours)}")

    def _take_state(self, record: Record) -> None:
        if not self.open:
            raise RecordError("not what seq-stats --partial wrote")
        try:
            self.whole.merge(record)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
            raise RecordError(f"no part of statistics of kind {self.whole.kind}") from None
        self._count += 1


def _spell(options: Any) -> str:
    if not isinstance(options, dict):
        return "no options"
    return ", ".join(f"{name} {dumps(value).decode()}" for name, value in options.items())
