"""Random segmentations, against their probabilities and against those that the library draws."""

import collections
import itertools
import math
import random
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seqtools.errors import ConfigError
from seqtools.text.subword_library import library
from seqtools.text.subword_model import SubwordModel, _fields
from seqtools.text.subwords import Recipe, learn
from seqtools.text.tokenizers.drawing import Sampling, UnigramDrawer, drawer, finish
from seqtools.text.tokenizers.sentencepiece import SentencePieceTokenizer

TEXTS = ["aab aaab aa abab baab <m> cc", "abba baba aab"] * 3
SIGMAS = 5


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Files of models: of both kinds, with symbols of the user's, and one with bytes."""
    folder = tmp_path_factory.mktemp("models")
    soft = {"soft_size": True, "symbols": ["<m>", "c"]}
    recipes = {
        "bpe": Recipe("bpe", 60, **soft),
        "unigram": Recipe("unigram", 60, **soft),
        "bytes": Recipe("unigram", 400, byte_fallback=True, **soft),
    }
    for name, recipe in recipes.items():
        (folder / name).write_bytes(learn(iter(TEXTS), recipe).data)
    return {name: str(folder / name) for name in recipes}


def processor(path):
    return library().SentencePieceProcessor(model_file=path)


def tokenizer(path, alpha, count=None, **settings):
    return SentencePieceTokenizer(path, sampling=Sampling(alpha, count), **settings)


def drawn(made, text, rounds):
    return collections.Counter(
        tuple(made.draw(text, number, "text")[0]) for number in range(rounds)
    )


def compare(counts, shares, rounds):
    """Each count is as its probability lets one expect."""
    for outcome, share in shares.items():
        allowed = SIGMAS * math.sqrt(share * (1 - share) / rounds) + 1e-9
        assert abs(counts[outcome] / rounds - share) < allowed, outcome


def segmentations(scores, text):
    """Every way to cut a text into the pieces, and the sum of their scores."""
    if not text:
        return {(): 0.0}
    found = {}
    for piece, score in scores.items():
        if text.startswith(piece):
            for rest, total in segmentations(scores, text[len(piece) :]).items():
                found[piece, *rest] = score + total
    return found


@pytest.mark.parametrize("alpha", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("count", [None, 3])
def test_unigram_segmentations_come_by_their_probabilities(models, alpha, count):
    reference = processor(models["unigram"])
    ids = range(3, len(reference))
    scores = {reference.IdToPiece(n): reference.GetScore(n) for n in ids}
    del scores["<m>"], scores["c"]
    every = segmentations(scores, "▁aaba")
    assert len(every) > 5
    best = sorted(every, key=every.get, reverse=True)[:count]
    weights = {cut: math.exp(alpha * every[cut]) for cut in best}
    rounds = 3000
    counts = drawn(tokenizer(models["unigram"], alpha, count), "aaba", rounds)
    assert set(counts) <= set(best)
    total = sum(weights.values())
    compare(counts, {cut: weight / total for cut, weight in weights.items()}, rounds)


@given(text=st.text(st.sampled_from("ab zc<m>"), max_size=12))
@settings(deadline=None)
def test_the_best_are_those_of_the_library(models, text):
    """Their scores, with unknown characters and symbols of the user's among them."""
    reference = processor(models["unigram"])
    normal = reference.Normalize(text)
    made = UnigramDrawer(SubwordModel.read(models["unigram"]), Sampling(1.0, 8))
    found = [
        struct.unpack("<f", field.value)[0]
        for each in _fields(
            reference.NBestEncode(text, nbest_size=8, return_type="serialized_proto")
        )
        for field in _fields(each.value)
        if field.number == 3
    ]
    if normal:
        ours = [score for score, _, _ in made.best(normal, 8)[-1]]
        assert ours == pytest.approx(found, abs=1e-3)


@pytest.mark.parametrize(("name", "alpha"), [("unigram", 0.3), ("bytes", 0.3), ("bpe", 0.3)])
@pytest.mark.parametrize("text", ["aaba", "aab<m>a", "zaab aéb", "acbaabcb"])
def test_the_library_draws_as_often(models, name, alpha, text):
    """Two samples, each of which is random, so the bound is that of their difference."""
    rounds = 3000
    ours = drawn(tokenizer(models[name], alpha), text, rounds)
    reference = processor(models[name])
    theirs = collections.Counter(
        tuple(pieces)
        for pieces in reference.Encode(
            [text] * rounds, return_type=str, enable_sampling=True, alpha=alpha, nbest_size=-1
        )
    )
    assert len(ours) > 1
    for cut in {*ours, *theirs}:
        share = (ours[cut] + theirs[cut]) / 2 / rounds
        difference = abs(ours[cut] - theirs[cut]) / rounds
        assert difference < SIGMAS * math.sqrt(2 * share * (1 - share) / rounds) + 1e-9, cut


MIXED = st.text(st.one_of(st.sampled_from("ab zc<m>▁"), st.characters(codec="utf-8")), max_size=30)


@given(text=MIXED)
@settings(deadline=None)
def test_without_dropout_bpe_gives_its_best(models, text):
    plain = SentencePieceTokenizer(models["bpe"])
    assert tokenizer(models["bpe"], 0.0).draw(text, 1, "text") == plain.spans(text)


@given(text=MIXED)
@settings(deadline=None)
def test_of_the_single_best_unigram_gives_it(models, text):
    plain = SentencePieceTokenizer(models["bytes"])
    tokens, offsets = tokenizer(models["bytes"], 1.0, 1).draw(text, 1, "text")
    expected, expected_offsets = plain.spans(text)
    if tokens == expected:  # nothing but ties, in which rounding decides
        assert offsets == expected_offsets
    made = UnigramDrawer(SubwordModel.read(models["bytes"]), Sampling(1.0, 1))

    def score(pieces):
        return sum(made._scores.get(piece, made._unknown) for piece in pieces)

    if "<0x" not in "".join(tokens):
        assert score(tokens) == pytest.approx(score(expected), abs=1e-3)


@given(text=MIXED, seed=st.integers(0, 99))
@settings(deadline=None)
def test_whatever_is_drawn_makes_the_text(models, text, seed):
    for name, alpha in (("bpe", 0.5), ("unigram", 0.1), ("bytes", 0.1)):
        reference = processor(models[name])
        tokens, offsets = tokenizer(models[name], alpha).draw(text, seed, "text")
        assert reference.decode(tokens) == reference.decode(reference.encode(text, out_type=str))
        assert all(0 <= start <= end <= len(text) for start, end in offsets)
        assert all(a[1] <= b[0] for a, b in itertools.pairwise(offsets))


def test_all_merges_left_out_leave_characters(models):
    counts = drawn(tokenizer(models["bpe"], 1.0), "aab<m>ab", 20)
    assert set(counts) == {("▁", "a", "a", "b", "<m>", "a", "b")}


def test_pieces_across_words_are_merged(tmp_path):
    path = tmp_path / "m"
    recipe = Recipe("bpe", 60, soft_size=True, normalization="identity", keep_space=True)
    path.write_bytes(learn(iter(["a  b  a  b"]), recipe).data)
    plain = SentencePieceTokenizer(str(path))
    assert tokenizer(str(path), 0.0).draw("a  b", 1, "text") == plain.spans("a  b")


def test_draws_keep_to_the_pieces_in_use(models):
    for name, alpha in (("bpe", 0.3), ("unigram", 0.3)):
        made = tokenizer(models[name], alpha, restrict={"ab", "aab"})
        found = {piece for pieces in drawn(made, "aaba baab", 300) for piece in pieces}
        assert "ab" in found
        assert found <= {"ab", "aab", *"▁ab"}


@pytest.mark.parametrize(
    ("name", "sampling", "problem"),
    [
        ("bpe", Sampling(1.5), "a probability, at most 1"),
        ("bpe", Sampling(0.1, 5), "no list of best segmentations"),
    ],
)
def test_what_cannot_be_drawn(models, name, sampling, problem):
    with pytest.raises(ConfigError, match=problem):
        drawer(SubwordModel.read(models[name]), sampling)
    with pytest.raises(ConfigError, match=f"{models[name]}: .*{problem}"):
        SentencePieceTokenizer(models[name], sampling=sampling)


def test_a_model_of_words_has_one_segmentation():
    model = SubwordModel(b"", [], "word")
    with pytest.raises(ConfigError, match="of kind word has one segmentation only"):
        drawer(model, Sampling(0.1))


def test_unknown_parts_are_joined_or_become_bytes():
    parts, places, known = ["▁", "z", "é", "a", "é"], [0, 0, 1, 2, 3, 4], frozenset("▁a")
    assert finish(parts, places, known, byte_fallback=False) == (
        ["▁", "zé", "a", "é"],
        [(0, 0), (0, 2), (2, 3), (3, 4)],
    )
    assert finish(parts, places, known, byte_fallback=True) == (
        ["▁", "<0x7A>", "<0xC3>", "<0xA9>", "a", "<0xC3>", "<0xA9>"],
        [(0, 0), (0, 1), (1, 1), (1, 2), (2, 3), (3, 3), (3, 4)],
    )


def test_long_texts_take_their_time_in_proportion(models):
    text = "aab" * 20_000
    for name in ("bpe", "unigram"):
        tokens, _ = tokenizer(models[name], 0.2).draw(text, 1, "text")
        assert "".join(tokens) == "▁" + text
    made = UnigramDrawer(SubwordModel.read(models["unigram"]), Sampling(0.0))
    assert len(made.draw("a" * 2000, random.Random(1))) > 2  # sums far beyond a float's range
