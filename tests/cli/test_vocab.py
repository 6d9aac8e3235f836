import json
import os
import random
import signal
import subprocess
import time

import pytest

from tests.cli.helpers import command, environment, run

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
        ("build --subword-model absent", "absent: No such file or directory"),
        ("build --subword-model m f", "reads no records"),
        ("build --subword-model m --field a", "--field makes no sense with --subword-model"),
        ("build --subword-model m --max-size 9", "--max-size makes no sense"),
        ("build --subword-model m --jobs 2", "--jobs makes no sense"),
        ("build --pad-to-multiple 0", "--pad-to-multiple"),
        ("merge absent", "absent: No such file or directory"),
        ("merge --specials ukn", "unknown special 'ukn': did you mean unk?"),
        ("coverage --counts", "--counts needs --vocab FILE"),
        ("coverage --vocab v --counts f", "reads no records"),
        ("coverage --vocab v --counts --field a", "--field makes no sense with --counts"),
        ("coverage --vocab v --specials none", "--specials makes no sense with --vocab"),
        ("coverage --vocab absent", "absent: No such file or directory"),
        ("coverage --sizes 5,0", "'5,0' is not a list of sizes"),
        ("coverage --sizes 5,", "'5,' is not a list of sizes"),
        (f"coverage --sizes {'9' * 5000}", "is not a list of sizes"),
        ("coverage --target 0.5,0", "0 must be above 0"),
        ("coverage --target 0.5 --target 95%", "is not a number"),
        ("coverage --field=", "a name cannot be empty"),
        ("subword --size 20", "Missing option '-o'"),
        ("subword -o /dev/null", "Missing option '--size'"),
        ("subword -o /dev/null --size 3", "--size"),
        ("subword -o /dev/null --size 20 --kind word", "--kind"),
        ("subword -o /dev/null --size 20 --character-coverage 0.5", "at least 0.98"),
        ("subword -o /dev/null --size 20 --user-symbol a --user-symbol a", "'a' stands twice"),
        (
            "subword -o /dev/null --size 259 --byte-fallback --user-symbol a",
            "size 259 is too small: symbols and bytes alone are 260 pieces",
        ),
        ("subword -o absent/m --size 20", "absent/m: cannot be written"),
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


def learn(folder, data: bytes, *options: str):
    return run(
        VOCAB, "subword", "--size", "60", "--soft-size", "-o", "m", *options, stdin=data, cwd=folder
    )


def pieces(folder) -> list[str]:
    return tokens(run(VOCAB, "build", "--subword-model", "m", cwd=folder).stdout)


PAIRS = b"".join(
    json.dumps({"src": src, "tgt": tgt}).encode() + b"\n"
    for src, tgt in (("rot rot", "red"), ("grün", "green"), ("blau", "blue"))
)


def test_several_fields_make_one_model(tmp_path) -> None:
    done = learn(tmp_path, PAIRS, "--field", "src", "--field", "tgt")
    assert (done.status, done.stdout) == (0, b"")
    assert {"o", "ü", "d"} < set(pieces(tmp_path))
    both = tmp_path.joinpath("m").read_bytes()
    learn(tmp_path, PAIRS, "--field", "src", "--field", "tgt")
    assert tmp_path.joinpath("m").read_bytes() == both
    learn(tmp_path, PAIRS, "--field", "src")
    assert "d" not in pieces(tmp_path)


def test_what_was_seen_and_used_is_said(tmp_path) -> None:
    data = b"".join(b'{"text":"%c%c"}\n' % (letter, letter) for letter in range(97, 123))
    done = learn(tmp_path, data, "--sample-records", "5")
    assert done.stderr.startswith("seq-vocab: records: 26 read, 5 used; pieces: ")
    single = {piece for piece in pieces(tmp_path)[4:] if piece.isalpha()}
    assert len({piece[0] for piece in single}) == 5
    learn(tmp_path, data, "--sample-records", "5", "--seed", "1")
    assert single != {piece for piece in pieces(tmp_path)[4:] if piece.isalpha()}
    assert learn(tmp_path, data, "--quiet").stderr == ""


def test_what_the_library_would_skip_is_said(tmp_path) -> None:
    done = learn(tmp_path, '{"text":"a▅"}\n{"text":"ab"}\n'.encode(), "--quiet")
    assert (done.status, done.stderr) == (
        0,
        "seq-vocab: warning: not learned from, as the library keeps U+2585 (▅) for itself:"
        " 1 of the texts\n",
    )


def test_what_becomes_of_text_is_in_the_vocabulary(tmp_path) -> None:
    """All pieces of a text are found again, but for unknown stretches."""
    done = learn(tmp_path, PAIRS, "--field", "src", "--byte-fallback", "--size", "300")
    assert done.status == 0
    vocabulary = run(VOCAB, "build", "--subword-model", "m", cwd=tmp_path).stdout
    tmp_path.joinpath("v").write_bytes(vocabulary)
    assert [json.loads(line)["id"] for line in vocabulary.splitlines()] == [
        *range(vocabulary.count(b"\n"))
    ]
    data = '{"text":"rot 中 <s> zebra"}\n'.encode()
    split = run("seq-tokenize", "sentencepiece", "--subword-model", "m", stdin=data, cwd=tmp_path)
    ids = run(VOCAB, "encode", "--vocab", "v", stdin=split.stdout, cwd=tmp_path)
    assert (ids.status, ids.stderr) == (0, "")
    learn(tmp_path, PAIRS, "--field", "src")
    assert not {"<s>", "</s>", "<unk>"} & set(pieces(tmp_path)[4:])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_learning_is_ended_by_a_signal(number: int, tmp_path) -> None:
    """The library does not look at signals, and what it has to do here takes minutes."""
    data = json.dumps({"text": "".join(random.Random(1).choices("ab", k=1 << 20))}).encode()
    with subprocess.Popen(
        [*command(VOCAB), "subword", "--size", "5000", "--soft-size", "-o", "m"],
        stdin=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path, env=environment(),
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),
    ) as process:  # fmt: skip
        process.stdin.write(data)
        process.stdin.close()
        threads = f"/proc/{process.pid}/task"
        while len(os.listdir(threads)) < 2:  # until it learns
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(number)
        assert process.wait(60) == -number
        assert process.stderr.read() == b""
    assert os.listdir(tmp_path) == []


PADDED = b"".join(b'{"tokens":["a","b","c"]}\n' for _ in range(8))


def test_a_model_never_writes_what_fills_a_vocabulary_up(tmp_path) -> None:
    """It has 25 such entries and 3 others, and draws them alike."""
    padded = run(VOCAB, "build", "--pad-to-multiple", "32", stdin=PADDED).stdout
    assert [token.startswith("<unused") for token in tokens(padded)] == [False] * 7 + [True] * 25
    tmp_path.joinpath("v").write_bytes(padded)
    batches = run(
        "seq-batch", "lm", "--vocab", "v", "--sampling", "records", stdin=PADDED, cwd=tmp_path
    )
    train = run(
        "seq-train", "lstm", "-o", "m", "--hidden", "4", "--device", "cpu", "--threads", "1",
        "--quiet", stdin=batches.stdout, cwd=tmp_path,
    )  # fmt: skip
    assert (train.status, train.stderr) == (0, "")
    drawn = run(
        "seq-decode", "sample", "--model", "m", "--count", "20", "--temperature", "100",
        "--device", "cpu", "--threads", "1", "--quiet", cwd=tmp_path,
    )  # fmt: skip
    found = {token for line in drawn.lines for token in json.loads(line)["output_tokens"]}
    assert found == {"a", "b", "c", "<unk>"}


def test_shards_count_what_a_large_file_does(tmp_path) -> None:
    """Beyond 64 MiB a file is counted by compiled functions, a shard of it is not."""
    words = [f"w{number}" for number in range(50_000)]
    line = json.dumps({"tokens": [*words, "<unk>"], "n": 1}).encode() + b"\n"
    tmp_path.joinpath("in").write_bytes(line * (1 + (1 << 26) // len(line)))
    for shard in "12":
        done = run(VOCAB, "build", "--shard", f"{shard}/2", "-o", shard, "in", cwd=tmp_path)
        assert done.status == 0
    whole = run(VOCAB, "build", "--quiet", "in", cwd=tmp_path)
    assert whole.status == 0
    assert whole.stdout == run(VOCAB, "merge", "1", "2", cwd=tmp_path).stdout


def test_what_was_made_of_other_tokens_leaves(tmp_path) -> None:
    tmp_path.joinpath("v").write_bytes(run(VOCAB, "build", stdin=b'{"tokens":["a","b"]}\n').stdout)
    made = {"pos": ["n"], "offsets": [[0, 2]], "onehot": [[1]]}
    record = {"text": "ab", "tokens": ["ab"], "ids": [4, 5], **made, "src_pos": ["n"]}
    given = json.dumps(record).encode()
    done = run(VOCAB, "decode", "--vocab", "v", stdin=given, cwd=tmp_path)
    assert json.loads(done.stdout) == {
        "text": "ab", "tokens": ["a", "b"], "ids": [4, 5], "src_pos": ["n"]
    }  # fmt: skip
    del record["tokens"]
    done = run(VOCAB, "decode", "--vocab", "v", stdin=json.dumps(record).encode(), cwd=tmp_path)
    assert json.loads(done.stdout) == {**record, "tokens": ["a", "b"]}


def test_rows_by_another_vocabulary_leave(tmp_path) -> None:
    tmp_path.joinpath("v").write_bytes(run(VOCAB, "build", stdin=b'{"tokens":["a","b"]}\n').stdout)
    given = b'{"tokens":["b"],"ids":[0],"onehot":[[1]],"pos":["n"]}\n'
    done = run(VOCAB, "encode", "--vocab", "v", stdin=given, cwd=tmp_path)
    assert json.loads(done.stdout) == {"tokens": ["b"], "ids": [5], "pos": ["n"]}
    done = run(VOCAB, "encode", "--vocab", "v", "--one-hot", stdin=given, cwd=tmp_path)
    assert json.loads(done.stdout)["onehot"] == [[0, 0, 0, 0, 0, 1]]


def sizes(*options: str, data: bytes) -> list[int]:
    done = run(VOCAB, "coverage", *options, stdin=data)
    assert done.status == 0
    return [json.loads(line)["size"] for line in done.lines]


def test_lists_in_several_options_are_one(tmp_path) -> None:
    data = b'{"tokens":["a","a","a","a","b","b","c","d","e","f"]}\n'  # shares .4 .6 .7 .8 .9 1
    assert sizes("--sizes", "3,1", "--sizes", "500", data=data) == [1, 3, 500]
    assert sizes("--sizes", "1", "--target", "0.6,1", "--target", "0.71", data=data) == [1, 2, 4, 6]
    assert sizes("--target", "0.9", data=data) == [1, 2, 5, 6]
    assert sizes("--target", "0.8", data=data) == [1, 2, 4, 5, 6]
    done = run(VOCAB, "build", "--specials", "mask", "--specials", "cls", stdin=data)
    assert [json.loads(line).get("special") for line in done.lines[4:7]] == ["mask", "cls", None]
    done = run(VOCAB, "build", "--specials", "mask", "--specials", "mask", stdin=data)
    assert (done.status, "names one twice" in done.stderr) == (2, True)


def test_a_share_that_no_size_covers() -> None:
    data = b'{"tokens":["a","b","<unk>","<unk>"]}\n'
    done = run(VOCAB, "coverage", "--specials", "mask", "--target", "0.75,0.5", stdin=data)
    assert [json.loads(line)["size"] for line in done.lines] == [1, 2]
    assert "warning: no size covers 0.75 of the tokens\n" in done.stderr
    done = run(VOCAB, "coverage", "--target", "0.5", stdin=b"")
    assert done.stderr == "seq-vocab: warning: no tokens, so there is nothing to cover\n"
    done = run(VOCAB, "coverage", stdin=b'{"tokens":["<unk>"]}\n')
    assert (done.status, done.stdout) == (0, b"")
    assert "warning: no types but specials, which cover nothing\n" in done.stderr
