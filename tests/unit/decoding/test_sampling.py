import doctest
import math
import random

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from seqtools.decoding import sampling
from seqtools.decoding.constraints import Constraints
from seqtools.decoding.greedy import greedy
from seqtools.decoding.hypothesis import Prompts
from seqtools.decoding.sampling import (
    Sampler,
    draw,
    keep_top_k,
    keep_top_p,
    sample,
    source,
    temper,
)
from seqtools.errors import RecordError
from tests.unit.decoding.toy import BOS, EOS, NEVER, PAD, UNK, A, B, Bigram, Tree, toy2


def first_step(*, banned=(), **options):
    """What the toy's first token is drawn with: a, b, the end, unk."""
    logprobs = (
        toy2().logprobs[[BOS]].index_fill(1, torch.tensor(banned, dtype=torch.long), -math.inf)
    )
    weights = Sampler(**options).filter(logprobs).softmax(1)[0]
    return [float(weights[token]) for token in (A, B, EOS, UNK)]


def draws(model, *, prefixes=((BOS,),), length=20, keys="k", count=1, banned=NEVER, **options):
    sources = [source(0, key, n) for key in keys for n in range(count)]
    constraints = Constraints(EOS, [length] * len(prefixes), banned)
    return sample(model, Prompts.from_ids(prefixes), constraints, Sampler(**options), sources)


def test_docstring_examples():
    assert doctest.testmod(sampling).failed == 0


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [0.75, 0.125, 0.1, 0.025]),
        ({"temperature": 0.5}, [0.955414, 0.026539, 0.016985, 0.001062]),
        ({"temperature": 2.0}, [0.511255, 0.208719, 0.186684, 0.093342]),
        ({"temperature": 0}, [1, 0, 0, 0]),
        ({"temperature": 1e-4}, [1, 0, 0, 0]),
        ({"temperature": 5e-324}, [1, 0, 0, 0]),
        ({"top_k": 100}, [0.75, 0.125, 0.1, 0.025]),
        ({"top_k": 1}, [1, 0, 0, 0]),
        ({"top_k": 2}, [0.857143, 0.142857, 0, 0]),
        ({"top_p": 0.8}, [0.857143, 0.142857, 0, 0]),
        ({"top_p": 0.0}, [1, 0, 0, 0]),
        ({"top_p": 1.0}, [0.75, 0.125, 0.1, 0.025]),
        ({"banned": (UNK,)}, [0.769231, 0.128205, 0.102564, 0]),
        # temperature first: .955414 alone has the mass; then the top k, of whose mass top p speaks
        ({"temperature": 0.5, "top_p": 0.9}, [1, 0, 0, 0]),
        ({"top_k": 2, "top_p": 0.85}, [1, 0, 0, 0]),
        ({"min_p": 0.15}, [0.857143, 0.142857, 0, 0]),  # .1125 and more
        ({"min_p": 0.2}, [1, 0, 0, 0]),
        ({"min_p": 1.0}, [1, 0, 0, 0]),
        ({"min_p": 0.01}, [0.75, 0.125, 0.1, 0.025]),
        # temperature first: .511255 .208719 .186684 .093342, of which .2045 and more
        ({"temperature": 2.0, "min_p": 0.4}, [0.710102, 0.289898, 0, 0]),
        ({"top_k": 3, "min_p": 0.02}, [0.769231, 0.128205, 0.102564, 0]),
    ],
)
def test_first_step_of_the_toy(options, expected):
    assert first_step(**options) == pytest.approx(expected, abs=1e-6)


@settings(max_examples=100, deadline=None)
@given(
    row=st.lists(st.sampled_from([0.5, 1.0, 2.0, 4.0]), min_size=1, max_size=8),
    k=st.integers(1, 9),
    p=st.floats(0, 1),
)
def test_filters_equal_their_definitions(row, k, p):
    total = sum(row)
    logprobs = torch.tensor([[weight / total for weight in row]], dtype=torch.float64).log()
    order = sorted(range(len(row)), key=lambda place: (-row[place], place))
    kept = torch.isfinite(keep_top_k(logprobs, k))[0]
    assert [bool(x) for x in kept] == [order.index(place) < k for place in range(len(row))]
    fewest = next(
        (n for n in range(1, len(row) + 1) if sum(row[i] for i in order[:n]) / total >= p - 1e-9),
        len(row),
    )
    close = any(abs(sum(row[i] for i in order[:n]) / total - p) < 1e-9 for n in range(len(row) + 1))
    found = torch.isfinite(keep_top_p(logprobs, p))[0]
    if not close:
        assert [bool(x) for x in found] == [order.index(i) < fewest for i in range(len(row))]
    assert torch.equal(keep_top_p(logprobs, p)[0][found], logprobs[0][found])


def test_a_nucleus_past_the_sorted_head_is_found():
    logprobs = torch.full((2, 2000), 1 / 2000).log()
    logprobs[1, 7] += 12
    kept = torch.isfinite(keep_top_p(logprobs, 0.9)).sum(1)
    assert kept.tolist()[0] == pytest.approx(1800, abs=1)
    assert kept.tolist()[1] == 1


def test_each_row_is_filtered_alone():
    logprobs = torch.tensor([[0.5, 0.25, 0.25], [0.2, 0.4, 0.4], [0.1, 0.1, 0.8]]).log()
    assert torch.isfinite(keep_top_k(logprobs, 2)).tolist() == [
        [True, True, False],
        [False, True, True],
        [True, False, True],
    ]
    assert torch.isfinite(keep_top_p(logprobs, 0.7)).tolist() == [
        [True, True, False],
        [False, True, True],
        [False, False, True],
    ]


def test_temperature_changes_nothing_at_one():
    logprobs = torch.tensor([[0.7, 0.3, 0.0]]).log()
    assert temper(logprobs, 1.0).softmax(1)[0].tolist() == pytest.approx([0.7, 0.3, 0])


@settings(max_examples=100, deadline=None)
@given(
    weights=st.lists(st.integers(0, 5), min_size=1, max_size=6).filter(any),
    uniform=st.floats(0, 1, exclude_max=True),
)
def test_drawing_inverts_the_cumulative_distribution(weights, uniform):
    probabilities = torch.tensor([weights], dtype=torch.float64) / sum(weights)
    drawn = int(draw(probabilities.log(), torch.tensor([uniform], dtype=torch.float64)))
    assert weights[drawn] > 0
    below = sum(weights[:drawn]) / sum(weights)
    assert below - 1e-12 <= uniform <= below + weights[drawn] / sum(weights) + 1e-12


def test_the_ends_of_the_unit_interval_draw_the_outer_tokens():
    logprobs = torch.tensor([[0.0, 0.1, 0.9, 0.0]]).log()
    edges = torch.tensor([0.0, 1 - 2**-53], dtype=torch.float64)
    assert draw(logprobs.expand(2, -1), edges).tolist() == [1, 2]


def test_without_temperature_it_is_greedy():
    prompts = Prompts.from_ids([[BOS], [BOS, B, A]])
    constraints = Constraints(EOS, [9, 9], NEVER)
    expected = greedy(toy2(), prompts, constraints)
    for options in ({"temperature": 0}, {"top_k": 1}, {"top_p": 0.0}, {"temperature": 1e-4}):
        found = draws(toy2(), prefixes=[[BOS], [BOS, B, A]], keys="kl", length=9, **options)
        assert [one.ids for [one] in found] == [one.ids for one in expected]
        assert [one.logprob for [one] in found] == [one.logprob for one in expected]


def test_of_equals_top_1_takes_what_greedy_takes():
    model = Bigram(torch.full((6, 6), 1 / 6).log())
    [[found]] = draws(model, length=4, top_k=1, banned=[PAD])
    assert found.ids == [UNK] * 4


def test_samples_come_as_often_as_they_are_likely():
    [found] = draws(toy2(), count=4000)
    share = {
        ids: sum(tuple(h.ids) == ids and h.finished for h in found) / 4000
        for ids in [(), (A,), (A, B), (B,)]
    }
    expected = {(): 0.1, (A,): 0.225, (A, B): 0.1875, (B,): 0.0625}
    for ids, probability in expected.items():
        # four standard deviations
        spread = 4 * math.sqrt(probability * (1 - probability) / 4000)
        assert share[ids] == pytest.approx(probability, abs=spread)


def test_samples_depend_on_seed_key_and_number_alone():
    alone = [draws(toy2(), keys=[key], count=3)[0] for key in "abc"]
    together = draws(toy2(), prefixes=[[BOS]] * 3, keys="abc", count=3)
    assert [[h.ids for h in one] for one in together] == [[h.ids for h in one] for one in alone]
    [fewer] = draws(toy2(), keys="a", count=2)
    assert all(h.ids in [other.ids for other in alone[0]] for h in fewer)
    numbers = {source(seed, key, n).random() for seed in (0, 1) for key in "ab" for n in (0, 1)}
    assert len(numbers) == 8


def test_logprob_is_the_models_own_and_the_likeliest_sample_comes_first():
    model = Tree(size=5, depth=4, seed=3)
    sources = [source(1, "x", n) for n in range(8)]
    constraints = Constraints(model.eos, [4], [0, 2])
    sampler = Sampler(temperature=3.0, top_k=3)
    [found] = sample(model, Prompts.from_ids([[0]]), constraints, sampler, sources)
    for one in found:
        tokens = [*one.ids, model.eos] if one.finished else one.ids
        assert 2 not in tokens
        assert one.logprob == pytest.approx(model.logprob(tokens), abs=1e-5)
        assert one.score == one.logprob
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)


def test_samples_are_cut_at_the_longest_length():
    [found] = draws(toy2(), length=2, count=50)
    assert {len(one.token_logprobs) for one in found} == {1, 2}
    assert all(one.finished == (len(one.ids) < len(one.token_logprobs)) for one in found)


def test_attention_belongs_to_its_sample():
    prompts = Prompts.from_ids([[BOS], [BOS]], [[7, 1], [5]])
    sources = [source(0, key, n) for key in "ab" for n in range(3)]
    constraints = Constraints(EOS, [6, 6], NEVER)
    found = sample(toy2(attends=True), prompts, constraints, Sampler(), sources, attention=True)
    for one in found[0]:
        fed = [BOS, *one.ids][: len(one.token_logprobs)]
        digits = [int("".join(map(str, fed[: n + 1]))) for n in range(len(fed))]
        assert one.attention["cross"][0, 0, :, 1].tolist() == digits
    assert {one.attention["cross"].shape[-1] for one in found[1]} == {1}


@pytest.mark.parametrize("value", [-math.inf, math.nan])
@pytest.mark.parametrize("temperature", [0, 1.0])
def test_no_probability_at_all_is_an_error_and_no_random_token(value, temperature):
    table = toy2().logprobs.clone()
    table[BOS] = value
    with pytest.raises(RecordError, match="no finite log-probability"):
        draws(Bigram(table), temperature=temperature)


@pytest.mark.parametrize(
    ("name", "value"),
    [("temperature", value) for value in (-1, math.nan, math.inf)]
    + [(name, value) for name in ("top_p", "min_p") for value in (-0.1, 1.5, math.nan)]
    + [("top_k", 0)],
)
def test_nonsense_is_refused(name, value):
    with pytest.raises(ValueError, match=f"{name} must be"):
        Sampler(**{name: value})


def test_sources_must_come_out_even():
    prompts = Prompts.from_ids([[BOS], [BOS]])
    constraints = Constraints(EOS, [2, 2], NEVER)
    with pytest.raises(ValueError, match="3 random sources for 2 records"):
        sample(toy2(), prompts, constraints, Sampler(), [random.Random(n) for n in range(3)])


def test_rounding_of_probabilities_stays_small():
    logprobs = torch.randn(4, 50).log_softmax(1)
    assert np.allclose(temper(logprobs, 1.0).softmax(1), logprobs.exp(), atol=1e-6)
