"""A record's result, alone or in any company, and scored again by forced decoding."""

import random

import pytest
import torch

from seqtools.decoding.beam import Diversity, beam
from seqtools.decoding.constraints import Constraints
from seqtools.decoding.greedy import greedy
from seqtools.decoding.hypothesis import Prompts
from seqtools.decoding.penalty import Penalty
from seqtools.decoding.sampling import Sampler, sample, source
from seqtools.decoding.scoring import score
from seqtools.models.recurrent_lm import RecurrentLm, RecurrentLmConfig
from seqtools.models.recurrent_seq2seq import RecurrentSeq2Seq, RecurrentSeq2SeqConfig
from seqtools.models.transformer_lm import TransformerLm, TransformerLmConfig
from seqtools.models.transformer_seq2seq import TransformerSeq2Seq, TransformerSeq2SeqConfig

BOS, EOS, VOCABULARY = 2, 3, 20
SIZES = {"hidden": 16, "layers": 2}
MODELS = {
    "gru lm": lambda: RecurrentLm(RecurrentLmConfig("gru", **SIZES), VOCABULARY, seed=1),
    "gru seq2seq": lambda: RecurrentSeq2Seq(
        RecurrentSeq2SeqConfig("gru", bidirectional=True, **SIZES), VOCABULARY, VOCABULARY, seed=1
    ),
    "transformer lm": lambda: TransformerLm(
        TransformerLmConfig(heads=2, **SIZES), VOCABULARY, seed=1
    ),
    "transformer seq2seq": lambda: TransformerSeq2Seq(
        TransformerSeq2SeqConfig(heads=2, **SIZES), VOCABULARY, VOCABULARY, seed=1
    ),
}
LENGTHS = random.Random(1).sample(range(1, 41), 37)
SOURCES = [
    [random.Random(length).randrange(4, VOCABULARY) for _ in range(length)] for length in LENGTHS
]


@pytest.fixture(scope="module", params=MODELS)
def model(request):
    made = MODELS[request.param]().eval()
    with torch.no_grad():
        for parameter in made.parameters():  # so that what is likely depends on what came before
            parameter.mul_(1.5)
    return made, "seq2seq" in request.param


def prompts(rows, translates):
    if translates:
        return Prompts.from_ids([[BOS]] * len(rows), [SOURCES[row] for row in rows])
    return Prompts.from_ids([[BOS, *SOURCES[row]] for row in rows])


def rules(rows, **options):
    return Constraints(EOS, [5 + LENGTHS[row] % 6 for row in rows], [0, BOS], **options)


def narrow(model, given, rows):
    return [[one] for one in greedy(model, given, rules(rows))]


def wide(model, given, rows):
    return beam(model, given, rules(rows), width=3, nbest=2, penalty=Penalty(0.6, "gnmt"))


def shaped(model, given, rows):
    bound = rules(rows, forced=[7], no_repeat_ngram=2, min_length=3, repetition_penalty=1.2)
    return beam(model, given, bound, width=4, nbest=2, diversity=Diversity(2, 0.3))


def drawn(model, given, rows):
    sources = [source(1, str(row), number) for row in rows for number in range(2)]
    return sample(model, given, rules(rows), Sampler(1.2, top_k=9, min_p=0.01), sources)


@pytest.mark.parametrize("search", [narrow, wide, shaped, drawn])
def test_the_company_of_a_record_does_not_matter(model, search):
    network, translates = model
    order = list(range(len(LENGTHS)))
    expected = {row: search(network, prompts([row], translates), [row])[0] for row in order}
    for size, whole in ((8, order), (37, order), (37, order[::-1])):
        for first in range(0, len(whole), size):
            rows = whole[first : first + size]
            for row, found in zip(
                rows, search(network, prompts(rows, translates), rows), strict=True
            ):
                assert [one.ids for one in found] == [one.ids for one in expected[row]]
                for ours, alone in zip(found, expected[row], strict=True):
                    assert ours.score == pytest.approx(alone.score, abs=1e-4)
                    assert ours.token_logprobs == pytest.approx(alone.token_logprobs, abs=1e-4)


@pytest.mark.parametrize("search", [narrow, wide, shaped, drawn])
def test_the_logprob_is_that_of_forced_decoding(model, search):
    network, translates = model
    rows = list(range(len(LENGTHS)))
    found = search(network, prompts(rows, translates), rows)
    if search is drawn:
        assert {one.finished for hypotheses in found for one in hypotheses} == {True, False}
    for row, hypotheses in zip(rows, found, strict=True):
        before = [BOS] if translates else [BOS, *SOURCES[row]]
        for one in hypotheses:
            targets = [*one.ids, *([EOS] if one.finished else [])]
            assert len(targets) == len(one.token_logprobs)
            inputs = [*before, *targets][:-1]
            given = [*inputs[1:], targets[-1]]
            again = score(network, [inputs], [given], [SOURCES[row]] if translates else None)[
                0
            ].token_logprobs[len(before) - 1 :]
            assert one.token_logprobs == pytest.approx(again, abs=1e-4)
            assert one.logprob == pytest.approx(float(again.sum()), abs=1e-4)
