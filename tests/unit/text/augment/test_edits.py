"""Changes to sentences: their laws against formulas and counts, their tags by enumeration."""

import collections
import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqtools.errors import FormatError, RecordError
from seqtools.text.augment.copies import Tokens
from seqtools.text.augment.edits import (
    Amount,
    Delete,
    FromSynonyms,
    FromVocabulary,
    Insert,
    Replace,
    Sentence,
    Shuffle,
    Swap,
    from_sentence,
    sample,
)
from seqtools.text.augment.labels import SCHEMES
from seqtools.text.augment.synonyms import Synonyms
from seqtools.text.vocab import Vocabulary
from tests.unit.text.augment.tags import LETTERS, spans

SYNONYMS = Synonyms(groups=[["a", "x", "y_z"], ["b", "u_v_w"]])


def plain(text):
    return Sentence([[(token,)] for token in text])


def text(units):
    return "".join(row[0] for unit in units for row in unit)


def law(edit, sentence, draws=6000):
    """How often each sentence comes out."""
    counts = collections.Counter(text(edit(sentence, random.Random(seed))) for seed in range(draws))
    return {made: count / draws for made, count in counts.items()}


def close(found, expected, draws=6000):
    """Whether shares are what they should be, within 4.5 standard deviations."""
    assert set(found) <= {made for made, share in expected.items() if share > 0}
    for made, share in expected.items():
        error = 4.5 * (share * (1 - share) / draws) ** 0.5
        assert abs(found.get(made, 0) - share) <= error, made


# How many


@pytest.mark.parametrize(
    ("rate", "size", "count"),
    [
        (0.1, 1, 1),
        (0.1, 9, 1),
        (0.1, 19, 1),
        (0.1, 20, 2),
        (0.29, 100, 29),
        (1, 7, 7),
        (0.7, 10, 7),
    ],
)
def test_how_many_tokens_are_changed(rate, size, count):
    assert Amount(rate).of(size) == count


@given(st.lists(st.integers(), max_size=6), st.integers(0, 8), st.integers())
def test_a_sample_is_a_part_without_repetition(items, size, seed):
    chosen = sample(range(len(items)), size, random.Random(seed))
    assert len(chosen) == len(set(chosen)) == min(size, len(items))


# Laws


def test_a_swap_draws_each_pair_alike():
    found = law(Swap(Amount(0.1)), plain("abcd"))
    pairs = ["bacd", "cbad", "dbca", "acbd", "adcb", "abdc"]
    close(found, dict.fromkeys(pairs, 1 / 6))


def test_two_swaps_are_two_draws():
    found = law(Swap(Amount(0.7)), plain("abc"))
    close(found, dict.fromkeys(["abc", "bca", "cab"], 1 / 3))  # even permutations


def test_each_token_is_left_out_with_the_rate_but_never_all():
    rate = 0.3
    found = law(Delete(Amount(rate)), plain("abc"))
    expected = collections.Counter()
    for kept in itertools.product([False, True], repeat=3):
        share = 1.0
        for one in kept:
            share *= 1 - rate if one else rate
        made = "".join(itertools.compress("abc", kept))
        for each in [made] if made else "abc":
            expected[each] += share if made else share / 3
    close(found, expected)


@pytest.mark.parametrize("distance", [1, 3])
def test_a_shuffle_follows_its_formula(distance):
    # i + U(0, k + 1) puts the second of two first with probability (k / (k + 1))^2 / 2.
    share = (distance / (distance + 1)) ** 2 / 2
    found = law(Shuffle(Amount(), distance), plain("ab"))
    close(found, {"ba": share, "ab": 1 - share})


def test_an_insertion_draws_token_and_place_alike():
    found = law(Insert(Amount(0.1), from_sentence), plain("ab"))
    expected = collections.Counter()
    for token, place in itertools.product("ab", range(3)):
        expected["ab"[:place] + token + "ab"[place:]] += 1 / 6
    close(found, expected)


def test_insertions_are_one_after_the_other_each_at_any_place():
    edit = Insert(Amount(0.7), FromVocabulary(Vocabulary(["x", "y"], {}, [1, 2])))
    found = law(edit, plain("abc"))
    expected = collections.Counter()
    for (first, one), (second, other) in itertools.product((("x", 1 / 3), ("y", 2 / 3)), repeat=2):
        for place, later in itertools.product(range(4), range(5)):
            made = [*"abc"]
            made.insert(place, first)
            made.insert(later, second)
            expected["".join(made)] += one * other / 20
    close(found, expected)


def test_tokens_of_a_vocabulary_come_by_their_counts():
    vocabulary = Vocabulary(["<unk>", "p", "q", "r"], {"unk": 0}, [5, 1, 0, 3])
    found = law(Insert(Amount(0.1), FromVocabulary(vocabulary)), plain("a"))
    close(found, {"pa": 1 / 8, "ap": 1 / 8, "ra": 3 / 8, "ar": 3 / 8})


def test_synonyms_are_put_in_and_are_drawn_alike():
    found = law(Insert(Amount(0.1), FromSynonyms(SYNONYMS)), plain("ca"))
    close(found, dict.fromkeys(["xca", "cxa", "cax", "yzca", "cyza", "cayz"], 1 / 6))


def test_synonyms_replace_tokens_that_are_drawn_alike():
    found = law(Replace(Amount(0.1), SYNONYMS), plain("abc"))
    close(found, {"xbc": 1 / 4, "yzbc": 1 / 4, "auvwc": 1 / 2})


# Whatever is drawn

TOKENS = st.lists(st.sampled_from("abcde"), max_size=9)
RATE = st.floats(0.01, 1)
STOP = st.frozensets(st.sampled_from("abcde"), max_size=3)


@given(TOKENS, RATE, STOP, st.integers(1, 4), st.integers())
def test_a_swap_or_shuffle_keeps_all_tokens_and_the_place_of_stop_words(
    tokens, rate, stop, distance, seed
):
    amount = Amount(rate, stop)
    for edit in (Swap(amount), Shuffle(amount, distance)):
        made = text(edit(plain(tokens), random.Random(seed)))
        assert sorted(made) == sorted(tokens)
        for before, after in zip(tokens, made, strict=True):
            assert before == after or not stop & {before, after}


@given(st.integers(0, 12), st.sets(st.integers(0, 11)), st.integers(1, 4), st.integers())
def test_a_shuffle_keeps_within_its_distance(size, stop, distance, seed):
    sentence = Sentence([[(str(place),)] for place in range(size)])
    amount = Amount(stopwords=frozenset(map(str, stop)))
    made = Shuffle(amount, distance)(sentence, random.Random(seed))
    for place, unit in enumerate(made):
        assert abs(int(unit[0][0]) - place) <= distance


def is_part(part, whole):
    rest = iter(whole)
    return all(token in rest for token in part)


@given(TOKENS, RATE, STOP, st.integers())
def test_what_is_left_is_a_part_with_all_stop_words(tokens, rate, stop, seed):
    made = text(Delete(Amount(rate, stop))(plain(tokens), random.Random(seed)))
    assert is_part(made, tokens)
    assert bool(made) == bool(tokens)
    assert [token for token in made if token in stop] == [t for t in tokens if t in stop]


@given(TOKENS, RATE, STOP, st.integers())
def test_what_is_put_in_leaves_the_rest(tokens, rate, stop, seed):
    amount = Amount(rate, stop)
    made = text(Insert(amount, from_sentence)(plain(tokens), random.Random(seed)))
    added = amount.of(len(tokens)) if set(tokens) - stop else 0
    assert len(made) == len(tokens) + added
    assert is_part(tokens, made)
    assert not (collections.Counter(made) - collections.Counter(tokens)).keys() & stop


@given(TOKENS, RATE, STOP, st.integers())
def test_as_many_are_replaced_as_there_should_be(tokens, rate, stop, seed):
    amount = Amount(rate, stop)
    units = Replace(amount, SYNONYMS)(plain(tokens), random.Random(seed))
    changed = [
        (token, tuple(row[0] for row in unit))
        for token, unit in zip(tokens, units, strict=True)
        if unit != [(token,)]
    ]
    known = [token for token in tokens if token in "ab" and token not in stop]
    assert len(changed) == min(len(known), amount.of(len(tokens)))
    assert all(pieces in SYNONYMS.of(token) for token, pieces in changed)


def test_stop_words_have_no_case():
    amount = Amount(1, frozenset({"the"}))
    assert [amount.may_change(token) for token in ("The", "THE", "then")] == [False, False, True]


# Tags


def sentence_of(tags, scheme):
    tokens = [chr(ord("a") + place) for place in range(len(tags))]
    return Tokens(scheme=scheme).read({"tokens": tokens, "tags": [*tags]})


def valid_sequences(scheme, longest):
    alphabet = ["O", *(letter + kind for letter in LETTERS[scheme] for kind in ("-X", "-Y"))]
    for size in range(1, longest + 1):
        for tags in itertools.product(alphabet, repeat=size):
            if spans(tags, scheme) is not None:
                yield tags


def named(units, scheme):
    """The spans with their tokens; the tags must be valid."""
    tokens, tags = zip(*(row for unit in units for row in unit), strict=True)
    found = spans(tags, scheme)
    assert found is not None, tags
    return collections.Counter((kind, tokens[start:end]) for kind, start, end in found)


VOCABULARY = Vocabulary(["q"], {}, [1])


@pytest.mark.parametrize("scheme", SCHEMES)
def test_tags_stay_valid_and_spans_whole(scheme):
    amount = Amount(0.6)
    sequences = list(valid_sequences(scheme, 4))
    assert len(sequences) > 50
    for number, tags in enumerate(sequences):
        sentence = sentence_of(tags, scheme)
        before = named(sentence.units, scheme)

        def made(edit, sentence=sentence, number=number):
            return edit(sentence, random.Random(number))

        assert named(made(Swap(amount)), scheme) == before
        assert named(made(Shuffle(amount, 2)), scheme) == before
        assert named(made(Delete(amount)), scheme) <= before
        assert named(made(Insert(amount, FromVocabulary(VOCABULARY))), scheme) == before
        more = named(made(Insert(amount, from_sentence)), scheme)
        assert before <= more
        assert set(more) == set(before)
        synonyms = made(Insert(amount, FromSynonyms(SYNONYMS)))
        assert before <= named(synonyms, scheme)
        replaced = named(made(Replace(amount, SYNONYMS)), scheme)
        assert sorted(kind for kind, _ in replaced.elements()) == sorted(
            kind for kind, _ in before.elements()
        )


def test_two_fields_of_tags_bind_their_spans_together():
    record = {"tokens": [*"abcd"], "tags": ["B-X", "I-X", "O", "O"], "np": ["O", "B", "I", "O"]}
    sentence = Tokens(align=("tags", "np")).read(record)
    assert [len(unit) for unit in sentence.units] == [3, 1]


def test_a_token_of_a_vocabulary_has_no_part_of_speech():
    sentence = Tokens().read({"tokens": ["a"], "pos": ["NN"]})
    with pytest.raises(RecordError, match='"pos" has no value'):
        Insert(Amount(), FromVocabulary(VOCABULARY))(sentence, random.Random(0))


def test_a_vocabulary_needs_counts():
    for vocabulary in (Vocabulary(["a"], {}), Vocabulary(["<unk>"], {"unk": 0}, [0])):
        with pytest.raises(FormatError, match="with counts"):
            FromVocabulary(vocabulary)
