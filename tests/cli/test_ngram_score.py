"""seq-ngram score: the numbers that are known, and the same ones however they are asked for."""

from __future__ import annotations

import gzip
import itertools
import json
import math
import pathlib
from typing import Any

import pytest

from tests.cli.helpers import ROOT, Completed, run

TOY = ROOT / "tests" / "cases" / "seq-ngram" / "score-toy"
TOY_ARPA = TOY.joinpath("toy2.arpa").read_bytes()
RECORDS = TOY.joinpath("eval.jsonl").read_bytes()
K1 = b"a b\na b\na c\nb a\n"
LN10 = math.log(10)


def lines(done: Completed) -> list[dict[str, Any]]:
    assert done.status == 0, done.stderr
    return [json.loads(line) for line in done.lines]


def score(
    folder: pathlib.Path, model: bytes, data: bytes, *options: str, name: str = "model"
) -> Completed:
    path = folder / name
    path.write_bytes(model)
    return run("seq-ngram", "score", "--model", str(path), "--quiet", *options, stdin=data)


def summary(folder: pathlib.Path, model: bytes, data: bytes, *options: str) -> dict[str, Any]:
    done = score(folder, model, data, "--summary", str(folder / "summary"), *options)
    assert done.status == 0, done.stderr
    found: dict[str, Any] = json.loads(folder.joinpath("summary").read_bytes())
    return found


def perplexity(record: dict[str, Any]) -> float:
    return math.exp(-record["logprob"] / record["n_tokens"])


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> Completed:
    """What the toy model says of the records."""
    return score(tmp_path_factory.mktemp("toy"), TOY_ARPA, RECORDS)


def test_scores_of_a_toy_model(scored: Completed) -> None:
    """By hand from the file's numbers; log10 of each record, and its perplexity with `</s>`."""
    found = lines(scored)
    logs = [-0.726999, -1.931119, -0.647817, -1.0, -2.768391, -1.204120]
    assert [one["logprob"] / LN10 for one in found] == pytest.approx(logs, abs=1e-6)
    expected = [1.747161, 4.402570, 2.108185, 10, 4.921504, 4]
    assert [perplexity(one) for one in found] == pytest.approx(expected, abs=1e-5)
    assert [one["n_tokens"] for one in found] == [3, 3, 2, 1, 4, 2]
    assert [one["n_oov"] for one in found] == [0, 0, 0, 0, 1, 0]


def test_the_perplexity_of_the_corpus(tmp_path: pathlib.Path) -> None:
    found = summary(tmp_path, TOY_ARPA, RECORDS)
    counts = {name: found[name] for name in ("records", "n_tokens", "n_oov", "eos")}
    assert counts == {"records": 6, "n_tokens": 15, "n_oov": 1, "eos": True}
    assert found["perplexity"] == pytest.approx(3.563661, abs=1e-6)
    assert found["perplexity_without_oov"] == pytest.approx(2.930933, abs=1e-6)
    assert found["bits"] == pytest.approx(math.log2(3.563661), abs=1e-6)
    alone = summary(tmp_path, TOY_ARPA, b'{"tokens":["a","z","b"]}')
    assert alone["perplexity_without_oov"] == pytest.approx(2.201285, abs=1e-6)


def test_the_details_are_the_parts_of_the_sum(tmp_path: pathlib.Path) -> None:
    found = lines(score(tmp_path, TOY_ARPA, RECORDS, "--details"))
    without = lines(score(tmp_path, TOY_ARPA, RECORDS, "--no-eos"))
    for one, shorter in zip(found, without, strict=True):
        assert math.fsum(one["token_logprobs"]) == pytest.approx(one["logprob"], rel=1e-6)
        assert len(one["token_logprobs"]) == len(one["matched"]) == one["n_tokens"]
        assert shorter["n_tokens"] == len(one["tokens"])
        assert shorter["logprob"] == pytest.approx(sum(one["token_logprobs"][:-1]), abs=1e-6)


def test_without_the_marker_the_first_word_has_no_context(tmp_path: pathlib.Path) -> None:
    """By hand: P(a) P(b | a), and P(b) times the weight of b and P(a)."""
    options = ("--no-bos", "--no-eos", "--details", "--text")
    found = lines(score(tmp_path, TOY_ARPA, b"a b\nb a\n\n", *options))
    logs = [-0.3010300 - 0.3010300, -0.6020600 - 0.2041200 - 0.3010300, 0]
    assert [one["logprob"] / LN10 for one in found] == pytest.approx(logs, abs=1e-6)
    assert [one["matched"] for one in found] == [[1, 2], [1, 1], []]
    [end] = lines(score(tmp_path, TOY_ARPA, b"\n", "--no-bos", "--text"))
    assert end["logprob"] / LN10 == pytest.approx(-0.6989700, abs=1e-6)
    whole = summary(tmp_path, TOY_ARPA, b"a b\n", "--no-bos", "--text")
    assert (whole["bos"], whole["eos"], whole["n_tokens"]) == (False, True, 3)


def variants() -> dict[str, bytes]:
    """ARPA files as other programs write them, with the same numbers."""
    crlf = TOY_ARPA.replace(b"\n", b"\r\n")
    dense = b"".join(line for line in TOY_ARPA.splitlines(keepends=True) if line.strip())
    return {
        "spaces": TOY_ARPA.replace(b"\t", b" "),
        "crlf": crlf,
        "count": TOY_ARPA.replace(b"ngram 1=5", b"ngram  1=        5"),
        "dense": dense,
        "capitals": TOY_ARPA.replace(b"<unk>", b"<UNK>"),
        "comment": b"made by hand\n" + TOY_ARPA,
    }


@pytest.mark.parametrize("name", variants())
def test_variants_of_arpa_are_all_one(tmp_path: pathlib.Path, name: str, scored: Completed) -> None:
    assert score(tmp_path, variants()[name], RECORDS) == scored


def test_a_compressed_model_is_the_same(tmp_path: pathlib.Path, scored: Completed) -> None:
    assert score(tmp_path, gzip.compress(TOY_ARPA), RECORDS, name="model.arpa.gz") == scored


def test_a_model_without_unk_gives_unknown_words_nothing(tmp_path: pathlib.Path) -> None:
    model = TOY_ARPA.replace(b"-1.3010300\t<unk>\n", b"").replace(b"ngram 1=5", b"ngram 1=4")
    found = lines(score(tmp_path, model, RECORDS))
    assert [one["logprob"] == "-inf" for one in found] == [one["n_oov"] > 0 for one in found]
    assert found[0]["logprob"] / LN10 == pytest.approx(-0.726999, abs=1e-6)
    whole = summary(tmp_path, model, RECORDS)
    assert (whole["perplexity"], whole["logprob"], whole["n_oov"]) == ("inf", "-inf", 1)
    assert whole["perplexity_without_oov"] == pytest.approx(2.930933, abs=1e-6)


def trained(folder: pathlib.Path, *options: str) -> bytes:
    path = folder / "trained.safetensors"
    arguments = ("train", "--text", "--order", "2", "-o", str(path), "--quiet", *options)
    done = run("seq-ngram", *arguments, stdin=K1)
    assert done.status == 0, done.stderr
    return path.read_bytes()


def test_what_was_never_seen(tmp_path: pathlib.Path) -> None:
    texts = b"a b\nc a\nz a\n"
    mle = lines(score(tmp_path, trained(tmp_path, "--smoothing", "mle"), texts, "--text"))
    # P(a | <s>) = 3/4, P(b | a) = 2/4, P(</s> | b) = 2/3
    assert math.exp(mle[0]["logprob"]) == pytest.approx(1 / 4)
    assert perplexity(mle[0]) == pytest.approx(1.587401, abs=1e-6)
    assert [one["logprob"] for one in mle[1:]] == ["-inf", "-inf"]
    for unk, probability, expected in (("--unk", 243, 6.240251), ("--no-unk", 160, 5.428835)):
        model = trained(tmp_path, "--smoothing", "add-k", unk)
        found = lines(score(tmp_path, model, b"c a\n", "--text"))
        assert math.exp(-found[0]["logprob"]) == pytest.approx(probability, rel=1e-6)
        assert perplexity(found[0]) == pytest.approx(expected, abs=1e-6)


def test_after_an_unknown_word_unigrams_count(tmp_path: pathlib.Path) -> None:
    """The unigrams of Kneser-Ney on this corpus: a, b -0.693575."""
    model = trained(tmp_path, "--discount-fallback")
    [found] = lines(score(tmp_path, model, b"z a\n", "--text", "--details"))
    assert found["token_logprobs"][1] / LN10 == pytest.approx(-0.693575, abs=1e-6)
    assert found["matched"][1] == 1


def test_the_summary_on_stderr_says_what_was_counted(tmp_path: pathlib.Path) -> None:
    def said(*options: str) -> list[str]:
        done = run("seq-ngram", "score", "--model", str(TOY / "toy2.arpa"), *options, stdin=RECORDS)
        assert done.status == 0
        return [line for line in done.stderr.splitlines() if "compiling" not in line]

    assert said() == [
        "seq-ngram: 15 tokens, with a </s> for each of 6 records; 1 of them out of vocabulary",
        "seq-ngram: with words out of vocabulary: perplexity 3.563661, 1.833360 bits per token",
        "seq-ngram: without words out of vocabulary: perplexity 2.930934, 1.551360 bits per token",
    ]
    assert said("--no-eos")[0] == (
        "seq-ngram: 9 tokens, </s> not counted; 1 of them out of vocabulary"
    )
    assert said("--no-bos")[0] == (
        "seq-ngram: 15 tokens, with a </s> for each of 6 records, no <s> before them;"
        " 1 of them out of vocabulary"
    )


def long_text() -> bytes:
    """More than one block of lines."""
    words = itertools.cycle(["a", "b", "z", "c a", "", "b a b"])
    return b"".join(
        f"{next(words)} {next(words)} a b {number % 7}\n".encode() for number in range(25_000)
    )


def test_jobs_shards_and_pipes_give_the_same(tmp_path: pathlib.Path) -> None:
    text = long_text()
    path, numbers = tmp_path / "text", tmp_path / "summary"
    path.write_bytes(text)
    options = ("--text", "--details", "--summary", str(numbers))
    expected = score(tmp_path, TOY_ARPA, text, *options), numbers.read_bytes()
    for more, data in ((("--jobs", "3"), text), ((str(path),), b"")):
        done = score(tmp_path, TOY_ARPA, data, *options, *more)
        assert (done, numbers.read_bytes()) == expected
    halves = [
        score(tmp_path, TOY_ARPA, text, "--text", "--details", "--shard", f"{shard}/2").lines
        for shard in (1, 2)
    ]
    assert [line for pair in zip(*halves, strict=True) for line in pair] == expected[0].lines


def test_text_and_tokens_are_scored_alike(tmp_path: pathlib.Path) -> None:
    text = long_text()[:20_000]
    text = text[: text.rindex(b"\n") + 1]
    records = b"".join(
        json.dumps({"words": line.split()}).encode() + b"\n" for line in text.decode().splitlines()
    )
    of_text = lines(score(tmp_path, TOY_ARPA, text, "--text"))
    of_records = lines(score(tmp_path, TOY_ARPA, records, "--field", "words"))
    for one, other in zip(of_text, of_records, strict=True):
        assert one.pop("text").split() == other.pop("words")
    assert of_text == of_records


def test_what_seq_eval_makes_of_it(scored: Completed) -> None:
    [found] = lines(run("seq-eval", "perplexity", stdin=scored.stdout))
    assert found["perplexity"] == pytest.approx(3.563661, abs=1e-6)


def test_no_summary_of_a_run_that_failed(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "summary"
    done = score(tmp_path, TOY_ARPA, RECORDS + b"{}\n", "--summary", str(path))
    assert done.status == 1
    assert not path.exists()
    assert len(done.lines) == 6
    rejects = ("--rejects", str(tmp_path / "bad"))
    done = score(tmp_path, TOY_ARPA, RECORDS + b"{}\n", "--summary", str(path), *rejects)
    assert done.status == 3
    assert json.loads(path.read_bytes())["records"] == 6


def test_places_that_cannot_be_written_are_named_before_the_work(tmp_path: pathlib.Path) -> None:
    done = score(tmp_path, TOY_ARPA, RECORDS, "--summary", str(tmp_path / "no" / "summary"))
    assert (done.status, done.stdout) == (2, b"")
    assert "no/summary: cannot be written" in done.stderr
    done = score(tmp_path, TOY_ARPA, RECORDS, "--summary", "-")
    assert (done.status, done.stdout) == (2, b"")
    assert "--summary" in done.stderr


def test_one_model_scores(tmp_path: pathlib.Path) -> None:
    done = score(tmp_path, TOY_ARPA, RECORDS, "--model", "other")
    assert (done.status, done.stdout) == (2, b"")
    assert "--model is given 2 times" in done.stderr


def test_text_that_spells_markers_is_told_of_once(tmp_path: pathlib.Path) -> None:
    data = b'{"tokens":["<s>","a","</s>"]}\n' * 3 + b'{"tokens":["<unk>"]}\n'
    for options in ((), ("--jobs", "2")):
        done = score(tmp_path, TOY_ARPA, data, *options)
        assert [one["n_oov"] for one in lines(done)] == [2, 2, 2, 1]
        assert done.stderr == (
            "seq-ngram: warning: 6 tokens are spelled <s> or </s> and count as unknown\n"
        )
