import json
import os
import random
import subprocess

import pytest

from tests.cli.helpers import command, environment, run

TOKENIZE = "seq-tokenize"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> list[str]:
    """Six files, so six blocks, of records of random length in several scripts."""
    rng = random.Random(1)
    words = [
        "Don't",
        "3.14",
        "Ａﬁ",
        "南京航空航天大学",
        "的研究生",
        "café",
        "İ",
        "王晓帅在苏电",
        "--",
        "👍🏽",
    ]
    folder = tmp_path_factory.mktemp("corpus")
    paths = [folder / f"{number}.jsonl" for number in range(6)]
    for path in paths:
        texts = [" ".join(rng.choices(words, k=rng.randrange(30))) for _ in range(20)]
        lines = [json.dumps({"src": text, "text": text.upper()}) + "\n" for text in texts]
        path.write_text("".join(lines))
    return list(map(str, paths))


@pytest.fixture(scope="module")
def subwords(corpus: list[str], tmp_path_factory):
    """A folder with a model of subwords, `m`, and a vocabulary of some of its pieces, `v`."""
    folder = tmp_path_factory.mktemp("subwords")
    settings = ("--size", "80", "--soft-size", "--field", "src", "--quiet", "-o", "m")
    assert run("seq-vocab", "subword", *settings, *corpus, cwd=folder).status == 0
    pieces = run("seq-vocab", "build", "--subword-model", "m", cwd=folder)
    (folder / "v").write_bytes(b"".join(line + b"\n" for line in pieces.lines[:40]))
    return folder


@pytest.mark.parametrize(
    "arguments",
    [
        "whitespace --keep-space --offsets",
        "word --lowercase --normalize nfkc --offsets --field src --field text",
        "char --field src",
        "char --lossless --offsets",
        "byte --lowercase --normalize nfkc --offsets --field src",
        "jieba --mode search --no-hmm --user-dict words --offsets",
        "jieba --pos --user-dict words",
        "jieba --lossless --engine jieba --offsets --field src",
        "jieba --mode search --no-hmm --keep-space --field src --field text",
        "sentencepiece --subword-model m --lowercase --normalize nfkc --offsets --field src",
        "sentencepiece --subword-model m --restrict-vocab v --field src --field text",
        "sentencepiece --subword-model m --sample 0.2 --sample-from 9 --seed 3",
    ],
)
def test_workers_get_every_option(arguments: str, corpus: list[str], tmp_path, subwords) -> None:
    for name in ("m", "v"):
        (tmp_path / name).write_bytes((subwords / name).read_bytes())
    (tmp_path / "words").write_text("晓帅在 100 nr\n", encoding="utf-8")
    one, two = (
        run(TOKENIZE, *arguments.split(), "--jobs", jobs, "--quiet", *corpus, cwd=tmp_path)
        for jobs in ("1", "3")
    )
    assert one == two
    assert (one.status, one.stderr, len(one.lines)) == (0, "", 120)


def test_workers_name_the_same_bad_record(corpus: list[str], tmp_path) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"text":"a"}\n\n{"text":7}\n')
    files = [*corpus[:3], str(bad), *corpus[3:]]
    one, two = (run(TOKENIZE, "word", "--jobs", jobs, *files) for jobs in ("1", "3"))
    assert one == two
    assert one.status == 1
    assert one.stderr == f'seq-tokenize: {bad}:3: "text" must be a string, got number\n'
    assert len(one.lines) == 61


@pytest.mark.parametrize("kind", ["whitespace", "word", "char", "jieba"])
def test_the_locale_changes_nothing(kind: str) -> None:
    ascii_only = {
        "PATH": os.environ["PATH"],
        "LC_ALL": "POSIX",
        "PYTHONCOERCECLOCALE": "0",
        "PYTHONUTF8": "0",
        "PYTHONIOENCODING": "ascii",
    }
    data = '{"id":"a","text":"é 中"}\n'.encode()
    done = run(TOKENIZE, kind, stdin=data, env=ascii_only)
    assert done == run(TOKENIZE, kind, stdin=data)
    assert (done.status, done.stdout) == (
        0,
        '{"id":"a","text":"é 中","tokens":["é","中"]}\n'.encode(),
    )
    lost = run(TOKENIZE, kind, "fehlt-é", env=ascii_only)
    assert (lost.status, lost.stderr) == (2, "seq-tokenize: fehlt-é: No such file or directory\n")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ("word --reverse --text", "--text makes no sense with --reverse"),
        ("word --reverse --lowercase", "--lowercase makes no sense with --reverse"),
        ("word --reverse --offsets", "--offsets makes no sense with --reverse"),
        ("word --reverse --normalize nfc", "--normalize makes no sense with --reverse"),
        ("word --text --field a --field b", "--text fills one --field"),
        ("jieba --mode search --reverse", "--reverse needs --mode precise"),
        ("jieba --mode full --pos", "--pos needs --mode precise"),
        ("jieba --mode search --lossless", "--lossless needs --mode precise"),
        ("jieba --reverse --user-dict /dev/null", "--reverse needs no dictionary"),
        ("jieba --user-dict absent", "absent: No such file"),
        ("word --mode full", "No such option"),
        ("sentencepiece", "Missing option '--subword-model'"),
        ("sentencepiece --subword-model absent", "absent: No such file or directory"),
        ("sentencepiece --subword-model m --keep-space", "No such option"),
        ("sentencepiece --subword-model m --threshold 2", "--threshold needs --restrict-vocab"),
        ("sentencepiece --subword-model m --sample-from 2", "--sample-from needs --sample"),
        ("sentencepiece --subword-model m --sample nan", "not a finite number"),
        ("sentencepiece --subword-model m --sample 1 --lossless", "exclude each other"),
        ("sentencepiece --subword-model m --reverse --sample 1", "--sample makes no sense"),
        ("sentencepiece --subword-model m --reverse --lossless", "--lossless makes no sense"),
        ("sentencepiece --subword-model m --reverse --offsets", "--offsets makes no sense"),
        ("sentencepiece --subword-model m --reverse --restrict-vocab v", "--restrict-vocab makes"),
        ("byte --keep-space", "No such option"),
        ("char --reverse --lossless", "--lossless makes no sense with --reverse"),
        ("wrod", "No such command"),
    ],
)
def test_options_that_make_no_sense(arguments: str, reason: str) -> None:
    done = run(TOKENIZE, *arguments.split(), stdin=b'{"text":"a"}')
    assert (done.status, done.stdout) == (2, b"")
    assert reason in done.stderr


@pytest.mark.parametrize("kind", ["whitespace", "word", "char", "byte", "jieba", "jieba --pos"])
def test_lossless_tokens_give_every_text_back(kind: str) -> None:
    texts = ["", " ", "\u3000a  b\r\n", "\x00\ufeff中文。 Don't", "cafe\u0301\t\x1c👍🏽"]
    records = b"".join(json.dumps({"text": text}).encode() + b"\n" for text in texts)
    tokens = run(TOKENIZE, *kind.split(), "--lossless", stdin=records)
    kind = kind.split()[0]
    assert (tokens.status, tokens.stderr) == (0, "")
    bare = [json.dumps({"tokens": json.loads(line)["tokens"]}) for line in tokens.lines]
    keep = ["--keep-space"] if kind != "byte" else []
    back = run(TOKENIZE, kind, "--reverse", *keep, stdin="\n".join(bare).encode())
    assert [json.loads(line)["text"] for line in back.lines] == texts


def test_a_text_that_was_normalised_is_not_lossless(tmp_path) -> None:
    strict = ("--text", "--lossless", "--lowercase", "--rejects", "bad")
    done = run(TOKENIZE, "char", *strict, cwd=tmp_path, stdin=b"a b\nA b\n")
    assert (done.status, done.stdout) == (3, b'{"text":"a b","tokens":["a"," ","b"]}\n')
    reason = b'"reason":"\\"text\\" would not come back from its tokens as it is"'
    assert reason in (tmp_path / "bad.reasons.jsonl").read_bytes()


@pytest.mark.parametrize(
    ("kind", "text", "back"),
    [
        ("whitespace", " a  b ", "a b"),
        ("word", "Is  this, really, it?", "Is this, really, it?"),
        ("char", "a b中", "ab中"),
        ("jieba", "我爱 北京。", "我爱北京。"),
    ],
)
def test_reverse(kind: str, text: str, back: str) -> None:
    tokens = run(TOKENIZE, kind, "--text", "--field", "src", stdin=text.encode())
    done = run(TOKENIZE, kind, "--reverse", "--field", "src", stdin=tokens.stdout)
    assert json.loads(done.stdout)["src"] == back
    kept = run(TOKENIZE, kind, "--text", "--keep-space", stdin=text.encode())
    done = run(TOKENIZE, kind, "--reverse", "--keep-space", stdin=kept.stdout)
    assert json.loads(done.stdout)["text"] == text


SHORT = '{"text":"南京航空航天大学的研究生"}\n'.encode()


def jieba_in(folder, **env: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*command(TOKENIZE), "jieba", "--engine", "jieba"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(XDG_CACHE_HOME=str(folder), **env),
    )


def test_jieba_is_silent_wherever_its_cache_goes(tmp_path) -> None:
    shared = tmp_path / "tmp"
    shared.mkdir()
    shared.joinpath("jieba.cache").write_bytes(b"of somebody else")
    shared.chmod(0o500)
    cache = tmp_path / "cache"
    runs = [jieba_in(cache, TMPDIR=str(shared)) for _ in range(4)]  # all at once, no cache yet
    answers = [process.communicate(SHORT) for process in runs]
    for folder in (cache, "/dev/null"):  # with the cache; where there can be none
        answers.append(jieba_in(folder, TMPDIR=str(shared)).communicate(SHORT))
    (out,) = {stdout for stdout, _ in answers}
    assert json.loads(out)["tokens"] == ["南京航空航天大学", "的", "研究生"]
    assert {stderr for _, stderr in answers} == {b""}
    assert [path.name for path in shared.iterdir()] == ["jieba.cache"]
    assert len(list(cache.joinpath("seqtools").iterdir())) == 1


def test_a_long_list_of_useless_words_is_cut(tmp_path) -> None:
    path = tmp_path / "words"
    path.write_text("".join(f"《{number}》\n" for number in range(30)), encoding="utf-8")
    done = run(TOKENIZE, "jieba", "--user-dict", str(path), stdin=SHORT)
    assert done.stderr.startswith(f"seq-tokenize: warning: {path}: 30 entries can never be found")
    assert done.stderr.endswith('"《9》" (line 10) and 20 more\n')


def texts(*texts: str) -> bytes:
    return b"".join(
        json.dumps({"src": text, "n": n}).encode() + b"\n" for n, text in enumerate(texts)
    )


def test_drawn_pieces_belong_to_a_record_wherever_it_is_read(subwords) -> None:
    sample = ("sentencepiece", "--subword-model", "m", "--sample", "0.1", "--field", "src")
    data = texts(*["南京航空航天大学 Don't 3.14 café 的研究生 Don't"] * 9)
    whole = run(TOKENIZE, *sample, stdin=data, cwd=subwords)
    assert (whole.status, whole.stderr) == (0, "")
    assert run(TOKENIZE, *sample, stdin=data, cwd=subwords) == whole
    assert len({line.partition(b"src_tokens")[2] for line in whole.lines}) > 3
    part = run(TOKENIZE, *sample, "--shard", "2/3", stdin=data, cwd=subwords)
    assert part.lines == whole.lines[1::3]
    tail = run(
        TOKENIZE, *sample, "--first-record", "5", cwd=subwords,
        stdin=b"".join(line + b"\n" for line in data.split(b"\n")[4:9]),
    )  # fmt: skip
    assert tail.lines == whole.lines[4:]
    assert run(TOKENIZE, *sample, "--seed", "1", stdin=data, cwd=subwords).stdout != whole.stdout
    named = data.replace(b'"n"', b'"id"')
    once, mixed = (
        sorted(run(TOKENIZE, *sample, stdin=lines, cwd=subwords).lines)
        for lines in (named, b"".join(sorted(named.splitlines(keepends=True), reverse=True)))
    )
    assert once == mixed


def test_a_threshold_needs_counts(subwords) -> None:
    restrict = ("--restrict-vocab", "v", "--threshold", "2")
    done = run(TOKENIZE, "sentencepiece", "--subword-model", "m", *restrict, cwd=subwords)
    assert (done.status, done.stdout) == (2, b"")
    assert done.stderr == "seq-tokenize: v: --threshold needs counts, and it has none\n"


@pytest.mark.parametrize("kind", ["whitespace", "word", "char", "byte"])
def test_ten_megabytes_in_one_record(kind: str) -> None:
    text = "ab, ¾" * 1_000_000 + "ab" * 2_000_000
    of = ("--field", "src", "--quiet")
    done = run(TOKENIZE, kind, "--lossless", *of, stdin=texts(text), timeout=240)
    assert (done.status, done.stderr) == (0, "")
    tokens = json.loads(done.stdout)["src_tokens"]
    if kind == "byte":
        assert bytes(int(token[3:5], 16) for token in tokens) == text.encode()
    else:
        assert "".join(tokens) == text
    spaced = ["--keep-space"] if kind != "byte" else []
    back = run(TOKENIZE, kind, "--reverse", *spaced, *of, stdin=done.stdout, timeout=240)
    assert json.loads(back.stdout)["src"] == text


def test_ten_megabytes_of_pieces_in_one_record(subwords) -> None:
    text = "ab 3.14 " * 1_300_000
    piped = (TOKENIZE, "sentencepiece", "--subword-model", "m", "--quiet", "--lossless")
    done = run(*piped, "--field", "src", stdin=texts(text[:-1]), cwd=subwords, timeout=240)
    assert (done.status, done.stderr) == (0, "")
    tokens = json.loads(done.stdout)["src_tokens"]
    assert "".join(tokens) == "▁" + text[:-1].replace(" ", "▁")


@pytest.mark.parametrize(
    "kind",
    [
        ("char",),
        ("char", "--lowercase"),
        ("jieba",),
        ("sentencepiece", "--subword-model", "m"),
        ("sentencepiece", "--subword-model", "m", "--sample", "1"),
    ],
)
def test_what_was_made_of_other_tokens_leaves(kind: tuple[str, ...], subwords) -> None:
    made = {"pos": ["n"], "ids": [1], "offsets": [[0, 2]], "onehot": [[0, 1]], "ngrams": []}
    others = {"src_ids": [3], "tags": ["O"], "id": 7}
    piped = (TOKENIZE, *kind, "--quiet")
    again = json.dumps({"text": "ab", "tokens": ["ab"], **made, **others}).encode()
    first = json.dumps({"text": "ab", **made, **others}).encode()
    done = run(*piped, stdin=again, cwd=subwords)
    assert (done.status, done.stderr) == (0, "")
    assert json.loads(done.stdout).keys() == {"text", "tokens", *others}
    done = run(*piped, stdin=first, cwd=subwords)
    assert json.loads(done.stdout).keys() == {"text", "tokens", *made, *others}
    done = run(*piped, "--offsets", stdin=again, cwd=subwords)
    record = json.loads(done.stdout)
    assert record.keys() == {"text", "tokens", "offsets", *others}
    assert len(record["offsets"]) == len(record["tokens"])


def test_parts_of_speech_are_made_anew() -> None:
    cut = run(TOKENIZE, "char", "--offsets", "--text", stdin="我爱北京\n".encode())
    record = json.loads(run(TOKENIZE, "jieba", "--pos", stdin=cut.stdout).stdout)
    assert record == {
        "text": "我爱北京", "tokens": ["我", "爱", "北京"], "pos": ["r", "v", "ns"]
    }  # fmt: skip
