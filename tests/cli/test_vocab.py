import json
import random

import pytest

from tests.cli.helpers import environment, run

VOCAB = "seq-vocab"
TIES = """\
{"tokens":["b","a","c"]}
{"tokens":["é","a","b"]}
{"tokens":["Z","c","é"]}
{"tokens":["Z","中","中"]}
""".encode()


def tokens(data: bytes) -> list[str]:
    return [json.loads(line)["token"] for line in data.splitlines()]


@pytest.mark.parametrize(
    ("seed", "locale", "jobs"), [("0", "C", "1"), ("1", "en_US.UTF-8", "4"), ("2", "POSIX", "1")]
)
def test_order_depends_on_nothing_but_counts(seed: str, locale: str, jobs: str) -> None:
    lines = TIES.splitlines(keepends=True)
    random.Random(seed).shuffle(lines)
    env = environment(PYTHONHASHSEED=seed, LC_ALL=locale)
    done = run(VOCAB, "build", "--jobs", jobs, stdin=b"".join(lines), env=env)
    assert (done.status, done.stderr) == (0, "")
    assert done.stdout == run(VOCAB, "build", stdin=TIES).stdout
    assert tokens(done.stdout)[4:] == ["Z", "a", "b", "c", "é", "中"]


def test_workers_count_the_same() -> None:
    rng = random.Random(2)
    words = [f"w{number}" for number in range(3000)] + ["<s>"]
    data = b"".join(
        json.dumps({"tokens": rng.choices(words, k=300)}).encode() + b"\n" for _ in range(2000)
    )
    one, two = (run(VOCAB, "build", "--jobs", jobs, stdin=data) for jobs in ("1", "3"))
    assert one == two
    assert len(one.lines) == 3004


def test_encode_and_decode_over_workers(tmp_path) -> None:
    data = b"".join(b'{"tokens":["a","b%d"]}\n' % (number % 7) for number in range(3000))
    tmp_path.joinpath("v").write_bytes(run(VOCAB, "build", "--max-size", "5", stdin=data).stdout)
    one, two = (
        run(VOCAB, "encode", "--vocab", "v", "--jobs", jobs, stdin=data, cwd=tmp_path)
        for jobs in "13"
    )
    assert one == two
    # Of b0 to b6, four of which were seen a time more often than the others, four have a place.
    kept = {"b0", "b1", "b2", "b3"}
    assert set(tokens(tmp_path.joinpath("v").read_bytes())[5:]) == kept
    unknown = sum(f"b{number % 7}" not in kept for number in range(3000))
    assert (
        one.stderr == f"seq-vocab: {unknown} of 6000 tokens unknown (share {unknown / 6000:.4g})\n"
    )
    assert run(VOCAB, "encode", "--vocab", "v", "--quiet", stdin=data, cwd=tmp_path).stderr == ""
    back = run(VOCAB, "decode", "--vocab", "v", stdin=one.stdout, cwd=tmp_path)
    assert json.loads(back.lines[6]) == {"tokens": ["a", "<unk>"], "ids": [4, 1]}


def test_several_fields_make_one_vocabulary() -> None:
    data = b'{"src_tokens":["a","b"],"tgt_tokens":["b"],"label":"b"}'
    names = ["src_tokens", "tgt_tokens", "label"]
    arguments = [part for name in names for part in ("--field", name)]
    done = run(VOCAB, "build", "--specials", "none", *arguments, stdin=data)
    assert done.lines == [b'{"id":0,"token":"b","count":3}', b'{"id":1,"token":"a","count":1}']


def test_labels_keep_their_shape(tmp_path) -> None:
    data = b'{"label":"joy"}\n{"label":"fear"}\n'
    made = run(VOCAB, "build", "--field", "label", "--specials", "none", stdin=data)
    tmp_path.joinpath("v").write_bytes(made.stdout)
    ids = run(VOCAB, "encode", "--field", "label", "--vocab", "v", stdin=data, cwd=tmp_path)
    assert ids.lines == [b'{"label":"joy","label_ids":1}', b'{"label":"fear","label_ids":0}']
    back = run(
        VOCAB, "decode", "--field", "label_ids", "--vocab", "v", stdin=ids.stdout, cwd=tmp_path
    )
    assert json.loads(back.lines[0])["label_tokens"] == "joy"


@pytest.mark.parametrize("bad", [b"true", b"1.0", b"-1", b'"3"', b"9", b"null"])
def test_what_is_no_id(bad: bytes, tmp_path) -> None:
    tmp_path.joinpath("v").write_text('{"id":0,"token":"a"}\n')
    data = b'{"ids":[0]}\n{"ids":[0,%s]}\n' % bad
    done = run(VOCAB, "decode", "--vocab", "v", stdin=data, cwd=tmp_path)
    assert (done.status, done.lines) == (1, [b'{"ids":[0],"tokens":["a"]}'])
    assert done.stderr.startswith('seq-vocab: <stdin>:2: "ids"')


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ("build --specials ukn", "unknown special 'ukn': did you mean unk?"),
        ("build --specials none,mask", "unknown special 'none'"),
        ("build --max-size 0", "--max-size"),
        ("build --min-count 0", "--min-count"),
        ("encode", "Missing option '--vocab'"),
        ("encode --vocab absent", "absent: No such file or directory"),
    ],
)
def test_what_is_refused(arguments: str, reason: str) -> None:
    done = run(VOCAB, *arguments.split(), stdin=b"no record")
    assert (done.status, done.stdout) == (2, b"")
    assert reason in done.stderr


def test_the_vocabulary_may_come_through_the_pipe(tmp_path) -> None:
    (tmp_path / "in").write_bytes(b'{"tokens":["a"]}\n')
    done = run(VOCAB, "encode", "--vocab", "-", "in", stdin=b'{"id":0,"token":"a"}\n', cwd=tmp_path)
    assert (done.status, done.lines) == (0, [b'{"tokens":["a"],"ids":[0]}'])
    done = run(VOCAB, "encode", "--vocab", "-", "in", stdin=b"\n{}\n", cwd=tmp_path)
    assert done.status == 1
    assert done.stderr.startswith("seq-vocab: <stdin>:2: not a vocabulary entry")
