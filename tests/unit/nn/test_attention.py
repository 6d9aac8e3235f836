import math

import pytest
import torch
from torch.autograd import gradcheck

from seqtools.errors import ConfigError
from seqtools.nn.attention import SCORES, Attention, make_score, masked_softmax, tanh_scores

B, T, S, Q, K, A = 2, 3, 4, 5, 6, 7


def _random(*size, seed=0):
    return torch.randn(*size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def _score(name, value_size=K):
    if name.endswith("dot"):
        value_size = Q
    size = A if name in ("additive", "tanh-sum") else None
    score = make_score(name, Q, value_size, attention_size=size, max_source=S + 2).double()
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
