import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqtools.batching.stream import IGNORED, Batch, Header, Reader
from seqtools.errors import FormatError, InputError, RecordError
from seqtools.streams.files import Line, Place
from seqtools.text.vocab import Vocabulary

WORDS = Vocabulary.build({"a": 2, "𠮷": 1})


def header(batches=(2, 1), targets=None, **changes):
    counts = None if targets is None else list(targets)
    return Header("lm", {"tokens": WORDS}, list(batches), counts, changes)


def batch(epoch=1, index=1, rows=((4, 5, 3),), targets=((5, 3, IGNORED),), **changes):
    inputs = np.array(rows, np.int32)
    lengths = np.full(len(inputs), inputs.shape[1], np.int32)
    return Batch(epoch, index, inputs, np.array(targets, np.int32), lengths, **changes)


def lines(*parts):
    """The parts as lines of a file, from line 1."""
    raws = [part if isinstance(part, bytes) else part.to_bytes() for part in parts]
    return [Line(Place("f", i, i), raw.rstrip(b"\n")) for i, raw in enumerate(raws, start=1)]


def whole():
    return [header(), batch(1, 1), batch(1, 2), batch(2, 1)]


# The header


@given(
    st.lists(st.integers(0, 9), max_size=4),
    st.dictionaries(st.text(), st.none() | st.integers(-5, 5) | st.text(), max_size=3),
    st.booleans(),
)
def test_a_header_survives_its_line(batches, options, with_targets):
    vocabularies = {"source": WORDS, "target": Vocabulary(["x", "\n"], {}, [1, 2])}
    targets = [3 * n for n in batches] if with_targets else None
    made = Header("seq2seq", vocabularies, batches, targets, options)
    line = made.to_bytes()
    assert line.count(b"\n") == 1
    again = Header.from_bytes(line)
    assert again == made
    assert again.vocabularies["target"].counts == [1, 2]
    assert again.to_bytes() == line


def test_the_keys_of_a_header():
    value = json.loads(header((1,), (7,), seed=0).to_bytes())
    assert list(value) == [
        "seqtools", "version", "task", "vocabularies", "batches", "targets", "options",
    ]  # fmt: skip
    assert value["seqtools"] == "batches"
    assert value["version"] == 1
    assert "targets" not in json.loads(header().to_bytes())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seqtools": "model"}, "must be a header of seq-batch"),
        ({"version": 2}, "version 2, only 1 is known"),
        ({"task": 1}, '"task"'),
        ({"batches": 3}, '"batches" of the header'),
        ({"batches": [True]}, '"batches" of the header'),
        ({"batches": [-1]}, '"batches" of the header'),
        ({"targets": [1]}, "differ in their epochs"),
        ({"vocabularies": {}}, 'has no vocabulary "tokens"'),
        ({"vocabularies": []}, '"vocabularies"'),
        ({"vocabularies": {"tokens": {"tokens": [1]}}}, "list of strings"),
        ({"options": []}, '"options"'),
    ],
)
def test_a_malformed_header(changes, message):
    value = json.loads(header((2, 1), (4, 2)).to_bytes()) | changes
    with pytest.raises(FormatError, match=message):
        Header.from_bytes(json.dumps(value).encode())


def test_a_batch_is_no_header():
    with pytest.raises(FormatError, match="a batch stands where the header should be"):
        Header.from_bytes(batch().to_bytes())
    with pytest.raises(FormatError, match="not a batch stream: not JSON"):
        Header.from_bytes(b"weights")


# Batches


def test_the_keys_of_a_batch():
    found = json.loads(batch(2, 3, records=["r"], carry=True).to_bytes())
    assert found == {
        "epoch": 2,
        "index": 3,
        "inputs": [[4, 5, 3]],
        "targets": [[5, 3, IGNORED]],
        "lengths": [3],
        "carry": True,
        "records": ["r"],
    }


@given(st.data(), st.integers(1, 5), st.integers(1, 5))
def test_a_batch_survives_its_line(data, rows, width):
    def matrix(width, low=0):
        numbers = st.integers(low, 2**31 - 1)
        row = st.lists(numbers, min_size=width, max_size=width)
        return np.array(data.draw(st.lists(row, min_size=rows, max_size=rows)), np.int32)

    sizes = np.full(rows, width, np.int32)
    names = data.draw(st.lists(st.text() | st.integers(), min_size=rows, max_size=rows))
    made = Batch(1, 2, matrix(width), matrix(width, -100), sizes, records=names)
    if data.draw(st.booleans()):
        made.source, made.source_lengths = matrix(2), np.full(rows, 2, np.int32)
    again = Batch.from_bytes(made.to_bytes())
    assert again.to_bytes() == made.to_bytes()
    assert again.records == names
    assert again.target_count == sum(t != IGNORED for row in made.targets.tolist() for t in row)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epoch": 0}, '"epoch" must be a number from 1'),
        ({"index": "1"}, '"index" must be a number from 1'),
        ({"inputs": []}, '"inputs" must be a list of rows'),
        ({"inputs": [[]]}, '"inputs" must be a list of rows'),
        ({"inputs": 3}, '"inputs" must be a list of rows'),
        ({"inputs": [[1, 2], [1]]}, 'the rows of "inputs" must be equally long'),
        ({"inputs": [[1, 2], 1]}, '"inputs" must be lists of integers'),
        ({"inputs": [["1", 2, 3]]}, '"inputs" must be lists of integers'),
        ({"inputs": [[1.0, 2, 3]]}, '"inputs" must be lists of integers'),
        ({"inputs": [[2**31, 2, 3]]}, '"inputs" must be lists of integers of 32 bits'),
        ({"targets": [[1, 2]]}, "but"),
        ({"lengths": [4]}, '"lengths" must lie between 1 and 3'),
        ({"lengths": [0]}, '"lengths" must lie between 1 and 3'),
        ({"lengths": [1, 1]}, '"inputs" has 1 rows, but "lengths" 2'),
        ({"lengths": 3}, '"lengths" must be a list of integers'),
        ({"source": [[1]]}, '"source_lengths" must be a list'),
        ({"source": [[1], [2]], "source_lengths": [1, 1]}, '"inputs" has 1 rows, but "source" 2'),
        ({"carry": 1}, '"carry" must be a boolean'),
        ({"segments": [[0, 1]]}, r'"inputs" are \(1, 3\) ids, but "segments" \(1, 2\)'),
        ({"segments": [[0, 1, 2]]}, '"segments" must be 0 or 1'),
        ({"segments": [[0, -1, 1]]}, '"segments" must be 0 or 1'),
        ({"segments": None}, '"segments" must be a list of rows'),
        ({"next_sentence": [0, 1]}, '"next_sentence" must be a list with a number for each of 1'),
        ({"next_sentence": 1}, '"next_sentence" must be a list'),
        ({"next_sentence": [2]}, '"next_sentence" must be 0 or 1'),
        ({"next_sentence": ["1"]}, '"next_sentence" must be'),
        ({"records": "r"}, '"records" must be a list'),
        ({"seqtools": "batches"}, "a header stands where a batch should be"),
    ],
)
def test_a_malformed_batch(changes, message):
    value = json.loads(batch().to_bytes()) | changes
    with pytest.raises(RecordError, match=message):
        Batch.from_bytes(json.dumps(value).encode())


def test_what_is_no_object_is_no_batch():
    with pytest.raises(RecordError, match="a batch must be an object, got"):
        Batch.from_bytes(b"[1]")
    with pytest.raises(RecordError, match="not JSON"):
        Batch.from_bytes(b'{"epoch":1,')


# Streams


def test_a_reader_gives_the_header_and_the_batches():
    reader = Reader(lines(*whole()))
    assert reader.header == header()
    assert [(b.epoch, b.index) for b in reader] == [(1, 1), (1, 2), (2, 1)]


def test_an_epoch_may_be_empty():
    stream = [header((0, 1, 0, 0, 1, 0)), batch(2, 1), batch(5, 1)]
    assert [(b.epoch, b.index) for b in Reader(lines(*stream))] == [(2, 1), (5, 1)]
    assert list(Reader(lines(header((0, 0))))) == []


@pytest.mark.parametrize("kept", [1, 2, 3])
def test_a_stream_that_ends_too_early(kept):
    reader = iter(Reader(lines(*whole()[:kept])))
    for _ in range(kept - 1):
        next(reader)
    promise = "promised 2 batches in epoch 1, got" if kept < 3 else "promised 1 batches in epoch 2"
    with pytest.raises(InputError, match=promise) as found:
        next(reader)
    assert (found.value.source, found.value.line) == ("f", kept)


@pytest.mark.parametrize("order", [(0, 2, 1, 3), (0, 1, 3, 2), (0, 1, 1, 2), (0, 3, 1, 2)])
def test_a_stream_out_of_order(order):
    parts = whole()
    wrong = next(place for place, part in enumerate(order) if place != part)
    with pytest.raises(InputError, match="must stay in order") as found:
        list(Reader(lines(*(parts[i] for i in order))))
    assert found.value.line == wrong + 1


def test_a_sorted_stream_may_begin_with_a_batch():
    with pytest.raises(InputError, match="a batch stands where the header should be"):
        Reader(lines(*whole()[1:], whole()[0]))


def test_more_batches_than_promised():
    with pytest.raises(InputError, match="more batches than the header promises: 3 in 2 epochs"):
        list(Reader(lines(*whole(), batch(2, 2))))


def test_the_targets_are_counted_too():
    assert len(list(Reader(lines(header((2,), (4,)), batch(1, 1), batch(1, 2))))) == 2
    with pytest.raises(InputError, match="promised 5 targets in epoch 1, got 4"):
        list(Reader(lines(header((2,), (5,)), batch(1, 1), batch(1, 2))))


def test_the_same_stream_twice_counts_its_epochs_on():
    assert [(b.epoch, b.index) for b in Reader(lines(*whole(), *whole()))] == [
        (1, 1), (1, 2), (2, 1), (3, 1), (3, 2), (4, 1),
    ]  # fmt: skip


def test_another_header_in_the_middle():
    with pytest.raises(InputError, match="a different header in the middle") as found:
        list(Reader(lines(*whole(), header(seed=1), batch(1, 1))))
    assert found.value.line == 5


def test_a_header_before_the_end_of_the_stream_before_it():
    with pytest.raises(InputError, match="a header stands where a batch should be"):
        list(Reader(lines(*whole()[:3], *whole())))


def test_ids_must_be_in_the_vocabulary():
    size = len(WORDS)
    for changes in ({"rows": ((size, 1, 1),)}, {"targets": ((1, size, 1),)}):
        with pytest.raises(InputError, match=f"has id {size}, but its vocabulary {size} entries"):
            list(Reader(lines(header((1,)), batch(**changes))))
    for changes in ({"rows": ((1, -100, 1),)}, {"targets": ((1, -1, 1),)}):
        with pytest.raises(InputError, match="has id -"):
            list(Reader(lines(header((1,)), batch(**changes))))


def test_a_pair_needs_its_source():
    made = Header("seq2seq", {"source": WORDS, "target": WORDS}, [1], None, {})
    with pytest.raises(InputError, match='"source" is missing'):
        list(Reader(lines(made, batch())))


def test_ids_of_an_mlm_must_be_in_its_vocabulary():
    made, size = Header("mlm", {"tokens": WORDS}, [1], None, {}), len(WORDS)
    segments = np.array([[0, 0, 1]], np.int32)
    (read,) = Reader(lines(made, batch(segments=segments)))
    assert read.segments.tolist() == [[0, 0, 1]]
    for changes in ({"rows": ((size, 1, 1),)}, {"targets": ((1, size, 1),)}):
        with pytest.raises(InputError, match=f"has id {size}, but its vocabulary {size} entries"):
            list(Reader(lines(made, batch(**changes))))


def test_an_empty_stream():
    with pytest.raises(FormatError, match="<stdin>: no records"):
        Reader([])
