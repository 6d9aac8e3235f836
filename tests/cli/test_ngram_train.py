"""seq-ngram train: the same model whichever way the text comes and the work is done."""

import gzip
import itertools
import json
import os
import pathlib
import random
import signal
import subprocess
import time
from collections import Counter
from functools import partial

import click
import pytest

from seqtools.cli import _ngram_train
from seqtools.ngram import model, smoothing
from tests.cli.helpers import command, environment, run


def lines(size: int = 2000) -> list[list[str]]:
    """Records of a few words with very different frequencies."""
    source = random.Random(3)
    return [
        [f"w{int(2000 ** source.random())}" for _ in range(source.randrange(12))]
        for _ in range(size)
    ]


@pytest.fixture
def corpus(tmp_path: pathlib.Path) -> pathlib.Path:
    """`text` with plain lines, `records` with the same as JSON."""
    records = lines()
    tmp_path.joinpath("text").write_text("".join(" ".join(r) + "\n" for r in records))
    tmp_path.joinpath("records").write_text(
        "".join(json.dumps({"tokens": r}) + "\n" for r in records)
    )
    return tmp_path


def train(folder: pathlib.Path, *arguments: str, name: str = "model.arpa") -> bytes:
    done = run("seq-ngram", "train", "--quiet", "--order", "3", "-o", name, *arguments, cwd=folder)
    assert (done.status, done.stdout, done.stderr) == (0, b"", "")
    return folder.joinpath(name).read_bytes()


def test_text_records_jobs_and_memory_make_the_same_model(corpus: pathlib.Path) -> None:
    expected = train(corpus, "--text", "text")
    assert expected.startswith(b"\\data\\\nngram 1=")
    assert train(corpus, "records") == expected
    assert train(corpus, "--jobs", "4", "records") == expected
    assert train(corpus, "--text", "-S", "1", "text") == expected
    assert train(corpus, "--text", "-S", "20K", "-T", ".", "text") == expected
    assert gzip.decompress(train(corpus, "records", name="model.arpa.gz")) == expected


def test_the_binary_model_is_the_same(corpus: pathlib.Path) -> None:
    train(corpus, "records")
    train(corpus, "records", name="model.safetensors")
    binary = model.load(str(corpus / "model.safetensors"))
    arpa = model.load(str(corpus / "model.arpa"))
    assert binary.words.strings() == arpa.words.strings()
    for ours, theirs in zip(binary.levels, arpa.levels, strict=True):
        assert ours.words[:].tolist() == theirs.words[:].tolist()
        assert ours.begins[:].tolist() == theirs.begins[:].tolist()
        for name in ("log10probs", "log10backoffs"):
            left, right = getattr(ours, name)[:].tolist(), getattr(theirs, name)[:].tolist()
            assert left == pytest.approx(right, abs=1e-7)


def test_shards_take_every_nth_record(corpus: pathlib.Path) -> None:
    half = [" ".join(record) for record in lines()[1::2]]
    corpus.joinpath("half").write_text("\n".join(half))
    expected = train(corpus, "--text", "half")
    assert train(corpus, "--shard", "2/2", "records") == expected
    assert train(corpus, "--text", "--shard", "2/2", "text") == expected


def test_pruning_leaves_out_what_is_seen_so_often_or_less(corpus: pathlib.Path) -> None:
    train(corpus, "--prune", "0,0,1", "records")
    seen = [
        tuple(words[i : i + 3])
        for record in lines()
        for words in [["<s>", *record, "</s>"]]
        for i in range(len(words) - 2)
    ]
    kept = [gram for gram, count in Counter(seen).items() if count > 1]
    assert len(model.load(str(corpus / "model.arpa")).levels[2]) == len(kept)


def test_weights_from_heldout_text(corpus: pathlib.Path) -> None:
    options = ("--smoothing", "jelinek-mercer", "--heldout")
    expected = train(corpus, *options, "records", "records")
    assert train(corpus, *options, "text", "--text", "text") == expected


def test_a_word_spelled_unk(tmp_path: pathlib.Path) -> None:
    tmp_path.joinpath("in").write_text("a <unk>\n<unk> b\n")
    name = "model.safetensors"
    train(tmp_path, "--text", "--smoothing", "witten-bell", "--unk-as-word", "in", name=name)
    made = model.load(str(tmp_path / name))
    assert made.words.strings()[3:] == [b"<unk>", b"a", b"b"]
    done = run("seq-ngram", "train", "--order", "1", "--unk-as-word", "-o", "m.arpa", cwd=tmp_path)
    assert done.status == 2
    assert "ARPA cannot hold a word <unk> beside the model's own" in done.stderr


@pytest.mark.parametrize(
    ("options", "data", "reason"),
    [
        ([], b'{"tokens":["a"]}\n{"tokens":1}\n', '"tokens" must be a list of strings, got number'),
        (["--text"], b"a\n\xff\n", "not UTF-8"),
    ],
)
def test_a_heldout_line_that_is_bad_is_named(
    tmp_path: pathlib.Path, options: list[str], data: bytes, reason: str
) -> None:
    tmp_path.joinpath("held").write_bytes(data)
    done = run(
        "seq-ngram", "train", "--order", "1", "--smoothing", "jelinek-mercer", "--quiet",
        "--heldout", "held", "-o", "m.arpa", *options, stdin=b'{"tokens":["a"]}\n', cwd=tmp_path,
    )  # fmt: skip
    assert done.status == 1
    assert done.stderr == f"seq-ngram: held:2: {reason}\n"
    assert not tmp_path.joinpath("m.arpa").exists()


def test_a_heldout_file_that_cannot_be_read_is_named_before_the_work(
    tmp_path: pathlib.Path,
) -> None:
    options = ["--order", "1", "--smoothing", "jelinek-mercer", "-o", "m.arpa", "--heldout"]
    done = run("seq-ngram", "train", *options, "nowhere", stdin=b"{\n", cwd=tmp_path)
    assert done.status == 2
    assert done.stderr == "seq-ngram: nowhere: No such file or directory\n"


@pytest.mark.parametrize("option", ["--heldout", "--vocab"])
def test_stdin_is_read_once(tmp_path: pathlib.Path, option: str) -> None:
    smoothing = "jelinek-mercer" if option == "--heldout" else "mle"
    options = ["--order", "1", "--smoothing", smoothing, "-o", "m.arpa", option, "-"]
    done = run("seq-ngram", "train", *options, stdin=b'{"tokens":["a"]}\n', cwd=tmp_path)
    assert done.status == 2
    assert f"{option} and the records cannot both come from stdin" in done.stderr


def test_no_folder_for_temporary_files(tmp_path: pathlib.Path) -> None:
    done = run("seq-ngram", "train", "--order", "1", "-T", "nowhere", "-o", "m.arpa", cwd=tmp_path)
    assert done.status == 2
    assert (
        done.stderr == "seq-ngram: nowhere: no temporary files there: No such file or directory\n"
    )


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--add", "1"], "--add is for --smoothing add-k"),
        (["--smoothing", "witten-bell", "--add", "0.5"], "--add is for --smoothing add-k"),
        (["--smoothing", "add-k", "--discount-fallback"], "add-k has no discounts"),
        (["--smoothing", "mle", "--fallback-discounts", "0,1,1"], "mle has no discounts"),
        (["--smoothing", "absolute", "--discount", "0.5", "--discount-fallback"], "leaves no"),
        (["--smoothing", "add-k", "--no-interpolate-unigrams"], "add-k does not mix unigrams"),
        (["--discount-fallback", "0.5", "1", "1.5"], "--fallback-discounts does"),
    ],
)
def test_options_that_would_do_nothing_are_refused(
    tmp_path: pathlib.Path, options: list[str], reason: str
) -> None:
    done = run("seq-ngram", "train", "--order", "1", "-o", "m.arpa", *options, cwd=tmp_path)
    assert (done.status, done.stdout) == (2, b"")
    assert reason in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_what_refuses_fallbacks_is_what_the_library_does_not_discount() -> None:
    without = [method for method in smoothing.METHODS if not smoothing.Smoothing(method).discounted]
    for method in smoothing.METHODS:
        heldout = "held" if method == "jelinek-mercer" else None
        choices = partial(_ngram_train.Choices, 2, method, heldout=heldout)
        if method in without:
            with pytest.raises(click.UsageError):
                choices(discount_fallback=True)
        else:
            assert choices(discount_fallback=True).settings().smoothing.fallback is not None


def test_the_methods_of_the_help_are_those_of_the_library() -> None:
    assert _ngram_train.METHODS == smoothing.METHODS


def test_all_say_how_many_unigrams_there_are(tmp_path: pathlib.Path) -> None:
    """Without <unk>: two words, <s> and </s>."""
    for name in ("m.arpa", "m.safetensors"):
        options = ["--order", "1", "--smoothing", "mle", "--no-unk", "--text", "-o", name]
        done = run("seq-ngram", "train", *options, stdin=b"a b\n", cwd=tmp_path)
        assert "seq-ngram: 1 records, 2 tokens, 4 words\n" in done.stderr
        assert "seq-ngram: order 1: 4 n-grams\n" in done.stderr
        [found] = run("seq-ngram", "check", "--model", name, "--quiet", cwd=tmp_path).lines
        assert (json.loads(found)["words"], json.loads(found)["ngrams"]) == (4, [4])
    assert b"ngram 1=4\n" in tmp_path.joinpath("m.arpa").read_bytes()


def test_a_cache_that_cannot_be_written_is_no_error(corpus: pathlib.Path) -> None:
    """And what is compiled anew is told."""
    folder = corpus / "cache"
    env = environment(XDG_CACHE_HOME=str(folder))
    options = ["train", "--order", "1", "--smoothing", "mle", "--text", "-o", "m.arpa", "text"]
    first = run("seq-ngram", *options, cwd=corpus, env=env)
    assert first.status == 0
    assert first.stderr.startswith("seq-ngram: compiling, this once\n")
    second = run("seq-ngram", *options, cwd=corpus, env=env)
    assert "compiling" not in second.stderr
    folder.joinpath("file").touch()
    env = environment(XDG_CACHE_HOME=str(folder / "file"))
    assert run("seq-ngram", *options, cwd=corpus, env=env).status == 0


def test_arpa_into_a_closed_pipe_ends_quietly(corpus: pathlib.Path) -> None:
    words = " ".join(f"{a}{b}" for a, b in itertools.product(range(300), range(300)))
    corpus.joinpath("long").write_text(words)
    process = subprocess.Popen(
        [*command("seq-ngram"), "train", "--order", "2", "--smoothing", "witten-bell", "--text",
         "--quiet", "-o", "-", "long"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(), cwd=corpus,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.read(10)
    process.stdout.close()
    with process.stderr:
        assert process.stderr.read() == b""
    assert process.wait(60) == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_leaves_nothing_behind(tmp_path: pathlib.Path, number: int) -> None:
    process = subprocess.Popen(
        [*command("seq-ngram"), "train", "--order", "2", "-T", ".", "-o", "m.arpa"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=environment(), cwd=tmp_path,
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while not any(tmp_path.iterdir()):  # its output, under another name
        assert time.monotonic() < deadline
        time.sleep(0.05)
    os.kill(process.pid, number)
    assert process.communicate()[1] == b""
    assert process.returncode == -number
    assert list(tmp_path.iterdir()) == []
