import math

import pytest
import torch

from seqtools.errors import ConfigError
from seqtools.nn.cache import Cache
from seqtools.nn.initialisation import initialise
from seqtools.nn.masks import length_mask, padding_bias
from seqtools.nn.positions import POSITIONS, make_positions
from seqtools.nn.transformer import ACTIVATIONS, FeedForward, Shape, TransformerStack

E, H, L = 12, 3, 2


def _stack(position="none", *, causal=True, cross=False, **shape):
    torch.manual_seed(1)
    shape = Shape(E, H, 20, **shape)
    _, layers = make_positions(
        position, hidden=E, heads=H, layers=L, causal=causal, max_positions=30
    )
    stack = TransformerStack(shape, layers, causal=causal, cross=cross).double().eval()
    initialise(stack, torch.Generator().manual_seed(2))
    for name, parameter in stack.named_parameters():  # norms and biases that do something
        if parameter.dim() == 1:
            torch.nn.init.normal_(parameter, mean=float("norm.weight" in name), std=0.2)
    return stack


def _inputs(rows=2, steps=6, seed=3):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(rows, steps, E, dtype=torch.float64, generator=generator)


def _norm(module, vector):
    """Layer norm (Ba et al. 2016) or RMS norm (Zhang and Sennrich 2019, equation 4)."""
    if isinstance(module, torch.nn.RMSNorm):
        root = (vector.square().mean(-1, keepdim=True) + 1e-6).sqrt()
        return vector / root * module.weight
    centred = vector - vector.mean(-1, keepdim=True)
    scaled = centred / (centred.square().mean(-1, keepdim=True) + module.eps).sqrt()
    return scaled * module.weight + module.bias


@pytest.mark.parametrize("rms_norm", [False, True])
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_a_layer_is_its_formula(norm, rms_norm):
    stack = _stack(norm=norm, rms_norm=rms_norm, cross=True, causal=False)
    inputs, source = _inputs(), _inputs(2, 4, seed=5)
    places = torch.arange(6)
    sources = stack.sources(source)
    x = inputs
    for number, layer in enumerate(stack.layers):

        def own(y, layer=layer):
            return layer.own(y, places, layer.own.project(y, places))[0]

        def cross(y, layer=layer, number=number):
            return layer.cross(y, places, sources[number])[0]

        norms = (layer.own_norm, layer.cross_norm, layer.feedforward_norm)
        for sublayer, module in zip((own, cross, layer.feedforward), norms, strict=True):
            if norm == "pre":
                x = x + sublayer(_norm(module, x))
            else:
                x = _norm(module, x + sublayer(x))
    if norm == "pre":
        x = _norm(stack.last_norm, x)
    torch.testing.assert_close(stack(inputs, None, sources)[0], x)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_the_feed_forward_is_its_formula(activation):
    torch.manual_seed(4)
    module = FeedForward(Shape(E, H, 7, activation=activation)).double()
    x = _inputs(1, 1)[0, 0]
    inner = module.inner.weight @ x + module.inner.bias
    gelu = [v * 0.5 * (1 + math.erf(v / math.sqrt(2))) for v in inner.tolist()]
    if activation == "relu":
        hidden = inner.clamp(min=0)
    elif activation == "gelu":
        hidden = torch.tensor(gelu, dtype=torch.float64)
    elif activation == "swiglu":
        hidden = inner[:7] * torch.sigmoid(inner[:7]) * inner[7:]
    else:
        hidden = torch.tensor(gelu[:7], dtype=torch.float64) * inner[7:]
    wanted = module.output.weight @ hidden + module.output.bias
    torch.testing.assert_close(module(x), wanted)


@pytest.mark.parametrize("position", POSITIONS)
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_the_past_does_not_move_when_the_future_does(position, norm):
    stack = _stack(position, norm=norm)
    inputs = _inputs()
    changed = inputs.clone()
    changed[:, 4:] *= torch.linspace(-1, 2, E, dtype=torch.float64)
    before, after = stack(inputs)[0], stack(changed)[0]
    assert torch.equal(before[:, :4], after[:, :4])
    assert not torch.isclose(before[:, 4:], after[:, 4:]).all(-1).any()


@pytest.mark.parametrize("position", POSITIONS)
def test_padding_does_not_reach_what_is_real(position):
    stack = _stack(position, causal=False)
    inputs, lengths = _inputs(), torch.tensor([6, 4])
    bias = padding_bias(length_mask(lengths, 6)).double()
    whole = stack(inputs, bias)[0]
    changed = inputs.clone()
    changed[1, 4:] = 1e3
    torch.testing.assert_close(stack(changed, bias)[0][1, :4], whole[1, :4])
    torch.testing.assert_close(stack(inputs[1:, :4])[0][0], whole[1, :4])  # alone, unpadded


@pytest.mark.parametrize("position", POSITIONS)
@pytest.mark.parametrize("cross", [False, True])
def test_steps_upon_a_cache_give_what_the_whole_gives(position, cross):
    stack = _stack(position, cross=cross)
    inputs, source = _inputs(3, 7), _inputs(3, 4, seed=5)
    sources = stack.sources(source) if cross else None
    bias = padding_bias(length_mask(torch.tensor([4, 2, 3]), 4)).double() if cross else None
    whole, _, attended = stack(inputs, None, sources, bias, weights=True)
    fed = torch.tensor([3, 1, 2])  # rows that were fed different numbers of inputs
    _, known, _ = stack(inputs[:, :3], None, sources, bias)
    caches = [Cache.of(memory.keys, memory.values) for memory in known]
    rows = torch.arange(3)
    for _ in range(4):
        outputs, caches, found = stack.step(
            inputs[rows, fed], fed, caches, sources, bias, weights=True
        )
        torch.testing.assert_close(outputs, whole[rows, fed])
        columns = found.own.shape[-1]
        expected = torch.zeros(3, L, H, columns, dtype=torch.float64)
        width = min(columns, 7)
        expected[..., :width] = attended.own[rows, :, :, fed, :width]
        torch.testing.assert_close(found.own[:, :, :, 0], expected)
        if cross:
            torch.testing.assert_close(found.cross[:, :, :, 0], attended.cross[rows, :, :, fed])
        fed = fed + 1


def test_steps_of_rows_of_one_length_give_what_the_whole_gives():
    stack = _stack("rotary")
    inputs = _inputs(2, 5)
    whole, known, _ = stack(inputs)
    _, known, _ = stack(inputs[:, :0])
    caches = [Cache.of(memory.keys, memory.values) for memory in known]
    for step in range(5):
        outputs, caches, _ = stack.step(inputs[:, step], step, caches)
        torch.testing.assert_close(outputs, whole[:, step])


def test_attention_has_a_row_for_every_layer_and_head_and_sums_to_one():
    stack = _stack("t5", cross=True)
    sources = stack.sources(_inputs(2, 4, seed=5))
    _, _, attended = stack(_inputs(), None, sources, None, weights=True)
    assert attended.own.shape == (2, L, H, 6, 6)
    assert attended.cross.shape == (2, L, H, 6, 4)
    for weights in attended:
        torch.testing.assert_close(weights.sum(-1), torch.ones_like(weights.sum(-1)))
    assert not torch.triu(attended.own, 1).any()
    assert (attended.own[:, :, :, 0, 0] == 1).all()


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_what_each_sublayer_gives_is_dropped_by_itself(norm):
    """Sublayers that give 1 everywhere add 2 where they are not dropped, three times by chance."""
    stack = _stack(norm=norm, cross=True, dropout=0.5).train()
    layer = stack.layers[0]
    for module in (layer.own, layer.cross, layer.feedforward):
        torch.nn.init.zeros_(module.output.weight)
        torch.nn.init.ones_(module.output.bias)
    if norm == "post":  # the norms leave the sums as they are
        layer.own_norm = layer.cross_norm = layer.feedforward_norm = torch.nn.Identity()
    inputs, places = _inputs(40, 6), torch.arange(6)
    sources = stack.sources(_inputs(40, 4, seed=5))
    found, _, _ = layer(inputs, places, None, None, sources[0], None, weights=False)
    counts = ((found - inputs) / 2).round(decimals=6)
    assert counts.unique().tolist() == [0, 1, 2, 3]
    # Four standard deviations of a mean of 2880 counts of variance 3/4 are 0.065.
    assert counts.mean().item() == pytest.approx(1.5, abs=0.065)


def test_residual_sums_begin_at_the_size_of_one_layer():
    """Of what n sublayers of variance 1/n give, the sum has a variance of about 1."""
    shape = Shape(64, 4, 256)
    _, layers = make_positions("none", hidden=64, heads=4, layers=12, causal=True)
    stack = TransformerStack(shape, layers, causal=True, cross=False)
    initialise(stack, torch.Generator().manual_seed(2))
    before = [layer.feedforward.output.weight.clone() for layer in stack.layers]
    stack.scale_residuals()
    for layer, weight in zip(stack.layers, before, strict=True):
        torch.testing.assert_close(layer.feedforward.output.weight, weight / math.sqrt(24))


def test_unknown_names_are_refused():
    with pytest.raises(ConfigError, match="'gleu'"):
        Shape(E, H, 20, activation="gleu")
    with pytest.raises(ConfigError, match="'middle'"):
        Shape(E, H, 20, norm="middle")
