"""seq-eval through its command line."""

import json
import pathlib
import subprocess
import sys
from typing import Any

import pytest

from tests.cli.helpers import run, shell

PAIR = ("--hypothesis", "output", "--reference", "tgt")


def records(*values: Any) -> bytes:
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


def one(stdout: bytes) -> dict[str, Any]:
    (line,) = stdout.splitlines()
    result: dict[str, Any] = json.loads(line)
    return result


TWO = records({"output": "a b c d e", "tgt": "a b c d e"}, {"output": "x y", "tgt": "x z"})


def test_bleu_is_sacrebleus(tmp_path: pathlib.Path) -> None:
    done = run("seq-eval", "bleu", *PAIR, stdin=TWO)
    assert (done.status, done.stderr) == (0, "")
    (tmp_path / "ref").write_text("a b c d e\nx z\n")
    (tmp_path / "hyp").write_text("a b c d e\nx y\n")
    theirs = subprocess.run(
        [sys.executable, "-m", "sacrebleu", "ref", "-i", "hyp", "--width", "10"],
        cwd=tmp_path, capture_output=True, check=True,
    )  # fmt: skip
    expected = json.loads(theirs.stdout)
    result = one(done.stdout)
    assert round(result["score"], 10) == expected["score"]
    assert result["signature"] == expected["signature"]
    assert result["records"] == 2


def test_tokens_are_joined_by_blanks() -> None:
    text = one(run("seq-eval", "bleu", *PAIR, stdin=TWO).stdout)
    split = records(
        {"output": ["a", "b", "c", "d", "e"], "tgt": "a b c d e"},
        {"output": "x y", "tgt": ["x", "z"]},
    )
    assert one(run("seq-eval", "bleu", *PAIR, stdin=split).stdout) == text


def test_chinese_by_characters() -> None:
    stdin = records({"output": "我们去公园", "tgt": "我们去学校"})
    assert one(run("seq-eval", "bleu", *PAIR, stdin=stdin).stdout)["reference_length"] == 1
    zh = one(run("seq-eval", "bleu", *PAIR, "--tokenize", "zh", stdin=stdin).stdout)
    assert zh["reference_length"] == 5
    assert "tok:zh" in zh["signature"]


def test_lowercase_and_word_order() -> None:
    stdin = records({"output": "The Cat", "tgt": "the cat"})
    plain = one(run("seq-eval", "chrf", *PAIR, stdin=stdin).stdout)
    assert plain["score"] < 100
    done = run("seq-eval", "chrf", *PAIR, "--lowercase", "--word-order", "2", stdin=stdin)
    assert one(done.stdout)["score"] == pytest.approx(100)
    assert "case:lc" in one(done.stdout)["signature"]
    assert "nw:2" in one(done.stdout)["signature"]


def test_several_references() -> None:
    stdin = records({"o": "b", "r1": "a", "r2": "b"}, {"o": "c", "r1": "a", "r2": "b"})
    done = run(
        "seq-eval",
        "exact",
        "--hypothesis",
        "o",
        "--reference",
        "r1",
        "--reference",
        "r2",
        stdin=stdin,
    )
    assert one(done.stdout) == {"metric": "exact", "score": 0.5, "equal": 1, "records": 2}


def test_accuracy_of_labels_and_of_lists() -> None:
    fields = ("--hypothesis", "output", "--reference", "tgt")
    stdin = records({"output": "joy", "tgt": "joy"}, {"output": "joy", "tgt": "fear"})
    assert one(run("seq-eval", "accuracy", *fields, stdin=stdin).stdout) == {
        "metric": "accuracy", "score": 0.5, "correct": 1, "total": 2,
        "majority": 0.5, "majority_value": "fear", "records": 2,
    }  # fmt: skip
    table = one(run("seq-eval", "accuracy", *fields, "--labels", stdin=stdin).stdout)
    assert [(row["label"], row["f1"]) for row in table["labels"]] == [("fear", 0), ("joy", 2 / 3)]
    assert table["macro_f1"] == 1 / 3
    lists = records({"output": ["DT", "nn", "VB"], "tgt": ["DT", "NN", "NN"]})
    found = one(run("seq-eval", "accuracy", *fields, "--lowercase", stdin=lists).stdout)
    assert (found["correct"], found["total"], found["majority_value"]) == (2, 3, "nn")


def test_accuracy_of_masked_positions() -> None:
    stdin = records(
        {"tokens": ["<mask>", "b", "<mask>"], "output": ["a", "x", "c"], "tgt": ["a", "b", "d"]},
        {"tokens": ["b"], "output": ["b"], "tgt": ["b"]},
    )
    found = one(run("seq-eval", "accuracy", *PAIR, "--masked", "tokens", stdin=stdin).stdout)
    assert (found["correct"], found["total"], found["records"]) == (1, 2, 2)
    stdin = records({"tokens": ["b"], "output": ["b"], "tgt": ["b"]})
    done = run("seq-eval", "accuracy", *PAIR, "--masked", "tokens", stdin=stdin)
    assert (done.status, done.stdout) == (1, b"")
    assert done.stderr == "seq-eval: no record has a value to compare, so there is no accuracy\n"


def test_segmentation_with_words_from_a_pipe() -> None:
    stdin = records({"output": "ab c", "tgt": ["ab", "c"]}, {"output": ["a", "b"], "tgt": ["AB"]})
    done = run("seq-eval", "segmentation", *PAIR, stdin=stdin)
    assert (done.status, done.stdout) == (1, b"")
    assert done.stderr.startswith(
        "seq-eval: <stdin>:2: the output is not the text of its reference"
    )
    line = (
        "seq-eval segmentation --hypothesis o --reference t --lowercase --words <(printf 'AB\\n')"
    )
    found = one(shell(f"""echo '{{"o":["ab","c"],"t":"ab c"}}' | {line}""").stdout)
    assert (found["lowercase"], found["score"], found["oov"]) == (True, 1.0, 1)
    glued = shell(f"""echo '{{"o":["ab","c"],"t":"ab c"}}' | {line.replace("AB", "AB c")}""")
    assert one(glued.stdout)["oov_rate"] == 1
    assert glued.stderr.startswith(
        "seq-eval: warning: no word of the references is among the known ones"
    )
    blank = run("seq-eval", "segmentation", *PAIR, stdin=records({"output": [], "tgt": " "}))
    assert (blank.status, blank.stdout) == (1, b"")
    assert blank.stderr == "seq-eval: no reference has a word, so there is no score\n"


@pytest.mark.parametrize("apart", [False, True])
def test_lists_of_different_lengths_are_bad_records(apart: bool, tmp_path: pathlib.Path) -> None:
    pairs = [(["a"], ["a"]), (["a", "b"], ["a"]), (["a"], ["b"]), ("a", ["a"])]
    stdin = records(*({"output": output, "tgt": tgt} for output, tgt in pairs))
    (tmp_path / "ref").write_bytes(stdin)
    arguments = ("seq-eval", "accuracy", *PAIR, *(("--reference-file", "ref") if apart else ()))
    done = run(*arguments, stdin=stdin, cwd=tmp_path)
    assert (done.status, done.stdout) == (1, b"")
    expected = "seq-eval: <stdin>:2: the output has 2 values, but its reference 1\n"
    assert done.stderr == expected
    done = run(*arguments, "--rejects", "bad", stdin=stdin, cwd=tmp_path)
    assert done.status == 3
    found = one(done.stdout)
    assert (found["correct"], found["total"], found["records"]) == (1, 2, 2)
    assert (tmp_path / "bad").read_bytes() == b"".join(stdin.splitlines(keepends=True)[1::2])


def test_perplexity() -> None:
    stdin = records({"logprob": -2.0, "n_tokens": 1}, {"logprob": "-inf", "n_tokens": 2})
    result = one(run("seq-eval", "perplexity", stdin=stdin).stdout)
    assert (result["perplexity"], result["bits"], result["n_tokens"]) == ("inf", "inf", 3)


def test_two_files_of_lines(tmp_path: pathlib.Path) -> None:
    (tmp_path / "ref").write_bytes(b"\xef\xbb\xbfa\r\n\r\nb\xe2\x80\xa8c")
    done = run(
        "seq-eval", "exact", "--text", "--reference-file", "ref", stdin=b"a\n\nx", cwd=tmp_path
    )
    assert one(done.stdout) == {"metric": "exact", "score": 2 / 3, "equal": 2, "records": 3}


def test_two_files_of_records_in_order(tmp_path: pathlib.Path) -> None:
    (tmp_path / "ref").write_bytes(records({"tgt": "a"}, {"tgt": "b"}))
    arguments = ("seq-eval", "exact", *PAIR, "--reference-file", "ref")
    done = run(*arguments, stdin=records({"output": "a"}, {"output": "x"}), cwd=tmp_path)
    assert one(done.stdout)["equal"] == 1
    short = run(*arguments, stdin=records({"output": "a"}), cwd=tmp_path)
    assert (short.status, short.stdout) == (1, b"")
    assert short.stderr == "seq-eval: ref:2: no hypothesis: there are only 1\n"
    long = run(*arguments, stdin=records(*[{"output": "a"}] * 3), cwd=tmp_path)
    assert (long.status, long.stdout) == (1, b"")
    assert long.stderr == "seq-eval: <stdin>:3: no reference: ref ends before it\n"


def test_a_rejected_record_takes_its_reference_along(tmp_path: pathlib.Path) -> None:
    (tmp_path / "ref").write_bytes(records({"tgt": "a"}, {"tgt": "b"}, {"tgt": "c"}))
    done = run(
        "seq-eval", "exact", *PAIR, "--reference-file", "ref", "--rejects", "bad",
        stdin=records({"output": "a"}, {"output": 5}, {"output": "c"}), cwd=tmp_path,
    )  # fmt: skip
    assert done.status == 3
    assert one(done.stdout) == {"metric": "exact", "score": 1.0, "equal": 2, "records": 2}
    assert (tmp_path / "bad").read_bytes() == b'{"output": 5}\n'


def test_joined_by_id(tmp_path: pathlib.Path) -> None:
    (tmp_path / "ref").write_bytes(records({"id": 1, "tgt": "a"}, {"id": "1", "tgt": "b"}))
    stdin = records({"id": "1", "output": "b"}, {"id": 1, "output": "a"})
    arguments = ("seq-eval", "exact", *PAIR, "--by", "id", "--reference-file", "ref")
    assert one(run(*arguments, stdin=stdin, cwd=tmp_path).stdout)["equal"] == 2


def test_an_id_twice_names_both_lines(tmp_path: pathlib.Path) -> None:
    twice = records({"id": "a", "text": "x"}, {"id": "a", "text": "y"}, {"id": "b", "text": "y"})
    (tmp_path / "dup.jsonl").write_bytes(twice)
    done = run(
        "seq-eval", "exact", "--by", "id", "--hypothesis", "text", "--reference", "text",
        "--reference-file", "dup.jsonl", "dup.jsonl", cwd=tmp_path,
    )  # fmt: skip
    assert (done.status, done.stdout) == (1, b"")
    assert done.stderr == "seq-eval: dup.jsonl:2: \"id\" 'a' stands in line 1 as well\n"


def test_blank_lines_are_none_and_empty_texts_are_records() -> None:
    stdin = b'{"t":"x y"}\n\n   \n{"t":""}\n{"t":" \xe3\x80\x80 "}\n'
    arguments = ("seq-eval", "exact", "--hypothesis", "t", "--reference", "t")
    assert one(run(*arguments, stdin=stdin).stdout)["records"] == 3
    bad = run(*arguments, stdin=stdin + b"{bad")
    assert (bad.status, bad.stdout) == (1, b"")
    assert bad.stderr.startswith("seq-eval: <stdin>:6: not JSON")


@pytest.mark.parametrize(
    "kind", ["bleu", "chrf", "exact", "accuracy", "segmentation", "perplexity"]
)
def test_a_score_of_nothing(kind: str, tmp_path: pathlib.Path) -> None:
    fields = PAIR if kind != "perplexity" else ()
    done = run("seq-eval", kind, *fields, "-o", "score.json", cwd=tmp_path)
    assert (done.status, done.stdout) == (1, b"")
    assert done.stderr == "seq-eval: no records, so there is no score\n"
    assert not (tmp_path / "score.json").exists()


def test_tokenized_output_is_warned_about(tmp_path: pathlib.Path) -> None:
    stdin = records(*[{"output": "a cat .", "tgt": "a cat ."}] * 100)
    done = run("seq-eval", "bleu", *PAIR, stdin=stdin)
    assert done.status == 0
    said = 'seq-eval: warning: 100 hypotheses end in " ."'
    assert done.stderr.startswith(said)
    options = ("--rejects", str(tmp_path / "bad"))
    done = run("seq-eval", "bleu", *PAIR, *options, stdin=stdin + b"{\n")
    assert done.status == 3
    assert done.stderr.startswith(said)
    assert "1 of 101 records rejected" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("bleu",), "--hypothesis FIELD is needed"),
        (("bleu", "--hypothesis", "a"), "--reference FIELD is needed"),
        (("exact", "--text"), "--text needs --reference-file FILE"),
        (("exact", *PAIR, "--by", "id"), "--by needs --reference-file FILE"),
        (("exact", "--text", *PAIR), "--text takes no --hypothesis"),
        (("exact", "--text", "--reference-file", "-"), "Only one of the files"),
        (("exact", *PAIR, "--reference-file", "none.jsonl"), "none.jsonl"),
        (("bleu", *PAIR, "--tokenize", "klingon"), "--tokenize"),
        (("chrf", *PAIR, "--word-order", "-1"), "--word-order"),
        (("accuracy", *PAIR, "--reference", "src"), "one reference only"),
        (("accuracy", *PAIR, "--reference-file", "a", "--reference-file", "b"), "one reference"),
        (("accuracy", "--text", "--reference-file", "a", "--masked", "b"), "--masked does not go"),
        (("segmentation", *PAIR, "--reference", "src"), "one reference only"),
        (("segmentation", *PAIR, "--words", "-"), "--words must be a file"),
        (("segmentation", *PAIR, "--words", "none.txt"), "none.txt: No such file"),
    ],
)
def test_usage(arguments: tuple[str, ...], message: str) -> None:
    done = run("seq-eval", *arguments, stdin=TWO)
    assert (done.status, done.stdout) == (2, b"")
    assert message in done.stderr


@pytest.mark.parametrize("kind", ["bleu", "chrf", "exact", "perplexity"])
def test_the_example_of_the_help(kind: str) -> None:
    text = run("seq-eval", kind, "--help").stdout.decode()
    example = text[text.index("Example:") + len("Example:") :]
    done = shell(example)
    assert (done.status, done.stderr) == (0, "")
    assert one(done.stdout)["metric"] == kind
