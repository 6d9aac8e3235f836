import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqtools.batching.corpus import Options
from seqtools.batching.mlm import Masking, MlmCorpus
from seqtools.batching.stream import IGNORED, Batch
from seqtools.errors import ConfigError, FormatError, RecordError
from seqtools.text.vocab import Vocabulary
from tests.unit.batching.corpora import CUTS, filled

ROLES = ("pad", "unk", "mask", "cls", "sep")
LETTERS = Vocabulary.build(dict.fromkeys("abcdefgh", 1), specials=ROLES)
BARE = Vocabulary.build(dict.fromkeys("abcdefgh", 1), specials=("pad", "unk", "mask"))
PAD, UNK, MASK, CLS, SEP = range(5)

TOKENS = st.lists(st.sampled_from("abcdefghx"), max_size=9)  # x is unknown
PAIRS = st.lists(st.tuples(TOKENS, st.none() | TOKENS), max_size=8)


def mlm(texts, options=None, masking=None, vocabulary=LETTERS, names=None):
    """A corpus of records given as (tokens, second tokens or None), or as tokens alone."""
    options = options or Options()
    corpus = MlmCorpus(vocabulary, options, masking or Masking())
    kind = "ids" if options.ids else "tokens"
    pairs = [text if isinstance(text, tuple) else (text, None) for text in texts]
    records = [{kind: first, f"text_pair_{kind}": second} for first, second in pairs]
    return filled(corpus, records, names)


def rows(corpus, epoch=1):
    """Of each record: inputs, targets and segments without padding, and next_sentence."""
    found = {}
    for batch in corpus.batches(epoch):
        follows = batch.next_sentence
        for i, (name, size) in enumerate(zip(batch.records, batch.lengths.tolist(), strict=True)):
            assert name not in found
            left = corpus.options.pad_left
            real = slice(-size, None) if left else slice(size)
            away = slice(0, -size) if left else slice(size, None)
            assert (batch.inputs[i][away] == PAD).all()
            assert (batch.targets[i][away] == IGNORED).all()
            assert (batch.segments[i][away] == 0).all()
            columns = (batch.inputs, batch.targets, batch.segments)
            found[name] = (
                *(column[i][real].tolist() for column in columns),
                None if follows is None else int(follows[i]),
            )
    return found


def original(inputs, targets):
    """The row before anything was hidden."""
    return [x if y == IGNORED else y for x, y in zip(inputs, targets, strict=True)]


def around(first, second=None, vocabulary=LETTERS):
    """A row and its segments, written out."""
    first = vocabulary.encode(first)
    row, segments = [CLS, *first, SEP], [0] * (len(first) + 2)
    if second:
        row += [*vocabulary.encode(second), SEP]
        segments += [1] * (len(second) + 1)
    return row, segments


@given(PAIRS, CUTS, st.sampled_from([0.15, 0.5, 1.0]), st.booleans())
def test_rows_are_the_texts_between_their_symbols(texts, options, rate, whole):
    corpus = mlm(texts, options, Masking(rate, whole_word=whole))
    header = corpus.plan(2)
    for epoch in (1, 2):
        batches = list(corpus.batches(epoch))
        assert header.batches[epoch - 1] == len(batches)
        assert all(batch.inputs.shape[1] >= options.pad_to for batch in batches)
        found = rows(corpus, epoch)
        assert set(found) == {n for n, (first, _) in enumerate(texts, start=1) if first}
        for name, (inputs, targets, segments, follows) in found.items():
            row, expected = around(*texts[name - 1])
            assert original(inputs, targets) == row
            assert segments == expected
            assert follows is None
            for x, y in zip(inputs, targets, strict=True):
                assert y == IGNORED or y > SEP  # no special is ever chosen
                assert y == IGNORED or x == MASK or x > SEP


@pytest.mark.parametrize("next_sentence", [False, True])
def test_what_is_hidden_does_not_depend_on_batches_order_or_padding(next_sentence):
    texts = [list("abcdefgh" * 2)[: 3 + i % 11] for i in range(60)]
    masking = Masking(0.3, next_sentence=next_sentence)
    expected = rows(mlm(texts, Options(), masking))
    for options in (
        Options(batch_size=1),
        Options(batch_size=7, shuffle=False),
        Options(batch_tokens=50, pad_left=True, pad_to=40),
    ):
        assert rows(mlm(texts, options, masking)) == expected


def test_a_record_with_an_id_is_hidden_alike_wherever_it_stands():
    texts = [list("abcdefgh" * 2)[: 6 + i % 11] for i in range(20)]
    names = [f"r{i}" for i in range(20)]
    expected = rows(mlm(texts, names=names))
    assert rows(mlm(texts[::-1], names=names[::-1])) == expected
    few = rows(mlm(texts[5:9], names=names[5:9]))
    assert few == {name: expected[name] for name in names[5:9]}


def test_epochs_and_seeds_hide_other_tokens_and_the_same_ones_again():
    texts = [list("abcdefgh")] * 30
    seen = [rows(mlm(texts, Options(seed=seed)), epoch) for seed in (0, 1) for epoch in (1, 2, 3)]
    assert all(one != other for i, one in enumerate(seen) for other in seen[:i])
    assert rows(mlm(texts), 2) == seen[1]


def test_fifteen_percent_of_the_tokens_are_hidden():
    corpus = mlm([list("abcdefgh") * 5] * 50)  # 40 tokens in each, 6 of them to be chosen
    for epoch in (1, 2):
        for batch in corpus.batches(epoch):
            assert set((batch.targets != IGNORED).sum(axis=1).tolist()) == {6}


def test_words_are_hidden_whole():
    pieces = Vocabulary.build(dict.fromkeys(["▁a", "b", "▁c", "d", "e"], 1), specials=ROLES)
    tokens = ["▁a", "b", "b", "▁c", "d", "▁a"]
    corpus = mlm([tokens] * 200, masking=Masking(0.34, whole_word=True), vocabulary=pieces)
    hidden = set()
    for _, targets, _, _ in rows(corpus).values():
        chosen = [y != IGNORED for y in targets[1:-1]]
        assert len({*chosen[:3]}) == len({*chosen[3:5]}) == 1
        hidden.add((chosen[0], chosen[3], chosen[5]))
    assert {(True, False, False), (False, True, False), (False, False, True)} <= hidden


def test_words_of_ids_are_those_of_their_tokens():
    pieces = Vocabulary.build(dict.fromkeys(["▁a", "b"], 1), specials=ROLES)
    masking = Masking(0.5, whole_word=True)
    ids = pieces.encode(["▁a", "b", "▁a", "b"])
    for _, targets, segments, _ in rows(
        mlm([(ids, ids)] * 50, Options(ids=True), masking, pieces)
    ).values():
        chosen = [y != IGNORED for y in targets]
        assert chosen[0::2] == chosen[1::2]
        assert sum(chosen) == 4
        assert segments == [0] * 4 + [1] * 4


def test_a_second_text_begins_a_word_of_its_own():
    pieces = Vocabulary.build(dict.fromkeys(["▁a", "b"], 1), specials=ROLES)
    corpus = mlm([(["b"], ["b"])] * 100, masking=Masking(0.5, whole_word=True), vocabulary=pieces)
    chosen = {tuple(y != IGNORED for y in targets) for _, targets, _, _ in rows(corpus).values()}
    assert {sum(row) for row in chosen} == {1}
    assert len(chosen) == 2


# Symbols


def test_without_cls_and_sep_texts_stand_bare():
    found = rows(mlm([list("abc"), []], vocabulary=BARE))
    assert list(found) == [1]
    inputs, targets, segments, _ = found[1]
    assert original(inputs, targets) == BARE.encode(list("abc"))
    assert segments == [0, 0, 0]


def test_ids_stand_bare_and_specials_among_them_are_never_chosen():
    ids = [CLS, 5, UNK, 6, SEP, MASK, 7, SEP, PAD]
    corpus = mlm([ids], Options(ids=True), Masking(1.0))
    inputs, targets, _, _ = rows(corpus)[1]
    assert original(inputs, targets) == ids
    assert [y for y in targets if y != IGNORED] == [5, 6, 7]


def test_pairs_need_cls_and_sep_and_masking_a_mask():
    with pytest.raises(ConfigError, match="no <cls> and <sep>, which pairs of texts need"):
        mlm([(["a"], ["b"])], vocabulary=BARE)
    with pytest.raises(ConfigError, match="no <cls> and <sep>"):
        MlmCorpus(BARE, Options(), Masking(next_sentence=True))
    with pytest.raises(ConfigError, match="the vocabulary has no <mask>"):
        MlmCorpus(Vocabulary.build({"a": 1}), Options(), Masking())
    mlm([(["a"], []), ["b"]], vocabulary=BARE)  # no pair


@pytest.mark.parametrize("rate", [0, -0.1, 1.1, float("nan")])
def test_a_rate_is_a_share(rate):
    with pytest.raises(ConfigError, match="the rate must be above 0 and at most 1"):
        Masking(rate)


# Lengths


@pytest.mark.parametrize(
    ("truncate", "single", "pair"),
    [
        ("right", around("abcde"), around("ab", "ef")),
        ("left", around("defgh"), around("cd", "gh")),
        ("drop", None, None),
    ],
)
def test_the_maximal_length_counts_the_symbols(truncate, single, pair):
    options = Options(max_length=7, truncate=truncate)
    corpus = mlm([list("abcdefgh"), (list("abcd"), list("efgh")), (["a"], list("bcd"))], options)
    found = rows(corpus)
    assert corpus.tally.truncated == 2 * (single is not None)
    assert corpus.tally.dropped == 2 * (single is None)
    for name, expected in ((1, single), (2, pair), (3, around("a", "bcd"))):
        if expected is None:
            assert name not in found
        else:
            inputs, targets, segments, _ = found[name]
            assert (original(inputs, targets), segments) == expected


def test_too_long_can_be_an_error():
    corpus = MlmCorpus(LETTERS, Options(max_length=6, truncate="error"), Masking())
    with pytest.raises(RecordError, match='"tokens" has length 7, more than 6'):
        corpus.encode({"tokens": list("abcde")})
    message = '"tokens" and "text_pair_tokens" have length 7, more than 6'
    with pytest.raises(RecordError, match=message):
        corpus.encode({"tokens": list("ab"), "text_pair_tokens": list("ab")})
    assert corpus.tally.records == 0
    with pytest.raises(ConfigError, match="maximal length must be at least 5"):
        MlmCorpus(LETTERS, Options(max_length=4), Masking())


@pytest.mark.parametrize("bad", ["abc", 3, ["a", 1]])
def test_a_second_text_that_is_no_list_of_tokens_is_a_bad_record(bad):
    corpus = MlmCorpus(LETTERS, Options(), Masking())
    with pytest.raises(RecordError, match='"text_pair_tokens" must be a list of strings'):
        corpus.encode({"tokens": ["a"], "text_pair_tokens": bad})


# Next sentences

SENTENCES = [[letter] * (2 + i % 3) for i, letter in enumerate("abcdefgh" * 25)]


def test_the_next_sentence_is_the_one_behind_and_the_others_are_not():
    corpus = mlm(SENTENCES, masking=Masking(next_sentence=True))
    labels = []
    for epoch in (1, 2):
        found = rows(corpus, epoch)
        assert set(found) == set(range(1, 201))
        for name, (inputs, targets, segments, follows) in found.items():
            first, following = SENTENCES[name - 1], SENTENCES[name % 200]
            row = original(inputs, targets)
            expected, marks = around(first, following)
            assert row[: len(first) + 2] == expected[: len(first) + 2]
            if follows:
                assert (row, segments) == (expected, marks)
            labels.append(follows)
        assert found[200][3] == 0  # nothing stands behind the last one
    assert 150 < sum(labels) < 250
    assert corpus.plan(1).options["next_sentence"] is True


def test_partners_are_drawn_anew_each_epoch():
    corpus = mlm(SENTENCES, masking=Masking(next_sentence=True))
    labels = [[row[3] for _, row in sorted(rows(corpus, e).items())] for e in (1, 2)]
    assert labels[0] != labels[1]


def test_records_without_tokens_are_passed_over():
    texts = [["a"], [], ["b"]]  # each has one other, which is the next of the first
    found = rows(mlm(texts, masking=Masking(next_sentence=True)))
    assert {name: row[3] for name, row in found.items()} == {1: 1, 3: 0}
    assert original(*found[1][:2]) == around("a", "b")[0]
    assert original(*found[3][:2]) == around("b", "a")[0]


@pytest.mark.parametrize("truncate", ["right", "left"])
def test_pairs_of_records_are_cut_to_the_maximal_length(truncate):
    texts = [list("abcdefgh"), list("hgfedcba")]
    options = Options(max_length=8, truncate=truncate)
    found = rows(mlm(texts, options, Masking(next_sentence=True)))
    kept = [text[:5] if truncate == "right" else text[-5:] for text in texts]
    for name, (inputs, targets, _, _) in found.items():
        first, second = kept if name == 1 else kept[::-1]
        parts = (first[:3], second[:2]) if truncate == "right" else (first[-3:], second[-2:])
        assert original(inputs, targets) == around(*parts)[0]


def test_one_record_makes_no_pair_and_a_second_text_has_no_place():
    with pytest.raises(FormatError, match="one record alone makes no pair"):
        mlm([["a"]], masking=Masking(next_sentence=True))
    with pytest.raises(RecordError, match='"text_pair_tokens" stands in the record'):
        mlm([(["a"], ["b"])], masking=Masking(next_sentence=True))
    assert mlm([[]], masking=Masking(next_sentence=True)).plan(1).batches == [0]


# The header and the tally


def test_the_header_promises_no_targets_and_says_how_tokens_were_hidden():
    header = mlm([["a", "x"], (["b"], ["x", "<cls>"])], masking=Masking(0.2)).plan(3)
    assert (header.task, header.targets, len(header.batches)) == ("mlm", None, 3)
    assert header.vocabularies == {"tokens": LETTERS}
    assert header.options == {
        "mask_rate": 0.2,
        "whole_word": False,
        "next_sentence": False,
        "pairs": True,
        "ids": False,
        "max_length": None,
        "truncate": "right",
        "batch_size": None,
        "batch_tokens": 4096,
        "pad_side": "right",
        "seed": 0,
        "unknown_share": {"tokens": 0.6},
    }
    assert mlm([["a"], (["b"], [])]).plan(1).options["pairs"] is False


def test_the_tally_counts_padding_and_what_is_left_out():
    options = Options(batch_size=2, drop_last=True, shuffle=False)
    corpus = mlm([["a"], ["b"] * 3, ["c"], ["d", "<sep>"], []], options)
    corpus.plan(1)
    tally = corpus.tally
    assert (tally.records, tally.empty, tally.left_out) == (5, 1, 1)
    assert (tally.positions, tally.padding, tally.unused) == (18, 3, 0)
    assert corpus.columns["tokens"].reserved == 1
    corpus = mlm([["a"], ["b"], ["c"] * 4], options)
    corpus.plan(1)
    assert corpus.tally.unused == 6


@given(PAIRS, CUTS, st.booleans())
def test_batches_survive_the_stream(texts, options, next_sentence):
    if next_sentence:
        texts = [text for pair in texts for text in pair if text]
        if len(texts) < 2:
            return
    for batch in mlm(texts, options, Masking(next_sentence=next_sentence)).batches(1):
        line = batch.to_bytes()
        again = Batch.from_bytes(line)
        assert again.to_bytes() == line
        for name in ("inputs", "targets", "lengths", "segments"):
            assert np.array_equal(getattr(again, name), getattr(batch, name))
        assert (again.next_sentence is None) is not next_sentence
