from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seqtools.batching.corpus import Options
from seqtools.batching.stream import IGNORED, Batch
from seqtools.batching.tasks import SAMPLINGS, LmCorpus, Sampling, Seq2seqCorpus
from seqtools.errors import ConfigError, RecordError
from seqtools.text.vocab import Vocabulary

WORDS = Vocabulary.build({"a": 3, "b": 2, "c": 1})
PAD, UNK, BOS, EOS, A, B, C = range(7)
NUMBERS = Vocabulary([str(i) for i in range(40)], {})

TOKENS = st.lists(st.sampled_from("abcd"), max_size=6)
RECORDS = st.lists(TOKENS, max_size=8)
PAIRS = st.lists(st.tuples(TOKENS, TOKENS), max_size=8)
CUTS = st.builds(
    Options,
    batch_size=st.none() | st.integers(1, 5),
    shuffle=st.booleans(),
    pad_left=st.booleans(),
    pad_to=st.integers(0, 8),
    seed=st.integers(0, 9),
)


def lm(records, options=None, sampling=None, vocabulary=WORDS):
    """A corpus of records given as lists of tokens or ids."""
    options = options or Options()
    corpus = LmCorpus(vocabulary, options, sampling or Sampling())
    return fill(corpus, [{"ids" if options.ids else "tokens": record} for record in records])


def seq2seq(pairs, options=None, vocabulary=WORDS):
    options = options or Options()
    kind = "ids" if options.ids else "tokens"
    corpus = Seq2seqCorpus(vocabulary, vocabulary, options)
    return fill(corpus, [{f"src_{kind}": s, f"tgt_{kind}": t} for s, t in pairs])


def fill(corpus, records):
    for number, record in enumerate(records, start=1):
        encoded = corpus.encode(record)
        if encoded is not None:
            corpus.append(encoded, number)
    corpus.freeze()
    return corpus


def ids(tokens):
    return [{"a": A, "b": B, "c": C}.get(token, UNK) for token in tokens]


def rows(batch, column="inputs", lengths="lengths"):
    """The real part of each row, by the lengths and the side of the padding."""
    matrix, sizes = getattr(batch, column), getattr(batch, lengths)
    return [row[:size].tolist() for row, size in zip(matrix, sizes, strict=True)]


def unpad(batch, *, left):
    """Inputs and targets of every row without padding; the padding itself is checked."""
    found = []
    for x, y, size in zip(batch.inputs, batch.targets, batch.lengths.tolist(), strict=True):
        real = slice(len(x) - size, None) if left else slice(size)
        away = slice(len(x) - size) if left else slice(size, None)
        assert (y[away] == IGNORED).all()
        found.append((x[real].tolist(), y[real].tolist()))
    return found


# Windows of the stream


@given(RECORDS, CUTS, st.sampled_from(["random", "sequential"]), st.integers(1, 6))
def test_targets_of_windows_are_the_ids_behind_the_inputs(records, options, kind, steps):
    stream = [i for record in records for i in [*ids(record), EOS]]
    corpus = lm(records, options, Sampling(kind, steps))
    predicted = Counter()
    for batch in corpus.batches(1):
        for x, y in unpad(batch, left=options.pad_left):
            assert x[1:] == y[:-1]
            predicted[tuple(x + y[-1:])] += 1
        assert batch.inputs.shape[1] >= options.pad_to
    windows = Counter()
    if kind == "sequential":  # every target once
        assert sum((len(w) - 1) * n for w, n in predicted.items()) == max(0, len(stream) - 1)
    for window, count in predicted.items():
        starts = range(len(stream) - len(window) + 1)
        windows[window] = sum(stream[s : s + len(window)] == list(window) for s in starts)
        assert count <= windows[window]


@given(st.integers(0, 39), st.integers(1, 6), st.integers(1, 7), st.integers(0, 9))
def test_distinct_ids_come_once_an_epoch(size, rows, steps, seed):
    for kind in ("random", "sequential"):
        options = Options(ids=True, batch_size=rows, seed=seed)
        corpus = lm([list(range(size))], options, Sampling(kind, steps), NUMBERS)
        header = corpus.plan(3)
        for epoch in (1, 2, 3):
            batches = list(corpus.batches(epoch))
            seen = Counter(
                y for b in batches for _, ys in unpad(b, left=False) for y in ys if y >= 0
            )
            assert set(seen.values()) <= {1}
            assert header.batches[epoch - 1] == len(batches)
            assert header.targets[epoch - 1] == sum(seen.values())
            if kind == "sequential":
                assert set(seen) == set(range(1, size))
            elif size > steps:  # whole windows from the offset on
                offset = min(seen) - 1
                assert offset < steps
                assert len(seen) == (size - 1 - offset) // steps * steps
        assert corpus.tally.unused == 3 * max(0, size - 1) - sum(header.targets)


def test_sequential_windows_of_35_ids():
    options = Options(ids=True, batch_size=2)
    corpus = lm([list(range(35))], options, Sampling("sequential", 5), NUMBERS)
    batches = list(corpus.batches(1))
    assert [b.inputs.tolist() for b in batches] == [
        [[0, 1, 2, 3, 4], [17, 18, 19, 20, 21]],
        [[5, 6, 7, 8, 9], [22, 23, 24, 25, 26]],
        [[10, 11, 12, 13, 14], [27, 28, 29, 30, 31]],
        [[15, 16], [32, 33]],
    ]
    assert all((b.targets == b.inputs + 1).all() for b in batches)
    assert [b.carry for b in batches] == [False, True, True, True]


def test_random_windows_of_35_ids():
    options = Options(ids=True, batch_size=4)
    corpus = lm([list(range(35))], options, Sampling("random", 5, offset=0), NUMBERS)
    batches = list(corpus.batches(1))
    assert [len(b.inputs) for b in batches] == [4, 2]
    assert sorted(b for batch in batches for b in batch.inputs[:, 0].tolist()) == [
        0, 5, 10, 15, 20, 25,
    ]  # fmt: skip
    corpus.plan(1)
    assert corpus.tally.unused == 4


def test_without_shuffling_random_windows_stand_in_order():
    options = Options(ids=True, batch_size=2, shuffle=False)
    corpus = lm([list(range(11))], options, Sampling("random", 3), NUMBERS)
    assert [b.inputs[:, 0].tolist() for b in corpus.batches(2)] == [[0, 3], [6]]


def test_an_eos_stands_behind_every_record_also_an_empty_one():
    corpus = lm([["a"], [], ["b"]], Options(batch_size=1), Sampling("sequential", 9))
    (batch,) = corpus.batches(1)
    assert batch.inputs.tolist() == [[A, EOS, EOS, B]]
    assert batch.targets.tolist() == [[EOS, EOS, B, EOS]]


def test_rows_of_windows_name_the_record_they_start_in():
    options = Options(ids=True, batch_size=9, shuffle=False)
    corpus = lm([[0, 1, 2], [], [3], [4, 5, 6, 7]], options, Sampling("random", 2), NUMBERS)
    (batch,) = corpus.batches(1)
    assert batch.inputs[:, 0].tolist() == [0, 2, 4]
    assert batch.records == [1, 1, 4]


# Records


@given(RECORDS, CUTS, st.none() | st.integers(1, 30))
def test_records_stand_between_bos_and_eos(records, options, budget):
    options = Options(**{**vars(options), "batch_tokens": budget})
    corpus = lm(records, options, Sampling("records"))
    header = corpus.plan(2)
    for epoch in (1, 2):
        seen = {}
        batches = list(corpus.batches(epoch))
        for batch in batches:
            for name, (x, y) in zip(
                batch.records, unpad(batch, left=options.pad_left), strict=True
            ):
                assert name not in seen
                seen[name] = (x, y)
            check_budget(batch, options)
        assert seen == {
            number: ([BOS, *ids(record)], [*ids(record), EOS])
            for number, record in enumerate(records, start=1)
        }
        assert header.batches[epoch - 1] == len(batches)
        assert header.targets[epoch - 1] == sum(b.target_count for b in batches)


def check_budget(batch, options):
    count, width = batch.inputs.shape
    if batch.source is not None:
        width = max(width, batch.source.shape[1])
    assert options.batch_size is None or count <= options.batch_size
    assert options.batch_tokens is None or count == 1 or count * width <= options.batch_tokens


@given(PAIRS, CUTS, st.none() | st.integers(1, 30))
def test_pairs_have_their_eos_and_the_target_its_bos(pairs, options, budget):
    options = Options(**{**vars(options), "batch_tokens": budget})
    corpus = seq2seq(pairs, options)
    header = corpus.plan(2)
    for epoch in (1, 2):
        seen = {}
        batches = list(corpus.batches(epoch))
        for batch in batches:
            check_budget(batch, options)
            for i, (x, y) in enumerate(unpad(batch, left=options.pad_left)):
                size = batch.source_lengths[i]
                row = batch.source[i]
                source = row[-size:] if options.pad_left else row[:size]
                assert (row == PAD).sum() == len(row) - size
                assert batch.records[i] not in seen
                seen[batch.records[i]] = (source.tolist(), x, y)
        assert seen == {
            number: ([*ids(s), EOS], [BOS, *ids(t)], [*ids(t), EOS])
            for number, (s, t) in enumerate(pairs, start=1)
        }
        assert header.batches[epoch - 1] == len(batches)
        assert header.targets[epoch - 1] == sum(b.target_count for b in batches)


@given(PAIRS, CUTS)
def test_the_tally_counts_the_padding(pairs, options):
    corpus = seq2seq(pairs, options)
    corpus.plan(2)
    batches = [b for epoch in (1, 2) for b in corpus.batches(epoch)]
    places = sum(b.inputs.size + b.source.size for b in batches)
    real = sum(int(b.lengths.sum() + b.source_lengths.sum()) for b in batches)
    assert corpus.tally.positions == places
    assert corpus.tally.padding == places - real


def test_a_record_above_the_budget_goes_alone():
    lengths = [9, 2, 6, 2, 3]
    options = Options(ids=True, batch_tokens=8)
    corpus = lm([[1] * n for n in lengths], options, Sampling("records"), NUMBERS)
    batches = list(corpus.batches(1))
    assert sorted(sorted(b.lengths.tolist()) for b in batches) == [[2, 2], [3], [6], [9]]
    assert sorted(n for b in batches for n in b.records) == [1, 2, 3, 4, 5]
    corpus.plan(2)
    assert corpus.tally.alone == 2  # once an epoch


def test_ten_records_in_batches_of_four():
    corpus = lm([["a"]] * 10, Options(batch_size=4, shuffle=False), Sampling("records"))
    assert [b.records for b in corpus.batches(1)] == [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10]]


@pytest.mark.parametrize("shuffle", [True, False])
def test_drop_last_leaves_whole_batches(shuffle):
    records = [["a"] * (i % 4) for i in range(10)]
    options = Options(batch_size=4, drop_last=True, shuffle=shuffle)
    corpus = lm(records, options, Sampling("records"))
    left = [set(range(1, 11)) - {n for b in corpus.batches(e) for n in b.records} for e in range(9)]
    assert all(len(missing) == 2 for missing in left)
    if shuffle:
        assert len(set.union(*left)) > 4  # not always the same, nor the longest
    else:
        assert left == [{9, 10}] * 9


def test_epochs_are_cut_anew_and_always_the_same():
    records = [["a"] * (i % 3) for i in range(40)]

    def lines(kind, seed, epoch):
        corpus = lm(records, Options(batch_size=3, seed=seed), Sampling(kind))
        return [b.to_bytes() for b in corpus.batches(epoch)]

    for kind in ("random", "records"):
        assert lines(kind, 0, 1) == lines(kind, 0, 1)
        first = [Batch.from_bytes(line).inputs.tolist() for line in lines(kind, 0, 1)]
        for seed, epoch in ((1, 1), (0, 2)):
            other = [Batch.from_bytes(line).inputs.tolist() for line in lines(kind, seed, epoch)]
            assert first != other


# Ids as they are


def test_ids_are_taken_as_they_are_and_the_last_has_no_target():
    options = Options(ids=True, shuffle=False)
    corpus = lm([[0, 4, 0], [5]], options, Sampling("records"), NUMBERS)
    (batch,) = corpus.batches(1)
    assert batch.inputs.tolist() == [[0, 4, 0], [5, 0, 0]]
    assert batch.targets.tolist() == [[4, 0, IGNORED], [IGNORED] * 3]
    assert batch.lengths.tolist() == [3, 1]
    assert corpus.plan(1).targets == [2]


def test_ids_padded_on_the_left():
    options = Options(ids=True, shuffle=False, pad_left=True)
    (batch,) = lm([[0, 4, 0], [5]], options, Sampling("records"), NUMBERS).batches(1)
    assert batch.inputs.tolist() == [[0, 4, 0], [0, 0, 5]]
    assert batch.targets.tolist() == [[4, 0, IGNORED], [IGNORED] * 3]


def test_pairs_of_ids():
    options = Options(ids=True, shuffle=False)
    (batch,) = seq2seq([([7], [1, 8, 2]), ([7, 9], [1, 2])], options, NUMBERS).batches(1)
    assert batch.source.tolist() == [[7, 0], [7, 9]]
    assert batch.source_lengths.tolist() == [1, 2]
    assert batch.inputs.tolist() == [[1, 8, 2], [1, 2, 0]]
    assert batch.targets.tolist() == [[8, 2, IGNORED], [2, IGNORED, IGNORED]]


def test_empty_lists_of_ids_give_no_row_and_are_counted():
    options = Options(ids=True)
    corpus = seq2seq([([], [1]), ([1], []), ([1], [1, 2])], options, NUMBERS)
    (batch,) = corpus.batches(1)
    assert batch.records == [3]
    assert (corpus.tally.empty, corpus.tally.left_out) == (2, 2)
    corpus = lm([[], [1, 2]], options, Sampling("records"), NUMBERS)
    assert [b.records for b in corpus.batches(1)] == [[2]]


@pytest.mark.parametrize("bad", [True, 1.0, -1, "3", 40])
def test_what_is_no_id_of_the_vocabulary_is_a_bad_record(bad):
    corpus = LmCorpus(NUMBERS, Options(ids=True), Sampling())
    with pytest.raises(RecordError, match="ids"):
        corpus.encode({"ids": [1, bad]})
    assert corpus.tally.records == 0


# Lengths


@pytest.mark.parametrize(
    ("truncate", "expected"),
    [("right", [A, B, EOS]), ("left", [C, C, EOS]), ("drop", None)],
)
def test_the_maximal_length_counts_the_eos_and_keeps_it(truncate, expected):
    options = Options(max_length=3, truncate=truncate)
    corpus = seq2seq([(["a", "b", "a", "c", "c"], ["a", "b"]), (["a"], ["b"])], options)
    found = {}
    for batch in corpus.batches(1):
        for name, row in zip(batch.records, rows(batch, "source", "source_lengths"), strict=True):
            found[name] = row
    assert found == ({1: expected} if expected else {}) | {2: [A, EOS]}
    assert corpus.tally.truncated == (expected is not None)
    assert corpus.tally.dropped == (expected is None)


def test_a_record_of_just_the_maximal_length_is_kept():
    corpus = lm([["a", "b"]], Options(max_length=3, truncate="error"), Sampling("records"))
    assert [rows(b) for b in corpus.batches(1)] == [[[BOS, A, B]]]


def test_too_long_can_be_an_error():
    corpus = LmCorpus(WORDS, Options(max_length=3, truncate="error"), Sampling())
    with pytest.raises(RecordError, match='"tokens" has length 4, more than 3'):
        corpus.encode({"tokens": ["a"] * 3})
    assert corpus.tally.records == corpus.columns["tokens"].tokens == 0


@pytest.mark.parametrize(("truncate", "kept"), [("right", [1, 2, 3]), ("left", [3, 4, 5])])
def test_ids_are_cut_without_an_eos(truncate, kept):
    options = Options(ids=True, max_length=3, truncate=truncate)
    corpus = lm([[1, 2, 3, 4, 5]], options, Sampling("records"), NUMBERS)
    assert [rows(b) for b in corpus.batches(1)] == [[kept]]


# What is counted and described


def test_the_tally_of_a_corpus():
    corpus = seq2seq([(["a", "x", "</s>"], ["b"]), ([], ["y", "a"])])
    source, target = corpus.columns["source"], corpus.columns["target"]
    assert (source.tokens, source.unknown, source.reserved) == (3, 2, 1)
    assert (target.tokens, target.unknown, target.reserved) == (3, 1, 0)
    assert (corpus.tally.records, corpus.tally.empty) == (2, 1)
    header = corpus.plan(1)
    assert header.options["unknown_share"] == {"source": 0.666667, "target": 0.333333}
    assert header.vocabularies == {"source": WORDS, "target": WORDS}
    assert header.options["batch_tokens"] == 4096


def test_a_bad_second_side_leaves_nothing_behind():
    corpus = Seq2seqCorpus(WORDS, WORDS, Options())
    with pytest.raises(RecordError, match='"tgt_tokens" is missing'):
        corpus.encode({"src_tokens": ["a"]})
    assert corpus.columns["source"].tokens == 0
    corpus.freeze()
    assert corpus.plan(2).batches == [0, 0]


@pytest.mark.parametrize("kind", SAMPLINGS)
def test_the_header_says_how_an_lm_was_cut(kind):
    options = lm([["a"]], Options(seed=7, pad_left=True), Sampling(kind)).plan(1).options
    assert options["sampling"] == kind
    assert options["steps"] == (None if kind == "records" else 35)
    assert (options["batch_size"], options["pad_side"], options["seed"]) == (32, "left", 7)


def test_the_names_of_records_are_their_ids_or_numbers():
    corpus = LmCorpus(WORDS, Options(shuffle=False), Sampling("records"))
    names = ["x", 3, 2**80, None, 1.5, True, "𠮷"]
    fill(corpus, [{"id": name, "tokens": ["a"]} for name in names] + [{"tokens": []}])
    (batch,) = corpus.batches(1)
    assert batch.records == ["x", 3, 2**80, 4, 5, 6, "𠮷", 8]
    assert Batch.from_bytes(batch.to_bytes()).records == batch.records


@settings(max_examples=20)
@given(RECORDS, CUTS, st.sampled_from(SAMPLINGS))
def test_batches_survive_the_stream(records, options, kind):
    for batch in lm(records, options, Sampling(kind)).batches(1):
        line = batch.to_bytes()
        again = Batch.from_bytes(line)
        assert again.to_bytes() == line
        for name in ("inputs", "targets", "lengths"):
            assert np.array_equal(getattr(again, name), getattr(batch, name))


# Options that do not go together


@pytest.mark.parametrize(
    ("options", "sampling", "message"),
    [
        (Options(), Sampling("records", steps=3), "steps and offsets belong to windows"),
        (Options(), Sampling("records", offset=0), "steps and offsets belong to windows"),
        (Options(), Sampling("random", 5, 5), "between 0 and 4"),
        (Options(batch_tokens=4), Sampling("random", 5), "5 steps is above the budget of 4"),
        (Options(drop_last=True), Sampling("records"), "a batch size is given"),
        (Options(), Sampling("randm"), "did you mean random"),
    ],
)
def test_options_that_contradict_each_other(options, sampling, message):
    with pytest.raises(ConfigError, match=message):
        LmCorpus(WORDS, options, sampling)


def test_a_budget_of_tokens_limits_the_rows_of_windows():
    options = Options(ids=True, batch_tokens=14)
    for kind in ("random", "sequential"):
        corpus = lm([list(range(40))], options, Sampling(kind, 4), NUMBERS)
        assert {len(b.inputs) for b in corpus.batches(1)} == {3}


def test_a_vocabulary_without_the_symbols_that_are_needed():
    bare = Vocabulary(["a"], {})
    with pytest.raises(ConfigError, match="the vocabulary has no </s> to put behind sequences"):
        LmCorpus(bare, Options(), Sampling())
    ends = Vocabulary(["a", "</s>"], {"eos": 1})
    LmCorpus(ends, Options(), Sampling())
    with pytest.raises(ConfigError, match="the vocabulary has no <s> to put before sequences"):
        LmCorpus(ends, Options(), Sampling("records"))
    with pytest.raises(ConfigError, match="the target vocabulary has no <s>"):
        Seq2seqCorpus(ends, ends, Options())


def test_windows_start_anew_each_epoch_if_that_is_asked_for():
    sampling = Sampling("sequential", 5, "random")
    corpus = lm([list(range(40))], Options(ids=True, batch_size=1), sampling, NUMBERS)
    starts = {int(next(corpus.batches(epoch)).inputs[0, 0]) for epoch in range(1, 60)}
    assert starts == set(range(5))
    for epoch in range(1, 4):
        for one, following in pairwise(corpus.batches(epoch)):
            assert one.targets[0, -1] == following.inputs[0, 0]
