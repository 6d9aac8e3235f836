import tempfile
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqtools.errors import SeqtoolsError
from seqtools.text import coverage
from seqtools.text.coverage import Coverage, Learned, Measured, ladder
from seqtools.text.vocab import Vocabulary

RECORDS = st.lists(st.lists(st.sampled_from(["a", "b", "c", "d", "é", "中", "<s>"]), max_size=6))


def by_definition(records, vocabulary, counts, size) -> dict:
    """What the first `size` entries that are no specials cover, counted one by one."""
    first = len(vocabulary.specials)
    kept = set(vocabulary.tokens[first : first + size])
    tokens = [token for record in records for token in record]
    covered = sum(token in kept for token in tokens)
    records = [record for record in records if record]
    whole = sum(set(record) <= kept for record in records)
    row = {"size": size}
    if kept:
        row["min_count"] = min(counts[token] for token in kept)
    return row | {
        "tokens": covered,
        "token_coverage": covered / len(tokens),
        "records": whole,
        "record_coverage": whole / len(records),
    }


@given(RECORDS, st.sets(st.integers(1, 9)), st.integers(1, 4))
def test_records_by_their_own_types(records, sizes, portion) -> None:
    counts = Counter(token for record in records for token in record)
    vocabulary = Vocabulary.build(counts)
    with pytest.MonkeyPatch.context() as patch, Learned(["<s>", "<pad>"]) as learned:
        patch.setattr(coverage, "_PORTION", portion)
        patch.setattr(coverage, "_IN_MEMORY", 2 * portion)
        for record in records:
            learned.add(record)
        found = learned.result()
        spelled = learned.spelled()
    assert spelled == ({"<s>": counts["<s>"]} if counts["<s>"] else {})
    assert found.types == len(vocabulary) - 4
    assert list(found.rows(sorted(sizes))) == [
        by_definition(records, vocabulary, counts, size) for size in sorted(sizes) if counts
    ]


@given(RECORDS, RECORDS, st.sets(st.integers(1, 9)))
def test_records_by_another_vocabulary(learned_from, records, sizes) -> None:
    counts = Counter(token for record in learned_from for token in record)
    vocabulary = Vocabulary.build(counts)
    measured = Measured(vocabulary)
    for record in records:
        measured.add(record)
    assert list(measured.result().rows(sorted(sizes))) == [
        by_definition(records, vocabulary, counts, size) for size in sorted(sizes) if any(records)
    ]


def test_a_vocabulary_by_its_own_counts() -> None:
    vocabulary = Vocabulary.build({"a": 5, "b": 3, "c": 2}, multiple=8)
    found = Coverage.of_vocabulary(vocabulary, vocabulary.counts)
    assert list(found.rows(ladder(found.types))) == [
        {"size": 1, "min_count": 5, "tokens": 5, "token_coverage": 0.5},
        {"size": 2, "min_count": 3, "tokens": 8, "token_coverage": 0.8},
        {"size": 3, "min_count": 2, "tokens": 10, "token_coverage": 1.0},
    ]


def test_pieces_have_an_order_and_no_counts() -> None:
    measured = Measured(Vocabulary.of_pieces(["b", "a"]))
    measured.add(["a", "b", "b", "z"])
    assert list(measured.result().rows([1, 2])) == [
        {"size": 1, "tokens": 2, "token_coverage": 0.5, "records": 0, "record_coverage": 0.0},
        {"size": 2, "tokens": 3, "token_coverage": 0.75, "records": 0, "record_coverage": 0.0},
    ]


@pytest.mark.parametrize(
    ("types", "sizes"),
    [(0, []), (1, [1]), (2, [1, 2]), (5, [1, 2, 5]), (12, [1, 2, 5, 10, 12]), (10, [1, 2, 5, 10])],
)
def test_ladder(types: int, sizes: list[int]) -> None:
    assert ladder(types) == sizes


def test_much_goes_to_a_file_and_gives_the_same(monkeypatch) -> None:
    def rows() -> list[dict]:
        with Learned() as learned:
            for number in range(200):
                learned.add([f"w{n % 17}" for n in range(number)])
            return list(learned.result().rows(range(1, 18)))

    whole = rows()
    monkeypatch.setattr(coverage, "_IN_MEMORY", 3000)
    monkeypatch.setattr(coverage, "_PORTION", 50)
    assert rows() == whole


def test_no_room_for_the_file(monkeypatch) -> None:
    monkeypatch.setattr(coverage, "_IN_MEMORY", 1)
    monkeypatch.setattr(tempfile, "tempdir", "/absent")
    with Learned() as learned, pytest.raises(SeqtoolsError, match="temporary file: No such file"):
        learned.add(["a"])
