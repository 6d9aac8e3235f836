import itertools
import math
import subprocess
import sys

import pytest
import torch

from seqtools.errors import ConfigError
from seqtools.models.recurrent_lm import RecurrentLm, RecurrentLmConfig
from seqtools.training.events import Done, Evaluation, Place, Saved, Skipped, Train, Valid, record
from seqtools.training.loop import Settings, Training, TrainingError, evaluate
from seqtools.training.schedules import Schedule

from .toys import Bigram, Clock, in_epochs, make_batch

torch.set_num_threads(1)

SGD = Settings(optimizer="sgd", momentum=0.0, weight_decay=0.0, clip=None, log_every=1)


def settings(**changes):
    return Settings(**{**vars(SGD), **changes})


def of(kind, events):
    return [event for event in events if isinstance(event, kind)]


def row_loss(table, row):
    """Sum of -ln P over a row of ids, by the definition."""
    total = 0.0
    for last, following in itertools.pairwise(row):
        weights = [math.exp(x) for x in table[last].tolist()]
        total -= math.log(weights[following] / sum(weights))
    return total


def make_model(seed=1):
    model = Bigram()
    with torch.no_grad():
        model.table.copy_(torch.randn(4, 4, generator=torch.Generator().manual_seed(seed)))
    return model


def test_unknown_names_are_refused():
    with pytest.raises(ConfigError, match="unknown optimizer 'adam': did you mean adamw"):
        Settings(optimizer="adam")
    with pytest.raises(ConfigError, match="unknown precision 'fp16'"):
        Settings(precision="fp16")


def test_one_step_by_hand():
    """From the row 0 1 the gradient of row 0 of the table is softmax minus one-hot."""
    model = Bigram(size=4)
    events = list(Training(model, in_epochs([make_batch([0, 1])]), settings(lr=0.5)))
    step = events[0]
    assert step.loss == pytest.approx(math.log(4))
    gradient = [0.25, 0.25 - 1, 0.25, 0.25]
    assert step.grad_norm == pytest.approx(math.hypot(*gradient))
    assert model.table[0].tolist() == pytest.approx([-0.5 * g for g in gradient])
    assert model.table[1:].abs().sum() == 0


def test_mean_is_over_targets_not_rows_or_batches():
    """Case B44: 7 and 2 targets weigh 7 and 2, in one batch or two, padded or not."""
    long, short = [0, 1, 2, 3, 0, 2, 1, 3], [3, 1, 0]
    model = make_model()
    expected = (row_loss(model.table, long) + row_loss(model.table, short)) / 9
    for batches in (
        [make_batch(long, short)],
        [make_batch(long, short, width=64)],
        [make_batch(short), make_batch(long)],
    ):
        found = evaluate(model, batches)
        assert (found.loss, found.targets) == (pytest.approx(expected, abs=1e-6), 9)
        frozen = settings(lr=0.0, log_every=len(batches))
        step = next(Training(make_model(), in_epochs(batches), frozen))
        assert step.loss == pytest.approx(expected, abs=1e-6)
        assert step.tokens == 9


def test_step_gradient_is_unchanged_by_padding():
    tables = []
    for width in (None, 64):
        model = make_model()
        batch = make_batch([0, 1, 2, 3, 0, 2, 1, 3], [3, 1, 0], width=width)
        list(Training(model, in_epochs([batch]), settings(lr=1.0)))
        tables.append(model.table.detach())
    torch.testing.assert_close(*tables)


LONG, SHORT = [0, 1, 2, 3, 0, 2, 1, 3], [3, 1, 0]


@pytest.mark.parametrize("clip", [None, 0.01])
def test_accumulated_batches_are_one_batch(clip):
    """Of 7 and 2 targets: the step's gradient is the mean over 9, not the mean of two means."""
    tables, trained = [], []
    for accumulate, batches in ((1, [(LONG, SHORT)]), (2, [(LONG,), (SHORT,)])):
        model = make_model().double()
        chosen = settings(lr=1.0, accumulate=accumulate, clip=clip)
        events = list(Training(model, in_epochs([make_batch(*rows) for rows in batches]), chosen))
        tables.append(model.table.detach())
        trained.append(of(Train, events))
    torch.testing.assert_close(*tables, rtol=1e-12, atol=1e-12)
    (one,), (other,) = trained
    assert (other.loss, other.grad_norm) == pytest.approx((one.loss, one.grad_norm))
    assert (other.tokens, other.place.step) == (9, 1)


def test_what_an_epoch_leaves_over_is_a_step_of_its_own():
    model, batch = Bigram(), make_batch([0, 1])
    batches = in_epochs([batch] * 5, [make_batch([2]), batch, None])
    events = list(Training(model, batches, settings(accumulate=2, lr=1.0)))
    assert [(e.place.epoch, e.tokens) for e in of(Train, events)] == [
        (1, 2), (1, 4), (1, 5), (2, 6),
    ]  # fmt: skip
    assert (events[-1].place.step, events[-1].skipped) == (4, 2)


def test_a_run_ends_after_whole_steps():
    taken = []

    def batches():
        for number in range(10):
            taken.append(number)
            yield 1, make_batch([0, 1])

    events = list(Training(Bigram(), batches(), settings(accumulate=3, max_steps=2)))
    assert (events[-1].place.step, events[-1].tokens, len(taken)) == (2, 6, 6)


def test_accumulated_terms_are_means_over_all_batches():
    """With smoothing, the mean of the objective too is over the targets of both batches."""
    whole, halves = Bigram(smoothing=0.4), Bigram(smoothing=0.4)
    [one] = of(Train, Training(whole, in_epochs([make_batch(LONG, SHORT)]), SGD))
    parts = in_epochs([make_batch(LONG), make_batch(SHORT)])
    [other] = of(Train, Training(halves, parts, settings(accumulate=2)))
    assert other.objective == pytest.approx(one.objective)
    torch.testing.assert_close(halves.table, whole.table)


def test_nothing_to_accumulate_is_refused():
    with pytest.raises(ConfigError, match="accumulate must be at least 1, got 0"):
        Settings(accumulate=0)


def test_batch_without_targets_is_skipped_and_counted():
    model = make_model()
    before = model.table.detach().clone()
    batches = in_epochs([make_batch([2]), make_batch([0, 1]), None])
    events = list(Training(model, batches, settings(lr=1.0)))
    skipped = of(Skipped, events)
    assert [event.skipped for event in skipped] == [1, 2]
    assert [event.place.step for event in skipped] == [0, 1]
    done = events[-1]
    assert (done.place.step, done.skipped, done.tokens) == (1, 2, 1)
    assert torch.equal(model.table[1:], before[1:])


def test_a_run_with_no_target_at_all_fails():
    with pytest.raises(TrainingError, match="no batch has a target to learn from"):
        list(Training(Bigram(), in_epochs([make_batch([2])]), SGD))
    with pytest.raises(TrainingError, match="no batch has a target to learn from"):
        list(Training(Bigram(), [], SGD))
    with pytest.raises(TrainingError, match="no batch has a target to evaluate"):
        evaluate(Bigram(), [make_batch([2])])


def test_state_is_carried_only_where_the_batch_says_so():
    model = Bigram()
    row = [0, 1]
    batches = in_epochs(
        [make_batch(row), make_batch(row, carry=True), make_batch(row), make_batch(row, carry=True)]
    )
    list(Training(model, batches, SGD))
    assert model.seen == [None, 1, None, 3]
    model.seen = []
    evaluate(model, [batch for _, batch in batches])
    assert model.seen == [None, 1, None, 3]


def test_validation_does_not_disturb_the_carried_state():
    model = Bigram()
    batches = in_epochs([make_batch([0, 1], carry=i > 0) for i in range(2)])
    list(Training(model, batches, settings(valid_every=1), valid=[make_batch([0, 1])]))
    # step 1, validation, step 2 carrying on from call 1, validation
    assert model.seen == [None, None, 1, None]


def test_validations_every_n_steps_at_epoch_ends_and_once_at_the_end():
    batches = in_epochs([make_batch([0, 1])] * 5, [make_batch([0, 1])] * 4)
    events = list(Training(Bigram(), batches, settings(valid_every=2), valid=[make_batch([0, 1])]))
    assert [(e.place.epoch, e.place.step) for e in of(Valid, events)] == [
        (1, 2), (1, 4), (1, 5), (2, 6), (2, 8), (2, 9),
    ]  # fmt: skip


def test_each_validation_is_preceded_by_the_training_loss_up_to_it():
    batches = in_epochs([make_batch([0, 1])] * 5)
    chosen = settings(valid_every=2, log_every=4)
    events = list(Training(Bigram(), batches, chosen, valid=[make_batch([0, 1])]))
    kinds = [(type(e).__name__, e.place.step) for e in events]
    assert kinds == [
        ("Train", 2), ("Valid", 2), ("Train", 4), ("Valid", 4), ("Train", 5), ("Valid", 5),
        ("Done", 5),
    ]  # fmt: skip


def test_what_is_left_over_is_reported_without_validation():
    events = list(Training(Bigram(), in_epochs([make_batch([0, 1])] * 5), settings(log_every=2)))
    assert [e.place.step for e in of(Train, events)] == [2, 4, 5]
    assert events[-1] == Done(events[-1].place, "data", 5, 0, None)


def test_best_weights_are_there_at_the_best_event_and_at_the_end():
    """Training on 0 1 makes 0 2 ever less likely, so the first validation is the best."""
    model = Bigram()
    tables = []
    chosen = settings(lr=1.0, valid_every=1)
    batches = in_epochs([make_batch([0, 1])] * 4)
    for event in Training(model, batches, chosen, valid=[make_batch([0, 2])]):
        if isinstance(event, Valid):
            tables.append(model.table.detach().clone())
            assert event.best == (len(tables) == 1)
    assert not torch.equal(tables[0], tables[3])
    assert torch.equal(model.table, tables[0])
    assert event.valid_loss == pytest.approx(row_loss(tables[0], [0, 2]), abs=1e-6)


def test_closing_early_leaves_the_best_weights():
    model = Bigram()
    chosen = settings(lr=1.0, valid_every=1)
    events = Training(
        model, in_epochs([make_batch([0, 1])] * 4), chosen, valid=[make_batch([0, 2])]
    )
    tables = []
    for event in events:
        if isinstance(event, Valid):
            tables.append(model.table.detach().clone())
        if len(tables) == 2:
            break
    assert (events.step, events.epoch, events.tokens) == (2, 1, 2)
    events.close()
    assert torch.equal(model.table, tables[0])


def oscillating(average, keep=2, steps=4):
    """On 0 1 and 0 2 in turn, validated on both: what is learned from one is lost for the other."""
    model, batches = Bigram(), [make_batch([0, 1]), make_batch([0, 2])]
    chosen = settings(lr=4.0, valid_every=1, average=average, keep=keep)
    tables = []
    training = Training(model, in_epochs(batches * (steps // 2)), chosen, valid=batches)
    found = []
    for event in training:
        if isinstance(event, Valid):
            found.append(event)
            tables.append(model.table.detach().clone())
    return model, found, tables, event


def test_the_mean_of_the_last_weights_is_taken_where_it_is_better():
    model, valid, tables, done = oscillating("last")
    assert [event.averaged for event in valid] == [1, 1, 1, 1, 2]
    torch.testing.assert_close(tables[4], (tables[2] + tables[3]) / 2)
    losses = [event.evaluation.loss for event in valid]
    assert losses[4] == pytest.approx(
        (row_loss(tables[4], [0, 1]) + row_loss(tables[4], [0, 2])) / 2, abs=1e-6
    )
    assert losses[4] < min(losses[:4])
    assert valid[4].best
    assert done.valid_loss == losses[4]
    assert torch.equal(model.table, tables[4])


def test_a_worse_mean_is_not_taken():
    """Learning one row alone, each validation is better than the one before, and than any mean."""
    model = Bigram()
    chosen = settings(lr=1.0, valid_every=1, average="last", keep=3)
    batch = make_batch([0, 1])
    valid = of(Valid, Training(model, in_epochs([batch] * 4), chosen, valid=[batch]))
    assert [(event.averaged, event.best) for event in valid[-2:]] == [(1, True), (3, False)]
    assert row_loss(model.table, [0, 1]) == pytest.approx(valid[-2].evaluation.loss, abs=1e-6)


def test_a_mean_that_is_as_good_is_taken():
    """Where nothing is learned, the mean is no higher than the lowest."""
    chosen = settings(lr=0.0, valid_every=1, average="last", keep=2)
    batch = make_batch([0, 1])
    valid = of(Valid, Training(Bigram(), in_epochs([batch] * 2), chosen, valid=[batch]))
    assert [(event.averaged, event.best) for event in valid] == [(1, True), (1, False), (2, True)]


def test_one_validation_is_not_averaged():
    _, valid, _, _ = oscillating("best", steps=2)
    assert [event.averaged for event in valid] == [1, 1, 2]
    chosen = settings(average="best")
    batch = make_batch([0, 1])
    events = Training(Bigram(), in_epochs([batch]), chosen, valid=[batch])
    assert [event.averaged for event in of(Valid, events)] == [1]


def test_patience_counts_validations_without_a_new_best():
    batches = in_epochs([make_batch([0, 1])] * 10)
    chosen = settings(lr=1.0, valid_every=1, patience=2)
    events = list(Training(Bigram(), batches, chosen, valid=[make_batch([0, 2])]))
    assert [e.best for e in of(Valid, events)] == [True, False, False]
    assert (events[-1].reason, events[-1].place.step) == ("patience", 3)


def test_max_steps_takes_no_batch_too_many():
    taken = []

    def batches():
        for number in range(10):
            taken.append(number)
            yield 1, make_batch([0, 1])

    events = list(Training(Bigram(), batches(), settings(max_steps=3), valid=[make_batch([0, 1])]))
    assert (events[-1].reason, events[-1].place.step, len(taken)) == ("max-steps", 3, 3)
    assert [e.place.step for e in of(Valid, events)] == [3]


def test_max_time():
    clock = Clock(tick=1.0)
    batches = in_epochs([make_batch([0, 1])] * 1000)
    events = list(Training(Bigram(), batches, settings(max_time=30.0), clock=clock))
    assert events[-1].reason == "max-time"
    assert 30 <= events[-1].place.seconds <= 40


def test_cosine_over_time_sees_the_clock():
    chosen = settings(lr=1.0, max_time=100.0, schedule=Schedule("cosine", seconds=100.0))
    batches = in_epochs([make_batch([0, 1])] * 1000)
    rates = [e.lr for e in of(Train, Training(Bigram(), batches, chosen, clock=Clock()))]
    assert rates[0] > 0.99
    assert rates == sorted(rates, reverse=True)
    assert 0 < rates[-1] < 0.05


def test_rate_follows_the_schedule():
    chosen = settings(lr=2.0, schedule=Schedule("constant", warmup=4))
    batches = in_epochs([make_batch([0, 1])] * 5)
    assert [e.lr for e in of(Train, Training(Bigram(), batches, chosen))] == [0.5, 1, 1.5, 2, 2]


def test_clipping_is_counted_and_applied():
    model = Bigram()
    chosen = settings(lr=1.0, clip=0.1, log_every=2)
    events = list(Training(model, in_epochs([make_batch([0, 1])] * 2), chosen))
    assert events[0].clipped == 2
    assert events[0].grad_norm > 0.1
    assert model.table.detach().norm() <= 0.2 + 1e-6


def test_smoothed_objective_is_optimised_but_the_loss_is_not_smoothed():
    """With smoothing e the optimum of P(1 | 0) is 1 - e + e / V, not 1."""
    model = Bigram(size=4, smoothing=0.4)
    batches = in_epochs([make_batch([0, 1])] * 400)
    events = list(Training(model, batches, settings(lr=1.0), valid=[make_batch([0, 1])]))
    assert model.table[0].softmax(-1)[1].item() == pytest.approx(0.7, abs=1e-3)
    last = of(Train, events)[-1]
    assert last.loss == pytest.approx(-math.log(0.7), abs=2e-3)
    smoothed = -0.7 * math.log(0.7) - 3 * 0.1 * math.log(0.1)
    assert last.objective == pytest.approx(smoothed, abs=2e-3)
    assert of(Valid, events)[-1].evaluation.loss == pytest.approx(last.loss, abs=2e-3)


class Breaking(Bigram):
    """Its loss becomes `value` at call `at`; its gradient alone where value is None."""

    def __init__(self, at, value):
        super().__init__()
        self.at, self.value = at, value

    def loss(self, batch, state):
        found, state = super().loss(batch, state)
        if self.training and len(self.seen) >= self.at:
            nll, count = found.terms["nll"]
            if self.value is None:
                nll = nll + (self.table[3, 3] - self.table[3, 3]).sqrt()  # 0, with slope inf
            else:
                nll = nll * self.value
            found.terms["nll"] = (nll, count)
        return found, state


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (math.nan, "the loss is nan at step 3"),
        (math.inf, "the loss is inf at step 3"),
        (None, "the gradient is (nan|inf) at step 3"),
    ],
)
@pytest.mark.parametrize("clip", [None, 1.0])
def test_a_loss_or_gradient_that_is_not_finite_ends_the_run(value, text, clip):
    model = Breaking(at=3, value=value)
    events = Training(model, in_epochs([make_batch([0, 1])] * 9), settings(clip=clip))
    assert [type(event) for event in itertools.islice(events, 2)] == [Train, Train]
    before = model.table.detach().clone()
    with pytest.raises(TrainingError, match=text):
        next(events)
    assert torch.equal(model.table, before)  # nothing bad got into the weights


def test_a_loss_without_a_parameter_to_train_is_an_error():
    class Detached(Bigram):
        def loss(self, batch, state):
            found, state = super().loss(batch, state)
            nll, count = found.terms["nll"]
            found.terms["nll"] = (nll.detach(), count)
            return found, state

    with pytest.raises(TrainingError, match="no parameter that is trained has a part in the loss"):
        list(Training(Detached(), in_epochs([make_batch([0, 1])]), SGD))


def test_adamw_learns_the_table_of_a_cycle():
    model = Bigram()
    batches = in_epochs([make_batch([0, 1, 2, 3, 0])] * 300)
    list(Training(model, batches, Settings(lr=0.1, weight_decay=0.0)))
    assert evaluate(model, [make_batch([0, 1, 2, 3, 0])]).perplexity < 1.05


def test_adamw_gets_its_constants():
    """With eps E a first step on a gradient g moves a weight by lr · |g| / (|g| + E)."""
    model = Bigram()
    chosen = Settings(lr=0.1, weight_decay=0.0, clip=None, betas=(0.5, 0.8), eps=0.75)
    list(Training(model, in_epochs([make_batch([0, 1])] * 2), chosen))
    weights = [0.0] * 4
    means, squares = [0.0] * 4, [0.0] * 4
    for step in (1, 2):
        powers = [math.exp(w) for w in weights]
        for i in range(4):
            gradient = powers[i] / sum(powers) - (i == 1)
            means[i] = 0.5 * means[i] + 0.5 * gradient
            squares[i] = 0.8 * squares[i] + 0.2 * gradient**2
            root = math.sqrt(squares[i] / (1 - 0.8**step))
            weights[i] -= 0.1 * means[i] / (1 - 0.5**step) / (root + 0.75)
    assert model.table[0].tolist() == pytest.approx(weights, rel=1e-5)


@pytest.mark.parametrize("training", [True, False])
def test_evaluation_puts_the_mode_back_and_leaves_no_gradient(training):
    model = Bigram().train(training)
    evaluate(model, [make_batch([0, 1])])
    assert model.training is training
    assert model.table.grad is None


def test_training_starts_in_training_mode():
    model = Bigram().eval()
    modes = [model.training for _ in Training(model, in_epochs([make_batch([0, 1])] * 2), SGD)]
    assert modes[:2] == [True, True]


def test_validation_time_is_not_training_time():
    """Every look at the clock takes a second; slow validations must not lower the speed."""
    clock = Clock(tick=0.0)

    class Slow(Bigram):
        def loss(self, batch, state):
            clock.now += 1.0 if self.training else 1000.0
            return super().loss(batch, state)

    batches = in_epochs([make_batch([0, 1, 2])] * 4)
    chosen = settings(valid_every=2, log_every=1)
    events = list(Training(Slow(), batches, chosen, valid=[make_batch([0, 1])], clock=clock))
    assert [e.tokens_per_second for e in of(Train, events)] == [2.0] * 4


def test_bf16_keeps_the_weights_in_float32():
    class Linear(Bigram):
        def loss(self, batch, state):
            # a product, which autocast turns to bf16
            product = torch.eye(4) @ self.table
            assert product.dtype == torch.bfloat16
            found, state = super().loss(batch, state)
            nll, count = found.terms["nll"]
            found.terms["nll"] = (nll + 0.0 * product.float().sum(), count)
            return found, state

    model = Linear()
    chosen = settings(precision="bf16", lr=0.5)
    list(Training(model, in_epochs([make_batch([0, 1])]), chosen, valid=[make_batch([0, 1])]))
    assert model.table.dtype == torch.float32
    assert model.table[0, 1].item() == pytest.approx(0.375)


def test_the_same_run_gives_the_same_weights():
    tables = []
    for _ in range(2):
        model = make_model()
        list(Training(model, in_epochs([make_batch([0, 1, 3, 2, 1])] * 20), Settings()))
        tables.append(model.table.detach())
    assert torch.equal(*tables)


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("optimizer", ["adamw", "sgd"])
def test_cuda_trains_as_the_cpu_does(optimizer):
    torch.backends.cudnn.allow_tf32 = False
    losses = []
    for device in ("cpu", "cuda"):
        model = RecurrentLm(RecurrentLmConfig("lstm", hidden=8, layers=2), 5, seed=1).to(device)
        batch, more = make_batch([0, 1, 3, 2, 1], [4, 2]), make_batch([1, 3], [2, 2], carry=True)
        chosen = Settings(optimizer=optimizer, lr=0.05, clip=0.1, log_every=1)
        events = list(Training(model, in_epochs([batch, more] * 3), chosen, valid=[batch]))
        losses.append([event.loss for event in events if isinstance(event, Train)])
        losses[-1] += [e.evaluation.loss for e in events if isinstance(e, Valid)]
    assert losses[1] == pytest.approx(losses[0], rel=1e-3)


def test_records():
    place = Place(7, 2, 1.23456)
    train_record = record(Train(place, math.log(8), 2.5, {"kl": 0.5}, 0.7, 3, 1e-3, 90, 12.345))
    assert list(train_record) == [
        "event", "step", "epoch", "loss", "perplexity", "objective", "kl", "grad_norm", "clipped",
        "lr", "tokens", "tokens_per_second", "seconds",
    ]  # fmt: skip
    assert train_record["event"] == "train"
    assert train_record["perplexity"] == pytest.approx(8)
    assert "objective" not in record(Train(place, 1.0, None, {}, 0.7, 3, 1e-3, 90, 12.3))
    valid = record(Valid(place, Evaluation(math.log(2), 11), 90, True))
    assert (valid["bits"], valid["targets"], valid["best"]) == (pytest.approx(1), 11, True)
    assert "averaged" not in valid
    assert record(Valid(place, Evaluation(1.0, 11), 90, True, averaged=3))["averaged"] == 3
    assert record(Saved(place, 90, 1.0, averaged=3))["averaged"] == 3
    assert record(Done(place, "data", 90, 0, None)) == {
        "event": "done", "step": 7, "epoch": 2, "reason": "data", "tokens": 90, "skipped": 0,
        "seconds": 1.235,
    }  # fmt: skip
    assert record(Skipped(place, 4))["skipped"] == 4


def test_perplexity_that_overflows_is_infinite():
    assert record(Valid(Place(1, 1, 0), Evaluation(1000.0, 1), 1, True))["perplexity"] == math.inf


def test_a_run_never_loads_the_compiler():
    code = """
import sys
sys.path.insert(0, {here!r})
import torch
from toys import Bigram, in_epochs, make_batch
from seqtools.training.loop import Settings, Training
for optimizer in ("adamw", "sgd"):
    chosen = Settings(optimizer=optimizer, precision="bf16")
    list(Training(Bigram(), in_epochs([make_batch([0, 1])]), chosen, valid=[make_batch([0, 1])]))
print([name for name in sys.modules if name.startswith("torch._dynamo")])
"""
    here = __file__.rsplit("/", 1)[0]
    command = [sys.executable, "-c", code.format(here=here)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
