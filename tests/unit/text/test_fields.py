import pytest

from seqtools.errors import RecordError
from seqtools.text.fields import (
    base,
    derived,
    forget,
    get_ids_or_id,
    get_tokens_or_label,
    of_tokens,
)


def test_names() -> None:
    assert [derived(field, "tokens") for field in ("text", "src")] == ["tokens", "src_tokens"]
    names = ("tokens", "src_tokens", "tags", "label")
    assert [base(field, "tokens") for field in names] == ["text", "src", "tags", "label"]


def test_a_label_is_a_string_but_tokens_are_a_list() -> None:
    assert get_tokens_or_label({"label": "joy"}, "label") == "joy"
    assert get_tokens_or_label({"topics": ["a", "b"]}, "topics") == ["a", "b"]
    for field in ("tokens", "tags", "src_tokens"):
        with pytest.raises(RecordError, match="must be a list of strings, got string"):
            get_tokens_or_label({field: "abc"}, field)
    with pytest.raises(RecordError, match='"label" is missing'):
        get_tokens_or_label({}, "label")


def test_one_id_or_a_list() -> None:
    assert get_ids_or_id({"ids": [0, 4]}, "ids", 5) == [0, 4]
    assert get_ids_or_id({"label_ids": 4}, "label_ids", 5) == 4
    for bad in (5, -1, True, "3", [1.0], [True], [5], None):
        with pytest.raises(RecordError):
            get_ids_or_id({"ids": bad}, "ids", 5)


def test_what_is_made_of_tokens() -> None:
    assert of_tokens("text") == ("pos", "ids", "offsets", "onehot", "ngrams")
    assert of_tokens("src", {"src_pos", "ids"}) == (
        "src_ids",
        "src_offsets",
        "src_onehot",
        "src_ngrams",
    )
    record = {"pos": ["n"], "src_ids": [1], "id": 2}
    forget(record, of_tokens("text"))
    assert record == {"src_ids": [1], "id": 2}
