"""`seq-train` as a user meets it, on streams small enough to write by hand."""

import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from seqtools.batching.stream import Batch, Header
from seqtools.text.vocab import Vocabulary

from .helpers import command, environment, run, shell

TINY = ["--hidden", "8", "--threads", "1", "--device", "cpu"]
VOCABULARY = Vocabulary.build(dict.fromkeys("abcd", 1))  # ids 4 to 7 after four specials


def rectangle(rows, fill=0):
    width = max(map(len, rows))
    return np.array([row + [fill] * (width - len(row)) for row in rows], dtype=np.int32)


def lm_batch(epoch, index, *rows, carry=False):
    """Rows of ids; each predicts its next id."""
    lengths = np.array([max(1, len(row) - 1) for row in rows], dtype=np.int32)
    inputs = rectangle([row[:-1] or [0] for row in rows])
    targets = rectangle([row[1:] or [-100] for row in rows], -100)
    return Batch(epoch, index, inputs, targets, lengths, carry=carry, records=[*range(len(rows))])


def lm_stream(*epochs, vocabulary=VOCABULARY, task="lm"):
    """A stream from lists of batches, one list an epoch, each batch a list of rows."""
    batches = [
        [lm_batch(number, index, *rows) for index, rows in enumerate(epoch, 1)]
        for number, epoch in enumerate(epochs, 1)
    ]
    counts = [len(epoch) for epoch in batches]
    targets = [sum(batch.target_count for batch in epoch) for epoch in batches]
    options = {"sampling": "random", "steps": 8, "unknown_share": {"tokens": 0.0}}
    header = Header(task, {"tokens": vocabulary}, counts, targets, options)
    return header.to_bytes() + b"".join(b.to_bytes() for epoch in batches for b in epoch)


def seq2seq_stream(batches=4, seed=1):
    """Copying: the target is the source."""
    rng = random.Random(seed)
    lines, count = [], 0
    for index in range(1, batches + 1):
        rows = [[rng.randint(4, 7) for _ in range(rng.randint(1, 4))] for _ in range(6)]
        sources = [[*row, 3] for row in rows]
        lengths = np.array([len(row) for row in sources], dtype=np.int32)
        inputs = rectangle([[2, *row] for row in rows])
        batch = Batch(
            1, index, inputs, rectangle(sources, -100), lengths, rectangle(sources), lengths
        )
        count += batch.target_count
        lines.append(batch.to_bytes())
    vocabularies = {"source": VOCABULARY, "target": VOCABULARY}
    return Header("seq2seq", vocabularies, [batches], [count], {}).to_bytes() + b"".join(lines)


CYCLE = [4, 5, 6, 7, 4, 5, 6, 7, 4]
EPOCH = [[CYCLE, CYCLE[1:]]] * 10


def records(done):
    return [json.loads(line) for line in done.lines]


def of(kind, found):
    return [record for record in found if record["event"] == kind]


def load(path):
    from seqtools.models.store import load_model

    return load_model(str(path), device="cpu")


@pytest.fixture
def stream(tmp_path):
    path = tmp_path / "batches.jsonl"
    path.write_bytes(lm_stream(EPOCH))
    return path


def test_a_cycle_is_learned(tmp_path, stream):
    model = tmp_path / "lm.safetensors"
    options = ["--epochs", "20", "--lr", "0.05", "--valid", str(stream), "--log-every", "40"]
    done = run("seq-train", "gru", *TINY, *options, "-o", str(model), str(stream))
    assert done.status == 0
    found = records(done)
    assert found[0]["event"] == "model"
    assert (found[0]["architecture"], found[0]["task"]) == ("gru", "lm")
    assert found[-1]["event"] == "done"
    assert {r["event"] for r in found} == {"model", "train", "valid", "saved", "done"}
    assert found[-1]["step"] == 200
    assert found[-1]["reason"] == "data"
    assert of("valid", found)[-1]["perplexity"] < 1.1
    train = of("train", found)[-1]
    assert train["tokens"] == 200 * 15
    assert {"loss", "perplexity", "grad_norm", "clipped", "lr", "tokens_per_second"} <= set(train)
    saved = load(model)
    assert (saved.architecture, saved.task) == ("gru", "lm")
    assert saved.vocabularies["tokens"] == VOCABULARY
    assert saved.batching["sampling"] == "random"
    assert saved.training["targets"] == of("saved", found)[-1]["tokens"]
    assert "total" in done.stderr  # the table of the model


@pytest.mark.parametrize("kind", ["rnn", "lstm", "gru", "transformer"])
def test_every_kind_trains_both_tasks(tmp_path, kind):
    for name, data in (("lm", lm_stream(EPOCH)), ("seq2seq", seq2seq_stream())):
        model = tmp_path / name
        done = run("seq-train", kind, *TINY, "--quiet", "-o", str(model), stdin=data)
        assert (done.status, done.stderr) == (0, "")
        assert load(model).task == name


@pytest.mark.parametrize("precision", ["float32", "bf16"])
def test_a_transformer_learns_a_cycle(tmp_path, stream, precision):
    model = tmp_path / "m"
    options = ["--preset", "nanogpt", "--layers", "2", "--heads", "2", "--warmup", "5"]
    more = ["--lr", "0.01", "--epochs", "15", "--accumulate", "2", "--log-every", "15"]
    options += [*more, "--precision", precision, "--valid", str(stream)]
    done = run("seq-train", "transformer", *TINY, *options, "-o", str(model), str(stream))
    assert done.status == 0, done.stderr
    found = records(done)
    assert (found[-1]["step"], found[-1]["tokens"]) == (15 * 5, 15 * 150)
    assert of("valid", found)[-1]["perplexity"] < 1.2
    assert found[0]["config"]["max_positions"] == 8  # the steps of the stream
    assert found[0]["config"] == load(model).config
    assert {str(p.dtype) for p in load(model).model.parameters()} == {"torch.float32"}


def test_hidden_tokens_and_pairs_are_learned_together(tmp_path):
    texts = [{"tokens": list("abcd"[i % 4 :] + "abcd"[: i % 4]) * 2} for i in range(40)]
    data = "".join(f"{json.dumps(text)}\n" for text in texts).encode()
    vocabulary, model = tmp_path / "vocab", tmp_path / "m"
    specials = ["--specials", "pad,unk,mask,cls,sep"]
    vocabulary.write_bytes(run("seq-vocab", "build", *specials, stdin=data).stdout)
    options = ["--vocab", str(vocabulary), "--next-sentence", "--batch-size", "8", "--quiet"]
    batches = run("seq-batch", "mlm", *options, stdin=data)
    assert batches.status == 0
    options = ["transformer", *TINY, "--heads", "2", "--log-every", "1", "--quiet"]
    done = run("seq-train", *options, "-o", str(model), stdin=batches.stdout)
    assert (done.status, done.stderr) == (0, "")
    for train in of("train", records(done)):
        assert train["objective"] == pytest.approx(train["loss"] + train["next_sentence"])
    assert load(model).task == "mlm"


@pytest.mark.parametrize("where", ["training", "validation"])
def test_batches_longer_than_learned_positions_are_refused(tmp_path, stream, where):
    short = tmp_path / "short.jsonl"
    short.write_bytes(lm_stream([[CYCLE[:4]]]))
    first, valid = (stream, short) if where == "training" else (short, stream)
    options = ["transformer", *TINY, "--heads", "2", "--max-positions", "7", "--quiet"]
    options += ["--valid", str(valid), "-o", str(tmp_path / "m"), str(first)]
    done = run("seq-train", *options)
    assert done.status == 1
    reason = 'batch 1 of epoch 1: "inputs" has 8 positions, but the model takes 7'
    assert done.stderr == f"seq-train: {stream}: {reason}\n"
    assert run("seq-train", *options, "--position", "learned", "--max-positions", "8").status == 0


def test_a_shared_table_needs_one_vocabulary(tmp_path):
    options = ["transformer", *TINY, "--heads", "2", "--share-embeddings", "--tied", "--quiet"]
    model = tmp_path / "m"
    done = run("seq-train", *options, "-o", str(model), stdin=seq2seq_stream())
    assert (done.status, done.stderr) == (0, "")
    assert load(model).config["share_embeddings"] is True


def test_the_same_run_gives_the_same_bytes(tmp_path, stream):
    """From a file or a pipe, whatever the seed of Python's hashes; not for another seed."""
    files = []
    for name, hashes, seed in (("a", "1", "0"), ("b", "2", "0"), ("c", "1", str(2**64 + 7))):
        path = tmp_path / name
        options = [*TINY, "--dropout", "0.2", "--seed", seed, "--quiet", "-o", str(path)]
        source = [str(stream)] if name == "a" else []
        done = run(
            "seq-train", "lstm", *options, *source,
            stdin=b"" if source else stream.read_bytes(),
            env=environment(PYTHONHASHSEED=hashes),
        )  # fmt: skip
        assert done.status == 0
        files.append(path.read_bytes())
    assert files[0] == files[1]
    assert files[0] != files[2]


def test_the_loss_is_the_mean_over_targets(tmp_path):
    """Two records of 7 and 2 targets, together and apart, and evaluated: one loss (case B44)."""
    long, short = [4, 5, 6, 7, 4, 6, 5, 7], [7, 5, 4]
    together, apart = tmp_path / "together", tmp_path / "apart"
    together.write_bytes(lm_stream([[long, short]]))
    apart.write_bytes(lm_stream([[long], [short]]))
    losses = []
    for path in (together, apart):
        options = ["--lr", "1e-30", "--log-every", "2", "--valid", str(apart)]
        out = str(tmp_path / "m")
        found = records(run("seq-train", "rnn", *TINY, *options, "-o", out, str(path)))
        losses += [of("train", found)[0]["loss"], of("valid", found)[0]["loss"]]
    assert losses == pytest.approx([losses[0]] * 4, abs=1e-5)


def test_batches_without_targets_are_skipped_and_counted(tmp_path):
    data = lm_stream([[CYCLE], [[4]], [CYCLE]])
    done = run("seq-train", "gru", *TINY, "-o", str(tmp_path / "m"), stdin=data)
    found = records(done)
    assert [r["skipped"] for r in of("skipped", found)] == [1]
    assert (found[-1]["step"], found[-1]["skipped"]) == (2, 1)


def test_the_best_model_is_kept(tmp_path, stream):
    """Validation on what the training contradicts: the first is the best, and it stays."""
    other = tmp_path / "other.jsonl"
    other.write_bytes(lm_stream([[CYCLE[::-1]]]))
    model = tmp_path / "m"
    options = ["--valid", str(other), "--valid-every", "2", "--patience", "3", "--lr", "0.1"]
    done = run("seq-train", "gru", *TINY, *options, "-o", str(model), str(stream))
    found = records(done)
    assert found[-1]["reason"] == "patience"
    valid = of("valid", found)
    best = min(record["loss"] for record in valid)
    kept = next(record["step"] for record in valid if record["loss"] == best)
    assert [record["step"] for record in of("saved", found)][-1] == kept < found[-1]["step"]
    assert load(model).training["valid_loss"] == pytest.approx(best)
    assert load(model).training["steps"] == kept


@pytest.mark.parametrize("kind", ["last", "best"])
def test_the_average_of_a_bumpy_run_is_its_result(tmp_path, kind):
    """What a step learns of one batch it forgets of the other: their mean knows both better."""
    model, data = tmp_path / "m", tmp_path / "data"
    data.write_bytes(lm_stream([[CYCLE], [CYCLE[::-1]]] * 60))
    options = ["--valid", str(data), "--valid-every", "1", "--average", kind, "--keep", "4"]
    options += ["--optimizer", "sgd", "--lr", "0.3", "--quiet"]
    done = run("seq-train", "rnn", *TINY, *options, "-o", str(model), str(data))
    assert done.status == 0
    *before, last = of("valid", records(done))
    assert not any("averaged" in record for record in before)
    assert (last["averaged"], last["best"]) == (4, True)
    assert last["loss"] < min(record["loss"] for record in before)
    saved = of("saved", records(done))[-1]
    assert (saved["averaged"], saved["loss"]) == (4, last["loss"])
    assert load(model).training["averaged"] == 4
    check = run("seq-decode", "evaluate", "--model", str(model), str(data))
    assert json.loads(check.stdout)["loss"] == pytest.approx(last["loss"], abs=1e-5)


@pytest.fixture
def trained(tmp_path, stream):
    path = tmp_path / "trained"
    options = ["--heads", "2", "--layers", "2", "--position", "rotary", "--lr", "0.01"]
    options += ["--epochs", "20", "--dropout", "0"]
    done = run("seq-train", "transformer", *TINY, *options, "-o", str(path), str(stream))
    assert done.status == 0
    return path


@pytest.mark.parametrize("preset", [[], ["--preset", "bert-small"]])
def test_a_trained_model_goes_on_where_it_was(tmp_path, stream, trained, preset):
    """Its sizes need not be said again, and the first loss is that of the trained model."""
    model = tmp_path / "m"
    options = ["--init", str(trained), "--lr", "1e-30", "--log-every", "1", "--max-steps", "1"]
    options += ["--threads", "1", "--device", "cpu", *preset]
    done = run("seq-train", "transformer", *options, "-o", str(model), str(stream))
    assert done.status == 0
    first, train = records(done)[:2]
    assert first["config"] == load(trained).config
    begun = first["init"]
    assert (begun["rows"], begun["new"], begun["unused"]) == ({}, [], [])
    assert f"from {trained}: {len(begun['taken'])} parameters (" in done.stderr
    check = run("seq-decode", "evaluate", "--model", str(trained), str(stream))
    assert train["loss"] == pytest.approx(json.loads(check.stdout)["loss"], rel=1e-4)


def test_a_trained_model_over_another_vocabulary(tmp_path, trained):
    other = Vocabulary.build(dict.fromkeys("dcx", 1))
    data = lm_stream([[[4, 5, 6, 4, 5]]], vocabulary=other)
    model = tmp_path / "m"
    options = ["--init", str(trained), "--layers", "1", "--lr", "1e-30"]
    done = run("seq-train", "transformer", *TINY, *options, "-o", str(model), stdin=data)
    assert done.status == 0
    begun = records(done)[0]["init"]
    table = "decoder.embedded.embedding.weight"
    assert begun["rows"][table] == [6, 7]
    assert begun["unused"]
    assert all(".layers.1." in name for name in begun["unused"])
    assert f"from {trained}: 6 of 7 rows of {table}" in done.stderr
    old = dict(load(trained).model.named_parameters())[table]
    new = dict(load(model).model.named_parameters())[table]
    rows = [VOCABULARY.tokens.index(token) for token in other.tokens if token != "x"]
    assert new[[other.tokens.index(VOCABULARY.tokens[row]) for row in rows]].equal(old[rows])


def test_frozen_parameters_stay(tmp_path, stream, trained):
    model = tmp_path / "m"
    options = ["--init", str(trained), "--freeze", "*.layers.0.*", "--freeze", "*embedding.weight"]
    options += ["--lr", "0.1", "--max-steps", "3"]
    done = run("seq-train", "transformer", *TINY, *options, "-o", str(model), str(stream))
    assert done.status == 0
    frozen = set(records(done)[0]["frozen"])
    assert f"not trained: {len(frozen)} parameters (" in done.stderr
    before = dict(load(trained).model.named_parameters())
    after = dict(load(model).model.named_parameters())
    assert {name for name in after if after[name].equal(before[name])} == frozen


def test_a_file_that_is_no_model_or_fits_nowhere(tmp_path, stream, trained):
    options = [*TINY, "--quiet", "-o", str(tmp_path / "m"), str(stream)]
    done = run("seq-train", "gru", "--init", str(stream), *options)
    assert done.status == 1
    assert done.stderr.startswith(f"seq-train: {stream}: ")
    done = run("seq-train", "gru", "--init", str(trained), *options)
    assert (done.status, done.stderr) == (
        2,
        f"seq-train: --init {trained}: no part of the trained model has a name and a shape of "
        "the new one: they have no name in common\n",
    )
    assert not (tmp_path / "m").exists()


def test_hardly_anything_fits(tmp_path, stream, trained):
    """Of another width just the output's bias is taken, and that is told even when quiet."""
    options = ["--init", str(trained), "--hidden", "32", "--device", "cpu", "--quiet"]
    options += ["--max-steps", "1", "-o", str(tmp_path / "m"), str(stream)]
    done = run("seq-train", "transformer", *options)
    assert done.status == 0
    begun = records(done)[0]
    assert begun["init"]["taken"] == ["decoder.output.bias"]
    assert begun["init"]["share"] == pytest.approx(len(VOCABULARY) / begun["parameters"], rel=1e-6)
    assert done.stderr.startswith(f"seq-train: warning: --init {trained}: just 0.031 % of ")
    assert done.stderr.endswith("own.query.weight is 8 x 8 there and 32 x 32 here\n")


@pytest.mark.parametrize(("epochs", "warned"), [(1, True), (2, False)])
def test_an_average_takes_two_validations(tmp_path, stream, epochs, warned):
    options = ["--valid", str(stream), "--average", "last", "--quiet", "--epochs", str(epochs)]
    done = run("seq-train", "gru", *TINY, *options, "-o", str(tmp_path / "m"), str(stream))
    assert done.status == 0
    warning = "warning: --average last: it takes 2 validations, and there was 1 (--valid-every"
    assert (warning in done.stderr) is warned


def test_time_limit_with_a_cosine_over_it(tmp_path):
    data = lm_stream(*[EPOCH] * 2000)
    options = ["--max-time", "0.02m", "--schedule", "cosine", "--log-every", "5", "--lr", "1"]
    done = run("seq-train", "gru", *TINY, *options, "-o", str(tmp_path / "m"), stdin=data)
    found = records(done)
    assert found[-1]["reason"] == "max-time"
    assert 1.2 <= found[-1]["seconds"] < 10
    assert of("train", found)[-1]["lr"] < 0.5


def test_no_records_no_model(tmp_path):
    model = tmp_path / "m"
    for data in (b"", b"\n\n", lm_stream([])):
        done = run("seq-train", "gru", "-o", str(model), stdin=data)
        assert done.status == 1
        assert "no records" in done.stderr
        assert done.stderr.count("\n") == 1
        assert not model.exists()


def test_a_stream_that_ends_early_leaves_the_old_model(tmp_path):
    model = tmp_path / "m"
    model.write_bytes(b"old")
    data = b"".join(lm_stream(EPOCH).splitlines(keepends=True)[:-1])
    done = run("seq-train", "gru", *TINY, "--quiet", "-o", str(model), stdin=data)
    assert done.status == 1
    assert done.stderr.count("\n") == 1
    assert "promised 10 batches in epoch 1, got 9" in done.stderr
    assert model.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["m"]


def test_a_loss_that_explodes_fails_and_leaves_the_best_model(tmp_path, stream):
    model = tmp_path / "m"
    options = ["--optimizer", "sgd", "--lr", "1e38", "--clip", "0", "--quiet"]
    done = run("seq-train", "rnn", *TINY, *options, "-o", str(model), str(stream))
    assert done.status == 1
    assert done.stderr.count("\n") == 1
    assert " at step " in done.stderr
    assert not model.exists()


def test_perplexity_past_all_numbers_is_written_inf(tmp_path, stream):
    options = ["--optimizer", "sgd", "--lr", "1e5", "--clip", "0", "--log-every", "1"]
    done = run("seq-train", "gru", *TINY, *options, "-o", str(tmp_path / "m"), str(stream))
    assert done.status == 0
    assert "inf" in [record["perplexity"] for record in of("train", records(done))]


USAGE = {
    "no output": ["gru"],
    "model to stdout": ["gru", "-o", "-"],
    "unknown option": ["gru", "--heads", "4", "-o", "m"],
    "option of another kind": ["gru", "--nonlinearity", "relu", "-o", "m"],
    "merge alone": ["gru", "--merge", "sum", "-o", "m"],
    "feeding without luong": ["gru", "--input-feeding", "-o", "m"],
    "positions without an end": ["gru", "--attention", "location", "-o", "m"],
    "an end without positions": ["gru", "--max-source", "9", "-o", "m"],
    "nothing to wire": ["gru", "--attention", "none", "--wiring", "luong", "-o", "m"],
    "a score under no window": ["gru", "--attention-score", "dot", "-o", "m"],
    "a window of no attention": [
        "gru",
        "--attention",
        "hard",
        "--attention-window",
        "3",
        "-o",
        "m",
    ],
    "a kind of no window": ["gru", "--local", "monotonic", "-o", "m"],
    "a trained model from the pipe": ["gru", "--init", "-", "-o", "m"],
    "a missing trained model": ["gru", "--init", "missing", "-o", "m"],
    "nothing to freeze": ["gru", "--freeze", "encoder.*", "-o", "m"],
    "everything frozen": ["gru", "--freeze", "*", "-o", "m"],
    "momentum of adam": ["gru", "--momentum", "0.9", "-o", "m"],
    "steps of no cosine": ["gru", "--schedule-steps", "9", "-o", "m"],
    "betas of sgd": ["gru", "--optimizer", "sgd", "--betas", "0.9,0.98", "-o", "m"],
    "eps of sgd": ["gru", "--optimizer", "sgd", "--eps", "1e-6", "-o", "m"],
    "an end of positions without one": [
        "transformer",
        "--position",
        "rotary",
        "--max-positions",
        "9",
        "-o",
        "m",
    ],
    "an embedding of a Transformer": ["transformer", "--embedding", "9", "-o", "m"],
    "an unknown preset": ["transformer", "--preset", "vaswani-bass", "-o", "m"],
    "a decoder of a language model": ["transformer", "--decoder-layers", "2", "-o", "m"],
    "source and target of a language model": ["transformer", "--share-embeddings", "-o", "m"],
    "gamma of no staircase": ["gru", "--gamma", "0.5", "-o", "m"],
    "an average of nothing": ["gru", "--average", "last", "-o", "m"],
    "keeping for nothing": ["gru", "--keep", "3", "--valid", "-", "-o", "m"],
    "patience with nothing": ["gru", "--patience", "3", "-o", "m"],
    "nan": ["gru", "--lr", "nan", "-o", "m"],
    "dropout of all": ["gru", "--dropout", "1", "-o", "m"],
    "no width": ["gru", "--hidden", "0", "-o", "m"],
    "no time": ["gru", "--max-time", "0", "-o", "m"],
    "no such device": ["gru", "--device", "tpu", "-o", "m"],
    "missing file": ["gru", "-o", "m", "missing.jsonl"],
    "missing validation": ["gru", "-o", "m", "--valid", "missing.jsonl"],
    "both from the pipe": ["gru", "-o", "m", "--valid", "-"],
    "packed model": ["gru", "-o", "m.gz"],
    "missing folder": ["gru", "-o", "missing/m"],
    "more epochs than a pipe has": ["gru", "-o", "m", "--epochs", "3"],
    "attention of a language model": ["gru", "-o", "m", "--attention", "dot"],
    "both ways in a language model": ["gru", "-o", "m", "--bidirectional"],
}


@pytest.mark.parametrize("name", USAGE)
def test_usage(tmp_path, name):
    done = run("seq-train", *USAGE[name], stdin=lm_stream(EPOCH), cwd=tmp_path)
    assert (done.status, done.stdout) == (2, b"")
    assert done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "m").exists()


def test_a_task_that_the_model_does_not_serve(tmp_path):
    data = lm_stream(EPOCH, task="mlm")
    done = run("seq-train", "gru", "-o", str(tmp_path / "m"), stdin=data)
    assert done.status == 2
    assert "mlm" in done.stderr


def test_an_empty_vocabulary_is_refused(tmp_path):
    data = lm_stream([[[1, 1, 3]]], vocabulary=Vocabulary.build({}))
    done = run("seq-train", "gru", "-o", str(tmp_path / "m"), stdin=data)
    assert done.status == 1
    assert "nothing but special entries" in done.stderr


def test_validation_with_another_vocabulary_is_refused(tmp_path, stream):
    swapped = Vocabulary([*VOCABULARY.tokens[:4], "b", "a", "c", "d"], VOCABULARY.specials)
    other = tmp_path / "other.jsonl"
    other.write_bytes(lm_stream(EPOCH, vocabulary=swapped))
    done = run("seq-train", "gru", "-o", str(tmp_path / "m"), "--valid", str(other), str(stream))
    assert done.status == 1
    assert done.stderr.count("\n") == 1
    assert "vocabular" in done.stderr


def test_validation_without_targets_is_refused(tmp_path, stream):
    other = tmp_path / "other.jsonl"
    other.write_bytes(lm_stream([[[4]]]))
    options = ["--quiet", "-o", str(tmp_path / "m"), "--valid", str(other)]
    done = run("seq-train", "gru", *TINY, *options, str(stream))
    assert done.status == 1
    assert done.stderr == f"seq-train: {other}: no batch has a target to validate on\n"


def test_torch_is_loaded_only_for_good_data(tmp_path):
    code = """
import sys, click
from seqtools.cli.train import cli
assert not {"torch", "numpy", "rich"} & set(sys.modules)
try:
    cli.main(["gru", "-o", "m"], standalone_mode=False)
except Exception as error:
    print(type(error).__name__, "torch" in sys.modules)
"""
    lines = lm_stream(EPOCH).splitlines(keepends=True)
    bad = lines[0] + b'{"epoch":1,"index":1,"inputs":[[99]],"targets":[[4]],"lengths":[1]}\n'
    for data in (b"{}\n", bad):
        done = subprocess.run(
            [sys.executable, "-c", code], input=data, capture_output=True, cwd=tmp_path, check=True
        )
        assert done.stdout == b"InputError False\n"


def test_an_absent_device(tmp_path):
    env = environment(CUDA_VISIBLE_DEVICES="")
    options = ["--device", "cuda", "-o", str(tmp_path / "m")]
    done = run("seq-train", "gru", *options, stdin=lm_stream(EPOCH), env=env)
    assert done.status == 2
    assert "--device cuda: there is no CUDA device" in done.stderr


def test_a_closed_reader_does_not_stop_the_run(tmp_path, stream):
    model = tmp_path / "m"
    line = f"seq-train gru {' '.join(TINY)} --log-every 1 --quiet -o {model} {stream} | head -n 1"
    done = shell(line)
    assert done.status == 0
    assert done.stderr == ""
    assert json.loads(done.stdout)["event"] == "model"
    assert load(model).training["steps"] == 10


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_saves_what_there_is(tmp_path, number):
    """The input never ends: the run waits for it, or is in a step, when the signal comes."""
    model = tmp_path / "m"
    process = subprocess.Popen(
        [*command("seq-train"), "gru", *TINY, "--log-every", "1", "--quiet", "-o", str(model)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(),
    )  # fmt: skip
    data = lm_stream(EPOCH).splitlines(keepends=True)[:4]
    process.stdin.write(b"".join(data))
    process.stdin.flush()
    for _ in range(4):  # the model and three steps
        process.stdout.readline()
    process.send_signal(number)
    _, error = process.communicate(timeout=60)
    assert process.returncode == -number
    assert error == b""
    assert load(model).training["steps"] == 3
    assert os.listdir(tmp_path) == ["m"]


def test_killed_runs_leave_a_whole_model_or_none(tmp_path, stream):
    """Case B49: saved at every step, killed anywhere; the next run clears what was left."""
    data = tmp_path / "long.jsonl"
    data.write_bytes(lm_stream(*[EPOCH] * 200))
    folder = tmp_path / "out"
    folder.mkdir()
    model = folder / "m"
    arguments = ["gru", *TINY, "--quiet", "--valid-every", "1", "--valid", str(stream)]
    rng = random.Random(5)
    for _ in range(3):
        process = subprocess.Popen(
            [*command("seq-train"), *arguments, "-o", str(model), str(data)],
            stdout=subprocess.PIPE, env=environment(),
        )  # fmt: skip
        for _ in range(4):
            process.stdout.readline()
        time.sleep(rng.uniform(0, 0.3))
        process.kill()
        process.stdout.close()
        process.wait()
        assert load(model).training["steps"] >= 1
    done = run("seq-train", *arguments, "--max-steps", "1", "-o", str(model), str(data))
    assert done.status == 0
    assert os.listdir(folder) == ["m"]


def test_a_full_disk_leaves_the_old_model(tmp_path, stream):
    model = tmp_path / "m"
    model.write_bytes(b"old")
    line = f"ulimit -f 4; seq-train gru --hidden 64 --quiet -o {model} {stream} > /dev/null"
    done = shell(line)
    assert done.status == 1
    assert "Traceback" not in done.stderr
    assert model.read_bytes() == b"old"


def test_stderr_of_a_log_file_is_plain(tmp_path, stream):
    env = environment(FORCE_COLOR="1")
    options = [*TINY, "--layers", "2", "--dropout", "0.1", "-o", str(tmp_path / "m")]
    done = run("seq-train", "gru", *options, str(stream), env=env)
    assert all(json.loads(line) for line in done.lines)
    assert not {"\r", "\x1b"} & set(done.stderr)
    assert "arning" not in done.stderr


@pytest.mark.skipif(shutil.which("script") is None, reason="no terminal to be had")
@pytest.mark.parametrize(
    ("env", "forbidden"),
    [({"NO_COLOR": "1"}, r"\x1b\[[\d;]*[349]\d[\d;]*m"), ({"TERM": "dumb"}, "\x1b")],
)
def test_stderr_of_a_terminal(tmp_path, stream, env, forbidden):
    out = tmp_path / "log.jsonl"
    line = f"seq-train gru {' '.join(TINY)} -o {tmp_path}/m {stream} > {out}"
    done = subprocess.run(
        ["script", "-qec", line, "/dev/null"],
        capture_output=True, env=environment(**{"TERM": "xterm", **env}), check=True,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    shown = done.stdout.decode()
    assert not re.search(forbidden, shown)
    assert "weight" in shown
    assert all(json.loads(line) for line in pathlib.Path(out).read_bytes().splitlines())


def test_a_validation_source_beyond_location_attention_is_found_before_training(tmp_path):
    valid = tmp_path / "valid"
    valid.write_bytes(seq2seq_stream())
    options = ["gru", *TINY, "--attention", "location", "--max-source", "3", "--valid", str(valid)]
    done = run("seq-train", *options, "-o", str(tmp_path / "m"), stdin=seq2seq_stream())
    assert done.status == 1
    reason = 'valid: batch 1 of epoch 1: "source" has 5 positions, but the model takes 3\n'
    assert done.stderr.endswith(reason)
    assert not (tmp_path / "m").exists()
