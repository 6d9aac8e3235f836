import gzip

import pytest

from tests.cli.helpers import run, shell

CONVERT = "seq-convert"


def test_text_of_a_windows_file_and_back() -> None:
    data = "\ufeffeins\r\n\r\nzwei 𠮷\n".encode()
    records = run(CONVERT, "text", stdin=data)
    assert records.lines == [b'{"text":"eins"}', b'{"text":""}', '{"text":"zwei 𠮷"}'.encode()]
    assert (
        run(CONVERT, "text", "--reverse", stdin=records.stdout).stdout
        == "eins\n\nzwei 𠮷\n".encode()
    )


@pytest.mark.parametrize("arguments", ["text", "tsv --columns a,b", "tsv --header"])
def test_workers_change_nothing(arguments: str) -> None:
    rows = b"".join(b"%d\t%s\n" % (number, b"x" * (number % 1000)) for number in range(5000))
    one, two = (
        run(CONVERT, *arguments.split(), "--jobs", jobs, stdin=b"a\tb\n" + rows) for jobs in "13"
    )
    assert one == two
    assert (one.status, len(one.lines)) == (0, 5000 if "header" in arguments else 5001)


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


def test_bad_rows_are_put_aside(tmp_path) -> None:
    data = b"a\tb\n1\t2\n3\n\xff\t4\n5\t6\n"
    done = run(CONVERT, "tsv", "--header", "--rejects", "bad", stdin=data, cwd=tmp_path)
    assert done.status == 3
    assert done.lines == [b'{"a":"1","b":"2"}', b'{"a":"5","b":"6"}']
    assert tmp_path.joinpath("bad").read_bytes() == b"3\n\xff\t4\n"
    assert done.stderr == "seq-convert: 2 of 4 records rejected, see bad\n"


def test_a_header_that_is_no_text() -> None:
    done = run(CONVERT, "tsv", "--header", stdin=b"a\t\xff\n")
    assert (done.status, done.stdout) == (1, b"")
    assert done.stderr.startswith("seq-convert: <stdin>:1: not UTF-8")
