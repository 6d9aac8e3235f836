import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from seqtools.errors import ConfigError
from seqtools.nn import multihead
from seqtools.nn.masks import causal_bias, padding_bias
from seqtools.nn.multihead import KeyValues, MultiHeadAttention
from seqtools.nn.positions import AttentionPositions, make_positions

E, H, D = 12, 3, 4
RELATIVE = ["shaw", "t5", "rotary", "alibi"]


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
def test_weights_context_and_gradients_are_the_same_with_and_without_the_fused_way(
    name, monkeypatch
):
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
    parameters = list(attention.parameters())
    gradients = [
        torch.autograd.grad(found.square().sum(), parameters, retain_graph=True)
        for found in (explicit, fused)
    ]
    torch.testing.assert_close(*gradients)
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


def test_dropout_is_on_the_weights_in_training_alone():
    attention, inputs = _attention(dropout=0.5), _inputs(2, 5)
    places = torch.arange(5)
    memory = attention.project(inputs, places)
    quiet, weights = attention(inputs, places, memory, weights=True)
    attention.train()
    torch.manual_seed(0)
    noisy, again = attention(inputs, places, memory, weights=True)
    assert torch.equal(again, weights)  # what is shown is what was there before
    torch.manual_seed(0)
    kept = torch.rand(2, H, 5, 5, dtype=torch.float64) >= 0.5
    assert 0 < kept.sum() < kept.numel()
    contexts = (weights * kept / 0.5) @ memory.values
    expected = attention.output(contexts.transpose(1, 2).reshape(2, 5, E))
    torch.testing.assert_close(noisy, expected)
    assert not torch.allclose(quiet, noisy)


def _positioned(name, causal=False):
    """Attention with such positions, their numbers drawn."""
    _, [positions] = make_positions(name, hidden=E, heads=H, layers=1, causal=causal)
    attention = _attention(positions)
    for parameter in positions.parameters():
        torch.nn.init.normal_(parameter)
    return attention


def _attend(attention, inputs, places):
    bias = attention.positions.bias(places, places)
    memory = attention.project(inputs, places)
    return attention(inputs, places, memory, bias, weights=True)


@pytest.mark.parametrize("name", RELATIVE)
@given(first=st.integers(0, 5000), steps=st.integers(1, 40))
@settings(max_examples=20)
def test_relative_attention_does_not_see_where_a_text_begins(name, first, steps):
    attention, inputs, places = _positioned(name), _inputs(1, steps), torch.arange(steps)
    here, there = _attend(attention, inputs, places), _attend(attention, inputs, places + first)
    torch.testing.assert_close(here, there, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("name", RELATIVE)
def test_relative_attention_sees_the_order(name):
    """Without positions, a text read backwards gives its vectors backwards; with them, others."""
    inputs, places = _inputs(1, 5), torch.arange(5)
    plain = _attention()
    forth, back = _attend(plain, inputs, places)[0], _attend(plain, inputs.flip(1), places)[0]
    torch.testing.assert_close(forth, back.flip(1))
    attention = _positioned(name)
    forth, back = (_attend(attention, x, places)[0] for x in (inputs, inputs.flip(1)))
    if name == "alibi":  # the distance alone, to both sides
        torch.testing.assert_close(forth, back.flip(1))
    else:
        assert not torch.allclose(forth, back.flip(1))


@pytest.mark.parametrize("name", ["none", *RELATIVE])
def test_gradients_of_attention_and_its_positions(name):
    attention, places = _positioned(name), torch.arange(4)
    parameters = list(attention.parameters())
    inputs = _inputs(1, 4).requires_grad_()
    assert torch.autograd.gradcheck(
        lambda x, *_: _attend(attention, x, places), (inputs, *parameters)
    )


@pytest.mark.parametrize("name", ["none", *RELATIVE])
def test_weights_are_float32_and_sum_to_one_under_autocast_too(name):
    attention, inputs = _positioned(name).float(), _inputs(1, 40).float()
    with torch.autocast("cpu", torch.bfloat16):
        found, weights = _attend(attention, inputs, torch.arange(40))
    assert (found.dtype, weights.dtype) == (torch.bfloat16, torch.float32)
    torch.testing.assert_close(weights.sum(-1), torch.ones(1, H, 40), atol=1e-6, rtol=0)


def test_heads_must_divide_the_hidden_size():
    with pytest.raises(ConfigError, match="5 heads do not divide a hidden size of 12"):
        MultiHeadAttention(E, 5, AttentionPositions(5, 2, causal=False))
