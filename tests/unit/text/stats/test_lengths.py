import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqtools.errors import RecordError
from seqtools.text.stats.lengths import Lengths, cut, histogram, summary

counted = st.dictionaries(st.integers(0, 300), st.integers(1, 9), min_size=1, max_size=30)


def spread(counts: dict[int, int]) -> list[int]:
    return [value for value, count in counts.items() for _ in range(count)]


def report(statistic, *records):
    for number, record in enumerate(records, 1):
        statistic.add(record, number)
    return [*statistic.report()]


@given(counted, st.lists(st.sampled_from([0.0, 0.1, 5.0, 33.3, 50.0, 99.9, 100.0]), unique=True))
def test_a_summary_is_what_the_standard_library_and_numpy_say(counts, percentiles):
    values = spread(counts)
    found = summary(counts, percentiles)
    assert (found["min"], found["max"]) == (min(values), max(values))
    assert found["mean"] == pytest.approx(statistics.fmean(values), rel=1e-12)
    assert found["deviation"] == pytest.approx(statistics.pstdev(values), rel=1e-12, abs=1e-12)
    assert found["median"] == statistics.median(values)
    expected = np.percentile(values, percentiles, method="inverted_cdf") if percentiles else []
    assert [*found["percentiles"].values()] == [*expected]


def test_a_percentile_is_what_is_written_and_not_the_float_next_to_it():
    # 99.9 / 100 * 1000 is 999.0000000000001 of doubles: the rank would be 1000.
    values = dict.fromkeys(range(1, 1001), 1)
    assert summary(values, [99.9])["percentiles"] == {"99.9": 999}


@given(counted, st.integers(1, 310))
def test_what_a_limit_cuts(counts, limit):
    values = spread(counts)
    kept = [min(value, limit) for value in values]
    found = cut(counts, limit)
    assert found["max_length"] == limit
    assert found["longer"] == sum(value > limit for value in values)
    assert found["longer_share"] == found["longer"] / len(values)
    assert found["lost"] == sum(values) - sum(kept)
    assert found["lost_share"] * sum(values) == pytest.approx(found["lost"])


@given(counted, st.integers(1, 30))
def test_the_bins_of_a_histogram_hold_all_lengths_once(counts, bins):
    found = histogram(counts, bins)
    assert len(found) <= bins
    lengths = [length for low, high, _ in found for length in range(low, high + 1)]
    assert lengths == [*range(lengths[-1] + 1)]  # without a gap, and none twice
    assert lengths[-1] >= max(counts)
    for low, high, count in found:
        assert count == sum(counts.get(length, 0) for length in range(low, high + 1))
    assert len({high - low for low, high, _ in found[:-1]}) <= 1


def test_a_few_long_records_do_not_press_the_others_into_one_bin():
    assert histogram({1: 50, 7: 49, 5000: 1}, 4) == [
        (0, 1, 50),
        (2, 3, 0),
        (4, 5, 0),
        (6, 5000, 50),
    ]
    assert histogram({0: 3}, 4) == [(0, 0, 3)]


def test_strings_in_characters_and_lists_in_tokens():
    both = {"text": "𠮷野", "tokens": ["𠮷", "野", "x"]}
    found = report(Lengths(["text", "tokens"]), both, {"text": "", "tokens": []})
    assert [(each.get("field"), each.get("unit"), each.get("total")) for each in found] == [
        ("text", "characters", 2),
        ("tokens", "tokens", 3),
        (None, None, None),
    ]
    assert [each["empty"] for each in found[:2]] == [1, 1]
    ratio = found[2]
    assert (ratio["records"], ratio["undefined"], ratio["mean"]) == (1, 1, 2 / 3)


def test_a_field_that_is_one_here_and_the_other_there_is_told_of_twice():
    found = report(Lengths(["x"]), {"x": "abc"}, {"x": ["abc"]})
    assert [(each["unit"], each["total"]) for each in found] == [("characters", 3), ("tokens", 1)]


def test_ratios_are_of_two_fields_only():
    fields = {"a": "xx", "b": "xxxx", "c": ""}
    found = report(Lengths(["a", "b"], percentiles=[50]), fields, {**fields, "a": "xxxx"})
    assert found[-1] == {
        "statistic": "ratio",
        "fields": ["a", "b"],
        "records": 2,
        "undefined": 0,
        "min": 0.5,
        "max": 1.0,
        "mean": 0.75,
        "deviation": 0.25,
        "median": 0.75,
        "percentiles": {"50": 0.5},
    }
    assert len(report(Lengths(["a", "b", "c"]), fields)) == 3
    alone = report(Lengths(["a", "c"]), fields)[-1]
    assert alone == {"statistic": "ratio", "fields": ["a", "c"], "records": 0, "undefined": 1}


def test_a_bad_record_changes_nothing():
    statistic = Lengths(["text", "tokens"])
    for record, reason in (
        ({"text": "a"}, '"tokens" is missing'),
        ({"text": 5, "tokens": []}, '"text" must be a string or a list of strings, got number'),
        ({"text": ["a", 1], "tokens": []}, "got number among them"),
        ({"text": "a", "tokens": "a"}, '"tokens" must be a list of strings, got string'),
    ):
        with pytest.raises(RecordError, match=reason):
            statistic.add(record, 1)
    assert [*statistic.report()] == []
