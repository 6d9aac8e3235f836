"""Blocks through a function, in one process or several: the same bytes, and no process left."""

import os
import signal
import subprocess
import sys
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seqtools.errors import ConfigError, FormatError, InputError, RecordError, SeqtoolsError
from seqtools.streams.files import Block, Shard, read_blocks
from seqtools.streams.parallel import Filter, map_blocks
from seqtools.streams.records import get_text, to_line


def make(counts):
    """A transform with a field more, counting characters; a text "bad" is a bad record."""

    def transform(record, number):
        text = get_text(record, "text")
        if text == "bad":
            raise RecordError("bad it is")
        counts["characters"] += len(text)
        return {**record, "number": number}

    return transform


def blocks_of(lines, size, first=1):
    """The lines in blocks of `size`, every second with a pause after it."""
    for start in range(0, len(lines), size):
        data = b"".join(lines[start : start + size])
        yield Block("f", data, start + 1, start + first, start // size % 2 == 0, False)


def outcome(job, blocks, jobs):
    """All that comes out: bytes, rejects, counts."""
    data, rejects, counts, records = b"", [], {}, 0
    for result in map_blocks(blocks, job.start, jobs):
        data += result.data
        rejects += result.rejects
        records += result.records
        for name, count in result.counts.items():
            counts[name] = counts.get(name, 0) + count
    return data, rejects, counts, records


LINES = st.lists(
    st.sampled_from(
        [b'{"text":"a"}\n', b'{"text":"bad"}\n', b'{"id":1}\n', b"{\n", b'{"text":"\xe9"}\n']
    ),
    max_size=30,
)


@settings(max_examples=25, deadline=None)
@given(LINES, st.integers(1, 4), st.integers(2, 4), st.integers(1, 3), st.integers(0, 2))
def test_any_number_of_jobs_gives_the_same(lines, size, jobs, count, first):
    job = Filter(make, shard=Shard(1, count), first_record=first, keep_going=True)
    alone = outcome(job, blocks_of(lines, size, first), 1)
    assert outcome(job, blocks_of(lines, size, first), jobs) == alone
    assert alone[3] == len(range(0, len(lines), count))


class Shouts:
    """Does the texts of a block together; those with a "b" cannot be taken, with a "c" written."""

    def __init__(self, counts):
        self.counts = counts

    def take(self, record):
        text = get_text(record, "text")
        if "b" in text:
            raise RecordError("not to be taken")
        return text

    def work(self, taken):
        self.counts["blocks"] += 1
        return "\n".join(taken).upper().split("\n") if taken else []

    def write(self, record, made):
        if "C" in made:
            raise RecordError("not to be written")
        self.counts["written"] += 1
        return to_line({**record, "text": made})


def one_by_one(counts):
    """The same as an ordinary transform."""
    shouts = Shouts(counts)

    def transform(record, number):
        return shouts.write(record, shouts.take(record).upper())

    return transform


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.sampled_from([b'{"text":"%s"}\n' % text for text in b"a b c".split()] + [b"{\n"])),
    st.integers(1, 6),
    st.integers(1, 2),
    st.booleans(),
)
def test_records_done_together_come_out_as_one_by_one(lines, size, jobs, keep_going):
    expected = outcome(Filter(one_by_one, keep_going=keep_going), blocks_of(lines, size), 1)
    found = outcome(Filter(Shouts, keep_going=keep_going), blocks_of(lines, size), jobs)
    assert found[0] == expected[0]
    if keep_going:
        assert found[1] == expected[1]
        assert found[3] == len(lines)
    else:  # the first in each block is what counts
        first = {(r.place.line - 1) // size: r for r in reversed(found[1])}
        assert [*reversed(first.values())] == expected[1]
    assert found[2].pop("blocks", 0) == -(-len(lines) // size)
    assert {key: n for key, n in found[2].items() if n} == {
        k: n for k, n in expected[2].items() if n
    }


@pytest.mark.parametrize("jobs", [1, 2, 3])
def test_a_block_ends_at_its_first_bad_record(jobs):
    lines = [b'{"text":"a"}\n', b"\n", b'{"text":"bad"}\n', b'{"text":"c"}\n']
    block = Block("f", b"".join(lines), 11, 5, False, False)
    [result] = map_blocks([block], Filter(make, first_record=1).start, jobs)
    assert result.data == b'{"text":"a","number":5}\n'
    [reject] = result.rejects
    assert (reject.raw, reject.reason) == (b'{"text":"bad"}', "bad it is")
    assert tuple(reject.place) == ("f", 13, 6)


def test_a_transform_may_give_lines_instead_of_a_record():
    job = Filter(lambda counts: lambda record, number: b"%d\n%d\n" % (number, number))
    [result] = map_blocks([Block("f", b"{}\r\n{}", 1, 1, False, False)], job.start, 1)
    assert result.data == b"1\n1\n2\n2\n"


@pytest.mark.parametrize("jobs", [1, 2])
def test_results_before_a_pause_are_out_before_the_next_block_is_asked_for(jobs):
    seen = []

    def blocks():
        for number in range(1, 4):
            yield Block("f", b'{"text":"a"}\n', number, number, True, False)
            assert len(seen) == number

    for result in map_blocks(blocks(), Filter(make).start, jobs):
        seen.append(result.data)
    assert len(seen) == 3


@pytest.mark.parametrize("jobs", [1, 2, 3])
def test_what_was_read_before_an_error_of_the_reader_comes_out(jobs):
    def blocks():
        for number in range(1, 6):
            yield Block("f", b'{"text":"a"}\n', number, number, False, False)
        raise FormatError("f: damaged")

    seen = []

    def take():
        for result in map_blocks(blocks(), Filter(make).start, jobs):
            seen.append(result.data)

    with pytest.raises(FormatError, match="f: damaged"):
        take()
    assert len(seen) == 5


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_mistake_in_the_settings_is_told_without_any_input(jobs):
    def start():
        raise ConfigError("no such dictionary")

    with pytest.raises(ConfigError, match="no such dictionary"):
        list(map_blocks([], start, jobs))


class Odd(Exception):
    """Does not come out of a pickle as it went in."""

    def __init__(self, one, two):
        super().__init__(f"{one} {two}")


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize(
    ("error", "caught"),
    [
        (SeqtoolsError("mine"), SeqtoolsError),
        (InputError("f", 3, "why"), InputError),
        (OSError(28, "No space left on device"), OSError),
        (KeyError("x"), KeyError),
        (MemoryError(), MemoryError),
        (Odd("a", "b"), Exception),
    ],
    ids=repr,
)
def test_an_error_in_a_worker_is_raised_here(jobs, error, caught, children):
    def run(block):
        raise error

    with pytest.raises(caught) as found:
        list(map_blocks([block()], lambda: run, jobs))
    assert str(error) in str(found.value)
    if jobs > 1 and not isinstance(error, SeqtoolsError):
        assert "raise error" in found.value.__notes__[0]  # the worker's traceback
    assert children() == []


def test_a_worker_that_dies_is_noticed(children):
    def run(block):
        os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(SeqtoolsError, match="a worker process died"):
        list(map_blocks([block()] * 9, lambda: run, 2))
    assert children() == []


def test_no_worker_is_left_when_the_results_are_not_wanted(children):
    results = map_blocks(blocks_of([b'{"text":"a"}\n'] * 99, 1), Filter(make).start, 3)
    next(results)
    assert len(children()) == 3
    results.close()
    assert children() == []


def test_workers_go_when_their_parent_is_killed(tmp_path):
    script = """
import os, sys, time
from seqtools.streams.files import read_blocks
from seqtools.streams.parallel import Filter, map_blocks
job = Filter(lambda counts: lambda record, number: b"%d\\n" % os.getpid())
for result in map_blocks(read_blocks(["-"]), job.start, 2):
    os.write(1, result.data)
"""
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    workers = []
    for _ in range(2):
        process.stdin.write(b"{}\n")
        process.stdin.flush()
        workers.append(int(process.stdout.readline()))
    process.kill()
    process.stdin.close()
    process.wait()
    assert process.stdout.read() == b""  # at its end: nobody holds it any more
    process.stdout.close()
    deadline = time.monotonic() + 10
    while any(alive(worker) for worker in workers):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_worker_that_is_ended_before_it_began_says_nothing():
    script = """
import signal, sys, time
from seqtools.streams import parallel
class End(BaseException): pass
def end(number, frame): raise End
signal.signal(signal.SIGTERM, end)
work = parallel._work
def late(*arguments):
    time.sleep(0.2)
    work(*arguments)
parallel._work = late
for _ in parallel.map_blocks(iter([]), lambda: lambda block: None, 2): pass
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_the_same_from_files_in_any_number_of_jobs(tmp_path):
    path = tmp_path / "f"
    path.write_bytes(b"".join(b'{"text":"%s"}\n' % (b"ab" * (n % 97)) for n in range(5000)))
    job = Filter(make, keep_going=True)
    outcomes = [outcome(job, read_blocks([str(path)], block_size=7000), jobs) for jobs in (1, 2, 4)]
    assert outcomes[0] == outcomes[1] == outcomes[2]
    assert outcomes[0][0].count(b"\n") == 5000


def block():
    return Block("f", b"{}\n", 1, 1, False, False)


@pytest.fixture
def children():
    """Our child processes, also those that have ended and were not waited for, but older ones."""

    def all_of_them():
        with open(f"/proc/self/task/{os.getpid()}/children") as handle:
            return handle.read().split()

    before = all_of_them()
    return lambda: [child for child in all_of_them() if child not in before]


def alive(process):
    try:
        with open(f"/proc/{process}/stat") as handle:
            return handle.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
