"""What binds a search: every rule in every search, against lists of all that it allows."""

import doctest
import math
from collections import Counter
from dataclasses import dataclass, field

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from seqtools.decoding import constraints as module
from seqtools.decoding.beam import beam
from seqtools.decoding.constraints import Constraints, Rules
from seqtools.decoding.greedy import greedy
from seqtools.decoding.hypothesis import Prompts
from seqtools.decoding.penalty import Penalty
from seqtools.decoding.sampling import Sampler, sample, source
from seqtools.errors import ConfigError, RecordError
from tests.unit.decoding.toy import BOS, EOS, NEVER, UNK, A, B, Bigram, Tree, toy2

START = Prompts.from_ids([[0]])


@dataclass
class Bound:
    """The rules of one record, said by lists."""

    longest: int
    min_length: int = 0
    no_repeat_ngram: int = 0
    repetition_penalty: float = 1.0
    prefix: list[int] = field(default_factory=list)
    forced: list[int] = field(default_factory=list)

    def constraints(self, eos=1, banned=(0,)) -> Constraints:
        return Constraints(
            eos=eos,
            max_lengths=[self.longest],
            banned=banned,
            min_length=self.min_length,
            no_repeat_ngram=self.no_repeat_ngram,
            repetition_penalty=self.repetition_penalty,
            prefixes=[self.prefix] if self.prefix else None,
            forced=self.forced,
        )

    def may_follow(self, tokens, token, eos=1, banned=(0,)) -> bool:
        if len(tokens) < len(self.prefix):
            return token == self.prefix[len(tokens)]
        if token in banned or (token == eos and len(tokens) + 1 < self.min_length):
            return False
        size, after = self.no_repeat_ngram, [*tokens, token]
        ngrams = [tuple(after[at : at + size]) for at in range(len(after) - size + 1)]
        return not size or ngrams.count(tuple(after[-size:])) <= 1

    def holds_forced(self, tokens) -> bool:
        return not Counter(self.forced) - Counter(tokens)

    def allows(self, tokens) -> bool:
        steps = all(self.may_follow(tokens[:at], tokens[at]) for at in range(len(tokens)))
        return steps and len(tokens) >= len(self.prefix) and self.holds_forced(tokens)

    def rank(self, model, tokens) -> float:
        """The sum that the sequence is ranked by."""
        total, before = 0.0, 0.0
        for at, token in enumerate(tokens):
            value = model.logprob(tokens[: at + 1]) - before
            before += value
            total += value * (self.repetition_penalty if token in tokens[:at] else 1.0)
        return total


def bounds(size: int, longest: int) -> st.SearchStrategy[Bound]:
    others = st.sampled_from([0, *range(2, size)])  # what is banned may stand in a prefix
    return st.builds(
        Bound,
        st.just(longest),
        st.integers(0, longest + 1),
        st.integers(0, 3),
        st.sampled_from([1.0, 0.5, 1.7]),
        st.lists(others, max_size=2),
        st.lists(st.integers(2, size - 1), max_size=2),
    )


def whole(hypothesis, eos=1):
    return [*hypothesis.ids, eos] if hypothesis.finished else hypothesis.ids


def possible(model, bound):
    """All sequences that are allowed."""
    every = model.sequences(bound.longest, banned=())
    return [tokens for tokens, _, _ in every if bound.allows(tokens)]


def test_docstring_examples():
    assert doctest.testmod(module).failed == 0


@settings(max_examples=150, deadline=None)
@given(
    data=st.data(),
    size=st.integers(3, 4),
    longest=st.integers(1, 4),
    seed=st.integers(0, 10**6),
    form=st.sampled_from(["power", "gnmt"]),
    alpha=st.sampled_from([-1.0, 0.0, 0.6, 2.0]),
)
def test_the_widest_beam_finds_the_best_of_all_that_the_rules_allow(
    data, size, longest, seed, form, alpha
):
    model, bound = Tree(size, longest, seed), data.draw(bounds(size, longest))
    penalty = Penalty(alpha, form)
    every = [
        (penalty.score(bound.rank(model, tokens), len(tokens)), tokens)
        for tokens in possible(model, bound)
    ]
    every.sort(key=lambda entry: -entry[0])

    def search():
        return beam(
            model, START, bound.constraints(), width=size**longest, nbest=5, penalty=penalty
        )

    if not every:
        with pytest.raises(RecordError):
            search()
        return
    [found] = search()
    assert [whole(one) for one in found] == [tokens for _, tokens in every[:5]]
    assert [one.score for one in found] == pytest.approx([s for s, _ in every[:5]], abs=1e-5)
    for one in found:
        assert one.logprob == pytest.approx(model.logprob(whole(one)), abs=1e-5)


@settings(max_examples=150, deadline=None)
@given(
    data=st.data(),
    size=st.integers(3, 5),
    longest=st.integers(1, 5),
    seed=st.integers(0, 10**6),
)
def test_greedy_search_takes_the_likeliest_that_the_rules_allow(data, size, longest, seed):
    model, bound = Tree(size, longest, seed), data.draw(bounds(size, longest))
    tokens: list[int] = []
    while len(tokens) < longest and tokens[-1:] != [1]:
        missing = (Counter(bound.forced) - Counter(tokens)).total()
        options = []
        for token in range(size):
            still = (Counter(bound.forced) - Counter([*tokens, token])).total()
            begun = len(tokens) < len(bound.prefix)
            in_time = begun or (still <= longest - len(tokens) - 1 and (token != 1 or not missing))
            if in_time and bound.may_follow(tokens, token):
                gain = bound.rank(model, [*tokens, token]) - bound.rank(model, tokens)
                options.append((gain, token))
        if not options:
            with pytest.raises(RecordError):
                greedy(model, START, bound.constraints())
            return
        tokens.append(max(options)[1])
    if not bound.holds_forced(tokens) or len(bound.prefix) > longest:
        with pytest.raises(RecordError):
            greedy(model, START, bound.constraints())
        return
    [found] = greedy(model, START, bound.constraints())
    assert whole(found) == tokens
    assert found.score == pytest.approx(bound.rank(model, tokens), abs=1e-5)
    assert found.logprob == pytest.approx(model.logprob(tokens), abs=1e-5)
    drawn = sample(model, START, bound.constraints(), Sampler(temperature=0), [source(0, "", 0)])
    assert whole(drawn[0][0]) == tokens
    if not bound.forced:
        [[narrow]] = beam(model, START, bound.constraints(), width=1)
        assert (narrow.ids, narrow.score) == (found.ids, found.score)


@settings(max_examples=60, deadline=None)
@given(data=st.data(), size=st.integers(4, 5), seed=st.integers(0, 10**6))
def test_what_is_drawn_keeps_the_rules(data, size, seed):
    longest = 5
    model, bound = Tree(size, longest, seed), data.draw(bounds(size, longest))
    bound.no_repeat_ngram = bound.no_repeat_ngram and 3  # so that there is a way to the end
    sources = [source(seed, "", number) for number in range(10)]
    try:
        [found] = sample(model, START, bound.constraints(), Sampler(temperature=2.0), sources)
    except RecordError:  # it was led where nothing is allowed
        assert bound.forced
        assert bound.no_repeat_ngram or len(bound.prefix) + len(bound.forced) > longest
        return
    for one in found:
        assert bound.allows(whole(one))
        assert one.score == pytest.approx(bound.rank(model, whole(one)), abs=1e-5)
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)


def rules(**options):
    return Constraints(EOS, [6], NEVER, **options)


def ids(**options):
    [found] = greedy(toy2(), Prompts.from_ids([[BOS]]), rules(**options))
    return found.ids


def test_the_toy_under_each_rule():
    assert ids() == [A, B]
    # after b the end has .5, then a .3125: so a, b again and again
    assert ids(min_length=5) == [A, B, A, B]
    assert ids(min_length=5, no_repeat_ngram=2) == [A, B, A, A]
    assert ids(no_repeat_ngram=1, min_length=4) == [A, B, UNK]
    # 9 * ln .3125 for another a is less than ln .03125
    assert ids(min_length=4, repetition_penalty=9.0) == [A, B, UNK]
    assert ids(prefixes=[[B, B]]) == [B, B]
    assert ids(prefixes=[[1, A]]) == [UNK, A, B]
    assert ids(forced=[UNK]) == [A, B, A, B, A, UNK]


def test_the_logprob_of_a_prefix_is_the_models_own():
    [found] = greedy(toy2(), Prompts.from_ids([[BOS]]), rules(prefixes=[[B, A]]))
    expected = [0.125, 0.3125, 0.5, 0.5]
    assert found.ids == [B, A, B]
    assert found.token_logprobs == pytest.approx([math.log(p) for p in expected])
    assert found.logprob == pytest.approx(sum(math.log(p) for p in expected))


def test_each_record_has_its_own_prefix_and_no_part_in_its_neighbours():
    prefixes = [[], [B, B], [UNK]]
    prompts = Prompts.from_ids([[BOS]] * 3)
    options = {"min_length": 3, "no_repeat_ngram": 2, "repetition_penalty": 1.2, "forced": [B]}
    together = Constraints(EOS, [6, 5, 4], NEVER, prefixes=prefixes, **options)
    alone = [
        Constraints(EOS, [longest], NEVER, prefixes=[prefix], **options)
        for longest, prefix in zip([6, 5, 4], prefixes, strict=True)
    ]
    one = Prompts.from_ids([[BOS]])
    for row, rule in enumerate(alone):
        assert greedy(toy2(), prompts, together)[row].ids == greedy(toy2(), one, rule)[0].ids
        wide = beam(toy2(), prompts, together, width=3, nbest=3)[row]
        [narrow] = beam(toy2(), one, rule, width=3, nbest=3)
        assert [(found.ids, found.score) for found in wide] == [(f.ids, f.score) for f in narrow]


def test_a_model_is_not_changed_by_the_rules():
    table = toy2().logprobs.clone()

    class Same(Bigram):
        """Gives a view of its own table."""

        def step(self, last_ids, state):
            _, state, attention = super().step(last_ids, state)
            return self.logprobs[BOS].expand(len(last_ids), -1), state, attention

    model = Same(table.clone())
    constraint = rules(min_length=3, no_repeat_ngram=2, repetition_penalty=2.0, forced=[UNK])
    greedy(model, Prompts.from_ids([[BOS]]), constraint)
    beam(model, Prompts.from_ids([[BOS]]), constraint, width=3)
    assert torch.equal(model.logprobs, table)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"prefixes": [[A] * 7]}, "need 7 places of an output, and it has 6"),
        ({"prefixes": [[A] * 5], "forced": [A, B, UNK]}, "need 7 places"),
        ({"prefixes": [[A, EOS]]}, "holds the end symbol"),
    ],
)
def test_what_cannot_be_is_a_bad_record(options, message):
    with pytest.raises(RecordError, match=message):
        Rules(rules(**options))


def test_a_forced_token_that_the_model_rules_out_is_a_bad_record():
    table = toy2().logprobs.clone()
    table[:, UNK] = -math.inf
    for search in (greedy, lambda *args: beam(*args, width=2)):
        with pytest.raises(RecordError, match="no finite log-probability"):
            search(Bigram(table), Prompts.from_ids([[BOS]]), rules(forced=[UNK]))


@pytest.mark.parametrize("forced", [[EOS], [BOS], [A, BOS]])
def test_what_is_never_proposed_cannot_be_forced(forced):
    with pytest.raises(ConfigError, match="cannot be forced"):
        rules(forced=forced)


@pytest.mark.parametrize(
    "options",
    [
        {"min_length": -1},
        {"no_repeat_ngram": -1},
        {"repetition_penalty": 0.0},
        {"repetition_penalty": math.nan},
        {"prefixes": [[], []]},
    ],
)
def test_nonsense_is_refused(options):
    with pytest.raises(ValueError):
        rules(**options)
    with pytest.raises(ValueError, match="at least 1"):
        Constraints(EOS, [3, 0])
