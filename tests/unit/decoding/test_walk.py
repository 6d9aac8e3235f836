"""A language model beside the model: what it changes, and what it does not."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from seqtools.decoding.beam import beam
from seqtools.decoding.constraints import Constraints
from seqtools.decoding.greedy import greedy
from seqtools.decoding.hypothesis import Prompts
from seqtools.decoding.penalty import Penalty
from seqtools.decoding.sampling import Sampler, sample, source
from seqtools.decoding.walk import Beside
from tests.unit.decoding.toy import BOS, EOS, NEVER, UNK, A, B, Bigram, Tree, toy2

PROMPT = Prompts.from_ids([[BOS]])


@settings(max_examples=60, deadline=None)
@given(
    size=st.integers(3, 4),
    longest=st.integers(1, 4),
    seed=st.integers(0, 10**6),
    weight=st.sampled_from([0.1, 1.0, 3.0]),
    repetition=st.sampled_from([1.0, 1.5]),
    alpha=st.sampled_from([0.0, 1.0]),
)
def test_the_widest_beam_ranks_by_both(size, longest, seed, weight, repetition, alpha):
    model, other, penalty = Tree(size, longest, seed), Tree(size, longest, seed + 1), Penalty(alpha)

    def rank(tokens):
        total, node = 0.0, 0
        for at, token in enumerate(tokens):
            value = float(model.table[node, token]) + weight * float(other.table[node, token])
            total += value * (repetition if token in tokens[:at] else 1.0)
            node = node * size + token + 1
        return penalty.score(total, len(tokens))

    every = sorted(
        ((rank(tokens), tokens) for tokens, _, _ in model.sequences(longest)), reverse=True
    )
    [found] = beam(
        model,
        Prompts.from_ids([[0]]),
        Constraints(1, [longest], [0], repetition_penalty=repetition),
        width=size**longest,
        nbest=4,
        penalty=penalty,
        beside=Beside(other, weight),
    )
    tokens = [[*one.ids, *([1] if one.finished else [])] for one in found]
    assert tokens == [tokens for _, tokens in every[:4]]
    assert [one.score for one in found] == pytest.approx([s for s, _ in every[:4]], abs=1e-5)
    for one, sequence in zip(found, tokens, strict=True):
        assert one.logprob == pytest.approx(model.logprob(sequence), abs=1e-5)


def other():
    """After anything, b is likelier than a, and the end comes after b only."""
    table = torch.full((6, 6), -math.inf)
    table[:, [A, B]] = torch.tensor([0.2, 0.8]).log()
    table[B, [A, B, EOS]] = torch.tensor([0.1, 0.1, 0.8]).log()
    return Bigram(table)


def test_greedy_search_and_draws_are_led_by_it():
    rules = Constraints(EOS, [9], NEVER)
    [alone] = greedy(toy2(), PROMPT, rules, beside=Beside(other(), 0.1))
    assert alone.ids == [A, B]
    [found] = greedy(toy2(), PROMPT, rules, beside=Beside(other(), 2.0))
    # a .75 * .04 against b .125 * .64, then the end
    assert found.ids == [B]
    assert found.logprob == pytest.approx(math.log(0.125 * 0.5))
    assert found.score == pytest.approx(math.log(0.125 * 0.5) + 2 * math.log(0.8 * 0.8))
    sources = [source(0, "", number) for number in range(400)]
    first = Constraints(EOS, [1], NEVER)
    [drawn] = sample(toy2(), PROMPT, first, Sampler(), sources, beside=Beside(other(), 2.0))
    share = sum(one.ids == [B] for one in drawn) / len(drawn)
    assert share == pytest.approx(0.08 / 0.11, abs=0.07)
    assert [one.score for one in drawn] == sorted((one.score for one in drawn), reverse=True)
    assert {UNK} & {one.ids[0] for one in drawn if one.ids} == set()


def test_it_starts_from_a_prompt_of_its_own():
    prompts = Prompts.from_ids([[BOS], [BOS, A]], [[7], [8, 9]])
    rules = Constraints(EOS, [9, 9], NEVER)
    own = Prompts.from_ids([[B], [A, A]])
    found = greedy(toy2(), prompts, rules, beside=Beside(other(), 2.0, own))
    # after b of its own: a .75 * .01, b .125 * .01, the end .1 * .64
    assert [one.ids for one in found] == [[], [B]]
    again = [greedy(toy2(), prompts, rules, beside=Beside(other(), 2.0))[row].ids for row in (0, 1)]
    assert again == [[B], [B]]


def test_records_do_not_depend_on_their_neighbours():
    prefixes, lengths = [[BOS], [BOS, A], [BOS, B, A]], [7, 2, 5]
    beside = Beside(other(), 0.5)
    together = beam(
        toy2(), Prompts.from_ids(prefixes), Constraints(EOS, lengths, NEVER), width=3, nbest=3,
        beside=beside,
    )  # fmt: skip
    for found, prefix, length in zip(together, prefixes, lengths, strict=True):
        rule = Constraints(EOS, [length], NEVER)
        prompt = Prompts.from_ids([prefix])
        [alone] = beam(toy2(), prompt, rule, width=3, nbest=3, beside=beside)
        assert [(one.ids, one.score) for one in found] == [(one.ids, one.score) for one in alone]


@pytest.mark.parametrize("weight", [0.0, -1.0, math.nan, math.inf])
def test_its_weight_must_be_above_zero(weight):
    with pytest.raises(ValueError, match="weight must be above 0"):
        Beside(other(), weight)


def test_it_must_be_over_the_same_ids():
    with pytest.raises(ValueError, match="another vocabulary"):
        greedy(toy2(), PROMPT, Constraints(EOS, [2]), beside=Beside(Tree(4, 2, 0), 1.0))
