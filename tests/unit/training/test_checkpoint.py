import math

import pytest
import torch

from seqtools.errors import ConfigError
from seqtools.training.checkpoint import Average, Best


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


def test_a_tie_wins_only_where_it_may():
    best, model = Best(), make_model(1.0)
    best.offer(3.0, model)
    set_weight(model, 2.0)
    assert best.offer(3.0, model, or_equal=True)
    assert not best.offer(3.1, model, or_equal=True)
    assert not best.offer(math.nan, model, or_equal=True)
    set_weight(model, 5.0)
    best.restore(model)
    assert model.weight.item() == 2.0


@pytest.mark.parametrize(
    ("kind", "mean"),
    [("last", (4 + 8 + 16) / 3), ("best", (2 + 4 + 16) / 3)],
)
def test_the_mean_of_the_last_or_best(kind, mean):
    """Losses 3, 1, 2, 2.5, 2: of the best three, the last place goes from 2.5 to the second 2."""
    average, model = Average(kind, 3), make_model(0.0)
    for weight, loss in ((1, 3.0), (2, 1.0), (4, 2.0), (8, 2.5), (16, 2.0)):
        set_weight(model, float(weight))
        average.offer(loss, model)
    assert len(average) == 3
    average.put(model)
    assert model.weight.item() == pytest.approx(mean)


def test_of_equal_losses_the_first_are_averaged():
    average, model = Average("best", 2), make_model(0.0)
    for weight in (1, 2, 4):
        set_weight(model, float(weight))
        average.offer(1.0, model)
    average.put(model)
    assert model.weight.item() == 1.5


def test_averages_that_cannot_be():
    with pytest.raises(ConfigError, match="unknown average 'beast': did you mean best"):
        Average("beast", 3)
    with pytest.raises(ConfigError, match="at least 2 to keep, got 1"):
        Average("last", 1)
