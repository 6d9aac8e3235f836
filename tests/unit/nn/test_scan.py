import pytest
import torch
from torch.autograd import gradcheck

from seqtools.nn.attention import Attention, make_score
from seqtools.nn.decoders import BahdanauDecoder
from seqtools.nn.scan import can_scan, scan

B, T, S, E, H = 3, 4, 5, 3, 4
SCORES = ("dot", "scaled-dot", "general", "additive", "tanh-sum")


def _random(*size, seed):
    return torch.randn(*size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def _decoder(name, architecture="gru"):
    value_size = H if "dot" in name else 6
    score = make_score(name, H, value_size, attention_size=7, max_source=S)
    decoder = BahdanauDecoder(
        architecture, E, H, value_size, Attention(score),
        layers=1, dropout=0.0, nonlinearity="tanh", readout=2,
    ).double()  # fmt: skip
    for index, parameter in enumerate(decoder.parameters()):
        generator = torch.Generator().manual_seed(index)
        torch.nn.init.uniform_(parameter, -0.7, 0.7, generator=generator)
    return decoder, value_size


def _inputs(value_size):
    mask = torch.arange(S) < torch.tensor([S, 2, 0])[:, None]  # one source is empty
    return _random(B, T, E, seed=1), _random(B, S, value_size, seed=2), _random(B, H, seed=3), mask


@pytest.mark.parametrize("name", SCORES)
def test_scan_equals_steps_with_their_gradients(name):
    decoder, size = _decoder(name)
    embedded, values, state, mask = _inputs(size)
    leaves = [x.requires_grad_() for x in (embedded, values, state)] + [
        p for n, p in decoder.named_parameters() if not n.startswith("readout")
    ]
    results = []
    for run in (
        lambda memory: scan(decoder.first, decoder.attention, embedded, memory, state),
        lambda memory: decoder._scan(embedded, memory, (state,)),
    ):
        states, contexts = run(decoder.attention.memory(values, mask))
        wanted = (states * _random(B, T, H, seed=5)).sum() + contexts.square().sum()
        results.append((states, contexts, *torch.autograd.grad(wanted, leaves)))
    for ours, theirs in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("name", ["general", "additive"])
def test_gradcheck(name):
    decoder, size = _decoder(name)
    *leaves, mask = _inputs(size)

    def run(embedded, values, state, *_):
        memory = decoder.attention.memory(values, mask)
        return scan(decoder.first, decoder.attention, embedded, memory, state)

    weights = [decoder.first.weight_hh_l0, decoder.attention.score.key.weight]
    assert gradcheck(run, [*(x.requires_grad_() for x in leaves), *weights])


def test_what_it_knows():
    for name in SCORES:
        assert can_scan(_decoder(name)[0].first, Attention(_decoder(name)[0].attention.score))
    for name, architecture in (("location", "gru"), ("concat", "gru"), ("additive", "lstm")):
        decoder, _ = _decoder(name, architecture)
        assert not can_scan(decoder.first, decoder.attention)


@pytest.mark.parametrize("name", ["general", "additive"])
def test_autocast_is_close_and_gives_float32(name):
    decoder, size = _decoder(name)
    decoder = decoder.float()
    embedded, values, state, mask = _inputs(size)
    embedded, values, state = embedded.float(), values.float(), state.float()
    exact = scan(
        decoder.first, decoder.attention, embedded, decoder.attention.memory(values, mask), state
    )
    with torch.autocast("cpu", torch.bfloat16):
        memory = decoder.attention.memory(values, mask)
        found = scan(decoder.first, decoder.attention, embedded, memory, state)
    (found[0].sum() + found[1].sum()).backward()
    for ours, theirs in zip(found, exact, strict=True):
        assert ours.dtype == torch.float32
        torch.testing.assert_close(ours, theirs, atol=0.03, rtol=0.03)
    assert decoder.first.weight_hh_l0.grad.dtype == torch.float32


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_cuda_equals_cpu():
    decoder, size = _decoder("additive")
    embedded, values, state, mask = _inputs(size)
    memory = decoder.attention.memory(values, mask)
    expected = scan(decoder.first, decoder.attention, embedded, memory, state)
    decoder = decoder.cuda()
    memory = decoder.attention.memory(values.cuda(), mask.cuda())
    found = scan(decoder.first, decoder.attention, embedded.cuda(), memory, state.cuda())
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours.cpu(), theirs)
