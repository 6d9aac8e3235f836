"""Duplicates against brute force, near-duplicates against sets of shingles and the formulas."""

import math
import random
import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqtools.text.stats.quality_duplicates import Duplicates
from seqtools.text.stats.quality_sketches import (
    SIZE,
    bands,
    find_near,
    normal,
    recall,
    resemblance,
    sketch,
)

SHINGLE = 4


def shingles(text):
    return {text[start : start + SHINGLE] for start in range(max(1, len(text) - SHINGLE + 1))}


def true_resemblance(first, second):
    first, second = shingles(first), shingles(second)
    return len(first & second) / len(first | second)


def gather(texts, threshold=None, numbers=None):
    found = Duplicates(threshold, SHINGLE)
    for number, text in zip(numbers or range(1, len(texts) + 1), texts, strict=True):
        found.add(text, number)
    return found


def pairs_of(count, changed, rng):
    """Texts of 103 random letters, and each again with a stretch of `changed` new letters."""
    letters = [chr(0x4E00 + number) for number in range(4000)]
    pairs = []
    for _ in range(count):
        first = rng.choices(letters, k=103)
        second = [*first]
        second[40 : 40 + changed] = rng.choices(letters, k=changed)
        pairs.append(("".join(first), "".join(second)))
    return pairs


@given(st.lists(st.sampled_from(["a", "b", "ab", "b ", "", "A"])))
def test_exact_duplicates_are_those_that_were_there_before(texts):
    exact = gather(texts).exact()
    expected = [
        (number, texts.index(text) + 1)
        for number, text in enumerate(texts, 1)
        if text in texts[: number - 1]
    ]
    assert [*zip(exact.numbers, exact.originals, strict=True)] == expected


def test_normal_form():
    assert normal(" Ａ\u3000ＢC \n e\u0301 Straße ") == "a bc é strasse"
    assert normal("plain  TEXT") == "plain text"


VARIANTS = [
    str.upper,
    lambda text: text.replace(" ", "\u3000\t"),
    lambda text: f" {text}\n",
    lambda text: unicodedata.normalize("NFD", text),
]


@given(
    texts=st.lists(st.text(st.sampled_from("abé 中x"), min_size=1, max_size=12), min_size=1),
    change=st.sampled_from(VARIANTS),
    threshold=st.sampled_from([0.5, 0.8, 0.95, 1.0]),
)
def test_what_is_the_same_when_normal_is_always_found(texts, change, threshold):
    texts = [*texts, *map(change, texts)]
    found = gather(texts, threshold)
    exact = found.exact()
    near = found.near(exact)
    known = {*exact.numbers, *near.numbers}
    for number, text in enumerate(texts, 1):
        if normal(text) in map(normal, texts[: number - 1]):
            assert number in known
    assert not {*exact.numbers} & {*near.numbers}
    assert all(other < number for number, other in zip(near.numbers, near.originals, strict=True))


def test_sketches_estimate_the_resemblance():
    rng = random.Random(1)
    pairs = pairs_of(400, 10, rng)
    truth = np.array([true_resemblance(*pair) for pair in pairs])
    first, second = (sketch([*side], SHINGLE) for side in zip(*pairs, strict=True))
    error = resemblance(first, second) - truth
    deviation = math.sqrt(truth.mean() * (1 - truth.mean()) / SIZE)
    assert abs(error.mean()) < 5 * deviation / math.sqrt(len(pairs))
    assert error.std() == pytest.approx(deviation, rel=0.2)
    # Texts with nothing in common agree by chance alone, which the estimate takes out.
    strangers = resemblance(first, np.roll(second, 1, axis=0))
    chance = math.sqrt(1 / 256 * 255 / 256 / SIZE)
    assert abs(strangers.mean()) < 5 * chance / math.sqrt(len(pairs))


def test_short_texts_and_batches_do_not_change_a_sketch():
    texts = ["", "a", "abc", "abcd", "abcde", "中" * 50, "x" * 3 + "y"]
    together = sketch(texts, SHINGLE)
    assert together.shape == (len(texts), SIZE)
    for text, row in zip(texts, together, strict=True):
        assert (sketch([text], SHINGLE)[0] == row).all()
    # A set has each shingle once.
    assert (sketch(["中" * 9], SHINGLE)[0] == together[5]).all()


@pytest.mark.parametrize("length", [(1 << 16) + 2, (1 << 16) + 3, (1 << 16) + 4, 200_001])
def test_a_text_of_several_pieces_has_the_sketch_of_all_its_shingles(length):
    # The same shingles in a few letters, and in many more than are hashed in one step.
    short, long = ("abcde" * 3, ("abcde" * 50_000)[: length - length % 5])
    for end in ("", "x", "xyzw"):
        assert (
            sketch([short + end, long + end], SHINGLE)[0] == sketch([long + end], SHINGLE)
        ).all()
    assert (sketch([long], SHINGLE) != sketch([long + "xyzw"], SHINGLE)).any()


@pytest.mark.parametrize("threshold", [0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0])
def test_bands_have_the_most_rows_that_find_95_in_100_at_the_threshold(threshold):
    rows, count = bands(threshold)
    assert rows * count <= SIZE
    assert recall(threshold, rows, count) >= 0.95
    assert rows == 32 or recall(threshold, rows + 1, SIZE // (rows + 1)) < 0.95
    assert recall(0.5, 2, 3) == 1 - (1 - 0.25) ** 3


@pytest.mark.parametrize(("threshold", "changed"), [(0.8, 5), (0.8, 14), (0.9, 10), (0.6, 20)])
def test_pairs_come_to_be_compared_as_often_as_the_formula_says(threshold, changed):
    """A pair is compared if a band agrees: bands of equal bytes, which chance makes a bit more."""
    rng = random.Random(threshold * 100 + changed)
    pairs = pairs_of(600, changed, rng)
    rows, count = bands(threshold)
    first, second = (sketch([*side], SHINGLE) for side in zip(*pairs, strict=True))
    agree = (first == second)[:, : rows * count].reshape(-1, count, rows).all(axis=2).any(axis=1)
    alike = np.array([true_resemblance(*pair) for pair in pairs])
    expected = np.mean([recall(s + (1 - s) / 256, rows, count) for s in alike])
    deviation = math.sqrt(expected * (1 - expected) / len(pairs))
    assert abs(agree.mean() - expected) < 5 * deviation + 1 / len(pairs)


def test_near_duplicates_are_found_and_strangers_are_not():
    rng = random.Random(3)
    near, far = pairs_of(150, 3, rng), pairs_of(150, 60, rng)
    assert min(true_resemblance(*pair) for pair in near) > 0.87
    assert max(true_resemblance(*pair) for pair in far) < 0.3
    texts = [text for side in zip(*near, *far, strict=True) for text in side]
    found = gather(texts, 0.8)
    copies = found.near(found.exact())
    expected = {300 + number: number for number in range(1, 151)}
    assert dict(zip(copies.numbers, copies.originals, strict=True)) == expected
    assert all(0.8 <= likeness < 1 for likeness in copies.likeness)


def test_a_crowded_band_is_searched_a_hundred_back():
    rng = np.random.default_rng(1)
    sketches = rng.integers(0, 256, (300, SIZE), np.uint8)
    sketches[:, :16] = 7  # all share the first bands, and nothing else
    sketches[150] = sketches[60]
    sketches[150, -1] ^= 1
    sketches[299] = sketches[150]
    sketches[299, -2] ^= 1
    match, _ = find_near(sketches, 0.8)
    assert {row: other for row, other in enumerate(match.tolist()) if other >= 0} == {
        150: 60,
        299: 150,
    }


@given(seed=st.integers(0, 99), threshold=st.sampled_from([None, 0.7]))
def test_parts_in_any_order_give_the_whole(seed, threshold):
    rng = random.Random(seed)
    texts = ["".join(rng.choices("ab ", k=rng.randrange(9))) for _ in range(40)]
    whole, merged = gather(texts, threshold), Duplicates(threshold, SHINGLE)
    numbers = [*range(1, 41)]
    starts = [0, 1, 2]
    rng.shuffle(starts)
    for start in starts:
        for state in gather(texts[start::3], threshold, numbers[start::3]).dump():
            merged.merge(state)
    exact = whole.exact()
    assert merged.exact() == exact
    if threshold is not None:
        assert merged.near(exact) == whole.near(exact)


def test_nothing_has_no_duplicates():
    nothing = Duplicates(0.8)
    assert [*nothing.exact().numbers] == []
    assert [*nothing.near(nothing.exact()).numbers] == []
    assert [*nothing.dump()] == []
