import json
import subprocess
import sys

import numpy as np
import pytest

from seqtools.batching.stream import Batch, Header
from seqtools.text.vocab import Vocabulary
from tests.cli.helpers import ROOT, run, shell

RECORDS = b"".join(
    json.dumps({"id": f"r{i}", "tokens": list("abcab"[: i % 6])}).encode() + b"\n"
    for i in range(40)
)
PAIRS = b'{"src_tokens":["a"],"tgt_tokens":["b","a"]}\n{"src_tokens":["b","c"],"tgt_tokens":[]}\n'


SPAN = ("seq2seq", "--objective", "span", "--vocab", "vocab")


@pytest.fixture
def folder(tmp_path):
    vocabulary = Vocabulary.build({"a": 3, "b": 2, "c": 1})
    lines = [json.dumps(entry) + "\n" for entry in vocabulary.entries()]
    (tmp_path / "vocab").write_text("".join(lines))
    roles = ("pad", "unk", "mask", "cls", "sep")
    masked = Vocabulary.build({"a": 3, "b": 2, "c": 1}, specials=roles)
    lines = [json.dumps(entry) + "\n" for entry in masked.entries()]
    (tmp_path / "mlm.vocab").write_text("".join(lines))
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


def test_an_mlm_stream_hides_other_tokens_each_epoch(folder):
    done = batch(folder, "mlm", "--vocab", "mlm.vocab", "--epochs", "2", "--mask-rate", "0.5",
                 "--no-shuffle", "records")  # fmt: skip
    header, batches = read(done)
    assert (header.task, header.targets, header.batches) == ("mlm", None, [1, 1])
    first, second = batches
    assert first.inputs.tolist() != second.inputs.tolist()
    texts = [np.where(b.targets < 0, b.inputs, b.targets).tolist() for b in batches]
    assert texts[0] == texts[1]
    assert {len(b.records) for b in batches} == {33}  # 7 of 40 are empty
    assert "records left out, as they are empty: 7" in done.stderr


def test_words_are_hidden_whole(folder):
    text = "我来到北京清华大学" * 3
    (folder / "zh").write_text("".join(json.dumps({"tokens": list(text)}) + "\n" for _ in range(9)))
    vocabulary = "seq-vocab build --specials pad,unk,mask zh > zh.vocab"
    assert shell(vocabulary, cwd=folder).status == 0
    _, (found,) = read(batch(folder, "mlm", "--vocab", "zh.vocab", "--whole-word", "zh"))
    words = [(0, 1), (1, 3), (3, 5), (5, 9)]  # 我 来到 北京 清华大学
    hidden = 0
    for row in (found.targets != -100).tolist():
        for start in (0, 9, 18):
            for first, end in words:
                assert len(set(row[start + first : start + end])) == 1
                hidden += row[start + first]
    assert 9 <= hidden <= 18  # of 12 words in each row 1.8


def test_a_pair_in_the_middle_needs_cls_and_sep(folder):
    (folder / "bare.vocab").write_text(
        '{"id":0,"token":"<mask>","special":"mask"}\n{"id":1,"token":"a"}\n'
    )
    records = b'{"tokens":["a"]}\n{"tokens":["a"],"text_pair_tokens":["a"]}\n'
    done = batch(folder, "mlm", "--vocab", "bare.vocab", stdin=records)
    message = "seq-batch: the vocabulary has no <cls> and <sep>, which pairs of texts need\n"
    assert (done.status, done.stdout, done.stderr) == (2, b"", message)


def test_one_record_has_no_next_one(folder):
    arguments = ("mlm", "--vocab", "mlm.vocab", "--next-sentence")
    done = batch(folder, *arguments, stdin=b'{"tokens":["a"]}\n')
    message = "seq-batch: one record alone makes no pair; at least two must have tokens\n"
    assert (done.status, done.stdout, done.stderr) == (1, b"", message)
    assert batch(folder, *arguments, stdin=b"").status == 0


def test_bad_second_texts_can_be_rejected(folder):
    records = b'{"tokens":["a"],"text_pair_tokens":"b"}\n{"tokens":["a"],"text_pair_tokens":null}\n'
    done = batch(folder, "mlm", "--vocab", "mlm.vocab", "--rejects", "bad", stdin=records)
    assert done.status == 3
    assert (folder / "bad").read_bytes() == records.splitlines(keepends=True)[0]


def test_spans_make_pairs_of_plain_text(folder):
    header, (found,) = read(batch(folder, *SPAN, "--sentinels", "5", "records"))
    assert header.task == "seq2seq"
    joint = header.vocabularies["target"]
    assert joint == header.vocabularies["source"]
    assert joint.tokens[-5:] == [f"<extra_id_{i}>" for i in range(5)]
    assert len(found.records) == 33
    assert found.target_count == header.targets[0]


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
        (["seq2seq", "--vocab", "vocab", "--mask-rate", "0.2"], "need --objective span"),
        (["seq2seq", "--vocab", "vocab", "--sentinels", "9"], "need --objective span"),
        ([*SPAN, "--mask-rate", "1"], "below 1"),
        ([*SPAN, "--span-length", "0"], "at least 1"),
        ([*SPAN, "--sentinels", "1"], "--sentinels"),
        (["seq2seq", "--source-vocab", "vocab", "--objective", "span"], "span needs --vocab FILE"),
        (["mlm"], "--vocab"),
        (["mlm", "--vocab", "mlm.vocab", "--mask-rate", "0"], "above 0"),
        (["mlm", "--vocab", "mlm.vocab", "--mask-rate", "nan"], "--mask-rate"),
        (["mlm", "--vocab", "mlm.vocab", "--steps", "3"], "--steps"),
        (["mlm", "--vocab", "mlm.vocab", "--drop-last"], "--drop-last needs"),
        (["mlm", "--vocab", "mlm.vocab", "--next-sentence", "--shard", "1/2"], "not a --shard"),
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
        (["mlm", "--vocab", "vocab"], "the vocabulary has no <mask> to hide tokens with"),
        (
            ["mlm", "--vocab", "mlm.vocab", "--max-length", "4"],
            "the maximal length must be at least 5, symbols counted",
        ),
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
        "cli.main(['mlm', '--vocab', 'mlm.vocab', 'records', '-o', 'o'], standalone_mode=False)\n"
        "assert not {'torch', 'numba', 'jieba'} & set(sys.modules)\n"
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
