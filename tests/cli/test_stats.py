"""seq-stats: records out, pieces that merge, pictures on a terminal."""

import contextlib
import hashlib
import json
import os
import pathlib
import pty
import re
import subprocess

import pytest

from .helpers import command, environment, run

TOKENS = b"".join(
    json.dumps({"text": "ab" * (n % 7), "tokens": [f"w{n % 13}", f"v{n}"]}).encode() + b"\n"
    for n in range(4000)
)
KINDS = {
    "lengths": ("lengths", "--field", "text", "--field", "tokens", "--max-length", "3"),
    "tokens": ("tokens", "--top", "3"),
    "labels": ("labels", "--field", "tokens"),
}


def stats(*arguments, **settings):
    done = run("seq-stats", *arguments, **settings)
    assert done.status == 0, done.stderr
    return done.stdout


@pytest.fixture(params=KINDS)
def kind(request):
    return KINDS[request.param]


def test_jobs_give_the_same_bytes(kind, tmp_path):
    # More than one block of 256 KiB.
    data = TOKENS * 4
    assert len(data) > 1 << 18
    assert stats(*kind, "--jobs", "3", stdin=data) == stats(*kind, stdin=data)
    rejects = ("--rejects", str(tmp_path / "bad"), "--jobs", "2")
    done = run("seq-stats", *kind, *rejects, stdin=b"{\n" + data + b"[]\n")
    assert (done.status, done.stdout) == (3, stats(*kind, stdin=data))


def test_pieces_merge_to_the_whole(kind, tmp_path):
    lines = TOKENS.splitlines(keepends=True)
    pieces = lines[:1], lines[1:2500], [], lines[2500:]
    states = [stats(*kind, "--partial", stdin=b"".join(piece)) for piece in pieces]
    parts = [str(tmp_path / f"{number}.part") for number in range(4)]
    for part, state in zip(parts, states, strict=True):
        pathlib.Path(part).write_bytes(state)
    whole = stats(*kind, stdin=TOKENS)
    assert stats(*kind, "--merge", *parts) == whole
    # In two steps, too, and as one file.
    (tmp_path / "first").write_bytes(stats(*kind, "--merge", "--partial", *parts[:2]))
    assert stats(*kind, "--merge", str(tmp_path / "first"), *parts[2:]) == whole
    assert stats(*kind, "--merge", stdin=b"".join(states)) == whole


@pytest.mark.parametrize("name", ["lengths", "labels"])
def test_shards_merge_to_the_whole(name, tmp_path):
    shards = []
    for number in (1, 2, 3):
        shards.append(str(tmp_path / str(number)))
        options = ("--shard", f"{number}/3", "--partial", "-o", shards[-1])
        stats(*KINDS[name], *options, stdin=TOKENS)
    assert stats(*KINDS[name], "--merge", *shards) == stats(*KINDS[name], stdin=TOKENS)


def test_shards_merge_to_all_numbers_of_tokens_but_the_growth(tmp_path):
    shards = []
    for number in (1, 2):
        shards.append(str(tmp_path / str(number)))
        options = ("--shard", f"{number}/2", "--partial", "-o", shards[-1])
        stats("tokens", *options, stdin=TOKENS)

    def stripped(output):
        records = [json.loads(line) for line in output.splitlines()]
        return [
            {key: value for key, value in record.items() if not key.startswith("heaps")}
            for record in records
            if record["statistic"] != "growth"
        ]

    merged = stats("tokens", "--merge", *shards)
    whole = stats("tokens", stdin=TOKENS)
    assert stripped(merged) == stripped(whole)
    # The growth is that of the shards, one behind the other.
    lines = TOKENS.splitlines(keepends=True)
    assert merged == stats("tokens", stdin=b"".join(lines[::2] + lines[1::2]))


# Blank lines, two files, and more than one block of the first.
TEXTS = [
    b'{"text":"a"}\n\n' + b'{"text":"b\\u0000"}\n \n\n{"text":"a"}\n' * 9000,
    b'\n{"text":""}\n',
]
DIRTY = {
    "quality": ("quality", "--near-duplicates", "0.9", "--examples", "9999999"),
    "list": ("quality", "--list"),
}


@pytest.fixture
def corpus(tmp_path):
    for number, data in enumerate(TEXTS):
        (tmp_path / f"{number}.jsonl").write_bytes(data)
    return tmp_path


@pytest.mark.parametrize("kind", DIRTY)
def test_examples_name_file_and_line(kind, corpus):
    assert len(TEXTS[0]) > 1 << 18
    command = (*DIRTY[kind], "0.jsonl", "1.jsonl")
    whole = stats(*command, cwd=corpus)
    assert stats(*command, "--jobs", "2", cwd=corpus) == whole
    records = [json.loads(line) for line in whole.splitlines()]
    shown = [*records, *(example for row in records for example in row.get("examples", ()))]
    places = [*shown, *(each["like"] for each in shown if "like" in each)]
    lines = {name: TEXTS[int(name[0])].split(b"\n") for name in ("0.jsonl", "1.jsonl")}
    numbers = [
        (name, line) for name in lines for line, raw in enumerate(lines[name], 1) if raw.strip()
    ]
    told = {(each["record"], each["file"], each["line"]) for each in places if "record" in each}
    # All but the first record have a fault, and that one is what others are like.
    assert told == {(number, *place) for number, place in enumerate(numbers, 1)}


@pytest.mark.parametrize("kind", DIRTY)
def test_places_are_there_when_parts_merge(kind, corpus):
    whole = stats(*DIRTY[kind], "0.jsonl", "1.jsonl", cwd=corpus)
    for shard in ("2/2", "1/2"):
        options = ("--shard", shard, "--partial", "-o", shard[0])
        stats(*DIRTY[kind], *options, "0.jsonl", "1.jsonl", cwd=corpus)
    assert stats(*DIRTY[kind], "--merge", "2", "1", cwd=corpus) == whole
    stats(*DIRTY[kind], "--partial", "-o", "first", "0.jsonl", cwd=corpus)
    options = ("--first-record", "18002", "--partial", "-o", "second")
    stats(*DIRTY[kind], *options, "1.jsonl", cwd=corpus)
    assert stats(*DIRTY[kind], "--merge", "second", "first", cwd=corpus) == whole


def test_parts_need_the_numbers_of_the_corpus(corpus):
    for name in ("1", "2"):
        stats("quality", "--partial", "-o", name, "--first-record", name, "0.jsonl", cwd=corpus)
    done = run("seq-stats", "quality", "--merge", "1", "2", cwd=corpus)
    assert (done.status, done.stdout) == (1, b"")
    assert done.stderr.startswith("seq-stats: there are two records 2: ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("keywords", "--idf", "-"), "--idf and the records cannot both come from stdin."),
        (("keywords", "--stopwords", "-"), "--stopwords and the records cannot both come from"),
        (("quality", "--fence", "11"), "11 must be at most 10"),
        (("quality", "--first-record", str(1 << 62)), "--first-record must be below 2^62."),
    ],
)
def test_what_is_refused_before_anything_is_read(arguments, message):
    done = run("seq-stats", *arguments, stdin=TOKENS)
    assert (done.status, done.stdout) == (2, b"")
    assert message in done.stderr


def test_a_table_of_idf_that_comes_from_stdin_is_named_so(tmp_path):
    (tmp_path / "in").write_bytes(TOKENS)
    huge = b'{"token":"w1","idf":1' + b"0" * 400 + b"}\n"
    done = run("seq-stats", "keywords", "--idf", "-", "in", stdin=huge, cwd=tmp_path)
    assert (done.status, done.stderr) == (1, "seq-stats: <stdin>:1: not a word and its IDF\n")


def test_words_of_a_corpus_that_the_table_does_not_have_are_told_of(tmp_path):
    (tmp_path / "idf").write_bytes(b"w1 1.5\n")
    command = ("keywords", "--idf", "idf", "--corpus")
    done = run("seq-stats", *command, stdin=TOKENS, cwd=tmp_path)
    # Every record has one word of each kind; n % 13 is 1 in 308 of 4,000.
    share = 7692 / 8000
    assert done.stderr == (
        f"seq-stats: 7692 of 8000 words are not in the IDF table (share {share:.4g})\n"
    )
    done = run("seq-stats", *command, "--quiet", "--jobs", "2", stdin=TOKENS, cwd=tmp_path)
    assert done.stderr == ""
    textrank = ("keywords", "--method", "textrank", "--corpus")
    assert run("seq-stats", *textrank, stdin=TOKENS).stderr == ""


def test_a_table_is_drawn_though_records_were_rejected(tmp_path):
    options = ("--table", "--rejects", "bad")
    done = run("seq-stats", "labels", *options, stdin=b"5\n" + b"{}\n", cwd=tmp_path)
    assert done.status == 3
    assert "1 of 2 records rejected, see bad (why: bad.reasons.jsonl)" in done.stderr
    assert 'no record has a "label"' in done.stderr
    assert "label: balance" in done.stderr
    data = b'{"label":"a"}\n' * 3
    options = (*options, "--max-rejects", "0")
    done = run("seq-stats", "labels", *options, stdin=data + b"5\n", cwd=tmp_path)
    assert done.status == 1
    assert "balance" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "left"),
    [(("labels",), 0), (("idf",), 3953),
     (("keywords", "--method", "textrank", "--corpus", "--top", "99"), 39)],
)  # fmt: skip
def test_a_long_table_says_how_much_is_left_out(arguments, left):
    done = run("seq-stats", *arguments, "--table", stdin=TOKENS)
    assert done.status == 0
    assert left == 0 or len(done.stdout.splitlines()) == 60 + left
    assert (f"\nand {left:,} more\n" in done.stderr) == (left > 0)


@pytest.mark.parametrize("command", [DIRTY["quality"], ("keywords", "--corpus", "--quiet")])
def test_faults_and_keywords_have_bars_too(command):
    done = run("seq-stats", *command, "--table", stdin=TOKENS)
    assert "█" in done.stderr


STATE = (
    b'{"seqtools":"statistics","version":2,"kind":"labels",'
    b'"options":{"fields":["label"],"entities":false},'
    b'"covers":[{"file":"<stdin>","digest":"%b","first_record":1,'
    b'"index":1,"count":1,"records":1}]}\n'
    b'{"field":"label","records":1,"missing":0,"counts":{"a":1},"having":{"a":1},"entities":{}}\n'
    b'{"seqtools":"statistics","end":1}\n'
)
# The name stands between two zeros, and then what was read.
READ = b'\0<stdin>\0{"label":"a"}\n'
STATE = STATE.replace(b"%b", hashlib.blake2b(READ, digest_size=16).hexdigest().encode())
HEAD, PART, END = STATE.splitlines(keepends=True)


def test_the_state_is_as_it_was():
    assert stats("labels", "--partial", stdin=b'{"label":"a"}\n') == STATE


@pytest.mark.parametrize(
    ("arguments", "data", "reason"),
    [
        (("tokens",), STATE, "<stdin>:1: statistics of kind labels, not tokens"),
        (
            ("labels", "--field", "x"), STATE,
            '<stdin>:1: statistics with fields ["label"], entities false,'
            ' not fields ["x"], entities false',
        ),
        (
            ("labels",), STATE.replace(b":2,", b":1,", 1),
            "<stdin>:1: statistics of version 1, not 2",
        ),
        (("labels",), HEAD + PART, "<stdin>: the statistics end too early"),
        (
            ("labels",), HEAD + PART + STATE,
            "<stdin>:3: the statistics before this line end too early",
        ),
        (("labels",), HEAD + END, "<stdin>:2: records of the statistics are missing"),
        (("labels",), STATE + END, "<stdin>:4: records of the statistics are missing"),
        (("labels",), PART, "<stdin>:1: not what seq-stats --partial wrote"),
        (("labels",), HEAD + b'{"field":"y"}\n', "<stdin>:2: no part of statistics of kind labels"),
        (("labels",), HEAD + b"{}\n", "<stdin>:2: no part of statistics of kind labels"),
        (("labels",), b"", "<stdin>: no statistics in it"),
        (("labels",), STATE + STATE, "<stdin>:4: these records are already counted: <stdin>"),
        (
            ("labels",), HEAD.replace(b'"index"', b'"x"'),
            "<stdin>:1: the statistics do not say which records they cover",
        ),
        (
            ("labels",), HEAD.replace(b'{"fields":["label"],"entities":false}', b"3"),
            '<stdin>:1: statistics with no options, not fields ["label"], entities false',
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_merged(arguments, data, reason):
    done = run("seq-stats", *arguments, "--merge", stdin=data)
    assert (done.status, done.stdout) == (1, b"")
    assert done.stderr == f"seq-stats: {reason}\n"


@pytest.mark.parametrize(
    "option", [("--rejects", "bad"), ("--shard", "1/2"), ("--first-record", "2"), ("--jobs", "2")]
)
def test_merging_reads_no_corpus(option, tmp_path):
    done = run("seq-stats", "labels", "--merge", *option, stdin=STATE, cwd=tmp_path)
    assert done.status == 2
    assert f"{option[0]} makes no sense with --merge" in done.stderr
    assert not (tmp_path / "bad").exists()


def test_what_was_counted_is_not_counted_twice(tmp_path):
    (tmp_path / "in").write_bytes(TOKENS)
    (tmp_path / "none").write_bytes(b"")
    for name, shard in (("whole", "1/1"), ("1", "1/2"), ("2", "2/2"), ("4", "3/4"), ("5", "5/6")):
        stats("idf", "--shard", shard, "--partial", "-o", name, "in", cwd=tmp_path)
    stats("idf", "--merge", "--partial", "-o", "both", "1", "2", cwd=tmp_path)
    # 1/2 and 3/4 share record 3, 3/4 and 5/6 record 11.
    for parts in ("1 1", "1 whole", "whole 2", "both 2", "1 4", "4 5"):
        done = run("seq-stats", "idf", "--merge", *parts.split(), cwd=tmp_path)
        assert (done.status, done.stdout) == (1, b""), parts
        assert f"seq-stats: {parts[-1]}:1: these records are already" in done.stderr or (
            done.stderr.startswith("seq-stats: whole:1: these records are already counted: in\n")
        )
    assert stats("idf", "--merge", "1", "2", cwd=tmp_path) == stats("idf", stdin=TOKENS)
    done = run("seq-stats", "idf", "--merge", "1", "none", "2", cwd=tmp_path)
    assert (done.status, done.stderr) == (1, "seq-stats: none: no statistics in it\n")


def test_shards_that_are_missing_are_named(tmp_path):
    (tmp_path / "in").write_bytes(TOKENS)
    for number in (1, 3, 9):
        options = ("--shard", f"{number}/9", "--partial", "-o", str(number))
        stats("idf", *options, "in", cwd=tmp_path)
    done = run("seq-stats", "idf", "--merge", "1", "9", "3", cwd=tmp_path)
    assert done.status == 0
    assert done.stderr == (
        "seq-stats: warning: missing shards of in: 2/9, 4/9, 5/9, 6/9, 7/9 and 1 more\n"
    )
    done = run("seq-stats", "idf", "--merge", "--partial", "1", "9", "3", cwd=tmp_path)
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("counted", "told"),
    [
        (("lengths", "--field", "tokens", "--field", "text"), ("--percentiles", "1,2")),
        (("tokens", "--field", "tokens"), ("--top", "2")),
        (("labels", "--field", "tags", "--entities"), ()),
        (("quality", "--field", "text", "--field", "tokens", "--near-duplicates", "0.9",
          "--shingle", "2", "--examples", "1"), ("--fence", "1")),
        (("quality", "--list"), ()),
        (("idf", "--field", "tokens"), ("--min-count", "2")),
        (("keywords", "--by", "text", "--min-length", "3"), ("--top", "3")),
        (("keywords", "--corpus", "--method", "textrank"), ("--top", "3")),
    ],
)  # fmt: skip
def test_a_state_says_how_it_was_made(counted, told):
    data = b"".join(TOKENS.splitlines(keepends=True)[:50]).replace(b"}", b', "tags": ["B-X"]}')
    state = stats(*counted, "--partial", stdin=data)
    assert stats(counted[0], *told, "--merge", stdin=state) == stats(*counted, *told, stdin=data)


@pytest.mark.parametrize("kind", ["lengths", "idf", "labels", "keywords --corpus"])
def test_that_there_are_no_records_is_told(kind):
    done = run("seq-stats", *kind.split(), stdin=b"\n")
    assert (done.status, done.stderr) == (0, "seq-stats: warning: no records\n")
    state = stats(*kind.split(), "--partial", stdin=b"")
    done = run("seq-stats", *kind.split(), "--merge", stdin=state)
    assert (done.status, done.stderr) == (0, "seq-stats: warning: no records\n")


def test_tables_have_no_blanks_at_ends(kind):
    shown = run("seq-stats", *kind, "--table", stdin=TOKENS).stderr
    assert not [line for line in shown.split("\n") if line != line.rstrip()]
    assert "\n\n\n" not in shown


def test_faults_that_nothing_has_are_not_drawn():
    data = b'{"text":"a  b"}\n' + b'{"text":"a"}\n'
    shown = run("seq-stats", "quality", "--table", stdin=data).stderr
    assert "space" in shown
    assert "50.00 %" in shown
    assert "mojibake" not in shown
    shown = run("seq-stats", "quality", "--table", stdin=data[-13:]).stderr
    assert shown.startswith("faults of 1 records: none")


def test_the_table_of_a_listing_names_the_fields_where_there_are_several() -> None:
    pair = json.dumps({"src": "a\0", "tgt": "", "id": 7}).encode() + b"\n"
    listing = ("seq-stats", "quality", "--list", "--table", "--quiet", "--field", "src")
    shown = run(*listing, "--field", "tgt", stdin=pair).stderr
    assert "<stdin>:1   empty (tgt), control (src)\n" in shown
    assert "control\n" in run(*listing, stdin=pair).stderr


def terminal(folder, *arguments, **extra):
    """What comes on standard output, and what a terminal on standard error shows."""
    (folder / "in").write_bytes(TOKENS)
    ours, theirs = pty.openpty()
    with (
        open(folder / "out", "wb") as out,
        subprocess.Popen(
            [*command("seq-stats"), *arguments, "in"],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=theirs,
            cwd=folder,
            env=environment(TERM="xterm", COLUMNS="80", **extra),
        ) as process,
    ):
        os.close(theirs)
        shown = b""
        # Reading fails once the other end is closed.
        with contextlib.suppress(OSError):
            while part := os.read(ours, 1 << 16):
                shown += part
        assert process.wait(60) == 0
    os.close(ours)
    return (folder / "out").read_bytes(), shown.decode()


def test_a_terminal_shows_a_table_and_a_histogram(kind, tmp_path):
    data, shown = terminal(tmp_path, *kind)
    assert data == stats(*kind, stdin=TOKENS)
    assert "4,000" in shown
    assert "█" in shown
    assert terminal(tmp_path, *kind, "--quiet") == (data, "")
    assert not re.search(
        r"\x1b\[[\d;]*3\dm", terminal(tmp_path, *kind, NO_COLOR="1")[1]
    )  # no colour


def test_elsewhere_a_table_is_drawn_where_it_is_asked_for(kind):
    env = environment(FORCE_COLOR="1", COLUMNS="80")
    done = run("seq-stats", *kind, stdin=TOKENS, env=env)
    assert done.stderr == ""
    shown = run("seq-stats", *kind, "--table", "--quiet", stdin=TOKENS, env=env)
    assert shown.stdout == done.stdout
    assert "4,000" in shown.stderr
    assert "█" in shown.stderr
    assert "\x1b" not in shown.stderr
    assert max(map(len, shown.stderr.splitlines())) <= 80


def test_a_table_shows_text_as_text():
    odd = json.dumps({"label": "[bold]a\x1b[2Jb\u202ec"}).encode()
    shown = run("seq-stats", "labels", "--table", stdin=odd).stderr
    assert "[bold]a\\x1b[2Jb\\u202ec" in shown


def test_nothing_to_count(kind):
    assert run("seq-stats", *kind, "--table", stdin=b"").status == 0


def test_a_field_that_no_record_has_is_told_of():
    done = run("seq-stats", "labels", "--field", "lable", stdin=b'{"label":"a"}\n')
    assert done.status == 0
    assert done.stderr == 'seq-stats: warning: no record has a "lable"\n'


def test_lists_of_percentiles():
    data = b'{"text":"a"}\n{"text":"abc"}\n'
    [line] = stats(
        "lengths", "--bins", "0", "--percentiles", "0,50,50.000001,100", stdin=data
    ).split()
    assert json.loads(line)["percentiles"] == {"0": 1, "50": 1, "50.000001": 3, "100": 3}
    for wrong in ("101", "a", "50,", "nan", ""):
        done = run("seq-stats", "lengths", "--percentiles", wrong, stdin=data)
        assert done.status == 2, wrong
        assert "--percentiles" in done.stderr
