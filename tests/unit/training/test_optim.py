import pytest
import torch

from seqtools.training.optim import SGD, AdamW, clip_gradients

torch.set_num_threads(1)


def make_parameters():
    """A matrix, a bias, a cube, a scalar, and one that never gets a gradient."""
    generator = torch.Generator().manual_seed(3)
    shapes = [(4, 3), (4,), (2, 3, 2), (), (5, 2)]
    return [torch.nn.Parameter(torch.randn(s, generator=generator)) for s in shapes]


def set_gradients(parameters, step):
    generator = torch.Generator().manual_seed(100 + step)
    for index, parameter in enumerate(parameters[:-1]):
        missing = index == 2 and step == 1  # one parameter sits a step out
        value = torch.randn(parameter.shape, generator=generator)
        parameter.grad = None if missing else value


def groups(parameters, weight_decay):
    return [
        {"params": [p for p in parameters if p.dim() >= 2], "weight_decay": weight_decay},
        {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0},
    ]


def run_both(ours, theirs, ours_parameters, their_parameters, steps=6):
    for step in range(steps):
        lr = 0.1 / (step + 1)
        set_gradients(ours_parameters, step)
        set_gradients(their_parameters, step)
        for group in theirs.param_groups:
            group["lr"] = lr
        ours.step(lr)
        theirs.step()
        for ours_now, theirs_now in zip(ours_parameters, their_parameters, strict=True):
            torch.testing.assert_close(ours_now, theirs_now, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("weight_decay", [0.0, 0.3])
def test_adamw_equals_torch(fused, weight_decay):
    ours_parameters, their_parameters = make_parameters(), make_parameters()
    ours = AdamW(
        ours_parameters, betas=(0.8, 0.95), eps=1e-6, weight_decay=weight_decay, fused=fused
    )
    theirs = torch.optim.AdamW(groups(their_parameters, weight_decay), betas=(0.8, 0.95), eps=1e-6)
    run_both(ours, theirs, ours_parameters, their_parameters)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("weight_decay", [0.0, 0.3])
def test_sgd_equals_torch(momentum, weight_decay):
    ours_parameters, their_parameters = make_parameters(), make_parameters()
    ours = SGD(ours_parameters, momentum=momentum, weight_decay=weight_decay)
    theirs = torch.optim.SGD(groups(their_parameters, weight_decay), lr=1.0, momentum=momentum)
    run_both(ours, theirs, ours_parameters, their_parameters)


def test_first_adamw_step_by_hand():
    """After one step the corrected means are g and g², so each weight moves by lr · sign(g)."""
    weight = torch.nn.Parameter(torch.tensor([[1.0, -2.0]]))
    weight.grad = torch.tensor([[0.5, -3.0]])
    AdamW([weight], weight_decay=0.1).step(0.01)
    expected = torch.tensor([[1.0 * (1 - 0.001) - 0.01, -2.0 * (1 - 0.001) + 0.01]])
    torch.testing.assert_close(weight.detach(), expected)


def test_sgd_momentum_by_hand():
    weight = torch.nn.Parameter(torch.tensor([1.0]))
    optimizer = SGD([weight], momentum=0.5)
    weight.grad = torch.tensor([2.0])
    optimizer.step(0.1)  # velocity 2
    optimizer.step(0.1)  # velocity 3
    assert weight.item() == pytest.approx(1.0 - 0.2 - 0.3)


def test_bias_does_not_decay():
    bias = torch.nn.Parameter(torch.tensor([1.0]))
    bias.grad = torch.tensor([0.0])
    AdamW([bias], weight_decay=0.5).step(0.1)
    SGD([bias], weight_decay=0.5).step(0.1)
    assert bias.item() == 1.0


@pytest.mark.parametrize(("max_norm", "scale"), [(None, 1.0), (10.0, 1.0), (2.5, 0.5)])
def test_clipping_by_global_norm(max_norm, scale):
    """Gradients (3, 4) and nothing have the norm 5."""
    first, second, third = (torch.nn.Parameter(torch.zeros(1)) for _ in range(3))
    first.grad, second.grad = torch.tensor([3.0]), torch.tensor([4.0])
    norm = clip_gradients([first, second, third], max_norm)
    assert norm.item() == pytest.approx(5.0)
    assert first.grad.item() == pytest.approx(3.0 * scale, rel=1e-6)
    assert second.grad.item() == pytest.approx(4.0 * scale, rel=1e-6)


@pytest.mark.parametrize(("max_norm", "norm"), [(None, 10.0), (20.0, 10.0), (2.5, 2.5)])
def test_scale_comes_before_clipping(max_norm, norm):
    """Gradients (3, 4) times 2 have the norm 10."""
    parameter = torch.nn.Parameter(torch.zeros(2))
    parameter.grad = torch.tensor([3.0, 4.0])
    assert clip_gradients([parameter], max_norm, scale=2.0).item() == pytest.approx(10.0)
    assert parameter.grad.tolist() == pytest.approx([0.6 * norm, 0.8 * norm], rel=1e-6)


def test_clipping_equals_torch():
    ours, theirs = make_parameters(), make_parameters()
    set_gradients(ours, 0)
    set_gradients(theirs, 0)
    norm = clip_gradients(ours, 0.7)
    torch.testing.assert_close(norm, torch.nn.utils.clip_grad_norm_(theirs, 0.7))
    for mine, other in zip(ours[:-1], theirs[:-1], strict=True):
        torch.testing.assert_close(mine.grad, other.grad)


def test_clipping_keeps_a_bad_gradient_visible():
    parameter = torch.nn.Parameter(torch.zeros(2))
    parameter.grad = torch.tensor([1.0, float("nan")])
    assert torch.isnan(clip_gradients([parameter], 1.0))


def test_clipping_without_gradients():
    assert clip_gradients([torch.nn.Parameter(torch.zeros(2))], 1.0).item() == 0.0
