import math

import pytest

from seqtools.errors import RecordError
from seqtools.text.stats.labels import Labels, balance, entity_types


def report(statistic, *records):
    for number, record in enumerate(records, 1):
        statistic.add(record, number)
    return [*statistic.report()]


def test_labels_and_records_that_have_none():
    records = [{"label": "b"}, {"label": "a"}, {"label": "b"}, {}, {"label": None}, {"label": []}]
    head, first, second = report(Labels(), *records)
    assert (head["records"], head["missing"], head["labels"], head["types"]) == (6, 3, 3, 2)
    assert head["imbalance"] == 2
    assert (first["label"], first["count"], first["share"]) == ("b", 2, 2 / 3)
    assert (second["label"], second["records"], second["record_share"]) == ("a", 1, 1 / 6)


def test_tags_are_counted_each_and_by_record():
    records = [{"tags": ["O", "O", "X"]}, {"tags": ["O"]}]
    _, first, second = report(Labels(["tags"]), *records)
    assert (first["label"], first["count"], first["records"]) == ("O", 3, 2)
    assert (second["label"], second["count"], second["records"]) == ("X", 1, 1)


def test_ties_are_in_the_order_of_code_points():
    labels = ["中", "é", "a", "Z"]
    found = report(Labels(["labels"]), {"labels": labels})
    assert [each["label"] for each in found[1:]] == ["Z", "a", "é", "中"]


def test_balance():
    even = balance(dict.fromkeys("abcd", 7))
    assert even["entropy"] == pytest.approx(math.log(4))
    assert even["effective"] == pytest.approx(4)
    assert (even["evenness"], even["imbalance"]) == (pytest.approx(1), 1)
    # Shares 1/2, 1/4, 1/4 have 1.5 bits.
    uneven = balance({"a": 2, "b": 1, "c": 1})
    assert uneven["entropy"] == pytest.approx(1.5 * math.log(2))
    assert uneven["evenness"] == pytest.approx(1.5 / math.log2(3))
    assert uneven["imbalance"] == 2
    assert balance({"a": 5}) == {"entropy": 0, "effective": 1, "evenness": 1, "imbalance": 1}


@pytest.mark.parametrize(
    ("tags", "types"),
    [
        ("B-PER I-PER O B-LOC B-LOC", "PER LOC LOC"),  # IOB2
        ("I-PER I-PER O I-LOC B-LOC I-ORG", "PER LOC LOC ORG"),  # IOB1
        ("S-PER B-PER E-PER S-PER O", "PER PER PER"),  # IOBES
        ("B-LOC M-LOC E-LOC S-LOC", "LOC LOC"),  # BMES
        ("B-LOC I-LOC L-LOC U-LOC", "LOC LOC"),  # BILOU
        ("B-PER E-PER I-PER", "PER PER"),  # an end is an end
        ("O I-PER B-PER", "PER PER"),
        ("B-PER I-LOC", "PER LOC"),
        ("B-a-b I-a-b", "a-b"),
        ("O O", ""),
        ("", ""),
    ],
)
def test_entities_of_all_schemes(tags, types):
    assert entity_types(tags.split()) == types.split()


@pytest.mark.parametrize("tag", ["PER", "B-", "-PER", "X-PER", "B", "b-PER", "", "NN"])
def test_what_is_no_tag_of_entities(tag):
    statistic = Labels(["tags"], entities=True)
    with pytest.raises(RecordError, match="is no tag of entities"):
        statistic.add({"tags": ["B-PER", tag]}, 1)
    assert report(statistic)[0]["records"] == 0


def test_entities_are_reported_by_count():
    records = [{"tags": ["B-LOC", "O", "B-PER"]}, {"tags": ["B-PER"]}]
    found = [each for each in report(Labels(["tags"], entities=True), *records) if "type" in each]
    assert [(each["type"], each["count"], each["share"]) for each in found] == [
        ("PER", 2, 2 / 3),
        ("LOC", 1, 1 / 3),
    ]


@pytest.mark.parametrize("value", [5, True, {"a": 1}, ["a", 1]])
def test_what_is_no_label_is_a_bad_record(value):
    statistic = Labels(["label", "tags"])
    with pytest.raises(RecordError, match='"tags" must be'):
        statistic.add({"label": "a", "tags": value}, 1)
    assert report(statistic)[0]["records"] == 0
