"""Share of equal values, and precision, recall and F1 of each."""

import random
from fractions import Fraction
from typing import Any

import pytest

from seqtools.errors import RecordError
from seqtools.evaluation.accuracy import Accuracy, get_guesses


def score(pairs: list[tuple[Any, Any]], **options: bool) -> dict[str, Any]:
    accuracy = Accuracy(**options)
    for hypothesis, reference in pairs:
        accuracy.add(hypothesis, [reference])
    return accuracy.result()


def test_labels() -> None:
    pairs = [("joy", "joy"), ("joy", "fear"), ("fear", "fear"), ("fear", "fear")]
    assert score(pairs) == {
        "metric": "accuracy", "score": 0.75, "correct": 3, "total": 4,
        "majority": 0.75, "majority_value": "fear", "records": 4,
    }  # fmt: skip


def test_lists_count_by_item_and_not_by_record() -> None:
    found = score([(["a"], ["a"]), (["a", "b", "a"], ["b", "b", "b"]), ([], [])])
    assert (found["score"], found["correct"], found["total"]) == (0.5, 2, 4)
    assert (found["majority"], found["majority_value"]) == (0.75, "b")
    assert found["records"] == 3


def test_what_was_not_to_be_guessed_counts_nowhere() -> None:
    found = score([([None, "b", None], ["a", "a", "a"]), ([None, "c"], ["a", "c"])], labels=True)
    assert (found["score"], found["total"]) == (0.5, 2)
    assert (found["majority"], found["majority_value"]) == (0.5, "a")  # a and c, once each
    assert sum(row["count"] for row in found["labels"]) == 2


def test_of_equally_common_values_the_first_by_code_point_is_the_majoritys() -> None:
    for values in ("ba", "ab"):
        assert score([("x", value) for value in values])["majority_value"] == "a"


def test_without_case() -> None:
    pairs = [("ÄB", "äb"), ("c", "Äb")]
    assert score(pairs)["correct"] == 0
    found = score(pairs, lowercase=True)
    assert (found["lowercase"], found["correct"]) == (True, 1)
    assert (found["majority"], found["majority_value"]) == (1.0, "äb")


def test_precision_recall_and_f1() -> None:
    # Two right of three guesses and four references of a; b guessed, never meant; c never guessed.
    pairs = [("a", "a"), ("a", "a"), ("a", "c"), ("b", "a"), ("b", "a")]
    found = score(pairs, labels=True)
    assert found["labels"] == [
        {"label": "a", "precision": 2 / 3, "recall": 1 / 2, "f1": 4 / 7, "count": 4, "guessed": 3},
        {"label": "c", "precision": 0.0, "recall": 0.0, "f1": 0.0, "count": 1, "guessed": 0},
        {"label": "b", "precision": 0.0, "recall": 0.0, "f1": 0.0, "count": 0, "guessed": 2},
    ]
    assert found["macro_f1"] == pytest.approx(4 / 21)


def test_the_table_is_that_of_the_confusion_matrix() -> None:
    chance = random.Random(5)
    pairs = [(chance.choice("abcd"), chance.choice("aabbc")) for _ in range(200)]
    found = score(pairs, labels=True)
    scores = []
    for row in found["labels"]:
        label = row["label"]
        right = sum(pair == (label, label) for pair in pairs)
        guessed = sum(guess == label for guess, _ in pairs)
        meant = sum(value == label for _, value in pairs)
        precision = Fraction(right, guessed)
        recall = Fraction(right, meant) if meant else Fraction(0)
        mean = 2 * precision * recall / (precision + recall) if right else Fraction(0)
        assert [row["precision"], row["recall"], row["f1"]] == [
            float(precision), float(recall), pytest.approx(float(mean)),
        ]  # fmt: skip
        assert (row["count"], row["guessed"]) == (meant, guessed)
        scores.append(mean)
    assert [row["label"] for row in found["labels"]][3:] == ["d"]  # guessed, but never meant
    assert found["macro_f1"] == pytest.approx(float(sum(scores) / 4))
    assert found["score"] == sum(guess == value for guess, value in pairs) / 200


@pytest.mark.parametrize(
    ("hypothesis", "reference", "reason"),
    [
        (["a", "b"], ["a"], "the output has 2 values, but its reference 1"),
        ("ab", ["a", "b"], "the output is a string, but its reference a list"),
        (["a"], "a", "the output is a list, but its reference a string"),
    ],
)
def test_what_does_not_fit_is_bad_and_counts_for_nothing(
    hypothesis: Any, reference: Any, reason: str
) -> None:
    accuracy = Accuracy()
    accuracy.add("a", ["a"])
    with pytest.raises(RecordError, match=reason):
        accuracy.add(hypothesis, [reference])
    found = accuracy.result()
    assert (found["total"], found["records"]) == (1, 1)


def test_nothing_to_guess() -> None:
    with pytest.raises(RecordError, match="no record has a value to compare"):
        score([([], []), ([None], ["a"])])


def test_guesses_stand_where_the_mask_is() -> None:
    record = {"out": ["a", "b", "c"], "tokens": ["a", "<mask>", "[MASK]"], "label": "x"}
    assert get_guesses(record, "out", "tokens", "<mask>") == [None, "b", None]
    assert get_guesses(record, "out", None, "<mask>") == ["a", "b", "c"]
    assert get_guesses(record, "label", None, "<mask>") == "x"


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ({"out": ["a"], "tokens": []}, '"out" has 1 values, but "tokens" 0'),
        ({"out": ["a"]}, '"tokens" is missing'),
        ({"out": "a", "tokens": ["<mask>"]}, '"out" must be a list of strings, got string'),
        ({"out": ["a"], "tokens": "<mask>"}, '"tokens" must be a list of strings, got string'),
    ],
)
def test_bad_masks(record: dict[str, Any], reason: str) -> None:
    with pytest.raises(RecordError, match=reason):
        get_guesses(record, "out", "tokens", "<mask>")
