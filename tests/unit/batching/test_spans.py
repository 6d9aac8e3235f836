from collections import Counter
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqtools.batching.corpus import Options
from seqtools.batching.draws import epoch_keys, key_of
from seqtools.batching.spans import Corruption, SpanCorpus, Spans, corrupt, draw_spans, frame
from seqtools.batching.stream import IGNORED, Batch
from seqtools.errors import ConfigError, RecordError
from seqtools.text.vocab import Vocabulary
from tests.unit.batching.corpora import CUTS, filled
from tests.unit.batching.test_draws import check_chi_square

LETTERS = Vocabulary.build(dict.fromkeys("abcdefgh", 1))
PAD, UNK, BOS, EOS = range(4)
FIRST = len(LETTERS)  # the first sentinel

ROWS = 4000
STREAMS = epoch_keys(np.array([key_of(i) for i in range(ROWS)], np.uint64), 0, 1)

TEXTS = st.lists(st.lists(st.sampled_from("abcdefghx"), max_size=30), max_size=8)
CORRUPTIONS = st.builds(
    Corruption,
    rate=st.sampled_from([0.01, 0.15, 0.5, 0.99]),
    length=st.sampled_from([1.0, 3.0, 50.0]),
    sentinels=st.integers(2, 8),
)


def corpus_of(texts, options=None, corruption=None, names=None, vocabulary=LETTERS):
    options = options or Options()
    corpus = SpanCorpus(vocabulary, options, corruption or Corruption())
    kind = "ids" if options.ids else "tokens"
    return filled(corpus, [{kind: text} for text in texts], names)


def rows(corpus, epoch=1):
    """Source, inputs and targets of each record, without padding."""
    found = {}
    for batch in corpus.batches(epoch):
        for i, name in enumerate(batch.records):
            assert name not in found
            parts = []
            for column, sizes, fill in (
                (batch.source, batch.source_lengths, PAD),
                (batch.inputs, batch.lengths, PAD),
                (batch.targets, batch.lengths, IGNORED),
            ):
                row, size = column[i], int(sizes[i])
                if corpus.options.pad_left:
                    row = row[::-1]
                assert (row[size:] == fill).all()
                part = row[:size].tolist()
                parts.append(part[::-1] if corpus.options.pad_left else part)
            found[name] = tuple(parts)
    return found


def put_back(source, target, first=FIRST):
    """The text that a source and a target, without symbols, were made of."""
    spans = {}
    for number in target:
        if number >= first:
            spans[number] = []
        else:
            spans[max(spans)].append(number)
    assert list(spans) == list(range(first, first + len(spans)))
    assert spans.pop(max(spans)) == []  # the last sentinel stands for the end
    assert all(spans.values())
    text = []
    for number in source:
        text += spans.pop(number) if number >= first else [number]
    assert not spans
    return text


@given(TEXTS, CUTS, CORRUPTIONS)
def test_source_and_target_give_the_text_back(texts, options, corruption):
    corpus = corpus_of(texts, options, corruption)
    header = corpus.plan(2)
    for epoch in (1, 2):
        batches = list(corpus.batches(epoch))
        assert header.batches[epoch - 1] == len(batches)
        assert header.targets[epoch - 1] == sum(batch.target_count for batch in batches)
        assert all(batch.inputs.shape[1] >= options.pad_to for batch in batches)
        found = rows(corpus, epoch)
        assert set(found) == {n for n, text in enumerate(texts, start=1) if text}
        for name, (source, inputs, targets) in found.items():
            assert source[-1] == targets[-1] == EOS
            assert inputs == [BOS, *targets[:-1]]
            text = LETTERS.encode(texts[name - 1])
            assert put_back(source[:-1], targets[:-1]) == text
            assert max(targets) < FIRST + corruption.sentinels
            for one, other in pairwise(source):
                assert one < FIRST or other < FIRST  # spans do not touch
            kept = sum(EOS < number < FIRST or number == UNK for number in source)
            wanted = min(max(1, corruption.rate * len(text)), max(1, len(text) - 1))
            assert abs(len(text) - kept - wanted) < 1


def test_the_example_of_the_paper():
    # Figure 2: Thank you <for inviting> me to your party <last> week.
    text = np.array([[10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 0]], np.int32)
    spans = Spans(np.array([0, 0]), np.array([2, 8]), np.array([2, 1]))
    source, target = corrupt(text, np.array([10]), spans, 100)
    assert frame(*source, [], [1]).flat.tolist() == [10, 11, 100, 14, 15, 16, 17, 101, 19, 1]
    assert frame(*target, [0], [1]).flat.tolist() == [0, 100, 12, 13, 101, 18, 102, 1]


def test_fifteen_percent_in_spans_of_three():
    corpus = corpus_of([list("abcdefgh") * 5] * 100)  # of 40 tokens 6, in 2 spans
    for epoch in (1, 2):
        for source, _, targets in rows(corpus, epoch).values():
            assert sum(number >= FIRST for number in source) == 2
            assert len(targets) == 6 + 2 + 1 + 1


@pytest.mark.parametrize(("length", "tokens", "spans"), [(10, 1.5, 1), (45, 6.75, 2.25)])
def test_amounts_are_right_on_average(length, tokens, spans):
    out, count = Corruption().amounts(np.full(ROWS, length), STREAMS)
    low = int(tokens)
    assert set(out.tolist()) == {low, low + 1}
    check_chi_square(np.bincount(out)[low:], ROWS * np.array([1 + low - tokens, tokens - low]))
    assert count.mean() == pytest.approx(spans, abs=0.05)


def test_every_placement_is_equally_likely():
    size, out, spans = 6, 3, 2
    found = draw_spans(np.full(ROWS, size), np.full(ROWS, out), np.full(ROWS, spans), STREAMS)
    assert np.array_equal(found.rows, np.repeat(np.arange(ROWS), spans))
    starts, sizes = found.starts.reshape(ROWS, -1), found.sizes.reshape(ROWS, -1)
    seen = Counter(
        tuple(np.concatenate([np.arange(b, b + n) for b, n in zip(*row, strict=True)]).tolist())
        for row in zip(starts, sizes, strict=True)
    )

    def runs(places):
        return 1 + sum(b - a > 1 for a, b in pairwise(places))

    possible = [p for p in combinations(range(size), out) if runs(p) == spans]
    assert set(seen) == set(possible)
    check_chi_square(
        np.array([seen[p] for p in possible]), np.full(len(possible), ROWS / len(possible))
    )


def test_what_is_taken_out_does_not_depend_on_batches_order_or_padding():
    texts = [list("abcdefgh" * 4)[: 3 + i % 25] for i in range(60)]
    names = [f"r{i}" for i in range(60)]
    expected = rows(corpus_of(texts, names=names))
    for options in (
        Options(batch_size=1),
        Options(batch_size=7, shuffle=False),
        Options(batch_tokens=80, pad_left=True, pad_to=40),
    ):
        assert rows(corpus_of(texts[::-1], options, names=names[::-1])) == expected
    few = rows(corpus_of(texts[20:30], names=names[20:30]))
    assert few == {name: expected[name] for name in names[20:30]}


def test_epochs_and_seeds_take_out_other_spans_and_the_same_ones_again():
    texts = [list("abcdefgh") * 2] * 30
    seen = [
        rows(corpus_of(texts, Options(seed=seed)), epoch) for seed in (0, 1) for epoch in (1, 2)
    ]
    assert all(one != other for i, one in enumerate(seen) for other in seen[:i])
    assert rows(corpus_of(texts), 2) == seen[1]


def test_a_single_token_is_taken_out_whole_and_an_empty_text_gives_no_row():
    corpus = corpus_of([["a"], []])
    a = LETTERS.encode(["a"])[0]
    assert rows(corpus) == {
        1: ([FIRST, EOS], [BOS, FIRST, a, FIRST + 1], [FIRST, a, FIRST + 1, EOS])
    }
    assert corpus.tally.left_out == 1


def test_ids_get_no_symbols_and_the_last_input_has_no_target():
    for left in (False, True):
        corpus = corpus_of([[4, 5, 6, 7, 8, 9], [3]], Options(ids=True, pad_left=left))
        for name, text in ((1, [4, 5, 6, 7, 8, 9]), (2, [3])):
            source, inputs, targets = rows(corpus)[name]
            assert put_back(source, inputs) == text
            assert targets == [*inputs[1:], IGNORED]
        assert corpus.plan(1).targets == [sum(b.target_count for b in corpus.batches(1))]


def test_the_maximal_length_is_that_of_the_text_and_its_eos():
    options = Options(max_length=5)
    source, _, targets = rows(corpus_of([list("abcdefgh")], options))[1]
    assert put_back(source[:-1], targets[:-1]) == LETTERS.encode(list("abcd"))
    corpus = SpanCorpus(LETTERS, Options(max_length=5, truncate="error"), Corruption())
    with pytest.raises(RecordError, match='"tokens" has length 6, more than 5'):
        corpus.encode({"tokens": list("abcde")})


# The vocabulary and the header


def test_the_header_has_the_sentinels_behind_the_vocabulary_of_both_sides():
    corpus = corpus_of([["a", "x", "<extra_id_1>", "<s>"]], corruption=Corruption(0.2, 2, 3))
    header = corpus.plan(1)
    joint = header.vocabularies["source"]
    assert joint.tokens == [*LETTERS.tokens, "<extra_id_0>", "<extra_id_1>", "<extra_id_2>"]
    assert joint.counts == [*LETTERS.counts, 0, 0, 0]
    assert header.vocabularies == {"source": joint, "target": joint}
    assert header.task == "seq2seq"
    assert header.options == {
        "objective": "span",
        "mask_rate": 0.2,
        "span_length": 2,
        "sentinels": 3,
        "ids": False,
        "max_length": None,
        "truncate": "right",
        "batch_size": None,
        "batch_tokens": 4096,
        "pad_side": "right",
        "seed": 0,
        "unknown_share": {"source": 0.75, "target": 0.75},
    }
    assert corpus.columns["tokens"].reserved == 2


def test_text_that_spells_a_sentinel_is_unknown():
    source, _, targets = rows(corpus_of([["<extra_id_0>"] * 4]))[1]
    assert put_back(source[:-1], targets[:-1]) == [UNK] * 4


def test_a_vocabulary_that_does_not_serve():
    taken = Vocabulary.build({"<extra_id_7>": 1})
    with pytest.raises(ConfigError, match="has a token <extra_id_7> already"):
        SpanCorpus(taken, Options(), Corruption())
    SpanCorpus(taken, Options(), Corruption(sentinels=7))
    with pytest.raises(ConfigError, match="the vocabulary has no <s> to put before sequences"):
        SpanCorpus(Vocabulary(["</s>"], {"eos": 0}), Options(), Corruption())


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"rate": 0}, "rate must be between 0 and 1"),
        ({"rate": 1}, "rate must be between 0 and 1"),
        ({"length": 0.5}, "length of spans must be at least 1"),
        ({"length": float("nan")}, "length of spans must be at least 1"),
        ({"sentinels": 1}, "at least 2 sentinels"),
    ],
)
def test_values_out_of_range(values, message):
    with pytest.raises(ConfigError, match=message):
        Corruption(**values)


@given(TEXTS, CUTS)
def test_batches_survive_the_stream(texts, options):
    for batch in corpus_of(texts, options).batches(1):
        line = batch.to_bytes()
        again = Batch.from_bytes(line)
        assert again.to_bytes() == line
        for name in ("source", "source_lengths", "inputs", "targets", "lengths"):
            assert np.array_equal(getattr(again, name), getattr(batch, name))


@given(TEXTS, CUTS, CORRUPTIONS)
def test_the_tally_counts_the_padding(texts, options, corruption):
    corpus = corpus_of(texts, options, corruption)
    corpus.plan(2)
    batches = [batch for epoch in (1, 2) for batch in corpus.batches(epoch)]
    places = sum(batch.inputs.size + batch.source.size for batch in batches)
    real = sum(int(batch.lengths.sum() + batch.source_lengths.sum()) for batch in batches)
    assert corpus.tally.positions == places
    assert corpus.tally.padding == places - real
