import math

import pytest
import torch

from seqtools.decoding.beam import beam
from seqtools.decoding.constraints import Constraints
from seqtools.decoding.ensemble import Ensemble
from seqtools.decoding.greedy import greedy
from seqtools.decoding.hypothesis import Prompts
from seqtools.decoding.scoring import score
from tests.unit.decoding.toy import BOS, EOS, NEVER, A, B, Bigram, Tree, toy2

PROMPT = Prompts.from_ids([[BOS]])


def altered(**options):
    """The toy with a and b taken for each other as what follows."""
    table = toy2().logprobs.clone()
    table[:, [A, B]] = table[:, [B, A]]
    return Bigram(table, **options)


def test_probabilities_are_averaged_token_by_token():
    both = Ensemble([toy2(), altered()])
    assert both.vocabulary_size == 6
    [found] = greedy(both, PROMPT, Constraints(EOS, [3], NEVER))
    # both are as likely as each other, and the lower id is taken; after a, too
    assert found.ids == [A, A, A]
    first, second = (0.75 + 0.125) / 2, (0.4 / 2.2 + 0.5) / 2
    assert found.token_logprobs == pytest.approx([math.log(p) for p in (first, second, second)])


@pytest.mark.parametrize("seed", range(5))
def test_the_best_of_all_sequences_under_the_mean_is_found(seed):
    models = [Tree(4, 3, 100 * seed + number) for number in range(3)]

    def logprob(tokens):
        total, node = 0.0, 0
        for token in tokens:
            total += math.log(sum(math.exp(float(m.table[node, token])) for m in models) / 3)
            node = node * 4 + token + 1
        return total

    every = sorted((-logprob(tokens), tokens) for tokens, _, _ in models[0].sequences(3))
    constraints = Constraints(1, [3], [0])
    [found] = beam(Ensemble(models), Prompts.from_ids([[0]]), constraints, width=64, nbest=5)
    assert [one.logprob for one in found] == pytest.approx([-p for p, _ in every[:5]], abs=1e-5)
    assert [[*one.ids, *([1] if one.finished else [])] for one in found] == [
        tokens for _, tokens in every[:5]
    ]


def test_forced_decoding_gives_what_the_search_gave():
    both = Ensemble([toy2(), altered()])
    [found] = beam(both, PROMPT, Constraints(EOS, [6], NEVER), width=4, nbest=4)
    for one in found:
        tokens = [*one.ids, *([EOS] if one.finished else [])]
        [again] = score(both, [[BOS, *tokens[:-1]]], [tokens])
        assert again.token_logprobs == pytest.approx(one.token_logprobs, abs=1e-6)


def test_equal_models_are_as_one_and_nothing_is_above_certain():
    [alone] = greedy(toy2(), PROMPT, Constraints(EOS, [9], NEVER))
    [found] = greedy(Ensemble([toy2()] * 3), PROMPT, Constraints(EOS, [9], NEVER))
    assert found.ids == alone.ids
    assert found.token_logprobs == pytest.approx(alone.token_logprobs, abs=1e-6)
    certain = torch.full((2, 2), -math.inf)
    certain[:, 1] = 0.0
    logprobs, _, _ = Ensemble([Bigram(certain)] * 3).step(
        torch.tensor([1]), [(torch.zeros(1),) * 3] * 3
    )
    assert logprobs.tolist() == [[-math.inf, 0.0]]


def test_attention_is_the_mean_where_all_have_the_same_shape():
    prompts = Prompts.from_ids([[BOS]], [[7, 1]])
    constraints = Constraints(EOS, [2], NEVER)
    [alone] = greedy(toy2(attends=True), prompts, constraints, attention=True)
    both = Ensemble([toy2(attends=True), toy2(attends=True)])
    [found] = greedy(both, prompts, constraints, attention=True)
    assert (found.attention["cross"] == alone.attention["cross"]).all()
    for other in (toy2(), Wide(toy2().logprobs, attends=True)):
        [found] = greedy(
            Ensemble([toy2(attends=True), other]), prompts, constraints, attention=True
        )
        assert found.attention is None


class Wide(Bigram):
    """One more head."""

    def step(self, last_ids, state):
        logprobs, state, attention = super().step(last_ids, state)
        return logprobs, state, {"cross": attention["cross"].repeat(1, 1, 2, 1)}


def test_a_masked_token_is_filled_by_the_mean():
    class Filler:
        def __init__(self, *probabilities):
            self.row = torch.tensor([probabilities]).log()

        def fill_logprobs(self, batch, places, *, attention=False):
            return self.row, {"encoder": self.row.exp()} if attention else {}

    both = Ensemble([Filler(0.5, 0.5), Filler(0.9, 0.1)])
    logprobs, weights = both.fill_logprobs(None, torch.tensor([0]), attention=True)
    assert logprobs.exp()[0].tolist() == pytest.approx([0.7, 0.3])
    assert weights["encoder"][0].tolist() == pytest.approx([0.7, 0.3])


@pytest.mark.parametrize("models", [[], [toy2(), Tree(4, 2, 0)]])
def test_models_must_be_over_the_same_ids(models):
    with pytest.raises(ValueError, match="over the same ids"):
        Ensemble(models)
