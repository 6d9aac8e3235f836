"""seq-augment as a command: the same copies however they are made, and programs from outside."""

import contextlib
import json
import os
import signal
import subprocess
import time

import pytest

from tests.cli.test_contract import answer_signals, children, gone

from .helpers import command, environment, run, shell

RECORDS = "".join(
    json.dumps({"id": f"r{n}", "tokens": [f"{word}{n}" for word in "abcdefgh"]}) + "\n"
    for n in range(1, 400)
).encode()
NAMELESS = RECORDS.replace(b'"id": ', b'"name": ')
KINDS = [
    ("swap",),
    ("swap", "--distance", "2"),
    ("delete", "--rate", "0.4"),
    ("insert",),
    ("insert", "--vocab", "v"),
    ("insert", "--synonyms", "s"),
    ("synonym", "--synonyms", "s"),
]


@pytest.fixture
def folder(tmp_path):
    groups = (f"a{n} x y_{n}" for n in range(1, 400))
    (tmp_path / "s").write_text("\n".join(groups), "utf-8")
    (tmp_path / "v").write_text('{"id":0,"token":"p","count":2}\n{"id":1,"token":"q","count":3}\n')
    return tmp_path


@pytest.mark.parametrize("kind", KINDS, ids="".join)
@pytest.mark.parametrize("data", [RECORDS, NAMELESS], ids=["named", "nameless"])
def test_jobs_and_shards_make_the_same_copies(kind, data, folder):
    options = (*kind, "--copies", "2", "--keep", "--seed", "3", "--quiet")

    def made(*more, data=data):
        done = run("seq-augment", *options, *more, stdin=data, cwd=folder)
        assert (done.status, done.stderr) == (0, "")
        return done.stdout

    whole = made()
    lines = whole.splitlines(keepends=True)
    assert len(lines) == 3 * 399
    assert b"".join(lines[::3]) == data.replace(b": ", b":").replace(b", ", b",")
    assert made("--jobs", "2") == whole
    # What a shard makes stands in the whole; so does what `split` has cut off.
    second = [line for at, line in enumerate(lines) if at // 3 % 3 == 1]
    assert made("--shard", "2/3") == b"".join(second)
    tail = b"".join(data.splitlines(keepends=True)[100:])
    assert made("--first-record", "101", data=tail) == b"".join(lines[300:])


def test_stages_one_after_the_other_keep_the_first_origin():
    done = shell(
        "seq-augment swap --keep | seq-augment delete --keep",
        stdin=b'{"id":"x","tokens":["a","b","c"]}\n',
    )
    records = [json.loads(line) for line in done.lines]
    assert [record.get("id") for record in records] == ["x", None, None, None]
    assert [record.get("augmented_from") for record in records] == [None, "x", "x", "x"]


def test_what_a_hint_says_can_be_done():
    data = b'{"tokens":["a","b"],"pos":["A","B"],"tags":["O","S-X"],"lemma":["1","2"]}\n'
    done = run("seq-augment", "swap", "--align", "lemma", stdin=data)
    assert done.stderr == ""
    assert json.loads(done.stdout) == {
        "tokens": ["b", "a"],
        "pos": ["B", "A"],
        "tags": ["S-X", "O"],
        "lemma": ["2", "1"],
        "augmented_from": 1,
    }
    done = run("seq-augment", "swap", "--align", "none", "--align", "lemma", stdin=data)
    assert json.loads(done.stdout) == {
        "tokens": ["b", "a"],
        "lemma": ["2", "1"],
        "augmented_from": 1,
    }
    assert done.stderr == (
        'seq-augment: lists as long as "tokens" but not aligned are left out of copies:'
        ' "tags" (1) (see --align)\n'
    )


def test_what_is_said_of_copies():
    data = b'{"tokens":["a","b"],"lemma":["A","B"],"chunk":["I","I"],"kind":["x"]}\n'
    done = run("seq-augment", "swap", "--copies", "2", "--jobs", "2", stdin=data * 2)
    assert done.lines == [
        b'{"tokens":["b","a"],"kind":["x"],"augmented_from":%d}' % number for number in (1, 1, 2, 2)
    ]
    assert done.stderr == (
        'seq-augment: lists as long as "tokens" but not aligned are left out of copies:'
        ' "chunk" (4), "lemma" (4) (see --align)\n'
    )
    data = b'{"tokens":["a"],"lemma":["A"]}\n' * 2
    done = run("seq-augment", "swap", "--copies", "2", stdin=data)
    assert len(done.lines) == 4
    assert done.stderr == (
        "seq-augment: 4 of 4 copies came out as the record is (see --drop-unchanged)\n"
    )
    done = run("seq-augment", "swap", "--drop-unchanged", "--align", "lemma", stdin=data)
    assert (done.status, done.stdout) == (0, b"")
    assert done.stderr == "seq-augment: 2 of 2 copies came out as the record is, and are left out\n"
    assert run("seq-augment", "swap", "--quiet", stdin=data).stderr == ""


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        ("swap --distance 2 --rate 0.1", 2, "--rate makes no sense"),
        ("swap --rate 0", 2, "above 0"),
        ("swap --align tokens", 2, "is the --field itself"),
        ("swap --align pos --align pos", 2, "twice"),
        ("swap --stopwords missing", 2, "missing: No such file"),
        ("insert --synonyms s --vocab v", 2, "exclude each other"),
        ("insert --vocab n", 1, "n: a vocabulary with counts is needed"),
        ("insert --vocab m", 1, "m:1: not JSON"),
        ("insert --vocab m", 1, "(a file of seq-vocab build is wanted for --vocab)"),
        ("synonym", 2, "--synonyms"),
        ("synonym --synonyms v", 1, "v: no synonyms in it"),
        ("pipe", 2, "--command"),
        ("pipe --command ' '", 2, "empty"),
        ("pipe --command cat --field x", 2, "--field needs --lines"),
    ],
)
def test_mistakes(arguments, status, said, folder):
    (folder / "n").write_text('{"id":0,"token":"a"}\n')
    (folder / "m").write_bytes(bytes(range(256)))
    done = shell(f"seq-augment {arguments}", stdin=b'{"tokens":["a"]}\n', cwd=folder)
    assert (done.status, done.stdout) == (status, b"")
    assert said in done.stderr


# Programs from outside


def pipe(program, data, *options):
    return run("seq-augment", "pipe", "--command", program, *options, stdin=data)


@pytest.mark.parametrize("program", ["cat", "sleep 0.2; cat", "cat > all; cat all; rm all"])
def test_copies_come_back_whatever_the_program_holds_back(program, tmp_path):
    data = RECORDS * 40  # more than all pipes hold
    done = run("seq-augment", "pipe", "--command", program, "--keep", stdin=data, cwd=tmp_path)
    assert (done.status, done.stderr) == (0, "")
    records = [json.loads(line) for line in done.lines]
    assert records[::2] == [json.loads(line) for line in data.splitlines()]
    for record, copy in zip(records[::2], records[1::2], strict=True):
        assert copy.pop("augmented_from") == record.pop("id")
        assert copy == record


def test_records_are_sent_as_they_are_and_what_comes_back_counts():
    line = b'{"id": 123456789012345678901234567890, "text": "\\u00e9",  "x": 1.50}\r\n'
    done = pipe("""tee /dev/stderr | sed 's/}/,"y":2}/'""", b"\xef\xbb\xbf\n" + line)
    assert done.stderr.encode() == line.replace(b"\r", b"")
    assert done.lines == [
        '{"text":"é","x":1.5,"y":2,"augmented_from":123456789012345678901234567890}'.encode()
    ]


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("head -n 1", "the command gave back 1 of the 3 records sent so far: head -n 1"),
        ("sed 2d", "<stdin>:2: the command gave back id 3 for 2"),
        ("tac", "<stdin>:1: the command gave back id 3 for 1"),
        ("""sed 's/"id":1,/"id":"1",/'""", '<stdin>:1: the command gave back id "1" for 1'),
        ("""sed 's/"id":1,//'""", "<stdin>:1: the command gave back no id for 1"),
        ("cat; echo '{\"id\":4}'", "the command gave back more than the 3 records it was sent"),
        ("sed '2s/.*/oops/'", "<stdin>:2: the command gave back not JSON"),
        ("cat; exit 7", "the command failed with status 7: cat; exit 7"),
        ("exit 7", "the command failed with status 7: exit 7"),
        ("kill -9 $$", "the command was ended by SIGKILL: kill -9 $$"),
    ],
)
@pytest.mark.parametrize("times", [1, 3000], ids=["few", "many"])
def test_programs_that_do_not_keep_to_it(program, said, times, tmp_path):
    if times > 1 and program in ("head -n 1", "tac", "cat; echo '{\"id\":4}'"):
        pytest.skip("the numbers are others")
    data = b"".join(b'{"id":%d,"text":"a b c"}\n' % number for number in range(1, 3 * times + 1))
    target = tmp_path / "out"
    target.write_bytes(b"old")
    done = pipe(program, data, "-o", str(target))
    assert (done.status, done.stdout) == (1, b"")
    assert done.stderr.startswith("seq-augment: ")
    assert done.stderr.count("\n") == 1
    assert said in done.stderr
    assert target.read_bytes() == b"old"


@pytest.mark.parametrize("name", ["1.5", "null", "[1,{}]", "7" * 5000])
def test_ids_of_any_kind_come_back(name):
    done = pipe("cat", f'{{"id":{name}}}\n'.encode())
    assert (done.status, done.stderr) == (0, "")
    origin = "1" if name == "null" else name
    assert done.stdout.decode() == f'{{"augmented_from":{origin}}}\n'
    other = pipe(f"echo '{{\"id\":{name}1}}'", b'{"id":"' + b"x" * 100 + b'"}\n')
    assert other.status == 1
    assert len(other.stderr) < 250


def test_a_program_that_is_not_there_says_so_itself():
    done = pipe("no-such-program", b'{"text":"a"}\n')
    first, second = done.stderr.splitlines()
    assert "no-such-program" in first
    assert second == "seq-augment: the command failed with status 127: no-such-program"
    assert done.status == 1


def test_a_bad_record_ends_the_run_after_those_before():
    data = b'{"id":1}\n{"id":2}\n{\n{"id":3}\n'
    done = pipe("cat", data)
    assert done.status == 1
    assert done.lines == [b'{"augmented_from":1}', b'{"augmented_from":2}']
    assert done.stderr.startswith("seq-augment: <stdin>:3: not JSON")
    rejected = pipe("cat", data, "--rejects", "/dev/null")
    assert rejected.status == 3
    assert len(rejected.lines) == 3


def test_lines():
    data = (
        '{"id":1,"text":"a b","tokens":["a","b"],"tags":["O","O"],"label":"x"}\n'
        '{"text":"","src":"c"}\n{"text":"é"}\n'
    ).encode()
    done = pipe("tr a-z A-Z", data, "--lines", "--keep")
    assert [json.loads(line) for line in done.lines[1::2]] == [
        {"text": "A B", "label": "x", "augmented_from": 1},
        {"text": "", "src": "c", "augmented_from": 2},
        {"text": "é", "augmented_from": 3},
    ]
    assert [json.loads(line) for line in done.lines[::2]] == [
        json.loads(line) for line in data.splitlines()
    ]
    for program, said in (
        ("grep .", "the command gave back 2 of the 3 records sent so far: grep ."),
        ("printf '\\351\\n\\n\\n'", "<stdin>:1: the command gave back not UTF-8"),
    ):
        done = pipe(program, data, "--lines")
        assert done.status == 1
        assert said in done.stderr
    done = pipe("cat", b'{"text":"a\\nb"}\n', "--lines")
    assert done.stderr == 'seq-augment: <stdin>:1: "text" has a newline, a line cannot hold it\n'
    done = pipe("cat", b'{"src":5}\n', "--lines", "--field", "src")
    assert '"src" must be a string' in done.stderr


def test_lists_beside_the_tokens_of_another_text():
    done = pipe("cat", b'{"text":"a b","tokens":["a","b"],"chunk":["B","I"],"n":[1]}\n', "--lines")
    assert done.lines == [b'{"text":"a b","n":[1],"augmented_from":1}']
    assert done.stderr == (
        'seq-augment: lists as long as "tokens" but not aligned are left out of copies:'
        ' "chunk" (1)\n'
    )


@pytest.mark.parametrize(
    ("program", "options", "kept"),
    [
        ("sed s/a/b/", ("--lines",), [b'{"text":"bb","x":1,"augmented_from":7}']),
        ("sed s/a/b/", (), [b'{"id":7,"text":"bb","x":1,"augmented_from":7}']),
        ("sed s/1/2/", (), [b'{"id":7,"text":"ab","x":2,"augmented_from":7}']),
    ],
)
def test_what_came_back_as_it_was_sent_is_no_copy(program, options, kept):
    data = b'{"id":7,"text":"ab","x":1}\n{"id": 8,"text":"c"}\n'
    done = pipe(program, data, *options, "--drop-unchanged")
    assert done.lines == [line.replace(b'"id":7,', b"") for line in kept]
    said = "seq-augment: 1 of 2 copies came out as the record is, and are left out\n"
    assert done.stderr == said
    both = pipe(program, data, *options, "--drop-unchanged", "--keep")
    assert both.lines == [b'{"id":7,"text":"ab","x":1}', *done.lines, b'{"id":8,"text":"c"}']


@contextlib.contextmanager
def started(program, **settings):
    """The command as a process that can be written to and read from."""
    with subprocess.Popen(
        [*command("seq-augment"), "pipe", "--command", program],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=environment(), preexec_fn=answer_signals, **settings,
    ) as process:  # fmt: skip
        try:
            yield process
        finally:
            process.kill()


def test_a_program_that_ends_while_the_input_goes_on():
    with started("head -n 1; exit 4") as process:
        process.stdin.write(b'{"id":1}\n')
        process.stdin.flush()
        assert process.stdout.read() == b'{"augmented_from":1}\n'  # though stdin is open
        assert process.wait(60) == 1
        assert b"failed with status 4" in process.stderr.read()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_all_that_the_shell_started(number, tmp_path):
    with started("sleep 300 | (echo $$ > pid; cat > /dev/null)", cwd=tmp_path) as process:
        deadline = time.monotonic() + 60
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        (shell_pid,) = children(process.pid)
        below = [shell_pid, *children(shell_pid)]
        assert len(below) >= 2
        process.send_signal(number)
        assert process.wait(30) == -number
        assert process.stderr.read() == b""
        while not all(gone(each) for each in below):
            assert time.monotonic() < deadline
            time.sleep(0.01)


def test_a_closed_reader_ends_the_program(tmp_path):
    done = shell(
        """seq-augment pipe --command 'echo $$ > pid; exec yes "{}"' | head -n 1; echo $?""",
        stdin=b"{}\n" * 100_000,
        cwd=tmp_path,
    )
    assert done.stdout == b'{"augmented_from":1}\n0\n'
    assert done.stderr == ""
    pid = int((tmp_path / "pid").read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
