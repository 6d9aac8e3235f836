"""Tags of spans: regular expressions tell what is valid, for every sequence of some length."""

import itertools

import pytest

from seqtools.errors import RecordError
from seqtools.text.augment.labels import SCHEMES, read_labels, stretch
from seqtools.text.tags import LETTERS as LETTERS_OF
from tests.unit.text.augment.tags import LETTERS, spans


def sequences(scheme, longest, kinds=("-X", "-Y")):
    alphabet = ["O", *(letter + kind for letter in LETTERS[scheme] for kind in kinds)]
    for size in range(longest + 1):
        yield from itertools.product(alphabet, repeat=size)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("kinds", [("-X", "-Y"), ("",)], ids=["typed", "untyped"])
def test_every_sequence_is_read_as_its_regular_expression_says(scheme, kinds):
    valid = 0
    for tags in sequences(scheme, 3 if len(kinds) == 2 else 5, kinds):
        expected = spans(tags, scheme)
        if expected is None:
            with pytest.raises(RecordError, match=f"not {scheme}"):
                read_labels("tags", tags, scheme)
            continue
        valid += 1
        later = {place for _, start, end in expected for place in range(start + 1, end)}
        joined = read_labels("tags", tags, scheme).joined
        assert joined == [place in later for place in range(len(tags))]
    assert valid > 20


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_longer_token_leaves_the_spans_as_they_are(scheme):
    for tags in sequences(scheme, 4, ("-X",)):
        before = spans(tags, scheme)
        for place, size in itertools.product(range(len(tags) if before else 0), (1, 2, 3, 4)):
            made = [*tags]
            made[place : place + 1] = stretch(tags[place], size, LETTERS_OF[scheme])
            expected = [
                (kind, start + (size - 1) * (start > place), end + (size - 1) * (end > place))
                for kind, start, end in before
            ]
            assert spans(made, scheme) == expected


def test_an_inner_tag_is_not_guessed():
    letters = read_labels("tags", ["B-X", "E-X", "O", "S-X"], "auto").letters
    assert stretch("S-X", 2, letters) == ["B-X", "E-X"]
    assert stretch("B-X", 1, letters) == ["B-X"]
    for tag, size in (("B-X", 2), ("E-X", 2), ("S-X", 3)):
        with pytest.raises(RecordError, match=f"{tag} may be iobes or bmes: --scheme"):
            stretch(tag, size, letters)


def test_what_is_no_span_is_repeated():
    assert stretch("NN", 3, None) == ["NN"] * 3
    assert stretch("O", 2, LETTERS_OF["bmes"]) == ["O", "O"]


@pytest.mark.parametrize(
    ("tags", "scheme"),
    [
        ("B-X I-X O", "iob2"),
        ("B I B", "iob2"),
        ("O O", "iob2"),
        ("B-X E-X S-X", "iobes or bmes"),
        ("S-X O", "iobes or bmes"),
        ("B-X I-X E-X", "iobes"),
        ("B-X M-X E-X", "bmes"),
        ("S B E", "bmes"),
        ("B I E", "iobes"),
        ("B-X L-X U-Y", "bilou"),
        ("NN O", None),
        ("B-X NN", None),
        ("B_X", None),
        ("B- O", None),
    ],
)
def test_the_scheme_is_told_by_letters(tags, scheme):
    undecided = ("B", "", "E", "S")
    found = read_labels("tags", tags.split(), "auto").letters
    assert found == (undecided if scheme == "iobes or bmes" else LETTERS_OF.get(scheme))


def test_values_that_are_no_strings_have_no_scheme():
    labels = read_labels("weights", [1, None, "B-X"], "auto")
    assert (labels.letters, labels.joined, labels.outside) == (None, [False] * 3, None)
    with pytest.raises(RecordError, match='"weights" must be a list of tags, got number'):
        read_labels("weights", [1], "iob2")


def test_what_is_outside_of_all_spans():
    assert read_labels("tags", ["B-X", "O"], "auto").outside == "O"
    assert read_labels("tags", ["B-X", "I-X"], "auto").outside == "O"
    assert read_labels("tags", ["B", "E"], "auto").outside == "S"  # of words nothing is outside
    assert read_labels("tags", ["B", "I"], "auto").outside == "B"
    assert read_labels("tags", ["B", "I", "O"], "auto").outside == "O"
    assert read_labels("tags", ["NN"], "none").outside is None


def test_iob1_is_told_of():
    with pytest.raises(RecordError, match=r"'I-X' after 'O' and at the end is not iob2, .*\(see"):
        read_labels("tags", ["O", "I-X"], "auto")
