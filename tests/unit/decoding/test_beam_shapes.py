"""Coverage, groups, and what is forced, against a beam search by lists that never ends early."""

from collections import Counter

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from seqtools.decoding.beam import Diversity, beam
from seqtools.decoding.constraints import Constraints
from seqtools.decoding.coverage import Coverage
from seqtools.decoding.hypothesis import Prompts
from seqtools.decoding.penalty import Penalty
from seqtools.errors import ConfigError
from tests.unit.decoding.toy import BOS, EOS, NEVER, UNK, A, AttendingTree, B, Tree, toy2

PENALTIES = [Penalty(), Penalty(0.7), Penalty(-1.0, "gnmt"), Penalty(1.5, "gnmt")]
ONE_GROUP = Diversity()


def whole(hypothesis):
    return [*hypothesis.ids, 1] if hypothesis.finished else hypothesis.ids


def plain(model, longest, width, score, *, diversity=ONE_GROUP, forced=()):
    """Beam search by lists, to the very end: (score, tokens), the best first."""
    lives, done = [[([], 0.0)] for _ in range(diversity.groups)], {}
    share = width // diversity.groups
    for step in range(1, longest + 1):
        taken: Counter[int] = Counter()
        for group, live in enumerate(lives):
            order = extensions(model, live, longest - step, taken, diversity.strength, forced)
            ends = [entry for entry in order[:share] if entry[0][-1] == 1]
            others = [entry for entry in order if entry[0][-1] != 1][:share]
            for tokens, total in ends + (others if step == longest else []):
                done.setdefault(tuple(tokens), score(tokens, total))
            lives[group] = others
            taken.update(tokens[-1] for tokens, _ in ends + others)
    return sorted(((value, list(tokens)) for tokens, value in done.items()), key=lambda e: -e[0])


def extensions(model, live, room, taken, strength, forced):
    """All of a group's in the order in which they are taken."""
    found = []
    for rank, (tokens, total) in enumerate(live):
        for token in range(1, model.vocabulary_size):
            after = [*tokens, token]
            missing = (Counter(forced) - Counter(after)).total()
            if missing <= room and not (token == 1 and missing):
                sum_after = total + model.logprob(after) - model.logprob(tokens)
                key = sum_after - strength * taken[token]
                found.append((-missing, (-key, rank, token), (after, sum_after)))
    banks: dict[int, list] = {}
    for met, _, entry in sorted(found, key=lambda one: one[1]):
        banks.setdefault(met, []).append(entry)
    order = []
    while any(banks.values()):
        order += [banks[met].pop(0) for met in sorted(banks, reverse=True) if banks[met]]
    return order


@settings(max_examples=80, deadline=None)
@given(
    size=st.integers(3, 4),
    longest=st.integers(1, 4),
    seed=st.integers(0, 10**6),
    beta=st.sampled_from([0.2, 1.0, 5.0]),
    alpha=st.sampled_from([-1.0, 0.0, 0.8]),
    form=st.sampled_from(["power", "gnmt"]),
    lengths=st.tuples(st.integers(1, 4), st.integers(1, 4)),
)
def test_the_widest_beam_finds_the_best_under_coverage(
    size, longest, seed, beta, alpha, form, lengths
):
    model, penalty = AttendingTree(size, longest, seed), Penalty(alpha, form, beta)
    prompts = Prompts.from_ids([[0], [0]], [[2] * length for length in lengths])
    rules = Constraints(1, [longest, longest], [0])
    found = beam(model, prompts, rules, width=size**longest, nbest=4, penalty=penalty)
    for length, hypotheses in zip(lengths, found, strict=True):
        every = [
            (penalty.score(total, len(tokens)) + beta * model.coverage(tokens, length), tokens)
            for tokens, total, _ in model.sequences(longest)
        ]
        every.sort(key=lambda entry: -entry[0])
        assert [whole(one) for one in hypotheses] == [tokens for _, tokens in every[:4]]
        scores = [value for value, _ in every[:4]]
        assert [one.score for one in hypotheses] == pytest.approx(scores, abs=1e-5)


@settings(max_examples=100, deadline=None)
@given(
    size=st.integers(3, 5),
    longest=st.integers(1, 5),
    width=st.integers(1, 5),
    nbest=st.integers(1, 4),
    seed=st.integers(0, 10**6),
    beta=st.sampled_from([0.3, 2.0]),
    penalty=st.sampled_from(PENALTIES),
)
def test_ending_early_changes_nothing_under_coverage(
    size, longest, width, nbest, seed, beta, penalty
):
    model = AttendingTree(size, longest, seed)

    def score(tokens, total):
        return penalty.score(total, len(tokens)) + beta * model.coverage(tokens, 3)

    expected = plain(model, longest, width, score)[:nbest]
    [found] = beam(
        model,
        Prompts.from_ids([[0]], [[2, 2, 2]]),
        Constraints(1, [longest], [0]),
        width=width,
        nbest=nbest,
        penalty=Penalty(penalty.length, penalty.form, beta),
    )
    assert [whole(one) for one in found] == [tokens for _, tokens in expected]
    assert [one.score for one in found] == pytest.approx([s for s, _ in expected], abs=1e-5)


@settings(max_examples=150, deadline=None)
@given(
    size=st.integers(3, 6),
    longest=st.integers(1, 5),
    groups=st.integers(1, 4),
    share=st.integers(1, 3),
    nbest=st.integers(1, 6),
    seed=st.integers(0, 10**6),
    strength=st.sampled_from([0.0, 0.4, 3.0]),
    penalty=st.sampled_from(PENALTIES),
    data=st.data(),
)
def test_groups_and_forced_tokens_are_those_of_the_lists(
    size, longest, groups, share, nbest, seed, strength, penalty, data
):
    model, diversity = Tree(size, longest, seed), Diversity(groups, strength)
    forced = data.draw(st.lists(st.integers(2, size - 1), max_size=min(longest, 3)))
    width = groups * share

    def score(tokens, total):
        return penalty.score(total, len(tokens))

    every = plain(model, longest, width, score, diversity=diversity, forced=forced)
    [found] = beam(
        model,
        Prompts.from_ids([[0]]),
        Constraints(1, [longest], [0], forced=forced),
        width=width,
        nbest=nbest,
        penalty=penalty,
        diversity=diversity,
    )
    assert [whole(one) for one in found] == [tokens for _, tokens in every[:nbest]]
    assert [one.score for one in found] == pytest.approx([s for s, _ in every[:nbest]], abs=1e-5)
    for one in found:
        assert not Counter(forced) - Counter(one.ids)
        assert one.logprob == pytest.approx(model.logprob(whole(one)), abs=1e-5)


def test_groups_differ_the_more_the_stronger():
    def firsts(strength):
        rules, diversity = Constraints(EOS, [1], NEVER), Diversity(3, strength)
        [found] = beam(
            toy2(), Prompts.from_ids([[BOS]]), rules, width=3, nbest=3, diversity=diversity
        )
        return [(one.ids, one.finished) for one in found]

    # a has .75, b .125, the end .1: the second group leaves a for b at ln 6 = 1.79; the third then
    # leaves a, which costs as much, for the end at ln 7.5 = 2.01
    assert firsts(0.0) == firsts(0.8) == [([A], False)]
    assert firsts(1.9) == [([A], False), ([B], False)]
    assert firsts(2.1) == [([A], False), ([B], False), ([], True)]


def test_records_with_groups_and_forced_tokens_do_not_depend_on_their_neighbours():
    prefixes = [[BOS], [BOS, A], [BOS, A, B], [BOS, B, A, A]]
    lengths = [9, 2, 4, 20]
    options = {"width": 4, "nbest": 3, "diversity": Diversity(2, 0.5)}
    for forced in ([], [B, UNK]):
        rules = Constraints(EOS, lengths, NEVER, forced=forced)
        together = beam(toy2(), Prompts.from_ids(prefixes), rules, **options)
        for found, prefix, length in zip(together, prefixes, lengths, strict=True):
            rule = Constraints(EOS, [length], NEVER, forced=forced)
            [alone] = beam(toy2(), Prompts.from_ids([prefix]), rule, **options)
            assert [(h.ids, h.score) for h in found] == [(h.ids, h.score) for h in alone]


def test_what_got_no_attention_costs_much_but_not_everything():
    prompts = Prompts.from_ids([[BOS], [BOS]], [[7, 8, 9], [7]])
    weights = torch.zeros(2, 2, 1, 3)
    weights[:, 1, 0] = torch.tensor([[1.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    coverage = Coverage(prompts)
    first = coverage.add({"cross": weights}, torch.arange(2).numpy())
    assert first[0] == pytest.approx(2 * -69.0776, abs=1e-3)
    assert first[1] == 0
    weights[:, 1, 0] = torch.tensor([[0.5, 0.25, 0.25], [1.0, 0.0, 0.0]])
    second = coverage.add({"cross": weights}, torch.arange(2).numpy())
    assert second.tolist() == pytest.approx([2 * -1.386294, 0.0], abs=1e-6)


def test_coverage_needs_attention_to_a_source():
    rules = Constraints(EOS, [3], NEVER)
    for model, sources in ((toy2(), [[7]]), (toy2(attends=True), None)):
        prompts = Prompts.from_ids([[BOS]], sources)
        with pytest.raises(ConfigError, match="attends to its source"):
            beam(model, prompts, rules, width=2, penalty=Penalty(coverage=0.1))


def test_groups_of_other_sizes_are_refused():
    rules = Constraints(EOS, [3], NEVER)
    with pytest.raises(ValueError, match="a beam of 5 cannot be split into 2 equal groups"):
        beam(toy2(), Prompts.from_ids([[BOS]]), rules, width=5, diversity=Diversity(2, 1.0))
    for options in ({"groups": 0}, {"strength": -1.0}, {"strength": float("nan")}):
        with pytest.raises(ValueError, match="must be"):
            Diversity(**options)
