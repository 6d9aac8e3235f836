import itertools
import math

import pytest
import torch

from seqtools.errors import ConfigError
from seqtools.models.protocols import TensorBatch
from seqtools.models.recurrent_lm import RecurrentLm, RecurrentLmConfig

ARCHITECTURES = ("rnn", "lstm", "gru")
V = 7


def _model(architecture="gru", **options):
    options = {"hidden": 6, "embedding": 5, "layers": 2} | options
    return RecurrentLm(RecurrentLmConfig(architecture, **options), V, seed=3).eval()


def _batch(*rows, carry=False, pad=0):
    """Rows of tokens; each is fed but for its last, and predicted but for its first."""
    width = max(map(len, rows)) - 1 + pad
    inputs = [row[:-1] + [0] * (width - len(row) + 1) for row in rows]
    targets = [row[1:] + [-100] * (width - len(row) + 1) for row in rows]
    lengths = torch.tensor([len(row) - 1 for row in rows])
    return TensorBatch(torch.tensor(inputs), torch.tensor(targets), lengths, carry=carry)


LONG, SHORT = [2, 4, 5, 6, 4, 4, 1, 3], [2, 6, 3]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("tied", [False, True])
def test_loss_of_a_batch_is_that_of_its_rows(architecture, tied):
    model = _model(architecture, tied=tied)
    alone = [model.loss(_batch(row))[0].terms["nll"] for row in (LONG, SHORT)]
    for pad in (0, 9):
        total, count = model.loss(_batch(LONG, SHORT, pad=pad))[0].terms["nll"]
        assert count == 9
        assert total.item() == pytest.approx(sum(part.item() for part, _ in alone), rel=1e-5)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_loss_is_the_cross_entropy_of_the_formula(architecture):
    model = _model(architecture, layers=1)
    batch = _batch(LONG)
    state, expected = model.stack.initial_state(1), 0.0
    for token, target in itertools.pairwise(LONG):
        hidden, state = model.stack.step(model.embedding.weight[[token]], state)
        logits = model.output.weight @ hidden[0] + model.output.bias
        expected -= (logits[target] - torch.log(torch.exp(logits).sum())).item()
    assert model.loss(batch)[0].terms["nll"][0].item() == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("tied", [False, True])
def test_steps_give_the_same_probabilities_as_the_whole(architecture, tied):
    model = _model(architecture, tied=tied)
    batch = _batch(LONG, SHORT)
    whole = model.token_logprobs(batch)
    assert whole.dtype == torch.float32
    assert not whole[batch.targets == -100].any()
    prefix, lengths = batch.inputs[:, :2], torch.tensor([2, 1])  # row 1 starts one token earlier
    state = model.start(None, None, prefix, lengths)
    last = torch.tensor([prefix[0, 1], prefix[1, 0]])
    for step in range(1, 7):
        logprobs, state, attention = model.step(last, state)
        assert attention is None
        torch.testing.assert_close(logprobs.exp().sum(1), torch.ones(2))
        torch.testing.assert_close(logprobs[0, batch.targets[0, step]], whole[0, step])
        if step <= 2:
            target = batch.targets[1, step - 1]
            torch.testing.assert_close(logprobs[1, target], whole[1, step - 1])
        last = torch.stack((batch.targets[0, step], batch.targets[1, min(step - 1, 1)]))


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_selected_rows_go_on_as_before(architecture):
    model = _model(architecture)
    state = model.start(None, None, torch.tensor([[2, 4], [2, 6]]), torch.tensor([2, 2]))
    last = torch.tensor([4, 6])
    expected = model.step(last, state)[0]
    rows = torch.tensor([1, 1, 0])
    torch.testing.assert_close(model.step(last[rows], model.select(state, rows))[0], expected[rows])


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_nothing_looks_ahead(architecture):
    model = _model(architecture)
    one, other = _batch(LONG), _batch([*LONG[:4], 1, 1, 5, 6])
    same = model.token_logprobs(one)[0, :3]
    torch.testing.assert_close(same, model.token_logprobs(other)[0, :3])


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_carried_state_makes_windows_one_text(architecture):
    model = _model(architecture)
    whole = model.loss(_batch(LONG))[0].terms["nll"][0].item()
    first, state = model.loss(_batch(LONG[:4]))
    second, _ = model.loss(_batch(LONG[3:], carry=True), state)
    both = first.terms["nll"][0].item() + second.terms["nll"][0].item()
    assert both == pytest.approx(whole, rel=1e-5)
    assert not any(part.requires_grad for part in state)
    fresh, _ = model.loss(_batch(LONG[3:]), state)
    alone, _ = model.loss(_batch(LONG[3:]))
    assert fresh.terms["nll"][0].item() == alone.terms["nll"][0].item()
    _, padded = model.loss(_batch(LONG[:4], pad=5))
    torch.testing.assert_close(padded, state)
    with pytest.raises(ValueError, match="got 2 after 1"):
        model.loss(_batch(LONG, LONG, carry=True), state)


def test_smoothing_is_in_the_objective_and_only_in_training():
    model = _model(label_smoothing=0.2)
    batch = _batch(LONG, SHORT)
    assert model.loss(batch)[0].objective == "nll"
    found = model.train().loss(batch)[0]
    assert found.objective == "smoothed"
    logprobs = model.token_logprobs(batch).sum()
    torch.testing.assert_close(found.terms["nll"][0], -logprobs)
    hidden = model.stack.read(model.embedding(batch.inputs))
    logits = hidden @ model.output.weight.T + model.output.bias
    expected = torch.nn.functional.cross_entropy(
        logits.view(-1, V), batch.targets.view(-1), reduction="sum", label_smoothing=0.2
    )
    torch.testing.assert_close(found.terms["smoothed"][0], expected)


def test_a_batch_without_targets():
    model = _model().train()
    batch = _batch(LONG)
    batch.targets[:] = -100
    (total, count), *_ = model.loss(batch)[0].terms.values()
    total.backward()
    assert (total.item(), count) == (0.0, 0)
    assert all(torch.isfinite(p.grad).all() for p in model.parameters() if p.grad is not None)


def test_the_seed_decides_the_weights_and_leaves_torchs_own_alone():
    torch.manual_seed(5)
    before = torch.get_rng_state()
    one, same, other = (
        RecurrentLm(RecurrentLmConfig("lstm", hidden=4), V, seed=seed) for seed in (1, 1, 2)
    )
    for (name, a), b, c in zip(
        one.named_parameters(), same.parameters(), other.parameters(), strict=True
    ):
        assert torch.equal(a, b)
        assert name.rpartition(".")[2].startswith("bias") or not torch.equal(a, c)
    assert not torch.equal(before, torch.get_rng_state())  # build_model is what protects it


def test_first_weights():
    model = RecurrentLm(RecurrentLmConfig("lstm", hidden=64, embedding=32), 500)
    layer = model.stack.forward_layers[0]
    for gate in range(4):
        recurrent = layer.weight_hh_l0[64 * gate : 64 * gate + 64]
        torch.testing.assert_close(recurrent @ recurrent.T, torch.eye(64), atol=1e-5, rtol=0)
    assert layer.weight_ih_l0.abs().max() <= math.sqrt(6 / (32 + 64))
    assert layer.weight_ih_l0.std().item() == pytest.approx(math.sqrt(2 / (32 + 64)), rel=0.03)
    assert (layer.bias_ih_l0 + layer.bias_hh_l0).tolist() == [0] * 64 + [1] * 64 + [0] * 128
    assert model.embedding.weight.std().item() == pytest.approx(1, rel=0.03)
    assert not model.output.bias.any()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bidirectional": True}, "it would see the future"),
        ({"hidden": 0}, "hidden must be at least 1, got 0"),
        ({"dropout": 1.0}, "dropout must be at least 0 and below 1, got 1.0"),
        ({"label_smoothing": -0.1}, "label smoothing must be at least 0"),
        ({"architecture": "gru", "nonlinearity": "relu"}, "gru has its own"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ConfigError, match=message):
        RecurrentLm(RecurrentLmConfig(**({"architecture": "rnn"} | options)), V)


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_cuda_equals_cpu(architecture):
    model, batch = _model(architecture), _batch(LONG, SHORT)
    expected = model.token_logprobs(batch)
    result = model.cuda().token_logprobs(batch.to("cuda"))
    torch.testing.assert_close(result.cpu(), expected, atol=1e-4, rtol=1e-4)
