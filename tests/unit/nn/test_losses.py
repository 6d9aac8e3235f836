import math

import pytest
import torch
import torch.nn.functional as F
from torch.autograd import gradcheck

from seqtools.nn import losses
from seqtools.nn.losses import linear_cross_entropy, linear_token_logprobs


def _inputs(n=7, v=5, h=3, *, dtype=torch.float64, seed=0):
    generator = torch.Generator().manual_seed(seed)
    hidden = torch.randn(n, h, generator=generator, dtype=dtype).requires_grad_()
    weight = torch.randn(v, h, generator=generator, dtype=dtype).requires_grad_()
    bias = torch.randn(v, generator=generator, dtype=dtype).requires_grad_()
    targets = torch.randint(v, (n,), generator=generator)
    return hidden, weight, bias, targets


def test_one_position_by_hand():
    # logits 0 and log 3: probabilities 1/4 and 3/4
    hidden, weight = torch.tensor([[1.0]]), torch.tensor([[0.0], [math.log(3)]])
    sums = linear_cross_entropy(hidden, weight, None, torch.tensor([1]))
    assert sums.nll.item() == pytest.approx(-math.log(0.75))
    smoothed = linear_cross_entropy(hidden, weight, None, torch.tensor([1]), label_smoothing=0.2)
    assert smoothed.nll.item() == pytest.approx(-math.log(0.75))
    expected = -(0.9 * math.log(0.75) + 0.1 * math.log(0.25))
    assert smoothed.objective.item() == pytest.approx(expected)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("with_bias", [True, False])
@pytest.mark.parametrize("chunk", [1, 40, 1 << 22])  # 40 // 5 is below the least chunk of 16 rows
def test_equals_torch(monkeypatch, smoothing, with_bias, chunk):
    monkeypatch.setattr(losses, "_CHUNK_ELEMENTS", {"cpu": chunk})
    hidden, weight, bias, targets = _inputs(n=37)
    bias = bias if with_bias else None
    inputs = [x for x in (hidden, weight, bias) if x is not None]
    expected = F.cross_entropy(
        F.linear(hidden, weight, bias), targets, reduction="sum", label_smoothing=smoothing
    )
    sums = linear_cross_entropy(hidden, weight, bias, targets, label_smoothing=smoothing)
    torch.testing.assert_close(sums.objective, expected)
    plain = F.cross_entropy(F.linear(hidden, weight, bias), targets, reduction="sum")
    torch.testing.assert_close(sums.nll, plain.detach())
    assert not sums.nll.requires_grad
    for ours, theirs in zip(
        torch.autograd.grad(sums.objective / 3, inputs),
        torch.autograd.grad(expected / 3, inputs),
        strict=True,
    ):
        torch.testing.assert_close(ours, theirs)
    with torch.no_grad():
        again = linear_cross_entropy(hidden, weight, bias, targets, label_smoothing=smoothing)
    torch.testing.assert_close(again.objective, expected.detach())
    assert not again.objective.requires_grad


def test_a_loss_near_zero_keeps_its_digits():
    # Logits of 200 where the target is 8 above the others: sums of logits would be 1.6 million.
    rows, size = 8192, 4
    targets = torch.arange(rows) % size
    logits = torch.full((rows, size), 192.0).scatter_(1, targets[:, None], 200.0)
    nll = linear_cross_entropy(logits, torch.eye(size), None, targets).nll.item()
    assert nll == pytest.approx(rows * math.log1p(3 * math.exp(-8)), rel=1e-4)
    sure = linear_cross_entropy(logits * 9, torch.eye(size), None, targets).nll.item()
    assert 0 <= sure < 1e-6


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_gradcheck(smoothing):
    *inputs, targets = _inputs()
    assert gradcheck(
        lambda *x: linear_cross_entropy(*x, targets, label_smoothing=smoothing).objective, inputs
    )


@pytest.mark.parametrize("frozen", [0, 1, 2])
def test_frozen_inputs_get_no_gradient(frozen):
    *inputs, targets = _inputs()
    inputs[frozen].requires_grad_(False)
    linear_cross_entropy(*inputs, targets).objective.backward()
    assert [x.grad is None for x in inputs] == [i == frozen for i in range(3)]


def test_no_positions():
    hidden, weight, bias, targets = _inputs(n=0)
    sums = linear_cross_entropy(hidden, weight, bias, targets, label_smoothing=0.1)
    sums.objective.backward()
    assert sums.objective.item() == sums.nll.item() == 0
    assert not weight.grad.any()
    assert not bias.grad.any()


def test_large_logits_stay_finite():
    hidden, weight = torch.tensor([[1e4]]).requires_grad_(), torch.tensor([[1.0], [-1.0]])
    sums = linear_cross_entropy(hidden, weight, None, torch.tensor([1]))
    sums.objective.backward()
    assert sums.nll.item() == 2e4
    assert hidden.grad.item() == 2.0  # softmax is (1, 0), so weight[0] - weight[1]


def test_autocast_multiplies_in_bfloat16_and_sums_in_float32():
    hidden, weight, bias, targets = _inputs(n=50, v=11, h=8, dtype=torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        sums = linear_cross_entropy(hidden, weight, bias, targets, label_smoothing=0.1)
    sums.objective.backward()
    assert sums.nll.dtype == torch.float32
    assert weight.grad.dtype == hidden.grad.dtype == torch.float32
    exact = linear_cross_entropy(hidden, weight, bias, targets, label_smoothing=0.1)
    assert sums.nll.item() == pytest.approx(exact.nll.item(), rel=0.01)
    torch.testing.assert_close(
        torch.autograd.grad(exact.objective, weight)[0], weight.grad, atol=0.3, rtol=0.05
    )


def test_token_logprobs():
    hidden, weight, bias, targets = _inputs(n=20)
    result = linear_token_logprobs(hidden, weight, bias, targets)
    expected = F.linear(hidden, weight, bias).log_softmax(1).gather(1, targets[:, None]).squeeze(1)
    torch.testing.assert_close(result, expected.detach().float())
    nll = linear_cross_entropy(hidden, weight, bias, targets).nll
    assert nll.item() == pytest.approx(-result.sum().item(), rel=1e-5)


def test_sizes_are_checked():
    hidden, weight, bias, targets = _inputs()
    with pytest.raises(ValueError, match=r"\(7, 3\) and \(5, 2\)"):
        linear_cross_entropy(hidden, weight[:, :2], bias, targets)
    with pytest.raises(ValueError, match=r"bias must be \(5,\), got \(4,\)"):
        linear_cross_entropy(hidden, weight, bias[:4], targets)
    with pytest.raises(ValueError, match=r"targets must be \(7,\), got \(6,\)"):
        linear_cross_entropy(hidden, weight, bias, targets[:6])


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_cuda_equals_cpu():
    inputs = _inputs(n=40, v=30, h=8)
    ours = linear_cross_entropy(*(x.detach().cuda() for x in inputs), label_smoothing=0.1)
    expected = linear_cross_entropy(*inputs, label_smoothing=0.1)
    torch.testing.assert_close(ours.objective.cpu(), expected.objective.detach())
