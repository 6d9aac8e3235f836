import gzip
import os
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
import torch

from seqtools.batching.corpus import Options
from seqtools.batching.mlm import Masking, MlmCorpus
from seqtools.batching.stream import IGNORED, Batch
from seqtools.batching.tasks import LmCorpus, Sampling, Seq2seqCorpus
from seqtools.errors import ConfigError, FormatError, InputError
from seqtools.text.vocab import Vocabulary
from seqtools.training.data import Batches, check_same_task, to_tensors

torch.set_num_threads(1)

WORDS = Vocabulary.build({"a": 2, "b": 1})


def lm(records=20, sampling="records", *, pad_left=False):
    options = Options(batch_size=3, pad_left=pad_left)
    corpus = LmCorpus(WORDS, options, Sampling(sampling, None if sampling == "records" else 2))
    for number in range(1, records + 1):
        corpus.append(corpus.encode({"tokens": ["a", "b", "c", "a"][: number % 5]}), number)
    corpus.freeze()
    return corpus


def write(path, corpus, epochs=1):
    data = corpus.plan(epochs).to_bytes()
    for epoch in range(1, epochs + 1):
        data += b"".join(batch.to_bytes() for batch in corpus.batches(epoch))
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return str(path)


def content(pairs):
    """Epochs and inputs of batches, comparable."""
    return [(epoch, batch.inputs.tolist()) for epoch, batch in pairs]


def epoch_of(found, epoch):
    return [inputs for number, inputs in found if number == epoch]


# Reading once


def test_the_batches_of_a_stream_come_as_they_stand(tmp_path):
    corpus = lm()
    batches = Batches([write(tmp_path / "b", corpus, epochs=2)])
    assert (batches.epochs, batches.steps) == (2, 14)
    assert batches.header == corpus.plan(2)
    assert content(batches.tensors("cpu")) == [
        (epoch, batch.inputs.tolist()) for epoch in (1, 2) for batch in corpus.batches(epoch)
    ]


def test_a_longer_stream_stops_after_the_epochs_wanted(tmp_path):
    path = write(tmp_path / "b", lm(), epochs=3)
    whole = content(Batches([path]).tensors("cpu"))
    batches = Batches([path], epochs=2)
    assert batches.steps == 14
    assert content(batches.tensors("cpu")) == whole[:14]


def test_a_stream_that_stops_early_is_not_read_to_its_end(tmp_path):
    read, write_end = os.pipe()
    corpus = lm()
    os.write(write_end, corpus.plan(2).to_bytes())
    for batch in corpus.batches(1):
        os.write(write_end, batch.to_bytes())
    batches = Batches([f"/dev/fd/{read}"], epochs=1)
    assert len(list(batches.tensors("cpu"))) == 7  # and does not wait for the second epoch
    os.close(write_end)
    os.close(read)


def test_tensors_are_int64():
    corpus = Seq2seqCorpus(WORDS, WORDS, Options())
    for number in (1, 2):
        record = {"src_tokens": ["a"] * number, "tgt_tokens": ["b"]}
        corpus.append(corpus.encode(record), number)
    corpus.freeze()
    (batch,) = corpus.batches(1)
    found = to_tensors(batch, "cpu")
    for name in ("inputs", "targets", "lengths", "source", "source_lengths"):
        tensor = getattr(found, name)
        assert tensor.dtype == torch.int64
        assert tensor.tolist() == getattr(batch, name).tolist()


@pytest.mark.parametrize("sampling", ["records", "sequential"])
def test_left_padding_is_moved_to_the_right(tmp_path, sampling):
    right = Batches([write(tmp_path / "right", lm(sampling=sampling))])
    left = Batches([write(tmp_path / "left", lm(sampling=sampling, pad_left=True))])
    for (_, one), (_, other) in zip(right.tensors("cpu"), left.tensors("cpu"), strict=True):
        for name in ("inputs", "targets", "lengths"):
            assert torch.equal(getattr(one, name), getattr(other, name))
        assert one.carry == other.carry


def test_left_padded_pairs_are_moved_to_the_right():
    corpora = [Seq2seqCorpus(WORDS, WORDS, Options(pad_left=left)) for left in (False, True)]
    for corpus in corpora:
        for number in range(1, 9):
            record = {"src_tokens": ["a"] * (number % 4), "tgt_tokens": ["b"] * (number % 3)}
            corpus.append(corpus.encode(record), number)
        corpus.freeze()
    (right,), (left,) = (corpus.batches(1) for corpus in corpora)
    one, other = to_tensors(right, "cpu"), to_tensors(left, "cpu", left=True)
    assert not np.array_equal(right.source, left.source)
    for name in ("inputs", "targets", "lengths", "source", "source_lengths"):
        assert torch.equal(getattr(one, name), getattr(other, name))


def test_segments_and_next_sentences_come_with_the_rows():
    vocabulary = Vocabulary.build(dict.fromkeys("abc", 1), specials=("pad", "mask", "cls", "sep"))
    batches = []
    for left in (False, True):
        corpus = MlmCorpus(vocabulary, Options(pad_left=left), Masking(next_sentence=True))
        for number in range(1, 6):
            corpus.append(corpus.encode({"tokens": ["a"] * number}), number)
        corpus.freeze()
        batches += corpus.batches(1)
    right, left = batches
    one, other = to_tensors(right, "cpu"), to_tensors(left, "cpu", left=True)
    assert one.segments.dtype == one.next_sentence.dtype == torch.int64
    assert one.segments.tolist() == right.segments.tolist() != left.segments.tolist()
    assert one.next_sentence.tolist() == right.next_sentence.tolist()
    for name in ("inputs", "targets", "lengths", "segments", "next_sentence"):
        assert torch.equal(getattr(one, name), getattr(other, name))
    assert to_tensors(next(lm().batches(1)), "cpu").segments is None


def test_a_batch_without_targets_is_none(tmp_path):
    corpus = LmCorpus(Vocabulary(["x", "y"], {}), Options(ids=True, batch_size=1, shuffle=False),
                      Sampling("records"))  # fmt: skip
    for number, ids in enumerate([[1], [0, 1], [1]], start=1):
        corpus.append(corpus.encode({"ids": ids}), number)
    corpus.freeze()
    path = write(tmp_path / "b", corpus)
    found = [batch is None for _, batch in Batches([path], epochs=2).tensors("cpu")]
    assert found[:3] == [True, False, True]
    assert sorted(found[3:]) == [False, True, True]
    assert len(Batches([path]).validation("cpu")) == 1


# Reading again


@pytest.mark.parametrize("name", ["b.jsonl", "b.jsonl.gz"])
def test_a_file_of_one_epoch_is_read_again_in_another_order(tmp_path, name):
    path = write(tmp_path / name, lm(60))
    batches = Batches([path], epochs=4, seed=3)
    assert (batches.epochs, batches.steps) == (4, 80)
    found = content(batches.tensors("cpu"))
    epochs = [epoch_of(found, epoch) for epoch in (1, 2, 3, 4)]
    assert epochs[0] == epoch_of(content(Batches([path]).tensors("cpu")), 1)
    as_sets = [Counter(map(str, inputs)) for inputs in epochs]
    assert as_sets[0] == as_sets[1] == as_sets[2] == as_sets[3]
    assert len({str(inputs) for inputs in epochs}) == 4
    assert content(Batches([path], epochs=4, seed=3).tensors("cpu")) == found
    assert content(Batches([path], epochs=4, seed=4).tensors("cpu")) != found


@pytest.mark.parametrize("name", ["b.jsonl", "b.jsonl.gz"])
def test_batches_that_carry_keep_their_order(tmp_path, name):
    path = write(tmp_path / name, lm(sampling="sequential"))
    found = content(Batches([path], epochs=3).tensors("cpu"))
    assert epoch_of(found, 1) == epoch_of(found, 2) == epoch_of(found, 3)


def test_line_ends_of_windows_and_blank_lines_do_no_harm(tmp_path):
    path = tmp_path / "b"
    write(path, lm())
    plain = content(Batches([str(path)], epochs=3).tensors("cpu"))
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n\r\n"))
    assert content(Batches([str(path)], epochs=3).tensors("cpu")) == plain


def test_the_last_line_may_lack_its_end(tmp_path):
    path = tmp_path / "b"
    write(path, lm())
    plain = content(Batches([str(path)], epochs=2).tensors("cpu"))
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    assert content(Batches([str(path)], epochs=2).tensors("cpu")) == plain


def test_a_pipe_cannot_be_read_again(tmp_path):
    path = write(tmp_path / "b", lm())
    code = "from seqtools.training.data import Batches; Batches(['-'], epochs=2)"
    piped = subprocess.run(
        ["bash", "-c", f'cat "{path}" | "{sys.executable}" -c "{code}"'],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "ConfigError: 2 epochs are wanted, but the stream has 1" in piped.stderr


def test_a_file_behind_standard_input_can(tmp_path):
    path = write(tmp_path / "b", lm())
    code = (
        "from seqtools.training.data import Batches;"
        "print([e for e, _ in Batches(['-'], epochs=3).tensors('cpu')])"
    )
    with open(path, "rb") as file:
        done = subprocess.run(
            [sys.executable, "-c", code], stdin=file, capture_output=True, text=True, check=True
        )
    assert done.stdout == f"{[1] * 7 + [2] * 7 + [3] * 7}\n"


def test_more_epochs_than_a_longer_stream_has(tmp_path):
    path = write(tmp_path / "b", lm(), epochs=2)
    with pytest.raises(ConfigError, match="only a file with one epoch is read again"):
        Batches([path], epochs=3)
    with pytest.raises(ConfigError, match="several files"):
        Batches([path, path], epochs=5)


def test_several_streams_in_a_file_are_not_read_again(tmp_path):
    path = tmp_path / "b"
    write(path, lm())
    path.write_bytes(path.read_bytes() * 2)
    assert [epoch for epoch, _ in Batches([str(path)]).tensors("cpu")] == [1] * 7 + [2] * 7
    with pytest.raises(ConfigError, match="several streams"):
        list(Batches([str(path)], epochs=3).tensors("cpu"))


@pytest.mark.parametrize("name", ["b.jsonl", "b.jsonl.gz"])
def test_a_file_that_changes_while_it_is_read(tmp_path, name):
    path = tmp_path / name
    tensors = Batches([write(path, lm())], epochs=2).tensors("cpu")
    for _ in range(7):
        next(tensors)
    write(path, lm(9))
    with pytest.raises(FormatError, match="changed while it was read"):
        next(tensors)


# What is wrong with a stream


def test_the_header_is_checked_at_once(tmp_path):
    path = tmp_path / "b"
    path.write_bytes(b'{"tokens":["a"]}\n')
    with pytest.raises(InputError, match="must be a header of seq-batch"):
        Batches([str(path)])
    path.write_bytes(b"")
    with pytest.raises(FormatError, match="no records"):
        Batches([str(path)])
    write(path, lm(0))
    with pytest.raises(FormatError, match="no records"):
        Batches([str(path)])


def test_a_stream_that_was_cut_off(tmp_path):
    path = tmp_path / "b"
    write(path, lm())
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:4]))
    with pytest.raises(InputError, match="promised 7 batches in epoch 1, got 3"):
        list(Batches([str(path)]).tensors("cpu"))


def test_the_place_of_a_bad_batch(tmp_path):
    path = tmp_path / "b"
    lines = write(path, lm()) and path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:3], b"\n", b"{}\n", *lines[4:]]))
    with pytest.raises(InputError, match="must be a list of rows") as found:
        list(Batches([str(path)]).tensors("cpu"))
    assert found.value.line == 5


def test_a_second_stream_must_be_of_the_same_task():
    header = lm().plan(1)
    check_same_task(header, lm(3).plan(2), "valid")
    other = LmCorpus(Vocabulary.build({"a": 1, "c": 1}), Options(), Sampling())
    other.freeze()
    with pytest.raises(FormatError, match="valid: its vocabularies are not those"):
        check_same_task(header, other.plan(1), "valid")
    pairs = Seq2seqCorpus(WORDS, WORDS, Options())
    pairs.freeze()
    with pytest.raises(FormatError, match="valid: its task is seq2seq, not lm"):
        check_same_task(header, pairs.plan(1), "valid")


def test_the_header_needs_no_torch(tmp_path):
    path = write(tmp_path / "b", lm())
    code = (
        "import sys; from seqtools.training.data import Batches;"
        f"b = Batches([{path!r}]); assert b.steps == 7; assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_tensors_on_a_gpu_are_those_on_the_cpu(tmp_path):
    path = write(tmp_path / "b", lm())
    ours, others = (list(Batches([path]).tensors(device)) for device in ("cpu", "cuda"))
    for (_, one), (_, other) in zip(ours, others, strict=True):
        assert other.inputs.device.type == "cuda"
        for name in ("inputs", "targets", "lengths"):
            assert torch.equal(getattr(one, name), getattr(other, name).cpu())


def test_ignored_targets_are_those_of_the_stream():
    targets = np.array([[2, IGNORED]], np.int32)
    batch = Batch(1, 1, np.array([[1, 0]], np.int32), targets, np.array([1], np.int32))
    assert to_tensors(batch, "cpu").targets.tolist() == [[2, -100]]
