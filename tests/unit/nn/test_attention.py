import math

import pytest
import torch
from torch.autograd import gradcheck

from seqtools.errors import ConfigError
from seqtools.nn.attention import SCORES, Attention, make_score, masked_softmax, tanh_scores
from seqtools.nn.local import HardAttention, MonotonicAttention, PredictiveAttention

B, T, S, Q, K, A = 2, 3, 4, 5, 6, 7


def _random(*size, seed=0):
    return torch.randn(*size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def _score(name, value_size=K, max_source=S + 2):
    if name.endswith("dot"):
        value_size = Q
    size = A if name in ("additive", "tanh-sum") else None
    score = make_score(name, Q, value_size, attention_size=size, max_source=max_source).double()
    for index, parameter in enumerate(score.parameters()):
        torch.nn.init.uniform_(parameter, -1, 1, generator=torch.Generator().manual_seed(index))
    return score, value_size


def _formula(name, score, q, k, position):
    """Section by section as written: one query q (Q,), one source vector k (K,)."""
    weights = dict(score.named_parameters())
    if name == "dot":
        return sum(q[i] * k[i] for i in range(Q))
    if name == "scaled-dot":
        return sum(q[i] * k[i] for i in range(Q)) / math.sqrt(Q)
    if name == "general":
        return q @ (weights["key.weight"] @ k)
    if name == "additive":
        hidden = torch.tanh(weights["query.weight"] @ q + weights["key.weight"] @ k)
        return weights["energy"] @ hidden
    pair = torch.cat((q, k))
    if name == "concat":
        row = torch.cat((weights["query.weight"], weights["key.weight"]), 1)
        return (row @ pair + weights["query.bias"])[0]
    if name == "tanh-sum":
        matrix = torch.cat((weights["query.weight"], weights["key.weight"]), 1)
        return torch.tanh(matrix @ pair + weights["key.bias"]).sum()
    return (weights["query.weight"] @ q + weights["query.bias"])[position]


@pytest.mark.parametrize("name", SCORES)
def test_scores_equal_their_formulas(name):
    score, size = _score(name)
    query, values = _random(B, T, Q), _random(B, S, size, seed=1)
    result = score(query, score.keys(values))
    assert result.shape == (B, T, S)
    for b in range(B):
        for t in range(T):
            for s in range(S):
                expected = _formula(name, score, query[b, t], values[b, s], s)
                torch.testing.assert_close(result[b, t, s], expected)


@pytest.mark.parametrize("name", SCORES)
def test_weights_and_context_by_hand(name):
    score, size = _score(name)
    query, values = _random(B, T, Q), _random(B, S, size, seed=1)
    attention, lengths = Attention(score), [4, 2]
    mask = torch.tensor([[True] * n + [False] * (S - n) for n in lengths])
    context, weights = attention(query, attention.memory(values, mask))
    for b, length in enumerate(lengths):
        for t in range(T):
            scores = [_formula(name, score, query[b, t], values[b, s], s) for s in range(length)]
            total = sum(map(torch.exp, scores))
            expected = [torch.exp(x) / total for x in scores]
            torch.testing.assert_close(weights[b, t, :length], torch.stack(expected))
            mean = sum(w * values[b, s] for s, w in enumerate(expected))
            torch.testing.assert_close(context[b, t], mean)
        assert not weights[b, :, length:].any()


@pytest.mark.parametrize("name", SCORES)
def test_a_source_without_tokens(name):
    score, size = _score(name)
    query, values = _random(B, T, Q).requires_grad_(), _random(B, S, size).requires_grad_()
    attention = Attention(score)
    mask = torch.tensor([[False] * S, [True] * S])
    context, weights = attention(query, attention.memory(values, mask))
    assert not context[0].any()
    assert not weights[0].any()
    torch.testing.assert_close(weights[1].sum(1), torch.ones(T, dtype=torch.float64))
    (context.sum() + weights.square().sum()).backward()
    for tensor in (query.grad, values.grad, *(p.grad for p in score.parameters())):
        assert tensor is None or torch.isfinite(tensor).all()
    assert not query.grad[0].any()
    context, weights = attention(query, attention.memory(values[:, :0], mask[:, :0]))
    assert weights.shape == (B, T, 0)
    assert not context.any()


def test_softmax_of_minus_infinity_is_zero():
    scores = torch.tensor([[[0.0, math.log(3), 9.0]]])
    result = masked_softmax(scores, torch.tensor([[True, True, False]]))
    torch.testing.assert_close(result, torch.tensor([[[0.25, 0.75, 0.0]]]))


def test_softmax_where_the_mask_differs_by_query():
    scores = torch.tensor([[[0.0, math.log(3), 9.0]] * 3])
    masks = torch.tensor([[[True, True, False], [False, False, True], [False, False, False]]])
    expected = torch.tensor([[[0.25, 0.75, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]]])
    torch.testing.assert_close(masked_softmax(scores, masks), expected)


@pytest.mark.parametrize("name", SCORES)
def test_weights_sum_to_one_under_autocast(name):
    score, size = _score(name)
    attention, mask = Attention(score.float()), torch.ones(B, S, dtype=torch.bool)
    query, values = _random(B, T, Q).float(), _random(B, S, size, seed=1).float()
    with torch.autocast("cpu", torch.bfloat16):
        _, weights = attention(query, attention.memory(values, mask))
    torch.testing.assert_close(weights.sum(2), torch.ones(B, T))


def test_tanh_scores():
    query, keys, energy = _random(B, T, A), _random(B, S, A, seed=1), _random(A, seed=2)
    expected = torch.tanh((query.unsqueeze(2) + keys.unsqueeze(1)) / 2) @ energy
    torch.testing.assert_close(tanh_scores(query, keys, energy), expected)
    assert gradcheck(tanh_scores, [x.requires_grad_() for x in (query, keys, energy)])


@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize(
    "rows",
    [
        [0, 0, 0, 1, 1, 1],  # a beam opens
        [2, 0, 1, 3, 5, 4],  # it reorders within each source
        [3, 5],  # one source is left, then
        [1, 1, 5],  # sources with unequal shares
        [5, 0],
        [],
    ],
)
def test_selected_memory_serves_the_selected_rows(name, rows):
    score, size = _score(name)
    attention = Attention(score)
    mask = torch.tensor([[True] * S, [True, True, False, False]])
    memory = attention.memory(_random(B, S, size), mask)
    wide = memory.select(torch.tensor([0, 0, 0, 1, 1, 1]))
    assert wide.share == 3
    assert wide.values is memory.values  # a beam costs no copies
    query, rows = _random(len(rows), 1, Q, seed=3), torch.tensor(rows, dtype=torch.long)
    start = memory if len(rows) == 6 and rows.tolist() == [0, 0, 0, 1, 1, 1] else wide
    chosen = start.select(rows)
    assert chosen.rows == len(rows)
    context, weights = attention(query, chosen)
    for row, source in enumerate((rows // start.share).tolist()):
        single = memory.select(torch.tensor([source]))
        expected = attention(query[row : row + 1], single)
        torch.testing.assert_close((context[row], weights[row]), (expected[0][0], expected[1][0]))


def _partial(kind, window=2, score="general"):
    wrapped, size = _score(score, max_source=LONG)
    attention = (kind(wrapped) if kind is HardAttention else kind(wrapped, Q, window)).double()
    for index, parameter in enumerate(attention.parameters()):
        torch.nn.init.uniform_(parameter, -1, 1, generator=torch.Generator().manual_seed(index))
    return attention.eval(), size


LONG = 9  # source positions, of which the second row has 5
LENGTHS = torch.tensor([[True] * LONG, [True] * 5 + [False] * 4])


@pytest.mark.parametrize("score", ["general", "additive", "location"])
@pytest.mark.parametrize("window", [1, 2, 20])
def test_monotonic_window_by_hand(score, window):
    attention, size = _partial(MonotonicAttention, window, score)
    query, values = _random(B, 7, Q), _random(B, LONG, size, seed=1)
    memory = attention.memory(values, LENGTHS)
    context, weights = attention(query, memory, torch.tensor([0, 2]))
    scores = attention.score(query, memory.keys)
    for b, (length, first) in enumerate([(LONG, 0), (5, 2)]):
        for t in range(7):
            centre = min(first + t, length - 1)
            inside = range(max(centre - window, 0), min(centre + window + 1, length))
            total = sum(torch.exp(scores[b, t, s]) for s in inside)
            expected = torch.zeros(LONG, dtype=torch.float64)
            for s in inside:
                expected[s] = torch.exp(scores[b, t, s]) / total
            torch.testing.assert_close(weights[b, t], expected)
            torch.testing.assert_close(context[b, t], expected @ values[b])


@pytest.mark.parametrize("window", [1, 2, 20])
def test_predictive_window_by_equations_9_and_10(window):
    attention, size = _partial(PredictiveAttention, window)
    query, values = 3 * _random(B, 7, Q), _random(B, LONG, size, seed=1)
    memory = attention.memory(values, LENGTHS)
    context, weights = attention(query, memory)
    scores, sigma = attention.score(query, memory.keys), window / 2
    for b, length in enumerate([LONG, 5]):
        for t in range(7):
            hidden = torch.tanh(attention.projection.weight @ query[b, t])
            p = length * torch.sigmoid(attention.place @ hidden)
            inside = [s for s in range(length) if p - window <= s <= p + window]
            total = sum(torch.exp(scores[b, t, s]) for s in inside)
            expected = torch.zeros(LONG, dtype=torch.float64)
            for s in inside:
                gauss = torch.exp(-((s - p) ** 2) / (2 * sigma**2))
                expected[s] = torch.exp(scores[b, t, s]) / total * gauss
            torch.testing.assert_close(weights[b, t], expected)
            torch.testing.assert_close(context[b, t], expected @ values[b])


def test_predictive_window_learns_its_place():
    attention, size = _partial(PredictiveAttention)
    values, parameters = _random(B, LONG, size, seed=1), list(attention.parameters())

    def run(query, *_):
        return attention(query, attention.memory(values, LENGTHS))

    assert gradcheck(run, [_random(B, 2, Q).requires_grad_(), *parameters])
    context, _ = run(_random(B, 2, Q))
    context.sum().backward()
    assert attention.place.grad.all()
    assert attention.projection.weight.grad.all()


def test_hard_attention_takes_the_best_position():
    attention, size = _partial(HardAttention)
    query, values = _random(B, T, Q), _random(B, LONG, size, seed=1)
    memory = attention.memory(values, LENGTHS)
    context, weights = attention(query, memory)
    scores = attention.score(query, memory.keys).detach()
    for b, length in enumerate([LONG, 5]):
        for t in range(T):
            best = max(range(length), key=lambda s, row=scores[b, t]: float(row[s]))
            assert weights[b, t].tolist() == [float(s == best) for s in range(LONG)]
            torch.testing.assert_close(context[b, t], values[b, best])


def test_hard_attention_draws_from_the_softmax_in_training():
    attention, _ = _partial(HardAttention)
    scores = torch.tensor([0.0, math.log(2), math.log(5), 9.0]).expand(1, 20_000, 4)
    torch.manual_seed(0)
    mask = torch.tensor([[True, True, True, False]])
    drawn = attention.train().weigh(scores[:, :, :1], scores, mask, None)
    assert ((drawn == 0) | (drawn == 1)).all()
    assert torch.equal(drawn.sum(2), torch.ones(1, 20_000))
    share = drawn.mean(1)[0]
    # Three standard deviations of a share of 20000 draws are 0.011 at most.
    torch.testing.assert_close(share, torch.tensor([1, 2, 5, 0]) / 8, atol=0.011, rtol=0)


def test_hard_attention_has_the_gradient_of_the_softmax_of_its_noisy_scores():
    attention, _ = _partial(HardAttention)
    scores, wanted = _random(B, T, LONG).requires_grad_(), _random(B, T, LONG, seed=1)
    torch.manual_seed(5)
    drawn = attention.train().weigh(scores[:, :, :1], scores, LENGTHS, None)
    (found,) = torch.autograd.grad((drawn * wanted).sum(), scores)
    torch.manual_seed(5)
    noisy = scores - torch.empty_like(scores).exponential_().log()
    soft = masked_softmax(noisy, LENGTHS)
    (expected,) = torch.autograd.grad((soft * wanted).sum(), scores)
    torch.testing.assert_close(found, expected)
    assert torch.equal(drawn.argmax(2), soft.argmax(2))


def test_hard_attention_learns_where_to_look():
    """Of six positions, each with its own vector, that which is wanted."""
    score = make_score("location", 1, 6, max_source=6)
    torch.nn.init.zeros_(score.query.weight)
    torch.nn.init.zeros_(score.query.bias)
    attention = HardAttention(score).train()
    optimiser = torch.optim.SGD(attention.parameters(), lr=0.5)
    query, values = torch.ones(8, 1, 1), torch.eye(6).expand(8, 6, 6)
    memory = attention.memory(values, torch.ones(8, 6, dtype=torch.bool))
    torch.manual_seed(1)
    for _ in range(100):
        context, _ = attention(query, memory)
        optimiser.zero_grad()
        (context - torch.eye(6)[4]).square().sum(2).mean().backward()
        optimiser.step()
    assert score(query, memory.keys).softmax(2)[0, 0, 4] > 0.9
    assert attention.eval()(query, memory)[1][:, 0, 4].all()


@pytest.mark.parametrize("kind", [MonotonicAttention, PredictiveAttention, HardAttention])
@pytest.mark.parametrize("training", [False, True])
def test_partial_attention_to_a_source_without_tokens(kind, training):
    attention, size = _partial(kind)
    query, values = _random(B, T, Q).requires_grad_(), _random(B, S, size).requires_grad_()
    mask, first = torch.tensor([[False] * S, [True] * S]), torch.zeros(B, dtype=torch.long)
    attention.train(training)
    context, weights = attention(query, attention.memory(values, mask), first)
    assert not context[0].any()
    assert not weights[0].any()
    assert weights[1].any(1).all()
    (context.sum() + weights.square().sum()).backward()
    assert torch.isfinite(values.grad).all()
    if kind is not HardAttention or training:  # the best position has no gradient
        assert torch.isfinite(query.grad).all()
        assert not query.grad[0].any()
    context, weights = attention(query, attention.memory(values[:, :0], mask[:, :0]), first)
    assert weights.shape == (B, T, 0)
    assert not context.any()


@pytest.mark.parametrize("kind", [MonotonicAttention, PredictiveAttention, HardAttention])
def test_rows_that_share_a_source_have_windows_of_their_own(kind):
    attention, size = _partial(kind, window=1)
    memory = attention.memory(_random(B, LONG, size), LENGTHS)
    wide = memory.select(torch.tensor([0, 0, 0, 1, 1, 1]))
    query, first = _random(6, 2, Q, seed=3), torch.tensor([0, 4, 1, 2, 0, 7])
    context, weights = attention(query, wide, first)
    for row in range(6):
        one, single = slice(row, row + 1), memory.select(torch.tensor([row // 3]))
        expected = attention(query[one], single, first[one])
        torch.testing.assert_close((context[one], weights[one]), expected)


def test_errors():
    with pytest.raises(ConfigError, match="one size, got 5 and 6"):
        make_score("dot", 5, 6)
    with pytest.raises(ConfigError, match="unknown attention 'dto': choose from dot, scaled-dot"):
        make_score("dto", 5, 5)
    with pytest.raises(ConfigError, match="a max source of at least 1, got None"):
        make_score("location", 5, 5)
    with pytest.raises(ConfigError, match="a source of 4 positions is longer than the 3"):
        make_score("location", 5, 5, max_source=3).keys(torch.zeros(1, 4, 5))
    attention = Attention(make_score("dot", 5, 5))
    memory = attention.memory(torch.zeros(2, 3, 5), torch.ones(2, 3, dtype=torch.bool))
    with pytest.raises(ValueError, match="3 rows of queries, but a memory for 2"):
        attention(torch.zeros(3, 1, 5), memory)
