import pytest
import torch

from seqtools.errors import ConfigError
from seqtools.nn.recurrent import STATES, RecurrentStack

ARCHITECTURES = ("rnn", "lstm", "gru")
SIZE, HIDDEN = 3, 4


def _stack(architecture, **options):
    stack = RecurrentStack(architecture, SIZE, HIDDEN, **options).double().eval()
    generator = torch.Generator().manual_seed(1)
    for parameter in stack.parameters():
        torch.nn.init.uniform_(parameter, -1, 1, generator=generator)
    return stack


def _inputs(rows, steps, seed=2):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(rows, steps, SIZE, generator=generator, dtype=torch.float64)


def _formula_step(architecture, module, x, state, nonlinearity=torch.tanh):
    """One step as the papers write it, gate by gate; torch's order of gates."""
    wi, wh, bi, bh = (
        getattr(module, n) for n in ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
    )
    h = state[0]
    a = (wi @ x + bi).split(HIDDEN)
    b = (wh @ h + bh).split(HIDDEN)
    if architecture == "rnn":
        return (nonlinearity(a[0] + b[0]),)
    if architecture == "gru":
        r, z = torch.sigmoid(a[0] + b[0]), torch.sigmoid(a[1] + b[1])
        n = torch.tanh(a[2] + r * b[2])
        return (z * h + (1 - z) * n,)
    i, f, o = (torch.sigmoid(a[k] + b[k]) for k in (0, 1, 3))
    c = f * state[1] + i * torch.tanh(a[2] + b[2])
    return o * torch.tanh(c), c


def _formula(architecture, module, row, nonlinearity=torch.tanh):
    state = tuple(torch.zeros(HIDDEN, dtype=torch.float64) for _ in range(STATES[architecture]))
    outputs = []
    for x in row:
        state = _formula_step(architecture, module, x, state, nonlinearity)
        outputs.append(state[0])
    return torch.stack(outputs), state


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_two_layers_equal_the_formula(architecture):
    stack = _stack(architecture, layers=2)
    inputs, lengths = _inputs(3, 5), torch.tensor([5, 2, 4])
    outputs, state = stack(inputs, lengths)
    for row, length in enumerate(lengths):
        below, first = _formula(architecture, stack.forward_layers[0], inputs[row, :length])
        above, second = _formula(architecture, stack.forward_layers[1], below)
        torch.testing.assert_close(outputs[row, :length], above)
        for part, (one, two) in enumerate(zip(first, second, strict=True)):
            torch.testing.assert_close(state[part][row], torch.stack((one, two)))


def test_relu():
    stack = _stack("rnn", nonlinearity="relu")
    inputs = _inputs(1, 4)
    expected, _ = _formula("rnn", stack.forward_layers[0], inputs[0], torch.relu)
    torch.testing.assert_close(stack(inputs)[0][0], expected)
    stepped, _ = stack.step(inputs[:, 0], stack.initial_state(1))
    torch.testing.assert_close(stepped[0], expected[0])


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("merge", ["concat", "sum", "mean"])
def test_backward_half_reads_from_the_last_real_token(architecture, merge):
    stack = _stack(architecture, bidirectional=True, merge=merge)
    inputs, lengths = _inputs(3, 6), torch.tensor([2, 6, 1])
    outputs, state = stack(inputs, lengths)
    for row, length in enumerate(lengths):
        real = inputs[row, :length]
        ahead, last_ahead = _formula(architecture, stack.forward_layers[0], real)
        behind, last_behind = _formula(architecture, stack.backward_layers[0], real.flip(0))
        behind = behind.flip(0)
        merged = {
            "concat": torch.cat((ahead, behind), -1),
            "sum": ahead + behind,
            "mean": (ahead + behind) / 2,
        }[merge]
        torch.testing.assert_close(outputs[row, :length], merged)
        for part in range(len(state)):
            both = torch.stack((last_ahead[part], last_behind[part]))
            torch.testing.assert_close(state[part][row], both)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("bidirectional", [False, True])
def test_batch_order_and_padding_change_nothing(architecture, bidirectional):
    stack = _stack(architecture, bidirectional=bidirectional, layers=2)
    inputs, lengths = _inputs(4, 7), torch.tensor([3, 7, 1, 5])
    outputs, state = stack(inputs, lengths)
    order = torch.tensor([2, 0, 3, 1])
    padded = torch.cat((inputs[order], torch.full((4, 9, SIZE), 7.0, dtype=torch.float64)), 1)
    others, other_state = stack(padded, lengths[order])
    for row, other in zip(order.tolist(), range(4), strict=True):
        length = lengths[row]
        alone, alone_state = stack(inputs[row : row + 1, :length])
        torch.testing.assert_close(outputs[row, :length], alone[0])
        torch.testing.assert_close(others[other, :length], alone[0])
        for part in range(len(state)):
            torch.testing.assert_close(state[part][row], alone_state[part][0])
            torch.testing.assert_close(other_state[part][other], alone_state[part][0])


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("bidirectional", [False, True])
def test_empty_rows_keep_their_state_and_have_finite_gradients(architecture, bidirectional):
    stack = _stack(architecture, bidirectional=bidirectional, layers=2)
    inputs = _inputs(3, 4).requires_grad_()
    first = tuple(torch.rand_like(part) for part in stack.initial_state(3))
    outputs, state = stack(inputs, torch.tensor([0, 4, 0]), first)
    for part, start in zip(state, first, strict=True):
        torch.testing.assert_close(part[[0, 2]], start[[0, 2]])
    (outputs[1].sum() + sum(part.sum() for part in state)).backward()
    assert torch.isfinite(inputs.grad).all()
    assert not inputs.grad[[0, 2]].any()
    all_empty, state = stack(inputs[:, :0], torch.zeros(3, dtype=torch.long), first)
    assert all_empty.shape == (3, 0, stack.output_size)
    assert all(a is b for a, b in zip(state, first, strict=True))


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_steps_and_carried_state_equal_one_run(architecture):
    stack = _stack(architecture, layers=3)
    inputs = _inputs(2, 6)
    outputs, last = stack(inputs)
    first_half, state = stack(inputs[:, :2])
    torch.testing.assert_close(first_half, outputs[:, :2])
    for step in range(2, 6):
        output, state = stack.step(inputs[:, step], state)
        torch.testing.assert_close(output, outputs[:, step])
    for ours, theirs in zip(state, last, strict=True):
        torch.testing.assert_close(ours, theirs)


def test_dropout_is_between_layers_only():
    stack = _stack("gru", dropout=0.5).train()
    inputs = _inputs(2, 3)
    assert torch.equal(stack(inputs)[0], stack(inputs)[0])
    deep = _stack("gru", dropout=0.5, layers=2).train()
    assert not torch.equal(deep(inputs)[0], deep(inputs)[0])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"architecture": "gur"}, "unknown architecture 'gur'"),
        ({"merge": "max"}, "choose from concat, sum, mean"),
        ({"nonlinearity": "relu"}, "a choice of rnn, gru has its own"),
        ({"layers": 0}, "got 3, 4 and 0"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ConfigError, match=message):
        RecurrentStack(options.pop("architecture", "gru"), SIZE, HIDDEN, **options)


def test_a_bidirectional_stack_has_no_steps():
    stack = _stack("gru", bidirectional=True)
    with pytest.raises(ValueError, match="reads from both ends"):
        stack.step(_inputs(1, 1)[:, 0], stack.initial_state(1))


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_cuda_equals_cpu(architecture):
    stack = _stack(architecture, bidirectional=True, layers=2)
    inputs, lengths = _inputs(3, 6), torch.tensor([2, 6, 0])
    expected, expected_state = stack(inputs, lengths)
    outputs, state = stack.cuda()(inputs.cuda(), lengths.cuda())
    torch.testing.assert_close(outputs[1].cpu(), expected[1])
    for ours, theirs in zip(state, expected_state, strict=True):
        torch.testing.assert_close(ours.cpu(), theirs)
