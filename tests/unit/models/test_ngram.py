"""The n-gram model as a Stepper: against exact fractions, and as the searches use it."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from seqtools.decoding.beam import beam
from seqtools.decoding.constraints import Constraints
from seqtools.decoding.greedy import greedy
from seqtools.decoding.hypothesis import Prompts
from seqtools.decoding.penalty import Penalty
from seqtools.decoding.sampling import Sampler, sample, source
from seqtools.models.ngram import ForeignNgramLm, NgramLm
from seqtools.ngram.estimate import train
from seqtools.ngram.words import BOS, EOS, UNK
from tests.oracles.ngram import Gram, Reference
from tests.unit.ngram import corpora
from tests.unit.ngram.corpora import K1, METHODS
from tests.unit.ngram.models import language_model, opened
from tests.unit.ngram.test_estimate import FALLBACK, Case, smoothing

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


def stepper(order: int = 3) -> NgramLm:
    return NgramLm(language_model(K1, order))


def first_step(model: NgramLm, prefixes: Sequence[Sequence[int]]) -> Tensor:
    """What is said to follow each prefix, (B, V)."""
    last, state = Prompts.from_ids(prefixes).begin(model)
    logprobs, _, attention = model.step(last, state)
    assert attention is None
    return logprobs


@settings(max_examples=100)
@given(corpora.cases())
def test_the_next_token_has_the_probability_of_the_reference(case: Case) -> None:
    records, order, options = case
    reference = Reference(records, order, fallback=FALLBACK, **options)
    made = train(records, order, smoothing(options), prune=options.get("prune", (0,)))
    model = opened(made.model)
    find = {name: model.words.find(name.encode()) for name in [*reference.vocabulary, "<s>"]}
    contexts = [context for context in corpora.contexts(reference) if context]
    if not contexts:  # order 1, where there is nothing to remember
        contexts = [("<s>",)]
    prefixes = [[find.get(word, UNK) for word in context] for context in contexts]
    found = first_step(NgramLm(model), prefixes)
    assert found.dtype == torch.float32
    assert found.shape == (len(contexts), len(model.words))
    for row, context in zip(found.numpy().astype(np.float64), contexts, strict=True):
        known = [find[word] for word in reference.vocabulary]
        history: Gram = context if order > 1 else ()
        expected = [float(reference.probability(word, history)) for word in reference.vocabulary]
        np.testing.assert_allclose(np.exp(row[known]), expected, rtol=1e-5, atol=1e-12)
        rest = np.delete(row, known)  # <s>, and <unk> where it is not in the vocabulary
        assert (rest == -math.inf).all()


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_a_row_does_not_depend_on_its_neighbours_or_the_padding(order: int) -> None:
    model = stepper(order)
    prefixes = [[BOS], [BOS, 3], [BOS, 3, 4, 5, 3, 4], [UNK, 4], [5], [BOS, EOS, EOS, 3]]
    together = first_step(model, prefixes)
    for row, prefix in enumerate(prefixes):
        assert torch.equal(first_step(model, [prefix]), together[row : row + 1])


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_prefixes_at_once_and_step_by_step_are_the_same(order: int) -> None:
    model = stepper(order)
    for ids in itertools.product([UNK, 3, 4], repeat=3):
        last, state = Prompts.from_ids([[BOS]]).begin(model)
        for following in ids:
            _, state, _ = model.step(last, state)
            last = torch.tensor([following])
        logprobs, state, _ = model.step(last, state)
        assert torch.equal(logprobs, first_step(model, [[BOS, *ids]]))
        assert state.dtype == torch.int64
        assert state.shape == (1, order - 1)


def test_nothing_is_remembered_from_before_a_start() -> None:
    model = stepper(4)
    expected = first_step(model, [[BOS, 3]])
    assert not torch.equal(first_step(model, [[4, 3]]), expected)
    assert torch.equal(first_step(model, [[4, BOS, 3]]), expected)
    assert torch.equal(first_step(model, [[BOS, BOS, 3]]), expected)
    last, state = Prompts.from_ids([[4, 3]]).begin(model)
    for following in (BOS, 3):
        _, state, _ = model.step(last, state)
        last = torch.tensor([following])
    assert torch.equal(model.step(last, state)[0], expected)


def test_selected_rows_go_on_as_those_they_are() -> None:
    model = stepper()
    last, state = Prompts.from_ids([[BOS], [BOS, 3, 4], [4]]).begin(model)
    logprobs, state, _ = model.step(last, state)
    rows = torch.tensor([2, 0, 0, 1])
    following = torch.tensor([3, 3, 4, 5])
    chosen, _, _ = model.step(following, model.select(state, rows))
    for place, (row, token) in enumerate(zip(rows.tolist(), following.tolist(), strict=True)):
        alone, _, _ = model.step(torch.tensor([token]), model.select(state, torch.tensor([row])))
        assert torch.equal(chosen[place : place + 1], alone)
    assert torch.equal(model.step(last, Prompts.from_ids([[BOS], [BOS, 3, 4], [4]]).begin(model)[1])[0], logprobs)  # fmt: skip # noqa: E501


def test_samples_are_as_frequent_as_the_reference_has_it() -> None:
    count = 4000
    model = NgramLm(language_model(K1, 2, "absolute", discount=0.5))
    reference = Reference(K1, 2, "absolute", discount=FALLBACK[0])
    drawn = sample(
        model, Prompts.from_ids([[BOS]]), Constraints(EOS, [3]), Sampler(),
        [source(0, "k", number) for number in range(count)],
    )[0]  # fmt: skip
    names = [word.decode() for word in model.model.words.strings()]
    seen = Counter(tuple(names[i] for i in one.ids) + ("</s>",) * one.finished for one in drawn)
    words = [word for word in reference.vocabulary if word != "</s>"]
    expected = {}
    for length in range(3):
        for start in itertools.product(words, repeat=length):
            ends = ["</s>", *words] if length == 2 else ["</s>"]
            for end in ends:
                sequence = (*start, end)
                expected[sequence] = math.prod(
                    float(reference.probability(word, ("<s>", *sequence[:place])))
                    for place, word in enumerate(sequence)
                )
    assert sum(expected.values()) == pytest.approx(1)
    assert seen.keys() <= expected.keys()
    # Pearson's statistic over the sequences that are not rare; the others are one class.
    common = [sequence for sequence, share in expected.items() if share * count >= 10]
    classes = [(seen[sequence], expected[sequence]) for sequence in common]
    rest = count - sum(number for number, _ in classes), 1 - sum(share for _, share in classes)
    statistic = sum((n - count * p) ** 2 / (count * p) for n, p in [*classes, rest])
    freedom = len(classes)
    assert freedom > 20
    assert statistic < freedom + 4 * math.sqrt(2 * freedom)


def sequences(model: NgramLm, longest: int) -> Iterator[tuple[list[int], float]]:
    """Every sequence of up to `longest` tokens with its log P, step by step."""
    tokens = [UNK, *range(EOS + 1, model.vocabulary_size)]
    for length in range(1, longest + 1):
        for start in itertools.product(tokens, repeat=length - 1):
            for end in [EOS, *tokens] if length == longest else [EOS]:
                ids = [*start, end]
                total = 0.0
                for place, token in enumerate(ids):
                    total += float(first_step(model, [[BOS, *ids[:place]]])[0, token])
                yield ids, total


@settings(max_examples=10)
@given(
    records=st.lists(st.lists(st.sampled_from("ab"), max_size=5), min_size=2, max_size=6),
    order=st.integers(1, 3),
    penalty=st.sampled_from([0.0, 1.0]),
)
def test_a_wide_beam_finds_the_likeliest_sequences(
    records: list[list[str]], order: int, penalty: float
) -> None:
    model = NgramLm(language_model(records, order))
    longest = 3
    ranked = sorted(
        (Penalty(penalty).score(total, len(ids)) for ids, total in sequences(model, longest)),
        reverse=True,
    )
    [found] = beam(
        model, Prompts.from_ids([[BOS]]), Constraints(EOS, [longest], [BOS]),
        width=40, nbest=5, penalty=Penalty(penalty),
    )  # fmt: skip
    assert [one.score for one in found] == pytest.approx(ranked[: len(found)], abs=1e-5)
    assert len(found) == min(5, sum(score > -math.inf for score in ranked))
    made = {tuple(ids): total for ids, total in sequences(model, longest)}
    for one in found:
        assert one.logprob == pytest.approx(made[(*one.ids, *[EOS] * one.finished)], abs=1e-5)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("device", DEVICES)
def test_the_searches_give_the_same_on_every_device(device: str, method: str) -> None:
    options = {"weights": ((0.5,) * 16,) * 3} if method == "jelinek-mercer" else {}
    fallback = tuple(map(float, FALLBACK))
    model = NgramLm(language_model(K1, 3, method, fallback=fallback, **options))
    prefixes = [[BOS], [BOS, 3], [BOS, 4, 5, 3]]
    rules = Constraints(EOS, [4, 5, 6], banned=[BOS])
    drawing = Sampler(top_k=4, top_p=0.9)
    sources = [source(1, str(row), copy) for row in range(3) for copy in range(2)]
    together = Prompts.from_ids(prefixes, device=device)
    last, state = together.begin(model)
    logprobs, state, _ = model.step(last, state)
    assert logprobs.device == state.device == last.device
    drawn = sample(model, together, rules, drawing, sources)
    greedily = greedy(model, together, rules)
    for row, prefix in enumerate(prefixes):
        one = Prompts.from_ids([prefix])
        rule = Constraints(EOS, [rules.max_lengths[row]], banned=rules.banned)
        sources = [source(1, str(row), copy) for copy in range(2)]
        expected = sample(model, one, rule, drawing, sources)[0]
        assert [each.ids for each in drawn[row]] == [each.ids for each in expected]
        assert greedily[row].ids == greedy(model, one, rule)[0].ids


def test_over_the_ids_of_another_vocabulary() -> None:
    own = stepper(3)
    words = np.array([BOS, UNK, BOS, EOS, 5, 3, UNK, 4])  # <pad> <unk> <s> </s>, then tokens
    foreign = ForeignNgramLm(own.model, words)
    assert foreign.vocabulary_size == 8
    prefixes = [[2], [3], [2, 4, 7], [2, 6], [4, 3, 5], [2, 5, 4, 7, 7]]
    # an end that was fed begins a line
    fed = [[BOS], [BOS], [BOS, 5, 4], [BOS, UNK], [5, BOS, 3], [BOS, 3, 5, 4, 4]]
    torch.testing.assert_close(first_step(foreign, prefixes), first_step(own, fed)[:, words])
    last, state = Prompts.from_ids([[2, 4], [2, 7]]).begin(foreign)
    _, state, _ = foreign.step(last, state)
    state = foreign.select(state, torch.tensor([1, 1, 0]))
    found, _, attention = foreign.step(torch.tensor([5, 6, 4]), state)
    assert attention is None
    expected = first_step(own, [[BOS, 4, 3], [BOS, 4, UNK], [BOS, 5, 5]])[:, words]
    torch.testing.assert_close(found, expected)
