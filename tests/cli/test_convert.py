import gzip
import json
import pathlib
import subprocess

import pytest

from tests.cli.helpers import command, run, shell

CONVERT = "seq-convert"


def test_text_of_a_windows_file_and_back() -> None:
    data = "\ufeffeins\r\n\r\nzwei 𠮷\n".encode()
    records = run(CONVERT, "text", stdin=data)
    assert records.lines == [b'{"text":"eins"}', b'{"text":""}', '{"text":"zwei 𠮷"}'.encode()]
    assert (
        run(CONVERT, "text", "--reverse", stdin=records.stdout).stdout
        == "eins\n\nzwei 𠮷\n".encode()
    )


ROWS = b"".join(b"%d\t%s\n" % (number, b"x" * (number % 1000)) for number in range(1, 5001))
QUOTED = b"".join(b'%d,"%s\n""y"\n' % (number, b"x" * (number % 1000)) for number in range(1, 5001))
SENTENCES = b"".join(
    b"-DOCSTART- O\n\n" * (not number % 7) + b"%d O\n" % number * (1 + number % 200) + b"\n"
    for number in range(5000)
)


@pytest.mark.parametrize(
    ("arguments", "data", "records"),
    [
        ("text", ROWS, 5000),
        ("tsv --columns a,b", ROWS, 5000),
        ("tsv --header", b"a\tb\n" + ROWS, 5000),
        ("csv --columns a,b", QUOTED, 5000),
        ("csv --header --shard 2/5", b'a,"b\nc"\n' + QUOTED, 1000),
        ("conll --columns tokens,tags", SENTENCES, 5000),
        ("conll --columns tokens,tags --shard 3/5", SENTENCES, 1000),
        ("text --encoding utf-16-le", ROWS.decode().encode("utf-16-le"), 5000),
    ],
)
def test_workers_change_nothing(arguments: str, data: bytes, records: int) -> None:
    one, two = (run(CONVERT, *arguments.split(), "--jobs", jobs, stdin=data) for jobs in "13")
    assert one == two
    assert (one.status, len(one.lines)) == (0, records)


def test_a_table_with_a_header_goes_through_workers() -> None:
    alone, two = (children("tsv", "--header", "--jobs", jobs) for jobs in "12")
    assert (alone, two) == (0, 2)


def children(*arguments: str) -> int:
    """How many processes a run has besides its own, once it has written a record."""
    with subprocess.Popen(
        [*command(CONVERT), *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        process.stdin.write(b"a\tb\n1\t2\n")
        process.stdin.flush()
        assert process.stdout.readline() == b'{"a":"1","b":"2"}\n'
        tasks = pathlib.Path(f"/proc/{process.pid}/task").glob("*/children")
        found = sum(len(task.read_text().split()) for task in tasks)
        process.stdin.close()
    return found


@pytest.mark.parametrize(
    ("arguments", "first", "rest"),
    [
        ("conll --columns tokens", b"a\nb\n\nc\n", b"d\n\n"),
        ("csv --columns a", b'"a\nb"\n"c\n', b'd"\n'),
    ],
)
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_what_is_whole_is_out_before_the_rest_comes_in(arguments, first, rest, jobs) -> None:
    with subprocess.Popen(
        [*command(CONVERT), *arguments.split(), "--jobs", jobs],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as process:  # fmt: skip
        process.stdin.write(first)
        process.stdin.flush()
        assert b"a" in process.stdout.readline()
        process.stdin.write(rest)
        process.stdin.close()
        assert b"d" in process.stdout.readline()
        assert process.stdout.read() == b""


@pytest.mark.parametrize(
    ("arguments", "data"),
    [
        ("conll --columns tokens", b"wonderful\n" * 1_000_000),
        ("csv --columns a", b'"' + b'field ""\n' * 1_000_000 + b'"\n'),
    ],
)
def test_a_record_of_ten_megabytes(arguments: str, data: bytes) -> None:
    done = run(CONVERT, *arguments.split(), stdin=data)
    assert (done.status, len(done.lines)) == (0, 1)
    assert done.stdout.count(b"wonderful") + done.stdout.count(b"field") == 1_000_000


@pytest.mark.parametrize("name", ["gb18030", "big5", "utf-16", "utf-8-sig", "iso2022_jp"])
def test_sentences_and_tables_in_other_encodings(name: str) -> None:
    for kind, text in (
        ("conll --columns tokens,tags", "# id = 天\n北\tB-LOC\n京\tI-LOC\n\na\tO\n\n"),
        ("csv --columns a,b", '北京,"天\n""人"""\n ,x\n'),
        ("tsv --columns a,b", "北京\t天\n\tx\n"),
        ("fasttext", "__label__天 北京\n"),
    ):
        options = [*kind.split(), "--encoding", name]
        records = run(CONVERT, *options, stdin=text.encode(name))
        assert records.status == 0
        assert "北".encode() in records.stdout
        if kind.startswith("conll"):
            options += ["--comments", "id"]
        back = run(CONVERT, *options, "--reverse", stdin=records.stdout)
        assert (back.status, back.stdout.decode(name)) == (0, text)


def test_tsv_there_and_back() -> None:
    data = b"id\tsrc\n1\t \"ein\" 'Hund' \n2\t\n"
    records = run(CONVERT, "tsv", "--header", stdin=data)
    assert run(
        CONVERT, "tsv", "--reverse", "--header", "--columns", "id,src", stdin=records.stdout
    ) == (
        0,
        data,
        "",
    )


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_one_return_belongs_to_the_line_end(jobs: str) -> None:
    for kind, data, found in (
        ("tsv", b"a\r\r\n", b'{"x":"a\\r"}\n'),
        ("csv", b'"a\r"\r\nb\r\n', b'{"x":"a\\r"}\n{"x":"b"}\n'),
    ):
        for header in (b"", b"x\r\n"):
            options = ["--header"] if header else ["--columns", "x"]
            done = run(CONVERT, kind, *options, "--jobs", jobs, stdin=header + data)
            assert done == (0, found, "")


def test_a_header_is_read_in_small_pieces_and_compressed(tmp_path) -> None:
    tmp_path.joinpath("a.tsv.gz").write_bytes(gzip.compress(b"x\ty\n1\t2\n"))
    done = shell("(printf x; sleep 0.2; printf '\\tz\\n'; sleep 0.2; printf '3\\t4\\n')"
                 " | seq-convert tsv --header a.tsv.gz -", cwd=tmp_path)  # fmt: skip
    assert done == (0, b'{"x":"1","y":"2"}\n{"x":"3","z":"4"}\n', "")


@pytest.mark.parametrize(
    ("arguments", "status", "reason"),
    [
        ("tsv", 2, "--columns NAMES is needed"),
        ("tsv --reverse --header", 2, "--columns NAMES is needed"),
        ("tsv --columns a,,b", 2, "empty name"),
        ("tsv --columns a,a", 2, "names one twice"),
        ("tsv --columns a --columns a", 2, "names one twice"),
        ("tsv --columns _,_", 2, "no column is wanted"),
        ("tsv --columns _,b --reverse", 2, "no field can be written for _"),
        ("text --field=", 2, "a name cannot be empty"),
        ("fasttext --label-field=", 2, "a name cannot be empty"),
        ("tsv --header --columns q", 2, "<stdin>: no column is called 'q': a, b"),
        ("tsv --columns a", 1, "<stdin>:1: 1 column expected, got 2"),
        ("json", 2, "No such command"),
        ("csv", 2, "--columns NAMES is needed"),
        ("csv --columns a --delimiter ab", 2, "a delimiter is one character of ASCII"),
        ("text --encoding klingon", 2, "no encoding is called 'klingon'"),
        ("text --encoding rot13", 2, "no encoding is called 'rot13'"),
        ("conll", 2, "--columns NAMES is needed, or --format conllu"),
        ("conll --columns tokens --comments id", 2, "--comments is for --reverse"),
        ("conll --columns tokens --repair", 2, "--repair needs --scheme"),
        ("conll --columns tokens,tags --scheme iob1:x", 2, "no scheme of tags is called 'x'"),
        ("conll --columns a=-1 --reverse", 2, "count them from the first"),
        ("fasttext --prefix=", 2, "labels cannot begin with ''"),
        ("fasttext", 1, "<stdin>:1: one label expected, got no label"),
    ],
)
def test_what_is_refused(arguments: str, status: int, reason: str) -> None:
    done = run(CONVERT, *arguments.split(), stdin=b"a\tb\n1\t2\n")
    assert (done.status, done.stdout) == (status, b"")
    assert reason in done.stderr


def test_which_columns() -> None:
    row = b"1,2,3\n"
    done = run(CONVERT, "csv", "--columns", "_,b", "--columns", "_", stdin=row)
    assert done == (0, b'{"b":"2"}\n', "")
    done = run(CONVERT, "csv", "--columns", "a, b,c", stdin=row)
    assert (done.status, "' b' has white space at an end" in done.stderr) == (2, True)
    done = run(CONVERT, "csv", "--header", "--columns", "a, b", stdin=b"a, b\n1,2\n")
    assert done == (0, b'{"a":"1"," b":"2"}\n', "")
    done = run(CONVERT, "csv", "--header", stdin=b",b\n1,2\n")
    assert done.stderr == "seq-convert: <stdin>: column 1 has no name (see --columns): , b\n"
    done = run(CONVERT, "csv", "--header", "--columns", "b", stdin=b",b\n1,2\n")
    assert done == (0, b'{"b":"2"}\n', "")


@pytest.mark.parametrize("mark", [";", "\t"])
def test_a_column_that_looks_like_several(mark: str) -> None:
    table = f"a{mark}b\n1{mark}2\n".encode()
    done = run(CONVERT, "csv", "--header", stdin=table)
    name = f"a{mark}b"
    assert json.loads(done.stdout) == {name: f"1{mark}2"}
    warning = f"<stdin>: one column, called {name!r} (see --delimiter)"
    assert done.stderr == f"seq-convert: warning: {warning}\n"
    done = run(CONVERT, "csv", "--header", "--delimiter", mark, stdin=table)
    assert done == (0, b'{"a":"1","b":"2"}\n', "")


def test_more_columns_than_names() -> None:
    several = run(CONVERT, "conll", "--columns", "tokens,tags", stdin=b"a b c\n")
    assert several.stderr.endswith("got 3 (or some by number: tokens=1,tags=-1)\n")
    fewer = run(CONVERT, "conll", "--columns", "tokens,tags", stdin=b"a\n")
    assert fewer.stderr.endswith("2 columns expected, got 1\n")


def test_bad_rows_are_put_aside(tmp_path) -> None:
    data = b"a\tb\n1\t2\n3\n\xff\t4\n5\t6\n"
    done = run(CONVERT, "tsv", "--header", "--rejects", "bad", stdin=data, cwd=tmp_path)
    assert done.status == 3
    assert done.lines == [b'{"a":"1","b":"2"}', b'{"a":"5","b":"6"}']
    assert tmp_path.joinpath("bad").read_bytes() == b"3\n\xff\t4\n"
    assert done.stderr == "seq-convert: 2 of 4 records rejected, see bad (why: bad.reasons.jsonl)\n"


def test_a_header_that_is_no_text() -> None:
    done = run(CONVERT, "tsv", "--header", stdin=b"a\t\xff\n")
    assert (done.status, done.stdout) == (1, b"")
    assert done.stderr.startswith("seq-convert: <stdin>:1: not UTF-8")
