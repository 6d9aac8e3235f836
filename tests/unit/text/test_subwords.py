"""Learning sentencepiece models."""

import collections

import pytest

from seqtools.errors import ConfigError, FormatError
from seqtools.text.subword_model import SubwordModel
from seqtools.text.subwords import Recipe, Sample, learn

TEXTS = ["red fox ran home", "blue fox sat down", "red hen ran down"]


def pieces(texts, recipe):
    return {piece.text for piece in SubwordModel.parse(learn(iter(texts), recipe).data).pieces}


@pytest.mark.parametrize(("kind", "most"), [("bpe", 67), ("unigram", 23)])
def test_impossible_sizes_are_named(kind, most):
    with pytest.raises(ConfigError, match=f"^size 200 is too large.* at most {most} pieces"):
        learn(iter(TEXTS), Recipe(kind, 200))
    with pytest.raises(ConfigError, match=r"^size 5 is too small.* at least 20:"):
        learn(iter(TEXTS), Recipe(kind, 5))
    assert learn(iter(TEXTS), Recipe(kind, 200, soft_size=True)).size == most
    assert learn(iter(TEXTS), Recipe(kind, most)).size == most


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_the_same_texts_give_the_same_bytes(kind):
    one, two = (learn(iter(TEXTS), Recipe(kind, 23)) for _ in range(2))
    assert one == two


def test_the_first_merges_are_the_most_frequent_pairs():
    # Of "ab" x 3, "bc" x 2: (a, b) 3 times, then (▁, ab) 3 times, then the two of bc.
    data = learn(iter(["ab ab ab bc bc"]), Recipe("bpe", 200, soft_size=True)).data
    merged = [each.text for each in SubwordModel.parse(data).pieces if len(each.text) > 1]
    assert merged[:5] == ["<unk>", "<s>", "</s>", "ab", "▁ab"]


def test_long_texts_are_learned_from():
    # 4,192 bytes is what the library takes unless it is told to take more.
    assert "zap" in "".join(
        pieces(["q" * 4193 + " zap zap zap zap zap", *TEXTS], Recipe("bpe", 70))
    )


def test_texts_that_the_library_skips_are_counted():
    learned = learn(iter(["a\u2585b", "xy", "\u2585"]), Recipe("bpe", 50, soft_size=True))
    assert learned.skipped == 2
    assert {"x", "y"} < {piece.text for piece in SubwordModel.parse(learned.data).pieces}
    with pytest.raises(FormatError, match=r"^no text to learn from: those with U\+2585 .* are 1$"):
        learn(iter(["\u2585"]), Recipe("bpe", 50))


@pytest.mark.parametrize("texts", [[], ["", " "]])
def test_no_text(texts):
    with pytest.raises(FormatError, match=r"^no text to learn from$"):
        learn(iter(texts), Recipe("unigram", 50))


def test_what_a_model_does_to_text_is_chosen():
    soft = {"kind": "bpe", "size": 300, "soft_size": True}
    texts = ["Straße ＡB", "Ab"]
    assert {"A", "B", "S"} < pieces(texts, Recipe(**soft))
    assert "Ａ" in pieces(texts, Recipe(**soft, normalization="identity"))
    folded = pieces(texts, Recipe(**soft, normalization="nmt_nfkc_cf"))
    assert {"a", "b", "ß"} < folded
    assert not {"A", "B", "S"} & folded
    assert "▁▁" not in pieces(["a  b  a"], Recipe(**soft))
    assert "▁a" not in pieces(["ab"], Recipe(**soft, prefix=False))
    assert "<0xE4>" in pieces(texts, Recipe(**soft, byte_fallback=True))
    symbols = ["<mask>", "a,b", 'say "x"']
    found = pieces(texts, Recipe(**soft, symbols=symbols))
    assert {"<mask>", "a,b", 'say▁"x"'} < found  # as a text has it once it is normalised


def test_rare_characters_are_left_to_the_coverage():
    texts = ["a" * 99 + "b"]
    assert "b" in pieces(texts, Recipe("bpe", 300, soft_size=True, coverage=1.0))
    assert "b" not in pieces(texts, Recipe("bpe", 300, soft_size=True, coverage=0.98))


@pytest.mark.parametrize(
    ("symbols", "problem"),
    [
        (["a", ""], "cannot be empty"),
        (["<s>"], "for itself"),
        (["a", "b", "a"], "'a' stands twice"),
    ],
)
def test_symbols_that_cannot_be(symbols, problem):
    with pytest.raises(ConfigError, match=problem):
        Recipe("bpe", 50, symbols=symbols)


def test_other_complaints_of_the_library_are_one_line():
    with pytest.raises(FormatError, match=r"^sentencepiece: .*foo"):
        learn(iter(TEXTS), Recipe("bpe", 50, normalization="foo"))


def test_a_sample_holds_all_or_as_many_as_it_may():
    every = Sample()
    for number in range(5):
        every.add([f"{number}", f"{number}'"])
    assert (every.seen, len(every)) == (5, 5)
    assert list(every.drain()) == ["0", "0'", "1", "1'", "2", "2'", "3", "3'", "4", "4'"]
    assert len(every) == 0


def test_each_record_is_as_likely_to_be_held():
    counts: collections.Counter[str] = collections.Counter()
    rounds = 4000
    for seed in range(rounds):
        sample = Sample(2, seed)
        for number in range(5):
            sample.add([str(number)])
        assert (sample.seen, len(sample)) == (5, 2)
        counts.update(sample.drain())
    # Each with probability 2/5; five standard deviations are 155.
    assert sorted(counts) == list("01234")
    assert all(abs(count - rounds * 2 / 5) < 155 for count in counts.values())
