"""Searches over a real model, where it stands: on the CPU here, on a GPU where there is one."""

import pytest
import torch

from seqtools.decoding.beam import Diversity, beam
from seqtools.decoding.constraints import Constraints
from seqtools.decoding.ensemble import Ensemble
from seqtools.decoding.greedy import greedy
from seqtools.decoding.hypothesis import Hypothesis, Prompts
from seqtools.decoding.penalty import Penalty
from seqtools.decoding.sampling import Sampler, sample, source
from seqtools.decoding.scoring import attend, next_tokens, score
from seqtools.decoding.walk import Beside
from seqtools.models.recurrent_seq2seq import RecurrentSeq2Seq, RecurrentSeq2SeqConfig

BOS, EOS, VOCABULARY = 2, 3, 9
SOURCES = [[4, 5, 6, EOS], [7, EOS], [8, 4, EOS]]
PREFIXES = [[BOS], [BOS, 5], [BOS]]
DEVICES = [
    "cpu",
    pytest.param(
        "cuda",
        marks=[
            pytest.mark.cuda,
            pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
        ],
    ),
]


def model(architecture: str) -> RecurrentSeq2Seq:
    config = RecurrentSeq2SeqConfig(architecture, hidden=8, bidirectional=True, layers=2)
    return RecurrentSeq2Seq(config, VOCABULARY, VOCABULARY, seed=3).eval()


def close(found: list[Hypothesis], expected: list[Hypothesis]) -> None:
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.ids == theirs.ids
        torch.testing.assert_close(ours.token_logprobs, theirs.token_logprobs, atol=1e-4, rtol=0)
        torch.testing.assert_close(ours.attention, theirs.attention, atol=1e-4, rtol=0)


@pytest.mark.parametrize("architecture", ["rnn", "lstm", "gru"])
@pytest.mark.parametrize("device", DEVICES)
def test_searches_give_what_each_record_gives_alone_on_the_cpu(architecture, device):
    alone, together = model(architecture), model(architecture).to(device)
    prompts = Prompts.from_ids(PREFIXES, SOURCES, device=device)
    rules = Constraints(EOS, [6, 4, 5], banned=[0, BOS])
    streams = [source(1, str(row), copy) for row in range(3) for copy in range(2)]
    drawing = Sampler(top_k=5, top_p=0.9)
    greedily = greedy(together, prompts, rules, attention=True)
    widely = beam(together, prompts, rules, width=3, nbest=2, attention=True)
    drawn = sample(together, prompts, rules, drawing, streams, attention=True)
    following = next_tokens(together, prompts, 4, banned=[0])
    for row in range(3):
        one = Prompts.from_ids([PREFIXES[row]], [SOURCES[row]])
        rule = Constraints(EOS, [rules.max_lengths[row]], banned=rules.banned)
        streams = [source(1, str(row), copy) for copy in range(2)]
        close(greedily[row : row + 1], greedy(alone, one, rule, attention=True))
        close(widely[row], beam(alone, one, rule, width=3, nbest=2, attention=True)[0])
        close(drawn[row], sample(alone, one, rule, drawing, streams, attention=True)[0])
        expected = next_tokens(alone, one, 4, banned=[0])[0]
        assert [number for number, _ in following[row]] == [number for number, _ in expected]


@pytest.mark.parametrize("device", DEVICES)
def test_forced_decoding_gives_the_numbers_of_the_search(device):
    together = model("gru").to(device)
    prompts = Prompts.from_ids([[BOS]] * 3, SOURCES, device=device)
    found = greedy(together, prompts, Constraints(EOS, [5, 5, 5]), attention=True)
    targets = [one.ids + [EOS] * one.finished for one in found]
    inputs = [[BOS, *target[:-1]] for target in targets]
    scores = score(together, inputs, targets, SOURCES, device=device)
    attention = attend(together, prompts, targets)
    for one, scored, weights in zip(found, scores, attention, strict=True):
        assert scored.logprob == pytest.approx(one.logprob, abs=1e-4)
        torch.testing.assert_close(weights, one.attention, atol=1e-4, rtol=0)


@pytest.mark.parametrize("device", DEVICES)
def test_every_rule_and_shape_of_a_beam(device):
    rules = Constraints(
        EOS, [8, 7, 9], banned=[0, BOS], min_length=4, no_repeat_ngram=2, repetition_penalty=1.3,
        prefixes=[[5], [], [6, 6]], forced=[7, 4],
    )  # fmt: skip

    def found(where):
        models = [model(name).to(where) for name in ("gru", "lstm", "rnn")]
        prompts = Prompts.from_ids(PREFIXES, SOURCES, device=where)
        beside = Beside(Blind(models[2], prompts), 0.3)
        both = Ensemble(models[:2])
        streams = [source(1, str(row), 0) for row in range(3)]
        alone = greedy(both, prompts, rules, beside=beside, attention=True)
        drawn = sample(both, prompts, rules, Sampler(min_p=0.1), streams, attention=True)
        wide = beam(
            both, prompts, rules, width=4, nbest=2, penalty=Penalty(0.6, "gnmt", 0.2),
            diversity=Diversity(2, 0.5), beside=beside, attention=True,
        )  # fmt: skip
        return [*alone, *(one for several in (*drawn, *wide) for one in several)]

    close(found(device), found("cpu"))


class Blind:
    """A model with a source, as one that is started without."""

    def __init__(self, model, prompts):
        self._source = prompts.source, prompts.source_lengths
        self.vocabulary_size = model.vocabulary_size
        self.step, self.select, self._start = model.step, model.select, model.start

    def start(self, source, source_lengths, prefix, prefix_lengths, *, attention=False):
        assert source is None
        return self._start(*self._source, prefix, prefix_lengths)
