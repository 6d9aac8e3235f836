"""Blocks of lines through a function, in this process or in several, in order.

Workers are forked, so the function needs no pickling, and what it has loaded is there once for all;
it receives blocks of raw lines and returns blocks of bytes. The order of the results is the order
of the blocks, whatever the number of workers, so the output is the same byte for byte.
"""

from __future__ import annotations

import os
import signal
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from seqtools.errors import RecordError, SeqtoolsError
from seqtools.streams.files import WHOLE, Block, Place, Shard, chomp
from seqtools.streams.records import Record, has_long_number, loads, loads_short, to_line

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

Counts = Counter[str]
Parse = Callable[[bytes], Record]
# A record and its number to what is written in its place: a record, or lines already encoded.
Transform = Callable[[Record, int], Record | bytes]


class Portion(Protocol):
    """What is done at once: a `Block`, or anything that may end with a wait for more."""

    @property
    def pause(self) -> bool:
        """Reading on would wait, so everything so far is to be written out first."""


P = TypeVar("P", bound=Portion)
R = TypeVar("R")


class Together(Protocol):
    """A transform that does the records of a block together, where that is faster."""

    def take(self, record: Record, /) -> Any:
        """What is needed of one record; RecordError where it is not there."""

    def work(self, taken: Sequence[Any], /) -> Iterable[Any]:
        """What becomes of each of them."""

    def write(self, record: Record, made: Any, /) -> bytes:
        """What is written for a record: lines, already encoded. RecordError where that fails."""


# Makes the transform, once and before any fork; what it counts is summed over all workers.
MakeTransform = Callable[[Counts], Transform | Together]


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
    """

    data: bytes
    records: int
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
        """The function that does a block."""
        counts: Counts = Counter()
        transform = self.make(counts)

        def run(block: Block) -> Result:
            if callable(transform):
                result = self._run(block, transform)
            else:
                result = self._run_together(block, transform)
            result.counts = Counter(counts)
            counts.clear()
            return result

        return run

    def _run(self, block: Block, transform: Transform) -> Result:
        parts: list[bytes] = []
        rejects: list[Reject] = []
        records = 0
        parse = self._parser(block)
        for line, number, raw in block.raw_lines(self.shard, self.first_record):
            records += 1
            try:
                made = transform(parse(raw), number)
                parts.append(made if type(made) is bytes else to_line(made))
            except RecordError as error:
                place = Place(block.source, line + error.line, number)
                rejects.append(Reject(place, raw, str(error)))
                if not self.keep_going:
                    break
        return Result(b"".join(parts), records, rejects)

    def _run_together(self, block: Block, transform: Together) -> Result:
        parts: list[bytes] = []
        rejects: list[Reject] = []
        places: list[tuple[int, int, bytes]] = []
        records: list[Record] = []
        taken: list[Any] = []
        parse = self._parser(block)
        for line, number, raw in block.raw_lines(self.shard, self.first_record):
            try:
                record = parse(raw)
                taken.append(transform.take(record))
            except RecordError as error:
                rejects.append(Reject(Place(block.source, line, number), raw, str(error)))
                if not self.keep_going:
                    break
                continue
            records.append(record)
            places.append((line, number, raw))
        count = len(records) + len(rejects)
        made = transform.work(taken)
        for record, one, (line, number, raw) in zip(records, made, places, strict=True):
            try:
                parts.append(transform.write(record, one))
            except RecordError as error:
                rejects.append(Reject(Place(block.source, line, number), raw, str(error)))
                if not self.keep_going:
                    break
        rejects.sort(key=lambda reject: reject.place.line)
        return Result(b"".join(parts), count, rejects)

    def _parser(self, block: Block) -> Parse:
        """What reads this block's lines with the fewest questions about each."""
        parse = block.parse or self.parse
        if parse is loads and not has_long_number(block.data):
            return loads_short  # to which a return at the end is white space
        if block.has_returns():
            return lambda raw: parse(chomp(raw))
        return parse


def map_blocks(
    blocks: Iterable[P], start: Callable[[], Callable[[P], R]], jobs: int
) -> Generator[R, None, None]:
    """The results of the blocks, in order.

    Args:
        blocks: what to do; after one with `pause` all results so far are given before the next
            block is asked for.
        start: makes the function, once; each worker has its own copy.
        jobs: how many processes; 1 is this one.

    Raises:
        SeqtoolsError: a worker died.
    """
    run = start()
    if jobs == 1:
        yield from map(run, blocks)
        return
    pool = _Pool(run, jobs)
    try:
        yield from pool.map(blocks)
    finally:
        pool.close()


class _Pool:
    """Forked workers, each with a pipe; a worker holds one block at a time.

    Results are taken in the order of the blocks; a worker gets its next block before its last
    result is used, so it waits for the pipe only.
    """

    def __init__(self, run: Callable[[Any], Any], jobs: int) -> None:
        import gc
        import multiprocessing

        gc.freeze()  # a collection in a worker would copy all the memory it shares with us
        context: Any = multiprocessing.get_context("fork")
        self._workers: list[tuple[Any, Connection]] = []
        try:
            for _ in range(jobs):
                ours, theirs = context.Pipe()
                others = [pipe for _, pipe in self._workers] + [ours]
                process = context.Process(target=_work, args=(run, theirs, others), daemon=True)
                # A signal between the fork and the worker's own handlers would run ours in it.
                mask = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
                try:
                    process.start()
                    self._workers.append((process, ours))
                finally:
                    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
                theirs.close()
        except BaseException:
            self.close()
            raise

    def map(self, blocks: Iterable[Portion]) -> Iterator[Any]:
        busy: deque[Connection] = deque()
        free = deque(pipe for _, pipe in self._workers)
        errors: list[SeqtoolsError] = []
        for block in until_error(blocks, errors):
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
        if errors:
            raise errors[0]

    def close(self) -> None:
        for process, pipe in self._workers:
            pipe.close()
            process.terminate()
        for process, _ in self._workers:
            process.join()
        self._workers = []

    def _send(self, pipe: Connection, block: Portion) -> None:
        try:
            pipe.send(block)
        except OSError:
            raise SeqtoolsError("a worker process died") from None

    def _receive(self, pipe: Connection) -> Any:
        try:
            answer = pipe.recv()
        except (EOFError, OSError):
            raise SeqtoolsError("a worker process died") from None
        if isinstance(answer, BaseException):
            raise answer
        return answer


def until_error(blocks: Iterable[P], errors: list[SeqtoolsError]) -> Iterator[P]:
    """The blocks; an error of the reader is kept, for after the results of all before it."""
    try:
        yield from blocks
    except SeqtoolsError as error:
        errors.append(error)


def _work(run: Callable[[Any], Any], pipe: Connection, others: list[Connection]) -> None:
    """The life of a worker: blocks in, results out, until the pipe closes."""
    # The parent answers for signals; without its pipe ends we would never see it go.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    for other in others:
        other.close()
    try:
        while True:
            pipe.send(_answer(run, pipe.recv()))
    except (EOFError, OSError):  # the parent has closed it, or gone
        os._exit(0)


def _answer(run: Callable[[P], R], block: P) -> R | BaseException:
    """The result, or the error as one that goes through a pipe and keeps its traceback."""
    try:
        return run(block)
    except SeqtoolsError as error:
        return error
    except BaseException as error:
        import pickle
        import traceback

        note = "".join(traceback.format_exception(error))
        error.add_note(note)
        try:
            pickle.loads(pickle.dumps(error))
            return error
        except Exception:
            plain = RuntimeError(f"{type(error).__name__}: {error}")
            plain.add_note(note)
            return plain
