import math

import torch

from seqtools.training.checkpoint import Best


def make_model(value):
    model = torch.nn.Linear(1, 1, bias=False)
    with torch.no_grad():
        model.weight.fill_(value)
    return model


def set_weight(model, value):
    with torch.no_grad():
        model.weight.fill_(value)


def test_lowest_loss_is_kept_and_restored():
    best, model = Best(), make_model(1.0)
    assert best.offer(3.0, model)
    set_weight(model, 2.0)
    assert best.offer(2.5, model)
    set_weight(model, 3.0)
    assert not best.offer(2.5, model)  # a tie keeps the first
    assert not best.offer(9.0, model)
    assert (best.loss, best.since) == (2.5, 2)
    best.restore(model)
    assert model.weight.item() == 2.0


def test_nothing_kept_leaves_the_model():
    best, model = Best(), make_model(4.0)
    best.restore(model)
    assert model.weight.item() == 4.0
    assert best.loss == math.inf


def test_an_infinite_first_loss_is_still_the_best():
    best, model = Best(), make_model(1.0)
    assert best.offer(math.inf, model)
    assert not best.offer(math.inf, model)
    assert best.offer(5.0, model)
