"""Attention collected by each search, kind by kind, against what the toy says it attended to."""

import doctest

import numpy as np
import pytest

from seqtools.decoding import attended
from seqtools.decoding.beam import Diversity, beam
from seqtools.decoding.constraints import Constraints
from seqtools.decoding.greedy import greedy
from seqtools.decoding.hypothesis import Prompts
from seqtools.decoding.sampling import Sampler, sample, source
from seqtools.decoding.scoring import attend
from seqtools.models.transformer_lm import TransformerLm, TransformerLmConfig
from seqtools.models.transformer_seq2seq import TransformerSeq2Seq, TransformerSeq2SeqConfig
from tests.unit.decoding.toy import BOS, EOS, NEVER, UNK, A, Attentive, B, toy2

PREFIXES = [[BOS], [BOS, A, B, UNK], [BOS, A]]
SOURCES = [[7, 1], [5], [9, 8, 6]]
RULES = Constraints(EOS, [6, 4, 5], NEVER)


def test_docstring_examples():
    assert doctest.testmod(attended).failed == 0


def searches(model, prompts):
    """For each record, what each search finds."""
    narrow = greedy(model, prompts, RULES, attention=True)
    wide = beam(model, prompts, RULES, width=4, nbest=4, attention=True)
    options = {"diversity": Diversity(2, 0.5), "attention": True}
    diverse = beam(model, prompts, RULES, width=4, nbest=4, **options)
    sources = [source(0, str(row), number) for row in range(3) for number in range(4)]
    drawn = sample(model, prompts, RULES, Sampler(temperature=2.0), sources, attention=True)
    return [
        [one, *others, *more, *even]
        for one, others, more, even in zip(narrow, wide, diverse, drawn, strict=True)
    ]


def named(froms, tos):
    table = np.array([tos for _ in froms], dtype=np.float32)
    return np.stack([table, table + 100 * np.array(froms)[:, None]])[:, None]


def test_each_kind_is_that_of_the_hypothesis():
    model = Attentive(toy2().logprobs)
    found = searches(model, Prompts.from_ids(PREFIXES, SOURCES))
    for prefix, columns, hypotheses in zip(PREFIXES, SOURCES, found, strict=True):
        for one in hypotheses:
            steps = len(one.token_logprobs)
            inputs = [*prefix, *one.ids][: len(prefix) + steps - 1]
            fed = inputs[len(prefix) - 1 :]
            assert sorted(one.attention) == ["cross", "decoder", "encoder"]
            assert (one.attention["cross"] == named(fed, columns)).all()
            assert (one.attention["encoder"] == named(columns, columns)).all()
            shape = named(inputs, inputs)
            assert one.attention["decoder"].shape == shape.shape
            # what the start gives is taken as it is, steps up to their own input
            mask = np.tril(np.ones(shape.shape[2:]))
            given = len(prefix) - 1
            mask[:given, :given] = 1
            assert (one.attention["decoder"] == shape * mask).all()
            assert {part.dtype for part in one.attention.values()} == {np.dtype(np.float32)}


def test_without_a_source_there_is_the_decoders_alone():
    found = searches(Attentive(toy2().logprobs), Prompts.from_ids(PREFIXES))
    assert {tuple(one.attention) for hypotheses in found for one in hypotheses} == {("decoder",)}
    for one in greedy(Attentive(toy2().logprobs), Prompts.from_ids(PREFIXES), RULES):
        assert one.attention is None


def transformer(task):
    sizes = {"hidden": 16, "heads": 2, "layers": 2}
    if task == "lm":
        return TransformerLm(TransformerLmConfig(**sizes), 12, seed=1).eval()
    return TransformerSeq2Seq(TransformerSeq2SeqConfig(**sizes), 12, 12, seed=1).eval()


@pytest.mark.parametrize("task", ["lm", "seq2seq"])
def test_a_transformers_attention_is_that_of_each_record_alone(task):
    model = transformer(task)
    kinds = {"decoder"} if task == "lm" else {"cross", "decoder", "encoder"}
    sources = None if task == "lm" else SOURCES
    found = searches(model, Prompts.from_ids(PREFIXES, sources))
    for row, hypotheses in enumerate(found):
        prompt = Prompts.from_ids(PREFIXES[row : row + 1], sources and sources[row : row + 1])
        for one in hypotheses:
            targets = [*one.ids, *([EOS] if one.finished else [])]
            [alone] = attend(model, prompt, [targets])
            assert set(one.attention) == set(alone) == kinds
            for kind in kinds:
                np.testing.assert_allclose(one.attention[kind], alone[kind], atol=1e-5)
                np.testing.assert_allclose(one.attention[kind].sum(axis=-1), 1, atol=1e-5)
            assert (np.triu(one.attention["decoder"], 1) == 0).all()


def test_attention_is_not_asked_for_in_vain():
    class Asked(Attentive):
        def start(self, *parts, attention=False):
            self.asked = attention
            return super().start(*parts, attention=attention)

    model = Asked(toy2().logprobs)
    prompts = Prompts.from_ids([[BOS]], [[7]])
    rules = Constraints(EOS, [3], NEVER)
    for wanted in (False, True):
        greedy(model, prompts, rules, attention=wanted)
        assert model.asked is wanted
        beam(model, prompts, rules, width=2, attention=wanted)
        assert model.asked is wanted
