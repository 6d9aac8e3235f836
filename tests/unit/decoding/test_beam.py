import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from seqtools.decoding.beam import beam
from seqtools.decoding.constraints import Constraints
from seqtools.decoding.hypothesis import Prompts
from seqtools.decoding.penalty import Penalty
from seqtools.errors import RecordError
from tests.unit.decoding.toy import BOS, EOS, NEVER, PAD, UNK, A, B, Bigram, Tree, toy2

PENALTIES = [-1.0, 0.0, 0.3, 1.0, 2.5]


def search(model, length=20, prefix=(BOS,), **options):
    [found] = beam(model, Prompts.from_ids([prefix]), Constraints(EOS, [length], NEVER), **options)
    return found


def tokens_of(hypothesis, eos):
    return [*hypothesis.ids, eos] if hypothesis.finished else hypothesis.ids


def plain_beam(model, longest, width, penalty, banned=(0,)):
    """Beam search by lists, to the very end, without leaving anything early."""
    live, done = [([], 0.0, 0)], []
    for step in range(1, longest + 1):
        candidates = []
        for rank, (tokens, total, node) in enumerate(live):
            for token in range(model.vocabulary_size):
                if token not in banned:
                    value = float(model.table[node, token])
                    child = node * model.vocabulary_size + token + 1
                    candidates.append((-(total + value), rank, token, [*tokens, token], child))
        candidates.sort(key=lambda candidate: candidate[:3])
        live = []
        for place, (cost, _, token, tokens, node) in enumerate(candidates):
            score = Penalty(penalty).score(-cost, step)
            if token == model.eos:
                if place < width:
                    done.append((tokens, score))
            elif len(live) < width:
                live.append((tokens, -cost, node))
                if step == longest:
                    done.append((tokens, score))
    return sorted(done, key=lambda entry: -entry[1])


@pytest.mark.parametrize(
    ("width", "expected"),
    [
        (1, [([A, B], -1.673976)]),
        (2, [([A], -1.491655), ([A, B], -1.673976)]),
        (3, [([A], -1.491655), ([A, B], -1.673976), ([], -2.302585)]),
    ],
)
def test_beams_of_one_two_and_three(width, expected):
    found = search(toy2(), width=width, nbest=width)
    assert [hypothesis.ids for hypothesis in found] == [ids for ids, _ in expected]
    assert [h.logprob for h in found] == pytest.approx([p for _, p in expected], abs=1e-6)
    assert all(hypothesis.finished for hypothesis in found)
    assert all(len(h.token_logprobs) == len(h.ids) + 1 for h in found)


def test_a_wider_beam_scores_no_worse_here():
    scores = [search(toy2(), width=width)[0].score for width in range(1, 12)]
    assert scores == sorted(scores)


@settings(max_examples=60, deadline=None)
@given(
    size=st.integers(3, 4),
    longest=st.integers(1, 4),
    seed=st.integers(0, 10**6),
    penalty=st.sampled_from(PENALTIES),
)
def test_a_beam_as_wide_as_the_space_finds_the_best_sequences(size, longest, seed, penalty):
    model = Tree(size, longest, seed)
    every = [
        (tokens, Penalty(penalty).score(total, len(tokens)), finished)
        for tokens, total, finished in model.sequences(longest)
    ]
    every.sort(key=lambda entry: -entry[1])
    [found] = beam(
        model,
        Prompts.from_ids([[0]]),
        Constraints(model.eos, [longest], [0]),
        width=size**longest,
        nbest=len(every) + 3,
        penalty=Penalty(penalty),
    )
    assert len(found) == len(every)
    assert [h.score for h in found] == pytest.approx([score for _, score, _ in every], abs=1e-5)
    best = found[0]
    assert tokens_of(best, model.eos) == every[0][0]
    assert best.finished == every[0][2]
    assert best.logprob == pytest.approx(model.logprob(every[0][0]), abs=1e-5)


@settings(max_examples=150, deadline=None)
@given(
    size=st.integers(3, 5),
    longest=st.integers(1, 5),
    width=st.integers(1, 6),
    nbest=st.integers(1, 4),
    seed=st.integers(0, 10**6),
    penalty=st.sampled_from(PENALTIES),
    levels=st.sampled_from([None, 1, 2]),  # few levels: many sequences are equal
)
def test_ending_early_never_changes_the_result(size, longest, width, nbest, seed, penalty, levels):
    model = Tree(size, longest, seed, levels)
    expected = plain_beam(model, longest, width, penalty)[:nbest]
    [found] = beam(
        model,
        Prompts.from_ids([[0]]),
        Constraints(model.eos, [longest], [0]),
        width=width,
        nbest=nbest,
        penalty=Penalty(penalty),
    )
    assert [tokens_of(h, model.eos) for h in found] == [tokens for tokens, _ in expected]
    assert [h.score for h in found] == pytest.approx([score for _, score in expected], abs=1e-6)
    assert [h.finished for h in found] == [t[-1] == model.eos for t, _ in expected]
    for hypothesis in found:
        length = len(hypothesis.token_logprobs)
        assert hypothesis.score == Penalty(penalty).score(hypothesis.logprob, length)
        assert hypothesis.logprob == pytest.approx(float(hypothesis.token_logprobs.sum()), abs=1e-5)


def test_the_search_ends_as_soon_as_nothing_can_get_better():
    model = toy2()
    search(model, width=2)
    # after two steps `a </s>` has -1.4917; the live `a b` has -0.98, which three steps end
    assert len(model.batch_sizes) == 3


def test_with_a_penalty_longer_hypotheses_are_waited_for():
    # ends at once with .6, or goes on with .4 and is then almost sure of each next token
    table = torch.full((3, 3), -torch.inf)
    table[0] = torch.tensor([0.0, 0.6, 0.4]).log()
    table[2] = torch.tensor([0.0, 0.01, 0.99]).log()
    constraints = Constraints(1, [50], [0])
    prompts = Prompts.from_ids([[0]])
    [[plain]] = beam(Bigram(table), prompts, constraints, width=2)
    [[fair]] = beam(Bigram(table), prompts, constraints, width=2, penalty=Penalty(1.0))
    assert plain.ids == []
    assert fair.score == pytest.approx(math.log(0.4 * 0.99**49) / 50)
    assert (len(fair.ids), fair.finished) == (50, False)


def test_records_do_not_depend_on_their_neighbours():
    prefixes = [[BOS], [BOS, A], [BOS, A, B], [BOS, B, A, A]]
    lengths = [9, 1, 4, 20]
    together = beam(
        toy2(), Prompts.from_ids(prefixes), Constraints(EOS, lengths, NEVER), width=3, nbest=3
    )
    for found, prefix, length in zip(together, prefixes, lengths, strict=True):
        alone = search(toy2(), length, prefix, width=3, nbest=3)
        assert [h.ids for h in found] == [h.ids for h in alone]
        assert [h.score for h in found] == [h.score for h in alone]


def test_finished_records_leave_the_batch():
    model = toy2()
    prompts = Prompts.from_ids([[BOS, A, B], [BOS]])
    beam(model, prompts, Constraints(EOS, [20, 20], NEVER), width=2)
    # `b` ends with .5, which nothing beats: the second record goes on alone
    assert model.batch_sizes == [2, 2, 2]


def test_hypotheses_that_are_cut_rank_by_the_same_formula():
    found = search(toy2(), length=2, width=3, nbest=4)
    assert [(h.ids, h.finished) for h in found] == [
        ([A, B], False),
        ([A], True),
        ([A, A], False),
        ([], True),
    ]
    assert [len(h.token_logprobs) for h in found] == [2, 2, 2, 1]
    assert [h.score for h in found] == sorted((h.score for h in found), reverse=True)


def test_what_is_banned_is_never_proposed():
    constraints = Constraints(EOS, [4], [PAD, BOS, A])
    [found] = beam(toy2(), Prompts.from_ids([[BOS]]), constraints, width=4, nbest=4)
    assert all(A not in hypothesis.ids for hypothesis in found)
    assert found[0].ids == []
    assert found[1].logprob == pytest.approx(math.log(0.125 * 0.5))


def test_attention_follows_the_back_pointers():
    prompts = Prompts.from_ids([[BOS], [BOS, A]], [[7, 1], [5]])
    model = toy2(attends=True)
    constraints = Constraints(EOS, [5, 5], NEVER)
    found = beam(model, prompts, constraints, width=3, nbest=3, attention=True)
    for hypotheses, prefix, columns in zip(found, ([BOS], [BOS, A]), (2, 1), strict=True):
        for hypothesis in hypotheses:
            steps = len(hypothesis.token_logprobs)
            assert hypothesis.attention["cross"].shape == (2, 1, steps, columns)
            if columns == 2:
                fed = [*prefix, *hypothesis.ids][:steps]
                digits = [int("".join(map(str, fed[: n + 1]))) for n in range(steps)]
                assert hypothesis.attention["cross"][0, 0, :, 1].tolist() == digits
                assert set(hypothesis.attention["cross"][1, 0, :, 0].tolist()) == {8}
    assert search(model, width=2)[0].attention is None


@pytest.mark.parametrize("value", [-math.inf, math.nan, math.inf])
@pytest.mark.parametrize("where", [BOS, A])
def test_no_probability_at_all_is_an_error(value, where):
    table = toy2().logprobs.clone()
    table[where] = value
    if where == A:  # the only way on
        table[BOS, [B, EOS, UNK]] = -math.inf
    with pytest.raises(RecordError, match="log-probability"):
        search(Bigram(table), width=2)


def test_hypotheses_that_lead_nowhere_die():
    table = toy2().logprobs.clone()
    table[A] = -math.inf
    found = search(Bigram(table), width=3, nbest=3)
    assert [h.ids for h in found] == [[], [B], [B, B]]  # .1, .0625, .0098
    # beside a record with more live hypotheses, and so with empty places
    prompts = Prompts.from_ids([[BOS, A, B], [BOS]])
    both = beam(Bigram(table), prompts, Constraints(EOS, [9, 9], NEVER), width=3, nbest=3)
    assert [h.ids for h in both[1]] == [h.ids for h in found]


def test_fewer_hypotheses_where_the_space_is_smaller():
    found = search(toy2(), length=1, width=9, nbest=9)
    assert [h.ids for h in found if not h.finished] == [[A], [B], [1]]
    assert [h.ids for h in found if h.finished] == [[]]


def test_ids_are_found_in_the_order_of_equals():
    model = Bigram(torch.full((4, 4), 0.25).log())
    prompts = Prompts.from_ids([[0]])
    [found] = beam(model, prompts, Constraints(3, [2], [0]), width=3, nbest=9)
    first, *others = [(h.ids, h.finished) for h in found]
    assert first == ([], True)
    assert others == [([1, 1], False), ([1, 2], False), ([1], True), ([2, 1], False)]
