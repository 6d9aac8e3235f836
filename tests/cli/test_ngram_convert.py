"""seq-ngram convert, through real files and pipes."""

import gzip
import json
import math
import pathlib
import shutil

import pytest

from tests.cli.helpers import run, shell

NGRAM = "seq-ngram"
CASE = pathlib.Path(__file__).parents[1] / "cases" / "seq-ngram" / "convert-jsonl"
TOY = CASE / "toy.arpa"


def convert(*arguments: str, cwd: pathlib.Path, stdin: bytes = b"") -> bytes:
    done = run(NGRAM, "convert", *arguments, "--quiet", cwd=cwd, stdin=stdin)
    assert (done.status, done.stderr) == (0, "")
    return done.stdout


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A folder with a model in ARPA, and the same in our format."""
    folder = tmp_path_factory.mktemp("models")
    text = b"the cat sat\nthe dog sat\nthe cat ran\n\xe7\x8c\xab sat\n" * 3 + b"a cat\n"
    for name in ("m.arpa", "m.safetensors"):
        done = run(
            NGRAM, "train", "--order", "3", "--text", "--discount-fallback", "--quiet", "-o", name,
            stdin=text, cwd=folder,
        )  # fmt: skip
        assert done.status == 0, done.stderr
    return folder


@pytest.fixture
def trained(models: pathlib.Path, tmp_path: pathlib.Path) -> pathlib.Path:
    """The same in a folder of the test's own."""
    return shutil.copytree(models, tmp_path, dirs_exist_ok=True)


def test_there_and_back(trained: pathlib.Path) -> None:
    original = (trained / "m.arpa").read_bytes()
    assert convert("m.safetensors", "--to", "arpa", cwd=trained) == original
    convert("m.arpa", "-o", "n.safetensors", cwd=trained)
    convert("--model", "n.safetensors", "-o", "n.arpa", cwd=trained)
    assert (trained / "n.arpa").read_bytes() == original


@pytest.mark.parametrize("ending", [".gz", ".xz", ".bz2", ".zst"])
def test_compressed(trained: pathlib.Path, ending: str) -> None:
    convert("m.arpa", "-o", f"c.arpa{ending}", cwd=trained)
    assert (trained / f"c.arpa{ending}").read_bytes() != (trained / "m.arpa").read_bytes()
    back = convert(f"c.arpa{ending}", "--to", "arpa", cwd=trained)
    assert back == (trained / "m.arpa").read_bytes()


def test_from_a_pipe(trained: pathlib.Path) -> None:
    data = (trained / "m.arpa").read_bytes()
    assert convert("--to", "arpa", cwd=trained, stdin=data) == data
    assert convert("-", "--to", "arpa", cwd=trained, stdin=b"\xef\xbb\xbf" + data) == data
    done = shell("seq-ngram convert --model <(cat m.arpa) --to arpa --quiet", cwd=trained)
    assert (done.status, done.stdout, done.stderr) == (0, data, "")


def test_binary_to_a_pipe(trained: pathlib.Path) -> None:
    line = "seq-ngram convert m.arpa --to binary --quiet > p; seq-ngram convert p --to arpa --quiet"
    assert shell(line, cwd=trained).stdout == (trained / "m.arpa").read_bytes()


def test_records(trained: pathlib.Path) -> None:
    convert("m.arpa", "-o", "m.jsonl.gz", cwd=trained)
    data = gzip.decompress((trained / "m.jsonl.gz").read_bytes())
    assert data == convert("m.arpa", cwd=trained)
    records = [json.loads(line) for line in data.splitlines()]
    lines = [
        line.split(b"\t")
        for line in (trained / "m.arpa").read_bytes().splitlines()
        if b"\t" in line
    ]
    assert len(records) == len(lines)
    for record, line in zip(records, lines, strict=True):
        assert record["ngram"] == line[1].decode().split(" ")
        assert record["logprob"] == pytest.approx(float(line[0]) * math.log(10), abs=3e-7)
        assert ("backoff" in record) == (len(line) == 3)
        if len(line) == 3:
            assert record["backoff"] == pytest.approx(float(line[2]) * math.log(10), abs=3e-7)


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["nowhere.arpa"], 2, "nowhere.arpa: No such file or directory"),
        (["nowhere.safetensors"], 2, "nowhere.safetensors: No such file or directory"),
        (["."], 2, ".: is a directory"),
        (["a.arpa", "b.arpa"], 2, "One model at a time"),
        (["a.arpa", "--model", "b.arpa"], 2, "One model at a time"),
        ([str(TOY), "-o", "x.txt"], 2, "-o x.txt: the name ends in .arpa"),
        ([str(TOY), "-o", "x.safetensors.gz"], 2, "-o x.safetensors.gz: the name ends in"),
        ([str(TOY), "--to", "srilm"], 2, "'srilm'"),
        ([str(CASE / "cmd")], 1, "not an ARPA file"),
        (["/dev/null"], 1, "not an ARPA file"),
        ([str(CASE / "expected")], 1, "expected: n-grams as JSONL, which are not read back"),
    ],
)
def test_mistakes(arguments: list[str], status: int, message: str, tmp_path: pathlib.Path) -> None:
    done = run(NGRAM, "convert", *arguments, cwd=tmp_path)
    assert (done.status, done.stdout) == (status, b"")
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())


def test_a_target_stays_as_it_was(tmp_path: pathlib.Path) -> None:
    (tmp_path / "broken.arpa").write_bytes(TOY.read_bytes().replace(b"<s> a", b"<s> z"))
    (tmp_path / "x.safetensors").write_bytes(b"before")
    done = run(NGRAM, "convert", "broken.arpa", "-o", "x.safetensors", cwd=tmp_path)
    assert done.status == 1
    assert "broken.arpa:13: 'z' is not among the 1-grams" in done.stderr
    assert (tmp_path / "x.safetensors").read_bytes() == b"before"
    assert len(list(tmp_path.iterdir())) == 2


def test_onto_itself(trained: pathlib.Path) -> None:
    before = (trained / "m.safetensors").read_bytes()
    convert("m.safetensors", "-o", "m.safetensors", cwd=trained)
    assert (trained / "m.safetensors").read_bytes() == before


@pytest.mark.parametrize(
    ("tokens", "options", "status", "message"),
    [
        (["a b", "c"], [], 1, "token 'a b', with white space in it, cannot stand in ARPA"),
        (["", "c"], [], 1, "an empty token cannot stand in ARPA"),
        (["<unk>", "c"], ["--unk-as-word"], 1, "a word <unk> beside the model's own cannot stand"),
        (["a"], ["--smoothing", "add-k"], 2, "ARPA cannot express add-k above order 1"),
        (["a"], ["--smoothing", "stupid-backoff"], 2, "ARPA cannot express stupid-backoff"),
    ],
)
def test_what_arpa_cannot_hold(
    tokens: list[str], options: list[str], status: int, message: str, tmp_path: pathlib.Path
) -> None:
    record = json.dumps({"tokens": tokens}).encode() + b"\n"
    train = ["train", "--order", "2", "-o", "m.safetensors", "--quiet"]
    if "--smoothing" not in options:
        train.append("--discount-fallback")
    done = run(NGRAM, *train, *options, stdin=record, cwd=tmp_path)
    assert done.status == 0, done.stderr
    done = run(NGRAM, "convert", "m.safetensors", "-o", "m.arpa", "--quiet", cwd=tmp_path)
    assert done.status == status
    assert done.stderr.startswith(f"seq-ngram: m.safetensors: {message}")
    assert not (tmp_path / "m.arpa").exists()
    records = convert("m.safetensors", cwd=tmp_path)
    assert tokens[0] in [json.loads(line)["ngram"][0] for line in records.splitlines()]


def test_a_reader_that_leaves(trained: pathlib.Path) -> None:
    line = "seq-ngram convert m.arpa --quiet | head -n 1"
    done = shell(line, cwd=trained)
    assert (done.status, done.stderr) == (0, "")
    assert json.loads(done.stdout)["ngram"] == ["<unk>"]
