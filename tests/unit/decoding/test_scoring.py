import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from seqtools.decoding.beam import beam
from seqtools.decoding.constraints import Constraints
from seqtools.decoding.hypothesis import Prompts
from seqtools.decoding.scoring import attend, next_tokens, score, score_windows
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


class Counting:
    """Each target's log P is minus the number of inputs in its row up to its own."""

    def __init__(self):
        self.widths = []

    def token_logprobs(self, batch):
        self.widths.append(batch.inputs.shape)
        before = torch.arange(1, batch.inputs.shape[1] + 1).expand(batch.targets.shape)
        return -before.float().masked_fill(batch.targets < 0, 0.0)


@settings(max_examples=100, deadline=None)
@given(
    lengths=st.lists(st.integers(0, 30), min_size=1, max_size=4),
    window=st.integers(1, 9),
    data=st.data(),
    batch_size=st.integers(1, 5),
)
def test_windows_score_each_target_once_with_all_before_it_that_they_promise(
    lengths, window, data, batch_size
):
    stride = data.draw(st.integers(1, window))
    model = Counting()
    texts = [list(range(2, 2 + length)) for length in lengths]
    found = score_windows(model, texts, texts, window=window, stride=stride, batch_size=batch_size)
    for length, one in zip(lengths, found, strict=True):
        seen = -one.token_logprobs
        assert len(seen) == length
        for place, inputs in enumerate(seen):
            if place < window:
                assert inputs == place + 1
            else:  # the first window that reaches it
                starts = range(0, place + 1, stride)
                first = next(start for start in starts if start + window > place)
                assert inputs == place - first + 1
                assert window - stride < inputs <= window
        assert one.logprob == -sum(seen)
    assert all(rows <= batch_size and columns <= window for rows, columns in model.widths)


def test_a_window_as_long_as_the_texts_scores_as_without():
    texts = [[BOS, A, B, UNK, A], [BOS, B], []]
    targets = [[A, B, UNK, A, EOS], [B, EOS], []]
    whole = score(toy2(), texts, targets)
    for stride in (1, 3, 5):
        found = score_windows(toy2(), texts, targets, window=5, stride=stride)
        assert [one.token_logprobs.tolist() for one in found] == [
            one.token_logprobs.tolist() for one in whole
        ]
    short = score_windows(toy2(), texts, targets, window=2, stride=1, batch_size=3)
    # the toy looks back one token, so its windows of any size say the same
    assert [one.logprob for one in short] == pytest.approx([one.logprob for one in whole])


def test_the_source_goes_into_every_window():
    class Recorder(Counting):
        def token_logprobs(self, batch):
            self.sources = batch.source.tolist()
            return super().token_logprobs(batch)

    model = Recorder()
    score_windows(model, [[1, 2, 3]], [[2, 3, 4]], [[7, 8]], window=1, stride=1)
    assert model.sources == [[7, 8]] * 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"window": 3, "stride": 4}, "stride must be from 1 to the window of 3"),
        ({"window": 3, "stride": 0}, "stride must be"),
        ({"window": 3, "stride": 1, "batch_size": 0}, "batch_size must be"),
    ],
)
def test_windows_that_cannot_be_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        score_windows(toy2(), [[BOS]], [[A]], **options)
    with pytest.raises(ValueError, match="as long as"):
        score_windows(toy2(), [[BOS, A]], [[A]], window=1, stride=1)
