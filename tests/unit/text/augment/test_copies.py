import json
from collections import Counter

import pytest

from seqtools.errors import RecordError
from seqtools.text.augment.copies import Copier, Number, Tokens, as_copy, of_text
from seqtools.text.augment.edits import Amount, Delete, Replace, Swap
from seqtools.text.augment.synonyms import Synonyms

RECORD = {
    "id": "r1",
    "text": "a b c d",
    "tokens": ["a", "b", "c", "d"],
    "ids": [4, 5, 6, 7],
    "offsets": [[0, 1], [2, 3], [4, 5], [6, 7]],
    "label": "x",
}


def copies(record, number=1, *, edit=None, tokens=None, written=None, seed=0, counts=None):
    copier = Copier(
        "swap",
        edit or Swap(Amount(0.5)),
        tokens or Tokens(),
        written or Number(),
        seed=seed,
        counts=Counter() if counts is None else counts,
    )
    return [json.loads(line) for line in copier(record, number).splitlines()]


def test_a_copy_has_no_id_and_nothing_that_was_made_of_other_tokens():
    (copy,) = copies(dict(RECORD))
    assert list(copy) == ["tokens", "label", "augmented_from"]
    assert sorted(copy["tokens"]) == RECORD["tokens"]
    assert (copy["label"], copy["augmented_from"]) == ("x", "r1")


def test_the_original_comes_first_as_it_is():
    record = dict(RECORD)
    first, *others = copies(record, written=Number(copies=3, keep=True))
    assert first == record == RECORD
    assert len(others) == 3
    assert len({tuple(copy["tokens"]) for copy in others}) > 1


def test_copies_of_a_field():
    record = {
        "src": "a b",
        "src_tokens": ["a", "b"],
        "src_ids": [1, 2],
        "tokens": ["x"],
        "text": "x",
    }
    (copy,) = copies(record, 9, tokens=Tokens("src_tokens"))
    assert copy == {"src_tokens": ["b", "a"], "tokens": ["x"], "text": "x", "augmented_from": 9}
    (copy,) = copies({"words": ["a", "b"], "text": "x"}, tokens=Tokens("words"))
    assert copy == {"words": ["b", "a"], "text": "x", "augmented_from": 1}


def test_what_goes_with_the_tokens():
    record = {**RECORD, "pos": [*"ABCD"], "tags": ["O", "B-X", "I-X", "O"], "more": [*"ABCD"]}
    for turn in range(20):
        (copy,) = copies(record, seed=turn)
        assert [token.upper() for token in copy["tokens"]] == copy["pos"]
        span = copy["tokens"].index("b")
        assert copy["tags"][span : span + 2] == ["B-X", "I-X"]
        assert copy["tokens"][span + 1] == "c"
    (copy,) = copies(record, tokens=Tokens(align=("more", "pos")))
    assert [token.upper() for token in copy["tokens"]] == copy["more"] == copy["pos"]
    assert sorted(copy["tags"]) == sorted(record["tags"]) != copy["tags"] != record["tags"]
    (copy,) = copies(record, edit=Delete(Amount(0.9)), tokens=Tokens(beside=False))
    assert len(copy["tokens"]) < 4
    assert list(copy) == ["tokens", "label", "augmented_from"]
    (copy,) = copies(record, tokens=Tokens(align=("more",), beside=False))
    assert [token.upper() for token in copy["tokens"]] == copy["more"]
    assert {"tags", "pos"}.isdisjoint(copy)


@pytest.mark.parametrize("scheme", ["iob2", "auto"])
def test_a_scheme_is_of_tags_and_not_of_parts_of_speech(scheme):
    tokens = Tokens(align=("ner", "lemma"), scheme=scheme)
    record = {
        "tokens": [*"abc"],
        "pos": ["M", "I", "E"],
        "tags": ["O", "O", "O"],
        "ner": ["B-X", "I-X", "O"],
        "lemma": ["B", "I", "A"],
    }
    assert [len(unit) for unit in tokens.read(record).units] == [2, 1]
    for field in ("tags", "ner"):
        with pytest.raises(RecordError, match=f"\"{field}\": tag 2, 'I-X' after 'O'"):
            tokens.read({**record, field: ["O", "I-X", "O"]})


def test_tags_that_are_surely_tags_must_be_of_the_scheme():
    record = {"tokens": ["a", "b"], "tags": ["B-X", "X"]}
    assert len(Tokens().read(record).units) == 2
    with pytest.raises(RecordError, match="tag 2, 'X' is no tag of iob2"):
        Tokens(scheme="iob2").read(record)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"tags": ["O"]}, r'"tags" has 1 items, but "tokens" has 4 \(see --align\)'),
        ({"tags": "O"}, '"tags" must be a list, got string'),
        ({"tags": ["O", "I-X", "O", "O"]}, "\"tags\": tag 2, 'I-X' after 'O'"),
        ({"tokens": "a"}, '"tokens" must be a list of strings'),
    ],
)
def test_records_that_do_not_fit(more, said):
    with pytest.raises(RecordError, match=said):
        copies({**RECORD, **more})


def test_a_field_that_is_named_must_be_there():
    with pytest.raises(RecordError, match='"more" is missing'):
        copies(RECORD, tokens=Tokens(align=("more",)))


def test_what_is_drawn_depends_on_the_name_alone():
    many = {"tokens": [*"abcdefghij"]}
    made = [
        copies({**many, "id": name}, number)[0]["tokens"] for name in (1, "1") for number in (1, 2)
    ]
    assert made[0] == made[1] != made[2] == made[3]
    assert copies(many, 1)[0]["tokens"] == made[0]  # number 1, as the id 1
    assert copies(many, 1)[0] != copies(many, 2)[0]
    assert copies(many, 1)[0] != copies(many, 1, seed=1)[0]
    assert copies(many, 1) == copies(many, 1, written=Number(copies=2))[:1]


@pytest.mark.parametrize(
    ("origin", "name"),
    [
        ({"id": "x", "augmented_from": 3}, "x"),
        ({"augmented_from": 3}, 3),
        ({"id": None}, 8),
        ({"id": None, "augmented_from": 3}, 3),
        ({}, 8),
        ({"id": 1.5}, 1.5),
        ({"id": [1, "a"]}, [1, "a"]),
        ({"id": 2**70}, 2**70),
    ],
)
def test_what_a_copy_was_made_of(origin, name):
    copy = as_copy(origin, origin, 8)
    assert copy == {"augmented_from": name}


def test_copies_that_are_as_the_record_are_counted():
    counts = Counter()
    nothing = Replace(Amount(), Synonyms(groups=[["x", "y"]]))
    assert len(copies(RECORD, edit=nothing, written=Number(copies=2), counts=counts)) == 2
    assert (counts["copies"], counts["unchanged"]) == (2, 2)
    written = Number(copies=2, keep=True, drop_unchanged=True)
    assert copies(RECORD, edit=nothing, written=written) == [RECORD]
    changed = Swap(Amount())
    same = {"tokens": ["a", "a"], "tags": ["B-X", "O"]}  # other tags for the tokens are a change
    assert len(copies(same, edit=changed, written=Number(drop_unchanged=True))) == 1
    assert copies({"tokens": ["a", "a"]}, edit=changed, written=Number(drop_unchanged=True)) == []


def test_empty_records_are_left_as_they_are():
    for edit in (Swap(Amount()), Delete(Amount())):
        assert copies({"tokens": [], "tags": []}, edit=edit) == [
            {"tokens": [], "tags": [], "augmented_from": 1}
        ]


def test_lists_beside_the_tokens_leave_a_copy_with_others():
    counts = Counter()
    record = {**RECORD, "lemma": [*"abcd"], "other": ["a"], "tags": ["O"] * 4, "id": [1, 2, 3, 4]}
    kept, *others = copies(record, written=Number(copies=2, keep=True), counts=counts)
    assert kept == record
    for copy in others:
        assert list(copy) == ["tokens", "label", "other", "tags", "augmented_from"]
        assert copy["augmented_from"] == [1, 2, 3, 4]
    assert {key: count for key, count in counts.items() if "left" in key} == {"left lemma": 2}
    nothing = Replace(Amount(), Synonyms(groups=[["x", "y"]]))
    (same,) = copies(record, edit=nothing)
    assert same["lemma"] == record["lemma"]


def test_what_is_made_of_a_text():
    assert of_text("text") >= {"tokens", "ids", "offsets", "tags", "pos"}
    assert of_text("src") >= {"src_tokens", "src_ids"}
    assert "tokens" not in of_text("src")
