"""seq-ngram sample and check; in this process, as loading torch takes longer than all the rest."""

import itertools
import json
import math
import pathlib
from collections.abc import Iterator
from typing import Any

import click
import pytest
import torch

from seqtools.cli.ngram import cli
from seqtools.errors import InputError, SeqtoolsError
from seqtools.ngram.estimate import train
from seqtools.ngram.model import save
from seqtools.ngram.smoothing import Smoothing
from tests.cli.helpers import ROOT

Record = dict[str, Any]
TOY = str(ROOT / "tests" / "cases" / "seq-ngram" / "check-arpa" / "toy2.arpa")
LINES = ["a b c", "b a", "a b d b", "", "d a b", "c c a"]


@pytest.fixture(autouse=True)
def one_thread(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Threads of this process would spin: they wait passively only where the command starts."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def ngram(tmp_path: pathlib.Path) -> Any:
    """Run the command: options and records in, records out."""

    def ngram(kind: str, *options: object, records: list[Record] | None = None) -> list[Record]:
        source, target = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
        target.unlink(missing_ok=True)
        arguments = [kind, *map(str, options), "--quiet", "-o", str(target)]
        if kind == "sample":
            arguments += ["--device", "cpu"]
        if records is not None:
            source.write_text("".join(json.dumps(record) + "\n" for record in records))
            arguments.append(str(source))
        cli.main(arguments, prog_name="seq-ngram", standalone_mode=False)
        return [json.loads(line) for line in target.read_bytes().splitlines()]

    return ngram


def trained(folder: pathlib.Path, method: str = "witten-bell", **options: Any) -> str:
    """A model of order 3 in our own format."""
    records = [line.split() for line in options.pop("lines", LINES)]
    words = {"unk_as_word": options.pop("unk_as_word", False)}
    path = folder / f"{method}.safetensors"
    with path.open("wb") as handle:

        def put(data: bytes) -> None:
            handle.write(data)

        save(train(records, 3, Smoothing(method, **options), **words).model, put)
    return str(path)


def outputs(records: list[Record]) -> list[list[str]]:
    return [record["output_tokens"] for record in records]


# sample


def test_samples_have_the_probability_that_score_gives(ngram: Any, tmp_path: pathlib.Path) -> None:
    for model in (TOY, trained(tmp_path), trained(tmp_path, "add-k", add=0.5),
                  trained(tmp_path, "stupid-backoff")):  # fmt: skip
        found = ngram("sample", "--model", model, "--count", 20, "--max-length", 50)
        assert len({tuple(tokens) for tokens in outputs(found)}) > 5
        made = [
            {"tokens": one["tokens"], "made": one}
            for record in found
            for one in record["hypotheses"]
            if "<unk>" not in one["tokens"]
        ]
        for record in ngram("score", "--model", model, "--details", records=made):
            one = record["made"]
            assert one["finished"]
            assert one["logprob"] == pytest.approx(record["logprob"], abs=1e-5)
            assert one["token_logprobs"] == pytest.approx(record["token_logprobs"], abs=1e-5)


def test_a_prompt_is_continued(ngram: Any, tmp_path: pathlib.Path) -> None:
    model = trained(tmp_path)
    more = 12345678901234567890123
    prompts = [{"id": "x", "tokens": ["a", "b"], "more": more}, {"tokens": []}, {"tokens": ["?"]}]
    first, second, third = ngram("sample", "--model", model, records=prompts)
    assert list(first) == ["id", "tokens", "more", "output_tokens", "hypotheses"]
    assert first["more"] == more
    assert list(first["hypotheses"][0]) == [
        "tokens", "ids", "logprob", "score", "token_logprobs", "finished",
    ]  # fmt: skip
    whole = [{"tokens": first["tokens"] + first["output_tokens"]}]
    [scored] = ngram("score", "--model", model, "--details", records=whole)
    expected = scored["token_logprobs"][2:]
    assert first["hypotheses"][0]["token_logprobs"] == pytest.approx(expected, abs=1e-5)
    assert (second["tokens"], third["tokens"]) == ([], ["?"])


def test_new_records_begin_with_the_prompt(ngram: Any) -> None:
    sample = ("sample", "--model", TOY)
    found = ngram(*sample, "--prompt", "\ta  b\n", "--count", 4)
    assert [list(record) for record in found] == [["tokens", "output_tokens", "hypotheses"]] * 4
    assert [record["tokens"] for record in found] == [["a", "b"]] * 4
    # as if the same had been read
    assert found == ngram(*sample, records=[{"tokens": ["a", "b"]}] * 4)
    assert ngram(*sample, "--prompt", "a b") == found[:1]
    assert ngram(*sample, "--prompt", "a b", "--count", 4, "--shard", "2/3") == found[1:2]
    # a no-break space separates nothing
    assert ngram(*sample, "--prompt", "a\u00a0b")[0]["tokens"] == ["a\u00a0b"]
    empty = ngram(*sample, "--count", 4)
    assert [list(record) for record in empty] == [["output_tokens", "hypotheses"]] * 4
    assert ngram(*sample, "--prompt", " ", "--count", 4) == empty


def test_samples_do_not_depend_on_neighbours(ngram: Any, tmp_path: pathlib.Path) -> None:
    records = [{"id": f"r{n}", "tokens": ["a", "d", "b"][: n % 4]} for n in range(12)]
    options = ("--model", trained(tmp_path), "--samples", 3, "--max-length", 6)
    expected = ngram("sample", *options, "--seed", 7, records=records)
    assert ngram("sample", *options, "--seed", 7, "--batch-size", 1, records=records) == expected
    assert ngram("sample", *options, "--seed", 7, records=records[5:]) == expected[5:]
    assert outputs(ngram("sample", *options, "--seed", 8, records=records)) != outputs(expected)


def test_no_temperature_takes_the_likeliest(ngram: Any) -> None:
    for draw in (["--temperature", 0], ["--top-k", 1], ["--top-p", 0]):
        [found] = ngram("sample", "--model", TOY, "--count", 1, "--max-length", 3, *draw)
        assert found["output_tokens"] == ["a", "b"]  # 0.75, then 0.5; of two with 0.5 the end
        assert found["hypotheses"][0]["logprob"] == pytest.approx(math.log(0.1875), abs=1e-6)


def test_unknown_words_are_drawn_unless_they_are_not_to_be(ngram: Any) -> None:
    sample = ("sample", "--model", TOY, "--count", 100, "--temperature", 3)
    assert "<unk>" in itertools.chain(*outputs(ngram(*sample)))
    found = ngram(*sample, "--no-unk")
    assert set(itertools.chain(*outputs(found))) == {"a", "b"}
    assert "<s>" not in itertools.chain(*outputs(ngram(*sample)))


def test_a_word_that_is_spelled_unk(
    ngram: Any, tmp_path: pathlib.Path, capfd: pytest.CaptureFixture[str]
) -> None:
    lines = ["a <unk> b", "<unk> b", "a <unk> c"]
    greedy = ("--temperature", 0, "--max-length", 1, "--prompt")
    known = trained(tmp_path, lines=lines, unk_as_word=True)
    [found] = ngram("sample", "--model", known, *greedy, "a")
    assert found["output_tokens"] == ["<unk>"]
    assert found["hypotheses"][0]["ids"][0] > 2
    assert ngram("sample", "--model", known, *greedy, "a <unk>")[0]["output_tokens"] == ["b"]
    assert capfd.readouterr().err == ""
    ngram("sample", "--model", trained(tmp_path, lines=lines), *greedy, "a <unk>")
    assert "spelled like special symbols, read as unknown: 1\n" in capfd.readouterr().err


def test_words_of_other_tokens_are_warned_about_once(
    ngram: Any, tmp_path: pathlib.Path, capfd: pytest.CaptureFixture[str]
) -> None:
    records = [{"tokens": ["A", "B"]}, {"tokens": ["C"]}]
    ngram("sample", "--model", trained(tmp_path), records=records)
    name = tmp_path / "in.jsonl"
    [line] = capfd.readouterr().err.splitlines()
    assert line.partition(": ")[2] == (
        f"warning: {name}:1: 2 of 2 tokens are unknown to the model (in training 0.0%);"
        " were they made by the same tokenizer?"
    )
    ngram("sample", "--model", TOY, "--prompt", "A", "--count", 3)  # knows no training
    assert "--prompt:1: 1 of 1 tokens are unknown to the model; were" in capfd.readouterr().err


@pytest.mark.parametrize(
    "options",
    [
        "--count 0", "--count 2 some.jsonl", "--prompt a some.jsonl", "--temperature -1",
        "--top-k 0", "--top-p 1.5", "--samples 0", "--max-length 0", "--device tpu", "--beam 2",
        "--attention", "--prompt \udcff", "--model -",
    ],
)  # fmt: skip
def test_nonsense_is_a_usage_error(options: str) -> None:
    arguments = ["sample", "--model", TOY, *options.split()]
    with pytest.raises(click.UsageError):
        cli.main(arguments, prog_name="seq-ngram", standalone_mode=False)


def test_a_bad_record_stops_after_those_before_it(ngram: Any) -> None:
    with pytest.raises(InputError) as caught:
        ngram("sample", "--model", TOY, records=[{"tokens": ["a"]}, {"text": "a"}])
    assert caught.value.line == 2
    assert caught.value.reason == '"tokens" is missing (seq-tokenize --field text makes it)'


# check


@pytest.mark.parametrize("method", ["modified-kneser-ney", "add-k", "mle", "stupid-backoff"])
def test_a_report_says_how_the_model_was_made(
    ngram: Any, tmp_path: pathlib.Path, method: str
) -> None:
    model = trained(tmp_path, method, fallback=(0.5, 1.0, 1.5))
    [found] = ngram("check", "--model", model, "--contexts", 40)
    assert found["smoothing"] == method
    words = 6 if method in ("mle", "stupid-backoff") else 7  # the latter have <unk>
    assert (found["order"], found["words"], found["ngrams"][0]) == (3, words, words)
    assert (found["records"], found["tokens"]) == (6, 15)
    assert found["contexts"] > 10
    assert (found["deviation"] < 1e-6) == (method != "stupid-backoff")
    assert found.get("additive") == (1.0 if method == "add-k" else None)
    if method == "modified-kneser-ney":
        assert found["fallbacks"] == [1, 2, 3]
        assert found["discounts"] == [[0.5, 1.0, 1.5]] * 3
        assert [len(counts) for counts in found["counts_of_counts"]] == [4] * 3
    else:
        assert "discounts" not in found


def test_other_seeds_look_elsewhere(ngram: Any, tmp_path: pathlib.Path) -> None:
    model = trained(tmp_path, "stupid-backoff", lines=["a b c d e f g h", "h g f e d c b a"])
    found = [ngram("check", "--model", model, "--contexts", 3, "--seed", n) for n in range(8)]
    assert len({json.dumps(record) for record in found}) > 1
    again = [ngram("check", "--model", model, "--contexts", 3, "--seed", n) for n in range(8)]
    assert again == found


def test_the_report_of_a_wrong_model_is_written(ngram: Any, tmp_path: pathlib.Path) -> None:
    wrong = tmp_path / "wrong.arpa"
    wrong.write_text(pathlib.Path(TOY).read_text().replace("-0.5228787\ta", "-0.0228787\ta"))
    with pytest.raises(SeqtoolsError, match=r"after 'a' sum to 1\.64868\d*, which"):
        ngram("check", "--model", wrong)
    found = json.loads((tmp_path / "out.jsonl").read_text())
    assert found["context"] == ["a"]
    assert found["deviation"] == 0.65  # 10**-0.0228787 - 0.3, two digits of it


def test_stupid_backoff_is_said_to_be_none(
    tmp_path: pathlib.Path, capfd: pytest.CaptureFixture[str]
) -> None:
    model = trained(tmp_path, "stupid-backoff")
    arguments = ["check", "--model", model, "-o", str(tmp_path / "out")]
    cli.main(arguments, prog_name="seq-ngram", standalone_mode=False)
    *_, summary, last = capfd.readouterr().err.splitlines()
    assert "contexts, largest deviation 0." in summary
    assert last.endswith(": stupid backoff gives scores, which do not sum to 1")
