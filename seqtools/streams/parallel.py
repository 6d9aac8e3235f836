"""Blocks of lines through a function, in this process or in several, in order.

Workers are forked, so a worker's function needs no pickling; it receives blocks of raw lines and
returns blocks of bytes. The order of the results is the order of the blocks, whatever the number of
workers, so the output is the same byte for byte.
"""

from __future__ import annotations

import os
import signal
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from seqtools.errors import RecordError, SeqtoolsError
from seqtools.streams.files import WHOLE, Block, Place, Shard, chomp
from seqtools.streams.records import Record, dumps, loads

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

Counts = Counter[str]
Parse = Callable[[bytes], Record]
# A record and its number to what is written in its place: a record, or lines already encoded.
Transform = Callable[[Record, int], Record | bytes]
# Makes the transform inside the process that will run it; what it counts is summed over all
# workers.
MakeTransform = Callable[[Counts], Transform]


class Reject(NamedTuple):
    """A bad line, where it stands and why it is bad."""

    place: Place
    raw: bytes
    reason: str


@dataclass(slots=True)
class Result:
    """What became of one block.

    Attributes:
        data: lines to write, up to the first bad record where the filter stops at it.
        records: how many records were read, the bad ones included.
        rejects: the bad records.
        counts: what the transform counted.
        pause: the block's own `pause`.
    """

    data: bytes
    records: int
    pause: bool
    rejects: list[Reject] = field(default_factory=list)
    counts: Counts = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class Filter:
    """How the records of a block are read and changed.

    Attributes:
        make: makes the transform.
        parse: line to record.
        shard: which records are read at all.
        first_record: number of the input's first record.
        keep_going: bad records are collected instead of ending the block.
    """

    make: MakeTransform
    parse: Parse = loads
    shard: Shard = WHOLE
    first_record: int = 1
    keep_going: bool = False

    def start(self) -> Callable[[Block], Result]:
        """The function that does a block; it is made once a process."""
        counts: Counts = Counter()
        transform = self.make(counts)

        def run(block: Block) -> Result:
            result = self._run(block, transform)
            result.counts = Counter(counts)
            counts.clear()
            return result

        return run

    def _run(self, block: Block, transform: Transform) -> Result:
        parts: list[bytes] = []
        rejects: list[Reject] = []
        records = 0
        parse, keep_going = self.parse, self.keep_going
        for place, raw in block.lines(self.shard, self.first_record):
            records += 1
            try:
                made = transform(parse(chomp(raw)), place.number)
                parts.append(made if type(made) is bytes else dumps(made) + b"\n")
            except RecordError as error:
                rejects.append(Reject(place, raw, str(error)))
                if not keep_going:
                    break
        return Result(b"".join(parts), records, block.pause, rejects)


def map_blocks(
    blocks: Iterable[Block], start: Callable[[], Callable[[Block], Result]], jobs: int
) -> Iterator[Result]:
    """The results of the blocks, in order.

    Args:
        blocks: what to do; after one with `pause` all results so far are given before the next
        block
            is asked for.
        start: makes the function, in this process or once in each worker.
        jobs: how many processes; 1 is this one.

    Raises:
        SeqtoolsError: a worker died or could not start.
    """
    if jobs == 1:
        run = start()
        for block in blocks:
            yield run(block)
        return
    pool = _Pool(start, jobs)
    try:
        yield from pool.map(blocks)
    finally:
        pool.close()


class _Pool:
    """Forked workers, each with a pipe; a worker holds one block at a time.

    Results are taken in the order of the blocks; a worker gets its next block before its last
    result is used, so it waits for the pipe only.
    """

    def __init__(self, start: Callable[[], Callable[[Block], Result]], jobs: int) -> None:
        import multiprocessing

        context: Any = multiprocessing.get_context("fork")
        self._workers: list[tuple[Any, Connection]] = []
        try:
            for _ in range(jobs):
                ours, theirs = context.Pipe()
                others = [pipe for _, pipe in self._workers] + [ours]
                process = context.Process(target=_work, args=(start, theirs, others), daemon=True)
                process.start()
                theirs.close()
                self._workers.append((process, ours))
        except BaseException:
            self.close()
            raise

    def map(self, blocks: Iterable[Block]) -> Iterator[Result]:
        busy: deque[Connection] = deque()
        free = deque(pipe for _, pipe in self._workers)
        for block in blocks:
            result = None
            if not free:
                pipe = busy.popleft()
                result = self._receive(pipe)
                free.append(pipe)
            pipe = free.popleft()
            self._send(pipe, block)
            busy.append(pipe)
            if result is not None:
                yield result
            if block.pause:
                while busy:
                    pipe = busy.popleft()
                    free.append(pipe)
                    yield self._receive(pipe)
        while busy:
            yield self._receive(busy.popleft())

    def close(self) -> None:
        for process, pipe in self._workers:
            pipe.close()
            process.terminate()
        for process, _ in self._workers:
            process.join()
        self._workers = []

    def _send(self, pipe: Connection, block: Block) -> None:
        try:
            pipe.send(block)
        except OSError:
            raise SeqtoolsError("a worker process died") from None

    def _receive(self, pipe: Connection) -> Result:
        try:
            answer = pipe.recv()
        except (EOFError, OSError):
            raise SeqtoolsError("a worker process died") from None
        if isinstance(answer, BaseException):
            raise answer
        result: Result = answer
        return result


def _work(
    start: Callable[[], Callable[[Block], Result]], pipe: Connection, others: list[Connection]
) -> None:
    """The life of a worker: blocks in, results out, until the pipe closes."""
    # The parent answers for signals; without its pipe ends we would never see it go.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    for other in others:
        other.close()
    try:
        run = start()
        while True:
            pipe.send(run(pipe.recv()))
    except (EOFError, OSError):
        os._exit(0)
    except BaseException as error:
        try:
            pipe.send(error)
        except Exception:
            pipe.send(SeqtoolsError(f"a worker process failed: {error}"))
        os._exit(0)
