import json
import subprocess
import sys

import pytest

from seqtools.batching.stream import Batch, Header
from seqtools.text.vocab import Vocabulary
from tests.cli.helpers import ROOT, run, shell

RECORDS = b"".join(
    json.dumps({"id": f"r{i}", "tokens": list("abcab"[: i % 6])}).encode() + b"\n"
    for i in range(40)
)
PAIRS = b'{"src_tokens":["a"],"tgt_tokens":["b","a"]}\n{"src_tokens":["b","c"],"tgt_tokens":[]}\n'


@pytest.fixture
def folder(tmp_path):
    vocabulary = Vocabulary.build({"a": 3, "b": 2, "c": 1})
    lines = [json.dumps(entry) + "\n" for entry in vocabulary.entries()]
    (tmp_path / "vocab").write_text("".join(lines))
    (tmp_path / "records").write_bytes(RECORDS)
    (tmp_path / "pairs").write_bytes(PAIRS)
    return tmp_path


def batch(folder, *arguments, stdin=b""):
    return run("seq-batch", *arguments, cwd=folder, stdin=stdin)


def read(done):
    """The header and the batches of a stream."""
    assert done.status == 0, done.stderr
    return Header.from_bytes(done.lines[0]), [Batch.from_bytes(line) for line in done.lines[1:]]


def test_an_lm_stream_keeps_its_promises(folder):
    for sampling in ("random", "sequential", "records"):
        done = batch(
            folder, "lm", "--vocab", "vocab", "--sampling", sampling, "--epochs", "3", "records"
        )
        header, batches = read(done)
        assert header.task == "lm"
        assert header.vocabularies == {"tokens": Vocabulary.read(str(folder / "vocab"))}
        for epoch in (1, 2, 3):
            own = [b for b in batches if b.epoch == epoch]
            assert [b.index for b in own] == list(range(1, header.batches[epoch - 1] + 1))
            assert sum(b.target_count for b in own) == header.targets[epoch - 1]


def test_the_same_bytes_from_a_file_and_from_a_pipe(folder):
    arguments = ("lm", "--vocab", "vocab", "--sampling", "records", "--seed", "4")
    one = batch(folder, *arguments, "records")
    assert one.stdout == batch(folder, *arguments, stdin=RECORDS).stdout
    other = batch(folder, *arguments[:-1], "5", "records")
    assert one.stdout != other.stdout


def test_output_file(folder):
    arguments = ("seq2seq", "--vocab", "vocab", "pairs")
    done = batch(folder, *arguments, "-o", "out.jsonl.gz")
    assert (done.status, done.stdout) == (0, b"")
    unpacked = shell("gzip -dc out.jsonl.gz", cwd=folder).stdout
    assert unpacked == batch(folder, *arguments).stdout


def test_quiet_says_nothing_but_warnings(folder):
    arguments = ("seq2seq", "--vocab", "vocab", "--batch-tokens", "2", "pairs")
    loud, quiet = batch(folder, *arguments), batch(folder, *arguments, "--quiet")
    assert "records: 2; source tokens: 3 (0.0% unknown); target tokens: 2" in loud.stderr
    warning = (
        "seq-batch: warning: records above --batch-tokens by themselves, each in a batch alone: 2\n"
    )
    assert quiet.stderr == warning
    assert quiet.stdout == loud.stdout


def test_records_are_numbered_from_first_record_and_sharded(folder):
    arguments = ("lm", "--vocab", "vocab", "--sampling", "records", "--no-shuffle")
    records = b'{"tokens":[]}\n' * 5
    _, batches = read(batch(folder, *arguments, "--first-record", "10", stdin=records))
    assert [n for b in batches for n in b.records] == [10, 11, 12, 13, 14]
    _, batches = read(batch(folder, *arguments, "--shard", "2/2", stdin=records))
    assert [n for b in batches for n in b.records] == [2, 4]


def test_a_bad_record_stops_before_anything_is_written(folder):
    done = batch(folder, "lm", "--vocab", "vocab", stdin=b'{"tokens":["a"]}\n\n{"tokens":"abc"}\n')
    message = 'seq-batch: <stdin>:3: "tokens" must be a list of strings, got string\n'
    assert (done.status, done.stdout, done.stderr) == (1, b"", message)


def test_too_long_can_be_rejected(folder):
    done = batch(
        folder, "lm", "--vocab", "vocab", "--sampling", "records", "--max-length", "3",
        "--truncate", "error", "--rejects", "bad", "records",
    )  # fmt: skip
    assert done.status == 3
    longer = [line for line in RECORDS.splitlines() if len(json.loads(line)["tokens"]) > 2]
    assert (folder / "bad").read_bytes().splitlines() == longer


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["lm", "--vocab", "vocab", "--batch-size", "0"], "--batch-size"),
        (["lm", "--vocab", "vocab", "--steps", "-1"], "--steps"),
        (["lm", "--vocab", "vocab", "--epochs", "1.5"], "--epochs"),
        (["lm", "--vocab", "vocab", "--seed", "nan"], "--seed"),
        (["lm", "--vocab", "vocab", "--offset", "-1"], "--offset"),
        (["lm", "--vocab", "vocab", "--offset", "35"], "--offset must be below --steps, 35"),
        (["lm", "--vocab", "vocab", "--batch-tokens", "34"], "--batch-tokens must be at least"),
        (["lm", "--vocab", "vocab", "--sampling", "records", "--steps", "5"], "--steps does not"),
        (["lm", "--vocab", "vocab", "--sampling", "records", "--offset", "0"], "--offset does not"),
        (["lm", "--vocab", "vocab", "--sampling", "records", "--drop-last"], "--drop-last needs"),
        (["lm", "--vocab", "vocab", "--truncate", "left"], "--truncate needs --max-length"),
        (["lm", "--vocab", "vocab", "--sampling", "some"], "--sampling"),
        (["lm"], "--vocab"),
        (["seq2seq", "--source-vocab", "vocab"], "--target-vocab FILE is needed"),
        (["seq2seq", "--target-vocab", "vocab"], "--source-vocab FILE is needed"),
        (["seq2seq", "--vocab", "vocab", "--source-vocab", "vocab"], "--vocab stands for both"),
        (["seq2seq", "--vocab", "vocab", "--drop-last", "--batch-size", "2", "--batch-tokens", "9"],
         "--drop-last needs"),
        (["seq2seq", "--vocab", "vocab", "--steps", "3"], "--steps"),
        (["classify"], "classify"),
    ],
)  # fmt: skip
def test_usage_errors_come_before_any_input(folder, arguments, message):
    done = batch(folder, *arguments, "no-such-file")
    assert done.status == 2
    assert done.stdout == b""
    assert message in done.stderr
    assert done.stderr.startswith("Usage: seq-batch")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["lm", "--vocab", "none"], "none: No such file or directory"),
        (["lm", "--vocab", "."], ".: is a directory"),
        (["lm", "--vocab", "vocab", "none"], "none: No such file or directory"),
        (["lm", "--vocab", "bare"], "the vocabulary has no </s> to put behind sequences"),
    ],
)
def test_files_that_do_not_serve(folder, arguments, message):
    (folder / "bare").write_text('{"id":0,"token":"a"}\n')
    done = batch(folder, *arguments)
    assert (done.status, done.stdout, done.stderr) == (2, b"", f"seq-batch: {message}\n")


def test_a_reader_that_goes_away(folder):
    line = "seq-batch lm --vocab vocab --epochs 3000 --quiet records | head -n 2 | wc -l"
    done = shell(line, cwd=folder)
    assert (done.status, done.stdout.strip(), done.stderr) == (0, b"2", "")


def test_nothing_heavy_is_loaded_for_help():
    code = (
        "import sys; sys.argv = ['seq-batch']; import seqtools.cli.batch;"
        "print({'torch', 'numpy', 'numba', 'rich', 'jieba', 'sacrebleu'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=True)
    assert done.stdout == b"set()\n"


def test_batching_loads_no_torch(folder):
    code = (
        "import sys\nfrom seqtools.cli.batch import cli\n"
        "cli.main(['lm', '--vocab', 'vocab', 'records', '-o', 'out'], standalone_mode=False)\n"
        "assert 'torch' not in sys.modules and 'numba' not in sys.modules\n"
    )
    environment = {"PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", code], cwd=folder, env=environment, check=True)


def test_a_vocabulary_of_another_text_is_noticed(tmp_path):
    vocab = tmp_path / "v"
    vocab.write_bytes(run("seq-vocab", "build", stdin=b'{"tokens":["a","b"]}\n').stdout)
    options = ("lm", "--vocab", str(vocab), "--sampling", "records")
    other = run("seq-batch", *options, stdin=b'{"tokens":["q","r","a"]}\n')
    assert other.status == 0
    assert "warning: 66.7% of the tokens are not in their vocabulary" in other.stderr
    fitting = run("seq-batch", *options, stdin=b'{"tokens":["a","b","a","c"]}\n')
    assert "warning" not in fitting.stderr
