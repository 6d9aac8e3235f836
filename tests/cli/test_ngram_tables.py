"""seq-ngram extract, count, merge: the same bytes whichever way the work is done."""

import json
import os
import pathlib
import random
import subprocess
from collections import Counter

import pytest

from seqtools.cli import _ngram_tables
from seqtools.ngram import tables
from seqtools.ngram.extraction import ngrams
from tests.cli.helpers import command, environment, run

ORDERS = [1, 2, 4]


def corpus(size: int) -> list[list[str]]:
    """Records of a few words with very different frequencies."""
    source = random.Random(5)
    return [
        [f"w{int(3000 ** source.random())}" for _ in range(source.randrange(20))]
        for _ in range(size)
    ]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """`text` with plain lines, `records` with the same as JSON, `counts` as they must be."""
    made = tmp_path_factory.mktemp("corpus")
    records = corpus(3000)
    made.joinpath("text").write_text("".join(" ".join(r) + "\n" for r in records))
    made.joinpath("records").write_text("".join(json.dumps({"tokens": r}) + "\n" for r in records))
    counts = Counter(tuple(gram) for r in records for gram in ngrams(r, ORDERS, "one"))
    made.joinpath("counts").write_text(
        "".join(
            json.dumps({"ngram": gram, "count": count}, separators=(",", ":")) + "\n"
            for gram, count in sorted(counts.items())
        )
    )
    return made


def count(folder: pathlib.Path, *arguments: str) -> bytes:
    done = run("seq-ngram", "count", "--quiet", "--order", "1,2,4", *arguments, cwd=folder)
    assert (done.status, done.stderr) == (0, "")
    return done.stdout


def test_text_records_jobs_and_memory_give_the_same_counts(folder):
    expected = folder.joinpath("counts").read_bytes()
    assert count(folder, "--text", "text") == expected
    assert count(folder, "records") == expected
    assert count(folder, "--jobs", "4", "records") == expected
    assert count(folder, "--text", "-S", "1", "text") == expected
    assert count(folder, "-S", "300K", "-T", ".", "--jobs", "2", "records") == expected


@pytest.mark.parametrize("options", [("records",), ("--text", "text")])
def test_the_counts_of_shards_add_up_to_those_of_the_whole(folder, tmp_path, options):
    parts = []
    for number in ("1", "2"):
        parts.append(str(tmp_path / f"{number}.gz"))
        target = ("-o", parts[-1])
        assert count(folder, "--shard", f"{number}/2", *options, *target) == b""
    done = run("seq-ngram", "merge", "--quiet", *parts)
    assert (done.status, done.stderr) == (0, "")
    assert done.stdout == folder.joinpath("counts").read_bytes()


def test_rare_ngrams_are_left_out_at_once_or_in_the_end(folder):
    expected = b"".join(
        line
        for line in folder.joinpath("counts").read_bytes().splitlines(keepends=True)
        if json.loads(line)["count"] >= 3
    )
    assert count(folder, "--min-count", "3", "records") == expected
    done = run("seq-ngram", "merge", "--quiet", "--min-count", "3", str(folder / "counts"))
    assert done.stdout == expected


def test_temporary_files_leave_nothing_and_need_a_folder(folder, tmp_path):
    count(folder, "-S", "1", "-T", str(tmp_path), "records")
    assert os.listdir(tmp_path) == []
    done = run("seq-ngram", "count", "--order", "2", "-T", str(tmp_path / "missing"))
    assert done.status == 2
    assert "missing: no temporary files there" in done.stderr


def test_the_report_appears_whole_or_not_at_all(tmp_path):
    report = tmp_path / "report"
    for line, status in ((b'{"tokens":["a"]}\n', 0), (b"{\n", 1), (b"", 0)):
        report.write_bytes(b"old")
        done = run("seq-ngram", "count", "--order", "1-2", "--report", str(report), stdin=line)
        assert done.status == status
        assert (report.read_bytes() == b"old") == bool(status)
        assert os.listdir(tmp_path) == ["report"]
    for option in ("--report", "--heldout"):
        paths = {"--report": str(report), "--heldout": "/dev/null"} | {option: "missing/x"}
        done = run("seq-ngram", "count", "--order", "2", *(w for p in paths.items() for w in p))
        assert done.status == 2
        assert "missing/x" in done.stderr


def test_a_bad_record_of_the_heldout_text_is_named(tmp_path):
    report = str(tmp_path / "report")
    for data, options, reason in (
        (b'{"tokens":["a"]}\n\n{"tokens":["<s>"]}\n', (), '"tokens" has a token spelled <s>'),
        (b"a\n\n\xff\n", ("--text",), "not UTF-8"),
    ):
        tmp_path.joinpath("heldout").write_bytes(data)
        heldout = str(tmp_path / "heldout")
        done = run(
            "seq-ngram", "count", "--order", "2", "--report", report, "--heldout", heldout, *options
        )
        assert (done.status, done.stdout) == (1, b"")
        assert f"{heldout}:3: {reason}" in done.stderr


def test_sums_are_out_before_merge_waits(tmp_path):
    """What cannot change any more is written when nothing more comes."""
    read, write = os.pipe()
    other = tmp_path / "other"
    other.write_bytes(b'{"ngram":["c"],"count":5}\n')
    with subprocess.Popen(
        [*command("seq-ngram"), "merge", "--quiet", "-", str(other)],
        stdin=read, stdout=subprocess.PIPE, env=environment(),
    ) as process:  # fmt: skip
        os.close(read)
        os.write(write, b'{"ngram":["a"],"count":1}\n{"ngram":["b"],"count":2}\n')
        assert process.stdout.readline() == b'{"ngram":["a"],"count":1}\n'
        os.write(write, b'{"ngram":["b"],"count":3}\n')
        os.close(write)
        assert process.stdout.read() == b'{"ngram":["b"],"count":5}\n{"ngram":["c"],"count":5}\n'
        assert process.wait(30) == 0


def test_the_highest_order_is_that_of_the_library():
    assert _ngram_tables.HIGHEST == tables.HIGHEST
