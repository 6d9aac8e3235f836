"""seq-decode on tiny trained models.

Loading torch takes longer than anything else here, so most tests call the command in this process,
with files; what needs a process of its own (pipes, statuses, signals) is run as one.
"""

import itertools
import json
import math
import pathlib
import re
import shlex
import subprocess
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import click
import numpy as np
import pytest
import torch

from seqtools.cli.decode import cli
from seqtools.errors import ConfigError, FormatError, InputError
from seqtools.models.protocols import TensorBatch
from seqtools.models.store import SavedModel, build_model, load_model, model_config, save_model
from seqtools.text.vocab import Vocabulary
from tests.cli.helpers import command, environment, run, shell

Record = dict[str, Any]
WORDS = ["eins", "zwei", "drei", "vier", "fünf", "sechs"]
NUMBERS = dict(zip(WORDS, "123456", strict=True))


class Models(NamedTuple):
    """Where the models of a session are."""

    folder: pathlib.Path

    @property
    def lm(self) -> str:
        """Characters `abcd` over and over, in windows."""
        return str(self.folder / "lm.safetensors")

    @property
    def records(self) -> str:
        """Records of their own: `a b`, `a`, `b b a`, ..., some of them empty."""
        return str(self.folder / "records.safetensors")

    @property
    def mt(self) -> str:
        """Number words to digits in reverse, with attention."""
        return str(self.folder / "mt.safetensors")


def lines(records: list[Record]) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def pairs() -> list[Record]:
    every = [words for count in (1, 2, 3) for words in itertools.product(WORDS, repeat=count)]
    return [{"src_tokens": w, "tgt_tokens": [NUMBERS[word] for word in w[::-1]]} for w in every]


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Models:
    folder = tmp_path_factory.mktemp("models")
    (folder / "abcd.jsonl").write_bytes(lines([{"tokens": list("abcd" * 12)} for _ in range(20)]))
    short = [list("ab"), ["a"], list("bba"), list("ab"), []]
    (folder / "short.jsonl").write_bytes(lines([{"tokens": tokens} for tokens in short * 20]))
    (folder / "mt.jsonl").write_bytes(lines(pairs()))
    done = shell(
        """
        seq-vocab build abcd.jsonl > abcd.vocab
        seq-batch lm --vocab abcd.vocab --batch-size 8 --steps 16 --epochs 4 abcd.jsonl > lm.batches
        seq-batch lm --vocab abcd.vocab --sampling records --batch-size 20 --epochs 12 short.jsonl \
          > records.batches
        seq-vocab build --field src_tokens mt.jsonl > src.vocab
        seq-vocab build --field tgt_tokens mt.jsonl > tgt.vocab
        seq-batch seq2seq --source-vocab src.vocab --target-vocab tgt.vocab --batch-size 16 \
          --epochs 12 mt.jsonl > mt.batches
        seq-train lstm --hidden 16 --lr 0.03 -o lm.safetensors lm.batches > lm.log &
        seq-train gru --hidden 8 --lr 0.03 -o records.safetensors records.batches > records.log &
        seq-train gru --attention additive --bidirectional --hidden 16 --lr 0.03 \
          -o mt.safetensors mt.batches > mt.log &
        wait
        """,
        cwd=folder,
    )
    made = Models(folder)
    for path in (made.lm, made.records, made.mt):
        assert pathlib.Path(path).exists(), done.stderr
    return made


@pytest.fixture(autouse=True)
def one_thread(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Threads of this process would spin: they wait passively only where the command starts."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def decode(tmp_path: pathlib.Path) -> Any:
    """Run the command in this process: options and records in, records out."""

    def decode(kind: str, *options: object, records: list[Record] | None = None) -> list[Record]:
        source, target = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
        target.unlink(missing_ok=True)
        arguments = [kind, *map(str, options), "--device", "cpu", "-o", str(target)]
        if records is not None:
            source.write_bytes(lines(records))
            arguments.append(str(source))
        cli.main(arguments, prog_name="seq-decode", standalone_mode=False)
        return [json.loads(line) for line in target.read_bytes().splitlines()]

    return decode


def source(words: str) -> Record:
    return {"src_tokens": words.split()}


# what comes out


def test_lm_continues_what_it_learnt(models: Models, decode: Any) -> None:
    prompts = [
        {"id": "x", "tokens": ["a"], "more": 12345678901234567890123},
        {"tokens": list("abcda")},
    ]
    first, second = decode("greedy", "--model", models.lm, "--max-length", 9, records=prompts)
    assert first["output_tokens"] == list("bcdabcdab")
    assert second["output_tokens"] == list("bcdabcdab")
    assert list(first) == ["id", "tokens", "more", "output_tokens", "hypotheses"]
    assert first["more"] == 12345678901234567890123
    [best] = first["hypotheses"]
    assert list(best) == ["tokens", "ids", "logprob", "score", "token_logprobs", "finished"]
    assert (best["tokens"], best["finished"]) == (list("bcdabcdab"), False)
    assert best["logprob"] == pytest.approx(sum(best["token_logprobs"]), abs=1e-5)
    assert len(best["token_logprobs"]) == 9


def test_translations_with_attention(models: Models, decode: Any) -> None:
    records = [source("drei eins vier"), source("zwei")]
    found = decode("beam", "--model", models.mt, "--attention", "--nbest", 2, records=records)
    assert found[0]["output_tokens"] == ["4", "1", "3"]
    assert found[1]["output_tokens"] == ["2"]
    for record in found:
        assert [h["score"] for h in record["hypotheses"]] == sorted(
            (h["score"] for h in record["hypotheses"]), reverse=True
        )
        for one in record["hypotheses"]:
            attention = one["attention"]
            assert list(attention) == ["rows", "inputs", "columns", "cross"]
            assert attention["columns"] == [*record["src_tokens"], "</s>"]
            assert attention["rows"] == one["tokens"] + ["</s>"] * one["finished"]
            assert attention["inputs"] == ["<s>", *attention["rows"][:-1]]
            [[matrix]] = attention["cross"]
            assert len(matrix) == len(attention["rows"])
            for row in matrix:
                assert len(row) == len(attention["columns"])
                assert sum(row) == pytest.approx(1, abs=1e-5)


def test_every_record_comes_out_in_order_whatever_the_batches(models: Models, decode: Any) -> None:
    records = [
        {"id": number, "src_tokens": [WORDS[(number * k) % 6] for k in range(number % 9)]}
        for number in range(37)
    ]
    options = ("beam", "--model", models.mt, "--beam", 3, "--nbest", 3)
    expected = decode(*options, records=records)
    assert [record["id"] for record in expected] == list(range(37))
    for sizes in (["--batch-size", 1], ["--batch-size", 8], ["--batch-tokens", 20]):
        same(decode(*options, *sizes, records=records), expected)
    same(decode(*options, records=records[::-1])[::-1], expected)


def same(found: list[Record], expected: list[Record]) -> None:
    for one, other in zip(found, expected, strict=True):
        assert one["output_tokens"] == other["output_tokens"]
        for left, right in zip(one["hypotheses"], other["hypotheses"], strict=True):
            assert left["tokens"] == right["tokens"]
            assert left["finished"] == right["finished"]
            assert left["logprob"] == pytest.approx(right["logprob"], abs=1e-4)
            assert left["token_logprobs"] == pytest.approx(right["token_logprobs"], abs=1e-4)


@pytest.mark.parametrize("longest", [3, None])
def test_scores_are_those_of_forced_decoding(
    models: Models, decode: Any, longest: int | None
) -> None:
    records = [source("eins zwei drei vier"), source("fünf"), source("")]
    limit = ["--max-length", longest] if longest else []
    found = decode("beam", "--model", models.mt, "--nbest", 4, *limit, records=records)
    made = [
        {"src_tokens": r["src_tokens"], "tgt_tokens": h["tokens"], "made": h}
        for r in found
        for h in r["hypotheses"]
    ]
    assert longest is None or not all(record["made"]["finished"] for record in made)
    for record in decode("score", "--model", models.mt, records=made):
        one = record["made"]
        forced = record["token_logprobs"] if one["finished"] else record["token_logprobs"][:-1]
        assert forced == pytest.approx(one["token_logprobs"], abs=1e-4)
        assert record["n_tokens"] == len(record["tgt_tokens"]) + 1
        assert record["logprob"] == pytest.approx(sum(record["token_logprobs"]), abs=1e-4)


def test_length_penalty_ranks_by_a_share_of_the_length(models: Models, decode: Any) -> None:
    options = ("beam", "--model", models.records, "--nbest", 3, "--max-length", 8)
    [record] = decode(*options, "--length-penalty", 1.5, records=[{"tokens": []}])
    for one in record["hypotheses"]:
        length = len(one["token_logprobs"])
        assert one["score"] == pytest.approx(one["logprob"] / length**1.5, abs=1e-5)


def test_models_start_as_their_batches_did(models: Models, decode: Any) -> None:
    # records of their own begin after bos: 4 in 5 end somewhere, 1 in 5 at once
    [record] = decode("predict", "--model", models.records, "--top-k", 9, records=[{"tokens": []}])
    shares = {entry["token"]: math.exp(entry["logprob"]) for entry in record["next"]}
    assert shares["</s>"] == pytest.approx(0.2, abs=0.1)
    assert list(shares.values()) == sorted(shares.values(), reverse=True)
    assert not {"<pad>", "<s>"} & shares.keys()
    # windows begin after a line end
    [record] = decode("predict", "--model", models.lm, "--top-k", 1, records=[{"tokens": []}])
    assert [entry["token"] for entry in record["next"]] == ["a"]


def test_empty_records_give_empty_or_some_output_but_are_never_lost(
    models: Models, decode: Any
) -> None:
    found = decode("greedy", "--model", models.mt, records=[source(""), source("zwei"), source("")])
    alone = decode("greedy", "--model", models.mt, records=[source("zwei")])
    assert len(found) == 3
    same(found[1:2], alone)


def test_attention_of_scored_records(models: Models, decode: Any) -> None:
    records = [
        {"src_tokens": ["zwei", "eins"], "tgt_tokens": ["1", "2"]},
        source("") | {"tgt_tokens": []},
    ]
    first, second = decode("score", "--model", models.mt, "--attention", records=records)
    assert first["attention"]["rows"] == ["1", "2", "</s>"]
    assert first["attention"]["inputs"] == ["<s>", "1", "2"]
    [[matrix]] = second["attention"]["cross"]
    assert matrix == [[pytest.approx(1)]]


def test_attention_of_scored_ids_without_any(decode: Any, tmp_path: pathlib.Path) -> None:
    vocabularies = dict.fromkeys(["source", "target"], Vocabulary.build({"a": 1, "b": 1}))
    model = build_model("gru", "seq2seq", {"hidden": 4}, vocabularies)
    config = model_config(model)
    path = tmp_path / "ids"
    save_model(
        str(path), SavedModel(model, "gru", "seq2seq", config, vocabularies, batching={"ids": True})
    )
    records: list[Record] = [
        {"src_ids": [4], "tgt_ids": []},
        {"src_ids": [4, 5], "tgt_ids": [4, 5, 4]},
        {"src_ids": [4], "tgt_ids": [5]},
    ]
    found = decode("score", "--model", path, "--attention", records=records)
    assert [record["n_tokens"] for record in found] == [0, 2, 0]
    assert [record["attention"]["rows"] for record in found] == [[], ["b", "a"], []]
    assert ["cross" in record["attention"] for record in found] == [False, True, False]


# rules


def test_rules_bind_the_searches(models: Models, decode: Any) -> None:
    def outputs(*options: object, **fields: Any) -> list[str]:
        record = source("eins zwei drei") | fields
        [found] = decode("beam", "--model", models.mt, *options, records=[record])
        tokens: list[str] = found["output_tokens"]
        assert tokens == found["hypotheses"][0]["tokens"]
        return tokens

    assert outputs() == ["3", "2", "1"]
    assert outputs(prefix_tokens=["2"])[0] == "2"
    assert outputs(prefix_tokens=[]) == outputs()
    assert "2" not in outputs("--ban", "2")
    assert {"5", "6"} <= {*outputs("--force", "6", "--force", "5")}
    assert len(outputs("--min-length", 7)) >= 6
    assert outputs("--max-length", "1x") == ["3", "2", "1"]
    assert len(outputs("--max-length", "1x", "--ban", "</s>")) == 3
    assert len(outputs("--max-length", "0.3x+2", "--ban", "</s>")) == 2
    produced = outputs("--min-length", 20, "--no-repeat-ngram", 2)
    two = list(itertools.pairwise(produced))
    assert len({*two}) == len(two)
    assert len({*outputs("--min-length", 7, "--repetition-penalty", 1e6)}) == 6


def test_rules_are_for_all_searches(models: Models, decode: Any) -> None:
    records = [{"tokens": ["a"], "prefix_tokens": ["c"]}, {"tokens": ["b"]}]
    for kind in ("greedy", "beam", "sample"):
        options = (kind, "--model", models.lm, "--max-length", 4, "--ban", "d")
        first, second = decode(*options, records=records)
        assert first["output_tokens"][0] == "c"
        assert "d" not in first["output_tokens"] + second["output_tokens"]
        assert first["prefix_tokens"] == ["c"]


def test_scores_of_beams_are_as_they_are_penalised(models: Models, decode: Any) -> None:
    records = [source("eins zwei drei vier")]
    options = ("beam", "--model", models.mt, "--nbest", 3, "--length-penalty", 0.8)
    [found] = decode(*options, "--length-penalty-form", "gnmt", records=records)
    for one in found["hypotheses"]:
        length = len(one["token_logprobs"])
        assert one["score"] == pytest.approx(one["logprob"] / ((5 + length) / 6) ** 0.8, abs=1e-5)
    [found] = decode(*options, "--coverage-penalty", 0.3, "--attention", records=records)
    for one in found["hypotheses"]:
        received = np.array(one["attention"]["cross"]).sum(axis=(0, 1, 2))
        coverage = 0.3 * np.log(np.minimum(received, 1)).sum()
        expected = one["logprob"] / len(one["token_logprobs"]) ** 0.8 + coverage
        assert one["score"] == pytest.approx(expected, abs=1e-4)


def test_groups_differ(models: Models, decode: Any) -> None:
    options = ("beam", "--model", models.mt, "--beam", 4, "--nbest", 4, "--max-length", 1)
    options = (*options, "--diverse-groups", 4)
    [found] = decode(*options, "--diversity", 1e6, records=[source("eins zwei")])
    assert len({tuple(one["tokens"]) for one in found["hypotheses"]}) == 4
    [found] = decode(*options, "--diversity", 0, records=[source("eins zwei")])
    assert [one["tokens"] for one in found["hypotheses"]] == [["2"]]  # each group takes the best


def test_rules_that_cannot_be(models: Models, decode: Any) -> None:
    def refused(*options: object) -> str:
        with pytest.raises(ConfigError) as caught:
            decode("greedy", "--model", models.lm, *options, records=[{"tokens": ["a"]}])
        return str(caught.value)

    assert refused("--ban", "x") == "--ban x: the model does not know this token"
    assert refused("--force", "x") == "--force x: the model does not know this token"
    for token in ("<pad>", "</s>"):
        assert refused("--force", token) == f"--force {token}: it is the end, or never proposed"
    assert refused("--force", "a", "--ban", "a").startswith("--force a:")
    assert refused("--max-length", "2x").startswith(
        "--max-length 2x is for models of the task seq2"
    )
    assert "--align is for models of the task seq2seq" in refused("--align")
    with pytest.raises(InputError, match="prefix and forced tokens need 2 places"):
        decode(
            "greedy", "--model", models.lm, "--max-length", 1,
            records=[{"tokens": ["a"], "prefix_tokens": ["a", "b"]}],
        )  # fmt: skip
    with pytest.raises(InputError, match='"prefix_tokens" must be a list of strings, got string'):
        decode("greedy", "--model", models.lm, records=[{"tokens": [], "prefix_tokens": "a"}])


# several models


def test_an_ensemble_gives_the_mean_of_the_probabilities(models: Models, decode: Any) -> None:
    records = [{"tokens": ["a"]}, {"tokens": ["b", "b"]}]
    other = str(models.folder / "other.safetensors")
    vocabularies = load_model(models.records).vocabularies
    model = build_model("lstm", "lm", {"hidden": 5}, vocabularies, seed=3)
    batching = {"sampling": "records"}
    config = model_config(model)
    save_model(other, SavedModel(model, "lstm", "lm", config, vocabularies, batching=batching))
    options = ("predict", "--top-k", 99)
    parts = [decode(*options, "--model", one, records=records) for one in (models.records, other)]
    both = decode(*options, "--model", models.records, "--model", other, records=records)
    for found, *alone in zip(both, *parts, strict=True):
        expected = [{e["token"]: math.exp(e["logprob"]) for e in one["next"]} for one in alone]
        for entry in found["next"]:
            mean = sum(one[entry["token"]] for one in expected) / 2
            assert math.exp(entry["logprob"]) == pytest.approx(mean, abs=1e-6)
    made = decode("greedy", "--model", models.records, "--model", other, records=records)
    pairs = [{"tokens": [*r["tokens"], *r["output_tokens"]]} for r in made]
    scored = decode("score", "--model", models.records, "--model", other, records=pairs)
    for record, found in zip(scored, made, strict=True):
        [one] = found["hypotheses"]
        forced = record["token_logprobs"][len(found["tokens"]) :]
        assert forced[: len(one["token_logprobs"])] == pytest.approx(
            one["token_logprobs"], abs=1e-4
        )


def test_an_ensemble_attends_as_all_its_models_do(
    decode: Any, tmp_path: pathlib.Path, capfd: pytest.CaptureFixture[str]
) -> None:
    one, other = (
        untrained(tmp_path / name, "seq2seq", seed=seed) for name, seed in (("one", 1), ("two", 2))
    )
    options = ("score", "--attention", "--model")
    records = [letters("a b", "src_tokens") | letters("c", "tgt_tokens")]
    [both] = decode(*options, one, "--model", other, records=records)
    [[first], [second]] = (decode(*options, path, records=records) for path in (one, other))
    for kind in ("cross", "encoder", "decoder"):
        parts = np.array([alone["attention"][kind] for alone in (first, second)])
        assert np.abs(parts[0] - parts[1])[..., 1:, :].max() > 1e-3
        np.testing.assert_allclose(both["attention"][kind], parts.mean(axis=0), atol=1e-5)
    assert "warning" not in capfd.readouterr().err
    deeper = untrained(tmp_path / "deeper", "seq2seq", layers=3)
    [mixed] = decode(*options, one, "--model", deeper, records=records)
    assert list(mixed["attention"]) == ["rows", "inputs", "columns"]
    assert "the models have no attention of like layers and heads" in capfd.readouterr().err


def another_vocabulary(models: Models) -> str:
    saved = load_model(models.lm)
    saved.vocabularies = {"tokens": Vocabulary.build(dict.fromkeys("abce", 1))}
    path = str(models.folder / "abce.safetensors")
    save_model(path, saved)
    return path


def test_models_that_do_not_go_together(models: Models, decode: Any) -> None:
    def refused(*paths: str) -> str:
        with pytest.raises(ConfigError) as caught:
            decode("greedy", *(word for path in paths for word in ("--model", path)), records=[])
        return str(caught.value)

    assert refused(models.mt, models.lm) == f"{models.lm} is for lm, but {models.mt} for seq2seq"
    assert refused(models.lm, models.records) == (
        f"{models.records} and {models.lm} were not trained on records cut alike"
    )
    path = another_vocabulary(models)
    assert refused(models.lm, path) == f"{path} and {models.lm} do not have the same vocabularies"


# a language model beside


@pytest.fixture(scope="session")
def digits(models: Models) -> pathlib.Path:
    """A folder with n-grams of digits that go up, as ARPA and as our own file."""
    folder = models.folder
    text = "1 2 3\n2 3 4\n3 4 5\n4 5 6\n1 2\n2 3\n" * 3
    (folder / "up.txt").write_text(text)
    done = shell(
        """
        seq-ngram train --order 2 --smoothing witten-bell --text -o up.arpa --quiet up.txt
        seq-ngram convert --quiet --model up.arpa -o up.safetensors
        """,
        cwd=folder,
    )
    assert (folder / "up.safetensors").exists(), done.stderr
    return folder


def test_n_grams_have_a_say(models: Models, digits: pathlib.Path, decode: Any) -> None:
    records = [source("drei zwei eins"), source("eins zwei drei")]
    options = ("beam", "--model", models.mt, "--beam", 4)
    alone = decode(*options, records=records)
    found = {}
    for name in ("up.arpa", "up.safetensors"):
        found[name] = decode(*options, "--lm", digits / name, "--lm-weight", 0.3, records=records)
    same(found["up.arpa"], found["up.safetensors"])
    for record in found["up.arpa"]:
        [one] = record["hypotheses"]
        assert one["logprob"] == pytest.approx(sum(one["token_logprobs"]), abs=1e-4)
        assert one["score"] < one["logprob"]
    # a strong say turns what goes down into what goes up
    assert alone[1]["output_tokens"] == ["3", "2", "1"]
    strong = decode(*options, "--lm", digits / "up.arpa", "--lm-weight", 50, records=records)
    assert strong[1]["output_tokens"] != ["3", "2", "1"]


def test_the_score_with_n_grams_is_the_weighted_sum(
    models: Models, digits: pathlib.Path, decode: Any
) -> None:
    options = ("--lm", digits / "up.arpa", "--lm-weight", 0.5)
    [record] = decode("greedy", "--model", models.mt, *options, records=[source("drei zwei eins")])
    [one] = record["hypotheses"]
    assert one["finished"]
    line = json.dumps({"tokens": one["tokens"]})
    scored = shell(f"echo '{line}' | seq-ngram score --model {digits}/up.arpa")
    expected = one["logprob"] + 0.5 * json.loads(scored.stdout)["logprob"]
    assert one["score"] == pytest.approx(expected, abs=1e-4)


def test_n_grams_that_know_hardly_any_token_are_told_of(
    models: Models, digits: pathlib.Path, decode: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    (digits / "words.txt").write_text("one two 3\ntwo one\n")
    shell(
        "seq-ngram train --order 2 --smoothing witten-bell --text -o words.arpa words.txt",
        cwd=digits,
    )
    for name, told in (("up.arpa", ""), ("words.arpa", "knows 1 of the 6 tokens")):
        capfd.readouterr()
        options = ("--lm", digits / name, "--lm-weight", 0.1)
        decode("greedy", "--model", models.mt, *options, records=[source("eins")])
        said = capfd.readouterr().err
        assert told in said
        assert ("--lm" in said) == bool(told)


def test_another_lm_has_a_say(models: Models, decode: Any) -> None:
    # over the same vocabulary; one starts from a line end, the other from bos
    options = ("greedy", "--model", models.lm, "--max-length", 3)
    [alone] = decode(*options, records=[{"tokens": ["b"]}])
    options = (*options, "--lm", models.records, "--lm-weight", 1)
    [record] = decode(*options, records=[{"tokens": ["b"]}])
    assert alone["output_tokens"] == ["c", "d", "a"]
    pair = {"tokens": ["b", *record["output_tokens"]]}
    [scored] = decode("score", "--model", models.records, records=[pair])
    [one] = record["hypotheses"]
    said = sum(scored["token_logprobs"][1 : 1 + len(one["token_logprobs"])])
    assert one["score"] == pytest.approx(one["logprob"] + said, abs=1e-4)


def test_what_cannot_stand_beside(models: Models, decode: Any, tmp_path: pathlib.Path) -> None:
    def refused(path: object) -> str:
        options = ("greedy", "--model", models.lm, "--lm", path, "--lm-weight", 1)
        with pytest.raises((ConfigError, FormatError)) as caught:
            decode(*options, records=[])
        return str(caught.value)

    assert "No such file or directory" in refused(tmp_path / "none")
    assert refused(models.mt) == (f"--lm is for models of the task lm; {models.mt} is for seq2seq")
    (tmp_path / "text").write_text("hello\n")
    assert refused(tmp_path / "text").startswith("--lm: ")
    assert "does not have the vocabulary of the model's output" in refused(
        another_vocabulary(models)
    )


# Transformers


def untrained(path: pathlib.Path, task: str, *, seed: int = 1, **options: Any) -> str:
    """A Transformer of 2 + 3 layers with 2 heads, or so, with its first weights."""
    vocabulary = Vocabulary.build(
        dict.fromkeys("abcdef", 1), specials=["pad", "unk", "bos", "eos", "mask", "cls", "sep"]
    )
    names = ["source", "target"] if task == "seq2seq" else ["tokens"]
    vocabularies = dict.fromkeys(names, vocabulary)
    options = {"hidden": 8, "heads": 2, "layers": 2, "dropout": 0.0, **options}
    model = build_model("transformer", task, options, vocabularies, seed=seed)
    batching = {"sampling": "records"} if task == "lm" else {}
    config = model_config(model)
    save_model(
        str(path), SavedModel(model, "transformer", task, config, vocabularies, batching=batching)
    )
    return str(path)


def letters(text: str, field: str = "tokens") -> Record:
    return {field: text.split()}


@pytest.mark.parametrize("kind", ["greedy", "beam", "sample", "score"])
def test_all_attention_of_a_transformer(kind: str, decode: Any, tmp_path: pathlib.Path) -> None:
    model = untrained(tmp_path / "mt", "seq2seq", decoder_layers=3)
    records = [letters(text, "src_tokens") | letters(text, "tgt_tokens") for text in ("a b c", "d")]
    options = [] if kind == "score" else ["--max-length", 4]
    found = decode(kind, "--model", model, "--attention", *options, records=records)
    for record in found:
        attention = (record if kind == "score" else record["hypotheses"][0])["attention"]
        assert list(attention) == ["rows", "inputs", "columns", "cross", "encoder", "decoder"]
        rows, inputs, columns = (len(attention[axis]) for axis in ("rows", "inputs", "columns"))
        assert columns == len(record["src_tokens"]) + 1
        assert rows == inputs
        cross, encoder, decoder = (
            np.array(attention[kind]) for kind in ("cross", "encoder", "decoder")
        )
        assert cross.shape == (3, 2, rows, columns)
        assert encoder.shape == (2, 2, columns, columns)
        assert decoder.shape == (3, 2, inputs, inputs)
        for weights in (cross, encoder, decoder):
            np.testing.assert_allclose(weights.sum(axis=-1), 1, atol=1e-5)
        assert not np.triu(decoder, 1).any()


def test_attention_of_what_a_transformer_wrote_is_that_of_what_it_is_asked_to_score(
    decode: Any, tmp_path: pathlib.Path
) -> None:
    model = untrained(tmp_path / "mt", "seq2seq")
    options = ("--model", model, "--attention", "--align")
    [made] = decode("beam", *options, "--max-length", 5, records=[letters("a b c", "src_tokens")])
    [one] = made["hypotheses"]
    record = letters("a b c", "src_tokens") | {"tgt_tokens": one["tokens"]}
    [forced] = decode("score", *options, records=[record])
    length = len(one["attention"]["rows"])
    for kind, weights in one["attention"].items():
        if kind in ("cross", "encoder", "decoder"):
            expected = np.array(forced["attention"][kind])
            if kind != "encoder":
                expected = expected[:, :, :length]
            np.testing.assert_allclose(weights, expected[..., : np.shape(weights)[-1]], atol=1e-5)
    assert one["alignment"] == forced["alignment"]
    mean = np.array(one["attention"]["cross"])[-1].mean(axis=0)
    best = mean[: len(one["tokens"]), :3].argmax(axis=1).tolist()
    assert one["alignment"] == [[row, column] for row, column in enumerate(best)]


@pytest.mark.parametrize("which", ["cross", "encoder", "decoder"])
def test_all_attention_of_a_transformer_can_be_drawn(
    which: str, decode: Any, tmp_path: pathlib.Path
) -> None:
    model = untrained(tmp_path / "mt", "seq2seq", decoder_layers=3)
    found = decode(
        "greedy", "--model", model, "--attention", "--max-length", 3,
        records=[letters("a b c", "src_tokens")],
    )  # fmt: skip
    [hypothesis] = found[0]["hypotheses"]
    weights = hypothesis["attention"][which]
    layers = 2 if which == "encoder" else 3
    options = ("--which", which, "--layer", "2", "--head", "1", "--numbers")
    drawn = run("seq-attnviz", "terminal", *options, stdin=lines(found)).stdout.decode()
    title, *rows = drawn.splitlines()
    assert title == f"record 1: {which}, layer 2 of {layers}, head 1 of 2"
    numbers = [re.findall(r"\d+", row) for row in rows if "▒▒" not in row]  # that is the legend
    assert [row for row in numbers if row] == [
        [f"{100 * weight:.0f}" for weight in row] for row in weights[1][0]
    ]
    page = run("seq-attnviz", "html", "--which", which, stdin=lines(found)).stdout.decode()
    [data] = re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', page, re.DOTALL)
    shown = json.loads(data)
    assert shown["kind"] == which
    assert np.shape(shown["weights"])[:2] == (layers, 2)


def test_layers_and_heads_are_chosen(decode: Any, tmp_path: pathlib.Path) -> None:
    model = untrained(tmp_path / "lm", "lm", layers=3)

    def decoder(*options: object) -> Any:
        arguments = ("greedy", "--model", model, "--max-length", 2, "--attention", *options)
        [record] = decode(*arguments, records=[letters("a b c")])
        attention = record["hypotheses"][0]["attention"]
        assert list(attention) == ["rows", "inputs", "decoder"]
        assert attention["inputs"][:4] == ["<s>", "a", "b", "c"]
        return np.array(attention["decoder"])

    whole = decoder()
    assert whole.shape == (3, 2, 5, 5)
    np.testing.assert_array_equal(decoder("--attention-layers", "0,2"), whole[[0, 2]])
    np.testing.assert_array_equal(decoder("--attention-heads", 1), whole[:, 1:])
    mean = decoder("--attention-layers", "1-2", "--attention-mean", "all")
    np.testing.assert_allclose(mean, whole[1:].mean(axis=(0, 1))[None, None], atol=1e-7)
    with pytest.raises(ConfigError, match="--attention-layers: the model has 3"):
        decoder("--attention-layers", 3)


def test_attention_of_what_may_come_next(decode: Any, tmp_path: pathlib.Path) -> None:
    options = ("--model", untrained(tmp_path / "lm", "lm"), "--attention")
    [found] = decode("predict", *options, "--top-k", 1, records=[letters("a b c")])
    [made] = decode("greedy", *options, "--max-length", 1, records=[letters("a b c")])
    assert list(found["attention"]) == ["inputs", "decoder"]
    expected = made["hypotheses"][0]["attention"]
    assert found["attention"]["inputs"] == expected["inputs"] == ["<s>", "a", "b", "c"]
    np.testing.assert_allclose(found["attention"]["decoder"], expected["decoder"], atol=1e-6)


def test_learned_positions_end(
    decode: Any, tmp_path: pathlib.Path, capfd: pytest.CaptureFixture[str]
) -> None:
    model = untrained(tmp_path / "lm", "lm", position="learned", max_positions=5)
    options = ("--model", model, "--ban", "</s>")
    found = decode("greedy", *options, records=[letters("a"), letters("a b c d")])
    assert [len(record["output_tokens"]) for record in found] == [4, 1]
    assert "outputs cut where the model's 5 positions end: 2" in capfd.readouterr().err
    decode("greedy", *options, "--max-length", 1, records=[letters("a b c d")])
    assert "positions" not in capfd.readouterr().err
    for kind in ("greedy", "predict"):
        with pytest.raises(InputError, match=r"6 inputs, .* longer than the model's 5 positions"):
            decode(kind, "--model", model, records=[letters("a b c d e")])
    decode("score", "--model", model, records=[letters("a b c d")])
    with pytest.raises(InputError, match=r"model's 5 positions; --window 5 scores it in parts"):
        decode("score", "--model", model, records=[letters("a b c d e")])
    model = untrained(tmp_path / "mt", "seq2seq", position="learned", max_positions=3)
    decode("greedy", "--model", model, records=[letters("a b", "src_tokens")])
    with pytest.raises(InputError, match=r"the source takes 4 inputs, .* model's 3 positions"):
        decode("greedy", "--model", model, records=[letters("a b c", "src_tokens")])


def row(*inputs: int, segments: list[int] | None = None) -> TensorBatch:
    ids = torch.tensor([inputs])
    made = TensorBatch(ids, ids, torch.tensor([len(inputs)]))
    made.segments = None if segments is None else torch.tensor([segments])
    return made


def test_long_texts_are_scored_by_windows(decode: Any, tmp_path: pathlib.Path) -> None:
    path = untrained(tmp_path / "lm", "lm", position="learned", max_positions=4)
    saved = load_model(path)
    ids = [2, *saved.vocabularies["tokens"].encode(list("abcdefab")), 3]
    records = [letters("a b c d e f a b"), letters("a"), letters("")]
    options = ("score", "--model", path, "--window", 4)
    found = decode(*options, "--stride", 3, records=records)
    expected: list[float] = []
    for first, known in ((0, 0), (3, 1), (6, 1)):  # windows of inputs, and what is scored before
        inputs, targets = ids[:-1][first : first + 4], ids[1:][first : first + 4]
        batch = row(*inputs)
        batch.targets = torch.tensor([targets])
        values = saved.model.token_logprobs(batch)  # type: ignore[operator]
        expected += values[0, known:].tolist()
    assert found[0]["token_logprobs"] == pytest.approx(expected, abs=1e-5)
    assert found[0]["n_tokens"] == 9
    assert found[0]["logprob"] == pytest.approx(sum(expected), abs=1e-4)
    short = decode("score", "--model", path, records=records[1:])
    for one, other in zip(found[1:], short, strict=True):
        assert one["token_logprobs"] == pytest.approx(other["token_logprobs"], abs=1e-5)
    usual = decode(*options, records=records)
    halves = decode(*options, "--stride", 2, "--batch-size", 1, records=records)
    for one, other in zip(usual, halves, strict=True):
        assert one["token_logprobs"] == pytest.approx(other["token_logprobs"], abs=1e-5)
    with pytest.raises(ConfigError, match="--window 5: the model has 4 positions"):
        decode("score", "--model", path, "--window", 5, records=records)


def test_windows_are_for_language_models(models: Models, decode: Any) -> None:
    pair = source("eins zwei") | {"tgt_tokens": ["2", "1"]}
    with pytest.raises(click.UsageError) as caught:
        decode("score", "--model", models.mt, "--window", 2, records=[pair])
    reason = f"--window is for models of the task lm; {models.mt} is for seq2seq."
    assert caught.value.message == reason


def test_the_positions_of_an_lm_beside_bind_the_output_alone(
    decode: Any, tmp_path: pathlib.Path
) -> None:
    model = untrained(tmp_path / "mt", "seq2seq")
    lm = untrained(tmp_path / "lm", "lm", position="learned", max_positions=4)
    options = ("greedy", "--model", model, "--ban", "</s>")
    beside = ("--lm", lm, "--lm-weight", 0.1)
    records = [letters("a b c d e f", "src_tokens")]
    [alone] = decode(*options, records=records)
    [found] = decode(*options, *beside, records=records)
    assert len(alone["output_tokens"]) == 22
    assert len(found["output_tokens"]) == 4
    model = untrained(tmp_path / "few", "seq2seq", position="learned", max_positions=6)
    with pytest.raises(InputError, match=r"the source takes 7 inputs, .* model's 6 positions"):
        decode("greedy", "--model", model, *beside, records=records)


# filling gaps, vectors


def test_gaps_are_filled_by_what_is_likeliest(decode: Any, tmp_path: pathlib.Path) -> None:
    path = untrained(tmp_path / "mlm", "mlm")
    saved = load_model(path)
    vocabulary = saved.vocabularies["tokens"]
    record = {"id": 7} | letters("a <mask> c") | letters("<mask> d", "text_pair_tokens")
    found = decode("fill", "--model", path, "--top-k", 99, records=[letters("b"), record])
    assert list(found[1]) == [
        "id", "tokens", "text_pair_tokens", "filled_tokens", "filled_text_pair_tokens", "candidates"
    ]  # fmt: skip
    assert found[0] == letters("b") | {"filled_tokens": ["b"], "candidates": []}
    a, c, d = vocabulary.encode(["a", "c", "d"])
    cls, sep, mask = (vocabulary.specials[role] for role in ("cls", "sep", "mask"))
    inputs = (cls, a, mask, c, sep, mask, d, sep)
    batch = row(*inputs, segments=[0, 0, 0, 0, 0, 1, 1, 1])
    with torch.inference_mode():
        logprobs, _ = saved.model.fill_logprobs(batch, torch.tensor([2, 5]))  # type: ignore[operator]
    likeliest = []
    for listed, row_of_all in zip(found[1]["candidates"], logprobs, strict=True):
        # all but the specials, and <unk>
        assert sorted(entry["token"] for entry in listed) == ["<unk>", *"abcdef"]
        for entry in listed:
            assert entry["id"] == vocabulary.tokens.index(entry["token"])
            assert entry["logprob"] == pytest.approx(float(row_of_all[entry["id"]]), abs=1e-5)
        assert [e["logprob"] for e in listed] == sorted(
            (e["logprob"] for e in listed), reverse=True
        )
        likeliest.append(listed[0]["token"])
    assert found[1]["filled_tokens"] == ["a", likeliest[0], "c"]
    assert found[1]["filled_text_pair_tokens"] == [likeliest[1], "d"]


@pytest.mark.parametrize("pool", ["mean", "cls", "last", "none"])
def test_vectors_are_the_states_of_the_tokens(
    pool: str, decode: Any, tmp_path: pathlib.Path
) -> None:
    path = untrained(tmp_path / "mlm", "mlm")
    saved = load_model(path)
    vocabulary = saved.vocabularies["tokens"]
    record = letters("a b c") | letters("d", "text_pair_tokens")
    options = ("encode", "--model", path, "--pool", pool)
    found, other = decode(*options, records=[record, letters("e")])
    cls, sep = (vocabulary.specials[role] for role in ("cls", "sep"))
    a, b, c, d = vocabulary.encode([*"abcd"])
    batch = row(cls, a, b, c, sep, d, sep, segments=[0, 0, 0, 0, 0, 1, 1])
    with torch.inference_mode():
        states = saved.model.encode(batch)[0][0].numpy()  # type: ignore[operator]
    tokens = states[[1, 2, 3, 5]]
    name, expected = {
        "mean": ("vector", tokens.mean(axis=0)),
        "cls": ("vector", states[0]),
        "last": ("vector", tokens[-1]),
        "none": ("vectors", tokens),
    }[pool]
    np.testing.assert_allclose(found[name], expected, atol=1e-5)
    assert list(found) == ["tokens", "text_pair_tokens", name]
    assert np.shape(other[name]) == ((1, 8) if pool == "none" else (8,))


def test_vectors_of_a_language_model(models: Models, decode: Any, tmp_path: pathlib.Path) -> None:
    path = untrained(tmp_path / "lm", "lm")
    saved = load_model(path)
    ids = saved.vocabularies["tokens"].encode([*"abc"])
    with torch.inference_mode():
        states = saved.model.encode(row(2, *ids))[0][0].numpy()  # type: ignore[operator]
    options = ("encode", "--model", path, "--pool")
    [found] = decode(*options, "last", records=[letters("a b c")])
    np.testing.assert_allclose(found["vector"], states[3], atol=1e-5)
    [found] = decode(*options, "mean", records=[letters("a b c")])
    np.testing.assert_allclose(found["vector"], states[1:].mean(axis=0), atol=1e-5)
    with pytest.raises(ConfigError, match="--pool cls: the model was not trained on texts that"):
        decode(*options, "cls", records=[letters("a")])
    with pytest.raises(InputError, match="there is no token to make a vector of"):
        decode(*options, "mean", records=[letters("")])


def test_vectors_of_a_recurrent_language_model(models: Models, decode: Any) -> None:
    saved = load_model(models.records)
    ids = saved.vocabularies["tokens"].encode([*"abb"])
    model: Any = saved.model
    state = model.stack.initial_state(1)
    states = []
    with torch.inference_mode():  # the recurrence, one input after the other
        for number in (2, *ids):
            hidden, state = model.stack.step(model.embedding.weight[[number]], state)
            states.append(hidden[0].numpy())
    expected = np.stack(states)[1:]
    records = [letters("a b b"), letters("a")]
    for pool, value in (
        ("none", expected), ("mean", expected.mean(axis=0)), ("last", expected[-1])
    ):  # fmt: skip
        found, short = decode("encode", "--model", models.records, "--pool", pool, records=records)
        field = "vectors" if pool == "none" else "vector"
        np.testing.assert_allclose(found[field], value, atol=1e-5)
        np.testing.assert_allclose(np.ravel(short[field]), states[1], atol=1e-5)


@pytest.mark.parametrize("kind", ["fill", "encode"])
def test_attention_within_a_text(kind: str, decode: Any, tmp_path: pathlib.Path) -> None:
    path = untrained(tmp_path / "mlm", "mlm", layers=3)
    options = (kind, "--model", path, "--attention", "--attention-layers", "1,2")
    found = decode(*options, records=[letters("a b <mask> c"), letters("d")])
    for record in found:
        attention = record["attention"]
        assert list(attention) == ["columns", "encoder"]
        assert attention["columns"][0] == "<cls>"
        size = len(record["tokens"]) + 2
        assert len(attention["columns"]) == size
        assert np.shape(attention["encoder"]) == (2, 2, size, size)
        np.testing.assert_allclose(np.sum(attention["encoder"], axis=-1), 1, atol=1e-5)


def test_attention_of_a_language_model_within_a_text(decode: Any, tmp_path: pathlib.Path) -> None:
    path = untrained(tmp_path / "lm", "lm", layers=2)
    found = decode(
        "encode", "--model", path, "--attention", records=[letters("a b c"), letters("d")]
    )
    [expected] = decode("predict", "--model", path, "--attention", records=[letters("a b c")])
    for record in found:
        assert list(record["attention"]) == ["inputs", "decoder"]
        assert record["attention"]["inputs"] == ["<s>", *record["tokens"]]
    np.testing.assert_allclose(
        found[0]["attention"]["decoder"], expected["attention"]["decoder"], atol=1e-5
    )


def test_texts_are_served_by_models_of_texts(
    models: Models, decode: Any, tmp_path: pathlib.Path
) -> None:
    path = untrained(tmp_path / "mlm", "mlm")
    for kind in ("greedy", "score"):
        with pytest.raises(ConfigError) as caught:
            decode(kind, "--model", path, records=[])
        assert str(caught.value) == (
            f"this kind is for models of the task lm or seq2seq; {path} is for mlm,"
            " which fill and encode serve"
        )
    with pytest.raises(ConfigError, match=r"mlm; .* for lm, which .* predict and encode serve$"):
        decode("fill", "--model", models.lm, records=[])
    with pytest.raises(ConfigError, match=r"mlm or lm; .* for seq2seq, which .* and score serve$"):
        decode("encode", "--model", models.mt, records=[])


# sampling


def test_samples_do_not_depend_on_neighbours(models: Models, decode: Any) -> None:
    records = [{"id": f"r{number}", "tokens": ["a"] * (number % 3)} for number in range(12)]
    options = ("sample", "--model", models.records, "--samples", 3, "--seed", 7, "--max-length", 6)
    expected = decode(*options, records=records)
    same(decode(*options, "--batch-size", 1, records=records), expected)
    same(decode(*options, records=records[5:]), expected[5:])
    other = decode(*options[:-3], 8, "--max-length", 6, records=records)
    assert [r["output_tokens"] for r in other] != [r["output_tokens"] for r in expected]


def test_new_records_from_nothing(models: Models, decode: Any) -> None:
    options = ("sample", "--model", models.records, "--count")
    found = decode(*options, 6)
    assert len(found) == 6
    assert list(found[0]) == ["output_tokens", "hypotheses"]
    assert len({tuple(record["output_tokens"]) for record in found}) > 1
    same(decode(*options, 3), found[:3])
    same(decode(*options, 6, "--shard", "2/2"), found[1::2])


def test_no_temperature_is_greedy(models: Models, decode: Any) -> None:
    records = [{"tokens": ["b"]}]
    options = ("--model", models.lm, "--max-length", 5)
    expected = decode("greedy", *options, records=records)
    for draw in (["--temperature", 0], ["--temperature", 1e-4], ["--top-k", 1], ["--top-p", 0]):
        same(decode("sample", *options, *draw, records=records), expected)


# several processes


def test_processes_give_the_same_bytes(models: Models, tmp_path: pathlib.Path) -> None:
    data = tmp_path / "data"
    records = [
        {"id": number, "src_tokens": [WORDS[(number * k) % 6] for k in range(number % 9)]}
        for number in range(150)
    ]
    records[40]["big"] = 12345678901234567890123
    bad = b'{"src_tokens":1}\n'
    data.write_bytes(lines(records[:70]) + bad + b"\n" + lines(records[70:]) + bad)
    found = []
    for jobs in ("1", "2", "3"):
        done = run(
            "seq-decode", "sample", "--model", models.mt, "--samples", "2", "--jobs", jobs,
            "--batch-size", "8", "--rejects", str(tmp_path / f"bad{jobs}"), str(data),
        )  # fmt: skip
        assert done.status == 3, done.stderr
        assert "2 of 152 records rejected" in done.stderr
        assert (tmp_path / f"bad{jobs}").read_bytes() == bad + bad
        found.append(done.stdout)
    assert [json.loads(line)["id"] for line in found[0].splitlines()] == [*range(150)]
    assert found[0].count(b'"big":12345678901234567890123,') == 1
    assert found[1] == found[0]
    assert found[2] == found[0]


def test_processes_stop_at_a_bad_record_after_those_before_it(models: Models) -> None:
    records = [source("zwei")] * 20
    stream = lines(records) + b'{"src_tokens":1}\n' + lines(records)
    done = run(
        "seq-decode", "greedy", "--model", models.mt, "--jobs", "2", "--batch-size", "4",
        stdin=stream,
    )  # fmt: skip
    assert done.status == 1
    assert len(done.lines) == 20
    assert done.stderr.startswith('seq-decode: <stdin>:21: "src_tokens" must be')
    assert done.stderr.count("\n") == 1


def test_processes_name_the_record_that_fails(models: Models, tmp_path: pathlib.Path) -> None:
    saved = load_model(models.lm)
    with torch.no_grad():
        saved.model.get_parameter("embedding.weight")[4] = math.nan
    bad, good = [{"tokens": [token]} for token in saved.vocabularies["tokens"].tokens[4:6]]
    save_model(str(tmp_path / "nan"), saved)
    done = run(
        "seq-decode", "predict", "--model", str(tmp_path / "nan"), "--jobs", "2",
        "--rejects", str(tmp_path / "bad"), stdin=lines([good, bad, good]),
    )  # fmt: skip
    assert done.status == 3, done.stderr
    assert [json.loads(line)["tokens"] for line in done.lines] == [good["tokens"]] * 2
    assert (tmp_path / "bad").read_bytes() == lines([bad])


def test_a_process_that_breaks_is_one_line(models: Models, tmp_path: pathlib.Path) -> None:
    script = """
import os, sys
sys.argv = ["seq-decode", *sys.argv[1:]]
from seqtools.cli import _decode_engine
_decode_engine.Engine.__init__ = lambda *arguments, **options: os._exit(9)
from seqtools.cli.decode import main
main()
"""
    arguments = ["greedy", "--model", models.mt, "--jobs", "2"]
    done = subprocess.run(
        [command("seq-decode")[0], "-c", script, *arguments],
        input=lines([source("zwei")]), capture_output=True, env=environment(), check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr == b"seq-decode: a worker process died\n"
    damaged = tmp_path / "damaged"
    saved = pathlib.Path(models.mt).read_bytes()
    damaged.write_bytes(saved.replace(b"weight.output.bias", b"weight.output.bios"))
    done = run(
        "seq-decode", *arguments[:2], str(damaged), "--jobs", "2", stdin=b'{"src_tokens":[]}'
    )
    assert done.status == 1
    assert done.stderr.startswith(f"seq-decode: {damaged}: damaged: weight output.bi")
    assert done.stderr.count("\n") == 1


# evaluate


def test_evaluate_agrees_with_score(models: Models, decode: Any, tmp_path: pathlib.Path) -> None:
    records = pairs()[:30]
    scored = decode("score", "--model", models.mt, records=records)
    data = tmp_path / "some.jsonl"
    data.write_bytes(lines(records))
    batches = shell(
        f"seq-batch seq2seq --source-vocab {models.folder}/src.vocab --batch-size 7"
        f" --target-vocab {models.folder}/tgt.vocab {data} > {tmp_path}/some.batches"
    )
    assert batches.status == 0, batches.stderr
    [found] = decode("evaluate", "--model", models.mt, f"{tmp_path}/some.batches")
    targets = sum(record["n_tokens"] for record in scored)
    loss = -sum(record["logprob"] for record in scored) / targets
    assert found["targets"] == targets
    assert found["loss"] == pytest.approx(loss, abs=1e-5)
    assert found["perplexity"] == pytest.approx(math.exp(loss), abs=1e-4)
    assert found["bits"] == pytest.approx(loss / math.log(2), abs=1e-5)


def test_another_vocabulary_does_not_match(
    models: Models, decode: Any, tmp_path: pathlib.Path
) -> None:
    header, _, rest = (models.folder / "lm.batches").read_bytes().partition(b"\n")
    value = json.loads(header)
    tokens = value["vocabularies"]["tokens"]["tokens"]
    for changed in ([*tokens[:-2], tokens[-1], tokens[-2]], [*tokens, "e"]):
        value["vocabularies"]["tokens"] |= {"tokens": changed, "counts": None}
        path = tmp_path / "other.batches"
        path.write_bytes(json.dumps(value).encode() + b"\n" + rest)
        with pytest.raises(FormatError) as caught:
            decode("evaluate", "--model", models.lm, str(path))
        assert str(caught.value) == (
            f"{path}: the tokens vocabulary does not match the model {models.lm}"
        )
    other = models.folder / "mt.batches"
    with pytest.raises(FormatError) as caught:
        decode("evaluate", "--model", models.lm, str(other))
    assert str(caught.value) == f"{other} is for seq2seq, the model {models.lm} for lm"
    header, _, rest = other.read_bytes().partition(b"\n")
    value = json.loads(header)
    value["vocabularies"]["source"]["tokens"][-1] = "sieben"
    path.write_bytes(json.dumps(value).encode() + b"\n" + rest)
    with pytest.raises(FormatError, match=r": the source vocabulary does not match the model "):
        decode("evaluate", "--model", models.mt, str(path))


# mistakes


@pytest.mark.parametrize(
    "options",
    [
        "beam --beam 0", "beam --nbest 0", "beam --beam 2 --nbest 3", "beam --length-penalty nan",
        "beam --length-penalty inf", "greedy --max-length 0", "greedy --batch-size 0",
        "greedy --batch-tokens 0", "sample --temperature nan", "sample --temperature -1",
        "sample --temperature inf", "sample --top-k -1", "sample --top-k 0", "sample --top-p 1.5",
        "sample --top-p nan", "sample --samples 0", "sample --count 0", "sample --seed -1",
        "greedy --device tpu", "greedy --threads 0", "greedy --beam 3", "predict --top-k 0",
        "sample --count 3 some.jsonl", "greedy --max-rejects 1", "fry", "greedy --jobs 0",
        "greedy --jobs 2 --device cuda", "greedy --max-length 2y", "greedy --min-length -1",
        "greedy --min-length 9 --max-length 8", "greedy --repetition-penalty 0",
        "greedy --no-repeat-ngram 0", "greedy --lm some.arpa", "greedy --lm-weight 1",
        "greedy --lm some.arpa --lm-weight 0", "greedy --attention-layers 0",
        "greedy --attention --attention-layers 3-1", "greedy --attention-mean heads",
        "beam --diverse-groups 2", "beam --beam 4 --diverse-groups 3", "beam --diversity 1",
        "beam --length-penalty-form none", "beam --coverage-penalty -1", "sample --min-p 1.1",
        "score --window 0", "score --stride 2", "score --window 4 --stride 5",
        "score --window 4 --attention", "encode --pool max", "encode --align", "fill --top-k 0",
    ],
)  # fmt: skip
def test_nonsense_is_a_usage_error(options: str, tmp_path: pathlib.Path) -> None:
    arguments = [*options.split(), "--model", str(tmp_path / "none")]
    with pytest.raises(click.UsageError):
        cli.main(arguments, prog_name="seq-decode", standalone_mode=False)


def test_missing_model_and_what_is_none(models: Models, tmp_path: pathlib.Path) -> None:
    done = run("seq-decode", "greedy", "--model", "no/such.safetensors")
    assert (done.status, done.stdout) == (2, b"")
    assert done.stderr == "seq-decode: no/such.safetensors: No such file or directory\n"
    ran = tmp_path / "ran"
    evil = tmp_path / "evil.pt"
    torch.save({"model": _Evil(str(ran))}, evil)
    bad = {"evil.pt": None, "text": b"hello\n", "empty": b"", "cut": _cut(models.lm)}
    for name, data in bad.items():
        path = tmp_path / name
        if data is not None:
            path.write_bytes(data)
        done = run("seq-decode", "greedy", "--model", str(path), stdin=b'{"tokens":[]}\n')
        assert (done.status, done.stdout) == (1, b"")
        assert done.stderr.startswith(f"seq-decode: {path}: ")
        assert done.stderr.count("\n") == 1
    assert not ran.exists()


class _Evil:
    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return open, (self.path, "w")


def _cut(path: str) -> bytes:
    data = pathlib.Path(path).read_bytes()
    return data[: len(data) // 2]


def test_a_bad_record_stops_after_those_before_it(models: Models, decode: Any) -> None:
    good = source("zwei")
    with pytest.raises(InputError) as caught:
        decode("greedy", "--model", models.mt, records=[good, {"src_tokens": "zwei"}, good])
    assert caught.value.line == 2
    assert caught.value.reason == '"src_tokens" must be a list of strings, got string'
    with pytest.raises(InputError, match='"tgt_tokens" is missing'):
        decode("score", "--model", models.mt, records=[good])


MIXED = b'\n{"id":"a","src_tokens":["zwei"]}\nnonsense\n \n{"src_tokens":[1]}\n'
MIXED += b'{"id":"b","src_tokens":["\xf0\xa0\xae\xb7"]}'


def test_what_stands_before_a_bad_record_is_written(models: Models) -> None:
    done = run("seq-decode", "greedy", "--model", models.mt, stdin=MIXED)
    assert done.status == 1
    assert [json.loads(line)["id"] for line in done.lines] == ["a"]
    assert done.stderr.startswith("seq-decode: <stdin>:3: not JSON")
    assert done.stderr.count("\n") == 1


def test_rejects_keep_the_bad_and_go_on(
    models: Models, tmp_path: pathlib.Path, capfd: pytest.CaptureFixture[str]
) -> None:
    data, rejects, output = tmp_path / "data", tmp_path / "bad", tmp_path / "out"
    data.write_bytes(MIXED)
    arguments = ["greedy", "--model", models.mt, "--device", "cpu", "--rejects", str(rejects)]
    arguments += ["-o", str(output), str(data)]
    assert cli.main(arguments, prog_name="seq-decode", standalone_mode=False) == 3
    assert [json.loads(line)["id"] for line in output.read_bytes().splitlines()] == ["a", "b"]
    assert rejects.read_bytes() == b'nonsense\n{"src_tokens":[1]}\n'
    reasons = (tmp_path / "bad.reasons.jsonl").read_bytes().splitlines()
    assert [json.loads(line)["line"] for line in reasons] == [3, 5]
    messages = capfd.readouterr().err
    assert "2 of 4 records rejected" in messages
    assert f"{data}:6: 1 of 1 tokens are unknown to the model" in messages


def test_a_record_that_gets_no_probabilities_is_a_bad_one(
    models: Models, decode: Any, tmp_path: pathlib.Path
) -> None:
    saved = load_model(models.lm)
    embedding = saved.model.get_parameter("embedding.weight")
    with torch.no_grad():
        embedding[saved.vocabularies["tokens"].encode(["b"])] = math.nan
    path = tmp_path / "nan.safetensors"
    save_model(str(path), saved)
    records = [{"tokens": ["c"]}, {"tokens": ["b"]}, {"tokens": ["a", "a"]}]
    for kind in ("greedy", "beam", "sample"):
        options = (kind, "--model", path, "--max-length", 1)
        with pytest.raises(InputError, match="log-probability") as caught:
            decode(*options, records=records)
        assert caught.value.line == 2
        found = decode(*options, "--rejects", tmp_path / "bad", records=records)
        assert [record["tokens"] for record in found] == [["c"], ["a", "a"]]
        assert json.loads((tmp_path / "bad").read_bytes()) == records[1]


def test_rejects_keep_the_order_of_the_input(models: Models, decode: Any, tmp_path: Any) -> None:
    saved = load_model(models.lm)
    with torch.no_grad():
        saved.model.get_parameter("embedding.weight")[4] = math.nan
    bad, good = [{"tokens": [token]} for token in saved.vocabularies["tokens"].tokens[4:6]]
    save_model(str(tmp_path / "nan"), saved)
    options = ("predict", "--model", tmp_path / "nan", "--rejects", tmp_path / "bad")
    wrong: list[Record] = [{"tokens": 1}, {"tokens": 2}]
    found = decode(*options, records=[wrong[0], bad, good, wrong[1]])
    assert [record["tokens"] for record in found] == [good["tokens"]]
    assert (tmp_path / "bad").read_bytes() == lines([wrong[0], bad, wrong[1]])


def test_wrong_task_is_named(models: Models, decode: Any) -> None:
    with pytest.raises(ConfigError, match="seq2seq"):
        decode("predict", "--model", models.mt, records=[source("zwei")])
    with pytest.raises(ConfigError, match="seq2seq"):
        decode("sample", "--model", models.mt, "--count", 2)


# help


@pytest.mark.parametrize("kind", list(cli.commands))
def test_the_example_of_the_help(
    models: Models, kind: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = cli.commands[kind].get_help(click.Context(cli.commands[kind]))
    words = shlex.split(text[text.index("Example:") + len("Example:") :])
    assert words[:2] == ["seq-decode", kind]
    end = words.index(">")
    (tmp_path / "tok.jsonl").write_bytes(lines([source("zwei") | {"tokens": ["a"]}]))
    (tmp_path / "gaps.jsonl").write_bytes(lines([letters("a <mask>")]))
    untrained(tmp_path / "mlm.safetensors", "mlm")
    for path in (models.lm, models.mt, models.folder / "lm.batches"):
        name = pathlib.Path(path).name.replace("lm.batches", "valid.batches")
        (tmp_path / name).symlink_to(path)
    monkeypatch.chdir(tmp_path)
    cli.main([*words[1:end], "-o", words[end + 1]], prog_name="seq-decode", standalone_mode=False)
    assert (tmp_path / words[end + 1]).read_bytes().endswith(b"}\n")


# streams


def test_torch_is_not_loaded_before_a_record_proved_valid(models: Models) -> None:
    script = """
import sys, runpy
sys.argv = ["seq-decode", "greedy", "--model", sys.argv[1]]
from seqtools.cli.decode import main
try:
    main()
finally:
    print("torch" in sys.modules, file=sys.stderr)
"""
    for data, status in ((b"", 0), (b"\n\n", 0), (b"{}\n", 1)):
        done = subprocess.run(
            [command("seq-decode")[0], "-c", script, models.mt],
            input=data, capture_output=True, env=environment(), check=False,
        )  # fmt: skip
        assert (done.returncode, done.stdout) == (status, b""), done.stderr
        assert done.stderr.endswith(b"False\n")


def test_records_come_out_while_more_is_awaited(models: Models) -> None:
    arguments = [*command("seq-decode"), "greedy", "--model", models.mt, "--device", "cpu"]
    pipe = subprocess.PIPE
    with subprocess.Popen(arguments, stdin=pipe, stdout=pipe, env=environment()) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for word in ("zwei", "drei"):
            process.stdin.write(lines([source(word)]))
            process.stdin.flush()  # and no end of input
            assert json.loads(process.stdout.readline())["src_tokens"] == [word]
        process.stdin.close()
        assert process.stdout.read() == b""
    assert process.returncode == 0


def test_a_reader_that_leaves_ends_it_quietly(models: Models) -> None:
    record = json.dumps(source("zwei drei"))
    begun = time.monotonic()
    done = shell(
        f"yes '{record}' | seq-decode greedy --model {models.mt} --device cpu | head -n 1;"
        ' echo "${PIPESTATUS[1]}"'
    )
    assert time.monotonic() - begun < 60
    first, status = done.lines
    assert json.loads(first)["output_tokens"] == ["3", "2"]
    assert (status, done.stderr) == (b"0", "")
