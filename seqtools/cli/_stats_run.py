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

from seqtools.cli import _run
from seqtools.cli._io import Session
from seqtools.cli._options import Streams, collect, refuse, stream_options
from seqtools.cli._stats_parts import Make, Piece, Watch, merge, missing, state
from seqtools.cli._stats_show import Drawing, draw, will_draw
from seqtools.streams.parallel import Filter, map_blocks
from seqtools.streams.records import Record, loads, to_line

if TYPE_CHECKING:
    from seqtools.streams.files import Block
    from seqtools.streams.parallel import Result
    from seqtools.text.stats import Statistic

F = TypeVar("F", bound=Callable[..., Any])
S = TypeVar("S", bound="Statistic")
# The records of a report, or the first of them, to what is drawn.
Show = Callable[[list[Record]], Iterable[Drawing]]
Regroup = Callable[[Iterator["Block"]], Iterator["Block"]]
# Says on stderr what a user should know of the statistics.
Remark = Callable[[Session, S], None]

# Where a parameter is called otherwise than what is in `Statistic.options`.
_PARAMETERS = {"fields": "field", "list": "listing"}


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
            "--merge", is_flag=True,
            help="Read what --partial wrote, in the corpus's order; options that said what to count"
            " need not be given again.",
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
        make: makes empty statistics; see `Make`.
        show: what is drawn of the report.
        most: how many records of the report `show` is given; None: all.
        remark: says what else there is to say.

    Raises:
        InputError: with `mode.merge`, a part is damaged, of another kind or other options, or of
            records that another one covers.
    """
    if mode.merge:
        refuse(("rejects", "shard", "first_record", "jobs"), "--merge")
    drawn = not mode.partial and will_draw(always=mode.table, quiet=streams.quiet)
    kept: list[Record] = []
    left = 0
    try:
        with Session(streams) as session:
            if mode.merge:
                whole, pieces = merge(session, make, _given())
                for message in () if mode.partial else missing(pieces):
                    _run.warn(message)
            else:
                whole, pieces = _read(session, make, mode)
            if not sum(piece.records for piece in pieces):
                _run.warn("no records")
                remark = None
            for record in state(whole, pieces) if mode.partial else whole.report():
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


def _given() -> set[str]:
    """Options of statistics that were given, so that they are not taken from states."""
    context = click.get_current_context()
    given = {
        name
        for name in context.params
        if context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
    }
    if "corpus" in given:
        given.add("by")  # of one text, that is, and not of classes
    return given | {name for name, parameter in _PARAMETERS.items() if parameter in given}


def _read(session: Session, make: Make[S], mode: Mode) -> tuple[S, list[Piece]]:
    """Take in all records, here or in workers."""
    watch = Watch()
    whole = make({})

    def watched(blocks: Iterator[Block]) -> Iterator[Block]:
        if mode.partial:
            blocks = watch.watch(blocks)
        return blocks if whole.places is None else whole.places.watch(blocks)

    gather = _add if session.streams.jobs == 1 else _gather
    gather(session, whole, make, watched)
    return whole, [watch.piece(session)]


class _Gathering:
    """Takes blocks; in a worker each becomes the state of its own statistics."""

    def __init__(self, make: Make[S], streams: Streams) -> None:
        self._make = make
        self._part = make({})
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
        self._part = self._make({})
        result = self._work(block)
        result.data = b"".join(map(to_line, self._part.dump()))
        return result


def _gather(session: Session, whole: S, make: Make[S], watch: Regroup) -> None:
    """Take in all records, by the statistics of blocks, each from a worker, merged in order."""
    streams = session.streams
    blocks = watch(session.blocks())
    done = map_blocks(blocks, lambda: _Gathering(make, streams), streams.jobs)
    with contextlib.closing(done) as results:
        for result in results:
            session.records += result.records
            for reject in result.rejects:
                session.reject(reject)
            for line in result.data.split(b"\n")[:-1]:
                whole.merge(loads(line))
            session.progress()


def _add(session: Session, whole: S, make: Make[S], watch: Regroup) -> None:
    """Take in all records, in this process."""

    def transform(record: Record, number: int) -> bytes:
        whole.add(record, number)
        return b""

    session.filter(lambda counts: transform, regroup=watch)
