import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqtools.errors import RecordError
from seqtools.text.stats.tokens import Tokens, fit_heaps, fit_zipf, grid, measures

corpora = st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=12), min_size=1, max_size=9)


def gather(corpus, **options):
    statistic = Tokens(**options)
    for number, tokens in enumerate(corpus, 1):
        statistic.add({"tokens": tokens}, number)
    return [*statistic.report()]


def of(report, statistic):
    return [each for each in report if each["statistic"] == statistic]


@given(corpora)
def test_counts_spectrum_growth_and_top_by_counting_again(corpus):
    report = gather(corpus, top=3, spectrum=2)
    text = [token for tokens in corpus for token in tokens]
    counts = Counter(text)
    head = report[0]
    assert (head["records"], head["tokens"], head["types"]) == (len(corpus), len(text), len(counts))
    for each in of(report, "growth"):
        assert each["types"] == len(set(text[: each["tokens"]]))
    assert [each["tokens"] for each in of(report, "growth")] == grid(len(text))
    spectrum = {each["count"]: each["types"] for each in of(report, "spectrum")}
    expected = Counter(counts.values())
    assert spectrum == {count: expected[count] for count in (1, 2) if expected[count]}
    best = sorted(counts, key=lambda token: (-counts[token], token))[:3]
    assert [each["token"] for each in of(report, "top")] == best
    assert [each["count"] for each in of(report, "top")] == [counts[token] for token in best]


def test_the_growth_within_a_record_counts_from_its_first_token():
    [head, *_] = gather([["a", "b", "a", "c"], ["c", "d"]])
    assert head["types"] == 4
    growth = of(gather([["a", "b", "a", "c"], ["c", "d"]]), "growth")
    assert [(each["tokens"], each["types"]) for each in growth] == [(1, 1), (2, 2), (5, 3), (6, 4)]


def test_fields_are_counted_apart():
    statistic = Tokens(["src_tokens", "tgt_tokens"])
    statistic.add({"src_tokens": ["a"], "tgt_tokens": ["a", "b"]}, 1)
    heads = of([*statistic.report()], "tokens")
    assert [(each["field"], each["tokens"]) for each in heads] == [
        ("src_tokens", 1),
        ("tgt_tokens", 2),
    ]
    with pytest.raises(RecordError, match="tgt_tokens"):
        statistic.add({"src_tokens": ["a"]}, 2)
    assert of([*statistic.report()], "tokens") == heads


def test_yules_k_is_the_chance_that_two_tokens_drawn_are_of_one_type():
    # Yule (1944): K = 10^4 sum of p^2 less what a type contributes by itself, 1/N.
    text = ["to", "be", "or", "not", "to", "be", "that", "is", "the", "question"]
    counts = Counter(text)
    same = sum(a == b for i, a in enumerate(text) for j, b in enumerate(text) if i != j)
    found = measures(Counter(counts.values()), len(text))
    assert found["yule_k"] == pytest.approx(1e4 * same / len(text) ** 2, rel=1e-12)
    assert found["type_token_ratio"] == 8 / 10
    assert (found["hapax"], found["hapax_share"]) == (6, 6 / 8)


@pytest.mark.parametrize("exponent", [0.3, 0.9995, 1.0, 1.2, 2.5])
@pytest.mark.parametrize("types", [2, 50, 100, 101, 5000, 200_000])
def test_zipfs_exponent_of_frequencies_that_follow_the_law(exponent, types):
    ranks = np.arange(1, types + 1)
    frequencies = 1e9 * ranks**-exponent
    # Not whole numbers, so each frequency is that of one type, and the law holds exactly.
    spectrum = dict.fromkeys(frequencies.tolist(), 1)
    assert fit_zipf(spectrum) == pytest.approx(exponent, abs=6e-7)


@given(st.lists(st.integers(1, 50), min_size=2, max_size=300).filter(lambda x: len({*x}) > 1))
def test_zipfs_exponent_has_the_highest_likelihood(frequencies):
    ordered = np.sort(np.array(frequencies))[::-1]
    ranks = np.arange(1, len(ordered) + 1)

    def likelihood(exponent):
        shares = ranks**-exponent
        return (ordered * np.log(shares / shares.sum())).sum()

    best = fit_zipf(Counter(frequencies))
    assert best is not None
    # It is concave: no better on either side, but for rounding.
    for other in (best - 0.01, best + 0.01):
        assert likelihood(best) > likelihood(other) - 1e-9


def test_where_all_types_are_equally_frequent_there_is_no_law():
    assert fit_zipf({3: 7}) is None
    assert "zipf_exponent" not in gather([["a", "b"]])[0]


def test_heaps_law_is_recovered_from_points_on_it():
    points = [(n, 40 * n**0.5) for n in (1, 10, 1000, 2000, 10_000, 50_000)]
    found = fit_heaps(points)
    assert found["heaps_beta"] == pytest.approx(0.5, rel=1e-12)
    assert found["heaps_k"] == pytest.approx(40, rel=1e-12)


def test_heaps_law_is_the_line_of_numpy_from_a_thousand_tokens_on():
    points = [(10, 9), (1000, 300), (2000, 500), (5000, 1100), (7000, 1200)]
    beta, constant = np.polyfit(*np.log(points[1:]).T, 1)
    found = fit_heaps(points)
    assert found["heaps_beta"] == pytest.approx(beta, rel=1e-9)
    assert found["heaps_k"] == pytest.approx(math.exp(constant), rel=1e-9)
    assert fit_heaps(points[:2]) == {}


def test_the_grid():
    assert grid(0) == []
    assert grid(1) == [1]
    assert grid(10) == [1, 2, 5, 10]
    assert grid(1234) == [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 1234]


def test_no_tokens_at_all():
    assert gather([]) == [
        {"statistic": "tokens", "field": "tokens", "records": 0, "tokens": 0, "types": 0}
    ]
    assert gather([[]])[0]["records"] == 1
