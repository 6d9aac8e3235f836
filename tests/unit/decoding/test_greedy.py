import math

import numpy as np
import pytest
import torch

from seqtools.decoding.beam import beam
from seqtools.decoding.constraints import Constraints
from seqtools.decoding.greedy import greedy
from seqtools.decoding.hypothesis import Prompts
from seqtools.errors import RecordError
from tests.unit.decoding.toy import BOS, EOS, NEVER, PAD, UNK, A, B, Bigram, Tree, toy2


def rules(*lengths, eos=EOS, banned=NEVER):
    return Constraints(eos, lengths, banned)


def test_takes_the_likeliest_token_until_the_end():
    [found] = greedy(toy2(), Prompts.from_ids([[BOS]]), rules(20))
    assert found.ids == [A, B]
    assert found.finished
    assert found.logprob == pytest.approx(-1.673976, abs=1e-6)
    assert found.score == found.logprob
    assert np.exp(found.token_logprobs) == pytest.approx([0.75, 0.5, 0.5])
    assert found.token_logprobs.dtype == np.float32
    assert found.attention is None


def test_max_length_counts_the_end_and_cuts():
    cut, whole = (greedy(toy2(), Prompts.from_ids([[BOS]]), rules(n))[0] for n in (2, 3))
    assert (cut.ids, cut.finished, len(cut.token_logprobs)) == ([A, B], False, 2)
    assert cut.logprob == pytest.approx(math.log(0.75 * 0.5))
    assert (whole.ids, whole.finished, len(whole.token_logprobs)) == ([A, B], True, 3)


def test_without_an_end_symbol_all_are_cut():
    model = Bigram(torch.tensor([[0.1, 0.7, 0.2], [0.3, 0.1, 0.6], [0.8, 0.1, 0.1]]).log())
    [found] = greedy(model, Prompts.from_ids([[0]]), Constraints(None, [4]))
    assert (found.ids, found.finished) == ([1, 2, 0, 1], False)


def test_a_prompt_is_continued_and_not_repeated():
    [found] = greedy(toy2(), Prompts.from_ids([[BOS, A, B]]), rules(20))
    assert found.ids == []
    assert found.finished
    assert found.logprob == pytest.approx(math.log(0.5))


def test_of_equals_the_lowest_id_is_taken():
    model = Bigram(torch.full((4, 4), 0.25).log())
    [found] = greedy(model, Prompts.from_ids([[0]]), Constraints(3, [5], [0]))
    assert found.ids == [1] * 5


def test_what_is_banned_is_never_proposed_and_nothing_is_renormalised():
    [found] = greedy(toy2(), Prompts.from_ids([[BOS]]), rules(20, banned=[PAD, BOS, A]))
    assert found.ids == [B]
    assert np.exp(found.token_logprobs) == pytest.approx([0.125, 0.5])


def test_rows_that_are_done_leave_the_batch():
    model = toy2()
    prompts = Prompts.from_ids([[BOS], [BOS, A, B], [BOS]])
    found = greedy(model, prompts, rules(2, 9, 9))
    assert [hypothesis.ids for hypothesis in found] == [[A, B], [], [A, B]]
    assert [hypothesis.finished for hypothesis in found] == [False, True, True]
    assert model.batch_sizes == [3, 2, 1]


@pytest.mark.parametrize("seed", range(20))
def test_equals_a_beam_of_one(seed):
    model = Tree(size=5, depth=5, seed=seed)
    constraints = Constraints(model.eos, [5], [0])
    [found] = greedy(model, Prompts.from_ids([[0]]), constraints)
    [[best]] = beam(model, Prompts.from_ids([[0]]), constraints, width=1)
    assert (found.ids, found.finished) == (best.ids, best.finished)
    assert found.logprob == best.logprob


def test_attention_has_a_row_for_each_step_and_no_padding():
    prompts = Prompts.from_ids([[BOS], [BOS, A, B], [BOS]], [[7, 1], [5], [6, 3]])
    found = greedy(toy2(attends=True), prompts, rules(9, 9, 2), attention=True)
    whole, ended, cut = (hypothesis.attention["cross"] for hypothesis in found)
    assert whole.shape == (2, 1, 3, 2)
    # the toy's attention: sum of the source, and the ids fed so far as digits
    assert whole[1, 0].tolist() == [[8, 2], [8, 24], [8, 245]]
    assert ended[0, 0].tolist() == [[5]]
    assert cut[0, 0].tolist() == [[9, 2], [9, 24]]


@pytest.mark.parametrize("value", [-math.inf, math.nan])
def test_no_probability_at_all_is_an_error(value):
    table = toy2().logprobs.clone()
    table[B] = value
    with pytest.raises(RecordError, match="no finite log-probability"):
        greedy(Bigram(table), Prompts.from_ids([[BOS]]), rules(20))


def test_everything_banned_is_an_error():
    with pytest.raises(RecordError, match="no finite log-probability"):
        greedy(toy2(), Prompts.from_ids([[BOS]]), rules(9, banned=[PAD, UNK, BOS, EOS, A, B]))
