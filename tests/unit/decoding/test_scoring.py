import math

import numpy as np
import pytest
import torch

from seqtools.decoding.beam import beam
from seqtools.decoding.constraints import Constraints
from seqtools.decoding.hypothesis import Prompts
from seqtools.decoding.scoring import attend, next_tokens, score
from seqtools.errors import RecordError
from tests.unit.decoding.toy import BOS, EOS, NEVER, UNK, A, B, Bigram, toy2

# log10 P of the toy with the end, shared/cases B39
SENTENCES = [([A, B], -0.726999), ([B, A], -1.931119), ([A], -0.647817), ([], -1.0)]
SENTENCES += [([A, UNK, B], -2.768391), ([B], -1.204120)]


def forced(sequences, model=None):
    return score(model or toy2(), [[BOS, *s] for s in sequences], [[*s, EOS] for s in sequences])


def test_published_values_in_one_batch_and_one_by_one():
    together = forced([ids for ids, _ in SENTENCES])
    for (ids, log10), found in zip(SENTENCES, together, strict=True):
        assert found.logprob / math.log(10) == pytest.approx(log10, abs=1e-6)
        assert len(found.token_logprobs) == len(ids) + 1
        assert found.token_logprobs.dtype == np.float32
        [alone] = forced([ids])
        assert alone.logprob == found.logprob


@pytest.mark.parametrize("longest", [3, 20])
def test_hypotheses_have_the_logprob_of_forced_decoding(longest):
    constraints = Constraints(EOS, [longest], NEVER)
    [found] = beam(toy2(), Prompts.from_ids([[BOS]]), constraints, width=6, nbest=6)
    assert {one.finished for one in found} == ({True, False} if longest == 3 else {True})
    for one in found:
        targets = [*one.ids, EOS] if one.finished else one.ids
        [again] = score(toy2(), [[BOS, *one.ids][: len(targets)]], [targets])
        assert again.token_logprobs == pytest.approx(one.token_logprobs, abs=1e-6)
        assert again.logprob == pytest.approx(one.logprob, abs=1e-6)


@pytest.mark.parametrize("value", [-math.inf, math.nan])
def test_what_is_not_finite_is_an_error(value):
    table = toy2().logprobs.clone()
    table[A, B] = value
    with pytest.raises(RecordError, match="no finite log-probability"):
        forced([[A, B]], Bigram(table))


def test_nothing_to_score_has_the_logprob_zero():
    first, second = score(toy2(), [[], [BOS]], [[], [A]])
    assert (first.logprob, len(first.token_logprobs)) == (0.0, 0)
    assert second.logprob == pytest.approx(math.log(0.75))
    assert score(toy2(), [[]], [[]])[0].logprob == 0.0


def test_inputs_and_targets_must_match():
    with pytest.raises(ValueError, match="as long as"):
        score(toy2(), [[BOS]], [[A, EOS]])


def test_the_model_sees_what_counts():
    class Recorder:
        def token_logprobs(self, batch):
            self.batch = batch
            return torch.zeros(batch.targets.shape)

    model = Recorder()
    score(model, [[BOS, A], [BOS]], [[A, EOS], [EOS]], [[B], [B, A]])
    assert model.batch.inputs.tolist() == [[BOS, A], [BOS, 0]]
    assert model.batch.targets.tolist() == [[A, EOS], [EOS, -100]]
    assert model.batch.lengths.tolist() == [2, 1]
    assert model.batch.source.tolist() == [[B, 0], [B, A]]
    assert model.batch.source_lengths.tolist() == [1, 2]


def test_attention_of_given_targets():
    prompts = Prompts.from_ids([[BOS], [BOS, A]], [[7, 1], [5]])
    first, second = attend(toy2(attends=True), prompts, [[B, A, EOS], [B]])
    # the toy's attention: sum of the source, and the ids fed so far as digits
    assert first["cross"].shape == (2, 1, 3, 2)
    assert first["cross"][0, 0, :, 1].tolist() == [2, 25, 254]
    assert second["cross"][0, 0].tolist() == [[5]]
    assert attend(toy2(), prompts, [[A], [B]]) == [None, None]
    first, second = attend(toy2(attends=True), prompts, [[B], []])
    assert first["cross"][0, 0, :, 1].tolist() == [2]
    assert second is None


def test_next_tokens_are_the_likeliest():
    first, after_b = next_tokens(toy2(), Prompts.from_ids([[BOS], [BOS, A, B]]), 2)
    assert [token for token, _ in first] == [A, B]
    assert [math.exp(value) for _, value in first] == pytest.approx([0.75, 0.125])
    assert [token for token, _ in after_b] == [EOS, A]


def test_next_tokens_leave_out_what_is_banned_or_impossible():
    [found] = next_tokens(toy2(), Prompts.from_ids([[BOS]]), 99, banned=[A, UNK])
    assert [token for token, _ in found] == [B, EOS]
    assert [math.exp(value) for _, value in found] == pytest.approx([0.125, 0.1])
