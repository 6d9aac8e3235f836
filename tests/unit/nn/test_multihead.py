import math

import pytest
import torch

from seqtools.errors import ConfigError
from seqtools.nn import multihead
from seqtools.nn.masks import causal_bias, padding_bias
from seqtools.nn.multihead import KeyValues, MultiHeadAttention
from seqtools.nn.positions import AttentionPositions, make_positions

E, H, D = 12, 3, 4


def _attention(positions=None, **options):
    torch.manual_seed(1)
    positions = positions or AttentionPositions(H, D, causal=False)
    return MultiHeadAttention(E, H, positions, **options).double().eval()


def _inputs(rows=2, steps=5, seed=2):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(rows, steps, E, dtype=torch.float64, generator=generator)


def _linear(module, vector):
    return module.weight @ vector + module.bias


def _formula(attention, queries, source, allowed):
    """Vaswani et al. 2017, section 3.2, one query, one head and one position at a time."""
    contexts, weights = [], []
    for step, query in enumerate(queries):
        parts, found = [], []
        for head in range(H):
            part = slice(head * D, (head + 1) * D)
            q = _linear(attention.query, query)[part]
            pairs = [_linear(attention.key_value, position) for position in source]
            scores = [
                (q @ pair[:E][part]).item() / math.sqrt(D) if allowed(step, place) else -math.inf
                for place, pair in enumerate(pairs)
            ]
            total = sum(math.exp(score) for score in scores)
            shares = [math.exp(score) / total for score in scores]
            values = [share * pair[E:][part] for share, pair in zip(shares, pairs, strict=True)]
            parts.append(torch.stack(values).sum(0))
            found.append(shares)
        contexts.append(_linear(attention.output, torch.cat(parts)))
        weights.append(found)
    return torch.stack(contexts), torch.tensor(weights, dtype=torch.float64).transpose(0, 1)


@pytest.mark.parametrize("fused", [False, True])
def test_self_attention_is_the_formula(fused, monkeypatch):
    monkeypatch.setattr(multihead, "_EXPLICIT", 0 if fused else 512)
    attention, inputs, places = _attention(), _inputs(), torch.arange(5)
    memory = attention.project(inputs, places)
    found, none = attention(inputs, places, memory, causal_bias(5).double())
    assert none is None
    for row in range(2):
        wanted, _ = _formula(attention, inputs[row], inputs[row], lambda i, j: j <= i)
        torch.testing.assert_close(found[row], wanted)


@pytest.mark.parametrize("fused", [False, True])
def test_attention_to_a_padded_source_is_the_formula(fused, monkeypatch):
    monkeypatch.setattr(multihead, "_EXPLICIT", 0 if fused else 512)
    attention, queries, source = _attention(), _inputs(2, 3), _inputs(2, 6, seed=7)
    lengths = (6, 2)
    mask = torch.tensor([[place < length for place in range(6)] for length in lengths])
    memory = attention.project(source, torch.arange(6))
    bias = padding_bias(mask).double()
    found, _ = attention(queries, torch.arange(3), memory, bias)
    again, weights = attention(queries, torch.arange(3), memory, bias, weights=True)
    torch.testing.assert_close(found, again)
    for row, length in enumerate(lengths):
        wanted, shares = _formula(
            attention, queries[row], source[row], lambda i, j, length=length: j < length
        )
        torch.testing.assert_close(found[row], wanted)
        torch.testing.assert_close(weights[row], shares)
        assert not weights[row, :, :, length:].any()


@pytest.mark.parametrize("name", ["t5", "alibi", "rotary", "shaw"])
def test_weights_and_context_are_the_same_with_and_without_the_fused_way(name, monkeypatch):
    _, layers = make_positions(name, hidden=E, heads=H, layers=1, causal=True)
    torch.manual_seed(3)
    for parameter in layers[0].parameters():
        torch.nn.init.normal_(parameter)
    attention, inputs, places = _attention(layers[0]), _inputs(), torch.arange(5)
    bias = causal_bias(5).double()
    if layers[0].has_bias:
        bias = bias + layers[0].bias(places, places)
    memory = attention.project(inputs, places)
    explicit, weights = attention(inputs, places, memory, bias, weights=True)
    monkeypatch.setattr(multihead, "_EXPLICIT", 0)
    fused, _ = attention(inputs, places, memory, bias)
    torch.testing.assert_close(explicit, fused)
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, H, 5, dtype=torch.float64))
    assert not torch.triu(weights, 1).any()


def test_rows_that_share_a_source_are_served_as_by_copies_of_it():
    attention, source = _attention(), _inputs(2, 6, seed=7)
    queries = _inputs(6, 2, seed=9)
    mask = torch.tensor([[True] * 6, [True] * 4 + [False] * 2])
    memory = attention.project(source, torch.arange(6))
    copied = KeyValues(*(part.repeat_interleave(3, 0) for part in memory[:2]), memory.places)
    shared = attention(queries, torch.arange(2), memory, padding_bias(mask).double(), weights=True)
    bias = padding_bias(mask).repeat_interleave(3, 0).double()
    apart = attention(queries, torch.arange(2), copied, bias, weights=True)
    for one, other in zip(shared, apart, strict=True):
        torch.testing.assert_close(one, other)


def test_dropout_leaves_out_whole_positions_in_training_alone():
    attention, inputs = _attention(dropout=0.5), _inputs(1, 5)
    places = torch.arange(5)
    memory = attention.project(inputs, places)
    quiet, _ = attention(inputs, places, memory)
    attention.train()
    torch.manual_seed(0)
    noisy, weights = attention(inputs, places, memory, weights=True)
    assert not torch.allclose(quiet, noisy)
    torch.testing.assert_close(weights.sum(-1), torch.ones(1, H, 5, dtype=torch.float64))


def test_heads_must_divide_the_hidden_size():
    with pytest.raises(ConfigError, match="5 heads do not divide a hidden size of 12"):
        MultiHeadAttention(E, 5, AttentionPositions(5, 2, causal=False))
