"""The training loop: knows no task and no file, and yields what happens.

A model is a torch module that implements `seqtools.models.protocols.Loss`. Losses are sums over
the targets that count, so a mean over steps or batches is the same however they were cut. All
losses are natural logarithms per target; `loss` is of the unsmoothed negative log likelihood,
whatever is optimised.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import cast

import torch
from torch import Tensor, nn

from seqtools.errors import ConfigError, SeqtoolsError
from seqtools.lazy import unknown
from seqtools.models.protocols import Loss, LossTerms, State, TensorBatch
from seqtools.training.checkpoint import Average, Best
from seqtools.training.events import Done, Evaluation, Event, Place, Skipped, Train, Valid
from seqtools.training.optim import SGD, AdamW, Optimizer, clip_gradients
from seqtools.training.schedules import Schedule

OPTIMIZERS = ("adamw", "sgd")
PRECISIONS = ("float32", "bf16")


class TrainingError(SeqtoolsError):
    """A run that cannot go on: its loss is not finite, or there is nothing to learn from."""


@dataclass(frozen=True)
class Settings:
    """How to train.

    Attributes:
        optimizer: one of `OPTIMIZERS`.
        lr: base learning rate; `schedule` scales it.
        momentum: of SGD alone.
        weight_decay: see `seqtools.training.optim`.
        betas: of AdamW alone, as `eps` is.
        eps: see `seqtools.training.optim`.
        accumulate: batches whose gradients one step takes, as if they were one batch.
        clip: largest global norm of the gradients, None for no clipping.
        average: which weights are averaged at the end, a `kind` of `checkpoint.Average`, or None;
            their mean is taken if its validation loss is no higher than the lowest.
        keep: of how many validations.
        precision: one of `PRECISIONS`; bf16 is torch's autocast.
        valid_every: steps between validations, besides those at the ends of epochs and of the run.
        patience: validations in a row without a new best that end the run.
        max_steps: steps after which the run ends.
        max_time: seconds after which the run ends.
        log_every: steps that one `Train` event averages over.

    Raises ConfigError for an unknown optimizer or precision, or no batch to accumulate.
    """

    optimizer: str = "adamw"
    lr: float = 1e-3
    momentum: float = 0.9
    weight_decay: float = 0.01
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    accumulate: int = 1
    clip: float | None = 1.0
    schedule: Schedule = field(default_factory=Schedule)
    average: str | None = None
    keep: int = 5
    precision: str = "float32"
    valid_every: int | None = None
    patience: int | None = None
    max_steps: int | None = None
    max_time: float | None = None
    log_every: int = 50

    def __post_init__(self) -> None:
        if self.optimizer not in OPTIMIZERS:
            raise ConfigError(unknown(self.optimizer, OPTIMIZERS, "optimizer"))
        if self.precision not in PRECISIONS:
            raise ConfigError(unknown(self.precision, PRECISIONS, "precision"))
        if self.accumulate < 1:
            raise ConfigError(f"accumulate must be at least 1, got {self.accumulate}")


@torch.no_grad()
def evaluate(
    model: nn.Module, batches: Iterable[TensorBatch], *, precision: str = "float32"
) -> Evaluation:
    """Mean loss of `model` on `batches`, without dropout; independent of how they were cut.

    Raises:
        TrainingError: no batch has a target.
    """
    device = next(model.parameters()).device
    total, targets = 0.0, 0
    state: State | None = None
    with _evaluating(model), _autocast(device, precision):
        for batch in batches:
            terms, state = cast(Loss, model).loss(batch.to(device), state if batch.carry else None)
            value, count = terms.terms["nll"]
            if count:
                total += value.item()
                targets += count
    if not targets:
        raise TrainingError("no batch has a target to evaluate")
    return Evaluation(total / targets, targets)


class Training(Iterator[Event]):
    """One training run, as the iterator of its events.

    However it ends (the last event is `Done`; an error; `close`), the model then holds the weights
    with the lowest loss on `valid`, if there was a validation.

    Args:
        model: implements `seqtools.models.protocols.Loss`; its device is the run's.
        batches: pairs of an epoch and a batch (None: one without targets), epoch after epoch.
        settings: how to train.
        valid: batches to validate on; without any there is no validation.
        clock: gives seconds.

    Attributes:
        step: steps taken so far.
        epoch: the epoch they have come to.
        tokens: targets trained on so far.
        skipped: batches without targets so far.
        best: the best weights so far.

    Raises:
        TrainingError: a loss or gradient is not finite, or no batch had a target.
    """

    def __init__(
        self,
        model: nn.Module,
        batches: Iterable[tuple[int, TensorBatch | None]],
        settings: Settings,
        *,
        valid: Sequence[TensorBatch] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.model = model
        self.settings = settings
        self.valid = valid
        self.best = Best()
        self.step = self.epoch = self.tokens = self.skipped = 0
        self._device = next(model.parameters()).device
        self._optimizer = _make_optimizer(model, settings)
        self._clock = clock
        self._started = clock()
        self._average = Average(settings.average, settings.keep) if settings.average else None
        self._validated_at = 0
        self._state: State | None = None
        self._gathered = _Gathered()
        self._window = _Window(self._started)
        self._events = self._run(batches)

    def __next__(self) -> Event:
        return next(self._events)

    def close(self) -> None:
        """End the run here."""
        self._events.close()

    def _run(
        self, batches: Iterable[tuple[int, TensorBatch | None]]
    ) -> Generator[Event, None, None]:
        try:
            yield from self._train(batches)
        finally:
            self.best.restore(self.model)

    def _train(self, batches: Iterable[tuple[int, TensorBatch | None]]) -> Iterator[Event]:
        reason = None
        self.model.train()
        for self.epoch, pairs in groupby(batches, key=itemgetter(0)):
            yield from self._learn(batch for _, batch in pairs)
            yield from self._validate()
            reason = self._reason_to_stop()
            if reason:
                break
        if not self.step:
            raise TrainingError("no batch has a target to learn from")
        if self._window.steps:
            yield self._report()
        yield from self._validate_average()
        valid_loss = self.best.loss if self.valid else None
        yield Done(self._place(), reason or "data", self.tokens, self.skipped, valid_loss)

    def _learn(self, batches: Iterable[TensorBatch | None]) -> Iterator[Event]:
        """Take the steps of an epoch, unless there is a reason to stop; the last may be smaller."""
        for batch in batches:
            if batch is None or not self._add(batch):
                self.skipped += 1
                yield Skipped(self._place(), self.skipped)
            elif self._gathered.batches == self.settings.accumulate:
                yield from self._step()
                if self._reason_to_stop():
                    return
        if self._gathered.batches:
            yield from self._step()

    def _add(self, batch: TensorBatch) -> bool:
        """Add a batch to the gradients of the next step, unless it has no target; say whether."""
        if not self._gathered.batches:
            self._gathered.begun = self._clock() - self._started
            for parameter in self._optimizer.parameters:
                parameter.grad = None
        with _autocast(self._device, self.settings.precision):
            found, self._state = cast(Loss, self.model).loss(
                batch.to(self._device), self._state if batch.carry else None
            )
        total, count = found.terms[found.objective]
        if not count:
            return False
        if not total.requires_grad:
            raise TrainingError("no parameter that is trained has a part in the loss")
        total.backward()  # type: ignore[no-untyped-call]
        self._gathered.add(found)
        return True

    def _step(self) -> Iterator[Event]:
        """Take a step along the mean over all targets of the batches gathered for it."""
        settings, gathered = self.settings, self._gathered
        self._gathered = _Gathered()
        _, count = gathered.terms[gathered.objective]
        norm = clip_gradients(self._optimizer.parameters, settings.clip, scale=1 / count)
        # All numbers of the step come from the device at once, and are judged before any weight
        # changes, so a bad gradient never gets into the model.
        *sums, grad_norm = torch.stack([s for s, _ in gathered.terms.values()] + [norm]).tolist()
        terms = {n: (s, c) for (n, (_, c)), s in zip(gathered.terms.items(), sums, strict=True)}
        self.step += 1
        self._check(terms, grad_norm)
        lr = settings.lr * settings.schedule.factor(self.step, gathered.begun)
        self._optimizer.step(lr)
        self.tokens += terms["nll"][1]
        clipped = settings.clip is not None and grad_norm > settings.clip
        self._window.add(terms, gathered.objective, grad_norm, lr, clipped=clipped)
        if self.step % settings.log_every == 0:
            yield self._report()
        if settings.valid_every and self.step % settings.valid_every == 0:
            yield from self._validate()

    def _check(self, sums: dict[str, tuple[float, int]], grad_norm: float) -> None:
        for name, value in [*((n, s) for n, (s, _) in sums.items()), ("gradient", grad_norm)]:
            if not math.isfinite(value):
                what = "loss" if name == "nll" else name
                raise TrainingError(
                    f"the {what} is {value} at step {self.step}; "
                    "a lower learning rate, a longer warm-up or clipping may help"
                )

    def _report(self) -> Train:
        now = self._clock()
        event = self._window.close(self._place(), self.tokens, now)
        self._window = _Window(now)
        return event

    def _validate(self) -> Iterator[Event]:
        """Report and validate, once for any step; the time it takes does not count as training."""
        if not self.valid or self._validated_at == self.step:
            return
        if self._window.steps:
            yield self._report()
        begun = self._clock()
        self._validated_at = self.step
        found = evaluate(self.model, self.valid, precision=self.settings.precision)
        if math.isnan(found.loss):
            raise TrainingError(f"the validation loss is nan at step {self.step}")
        if self._average is not None:
            self._average.offer(found.loss, self.model)
        best = self.best.offer(found.loss, self.model)
        yield Valid(self._place(), found, self.tokens, best)
        self._window.started += self._clock() - begun

    def _validate_average(self) -> Iterator[Event]:
        """Validate the mean of the weights kept for it, which then are the model's."""
        if self._average is None or len(self._average) < 2:
            return
        self._average.put(self.model)
        found = evaluate(self.model, self.valid, precision=self.settings.precision)
        best = self.best.offer(found.loss, self.model, or_equal=True)
        yield Valid(self._place(), found, self.tokens, best, averaged=len(self._average))

    def _reason_to_stop(self) -> str | None:
        settings = self.settings
        if settings.max_steps is not None and self.step >= settings.max_steps:
            return "max-steps"
        if settings.max_time is not None and self._clock() - self._started >= settings.max_time:
            return "max-time"
        if settings.patience is not None and self.best.since >= settings.patience:
            return "patience"
        return None

    def _place(self) -> Place:
        return Place(self.step, self.epoch, self._clock() - self._started)


class _Gathered:
    """What one step is made of: sums over its batches, and the seconds at which it began."""

    def __init__(self) -> None:
        self.batches = 0
        self.begun = 0.0
        self.objective = "nll"
        self.terms: dict[str, tuple[Tensor, int]] = {}

    def add(self, found: LossTerms) -> None:
        self.batches += 1
        self.objective = found.objective
        for name, (value, count) in found.terms.items():
            total, counted = self.terms.get(name, (0.0, 0))
            self.terms[name] = (total + value.detach(), counted + count)


class _Window:
    """The sums that one `Train` event averages."""

    def __init__(self, started: float) -> None:
        self.started = started
        self.steps = self.clipped = 0
        self.norms = self.lr = 0.0
        self.objective = "nll"
        self.sums: defaultdict[str, float] = defaultdict(float)
        self.counts: defaultdict[str, int] = defaultdict(int)

    def add(
        self,
        terms: dict[str, tuple[float, int]],
        objective: str,
        norm: float,
        lr: float,
        *,
        clipped: bool,
    ) -> None:
        self.steps += 1
        self.clipped += clipped
        self.norms += norm
        self.lr, self.objective = lr, objective
        for name, (value, count) in terms.items():
            self.sums[name] += value
            self.counts[name] += count

    def close(self, place: Place, tokens: int, now: float) -> Train:
        means = {name: total / max(1, self.counts[name]) for name, total in self.sums.items()}
        loss, objective = means.pop("nll"), means.pop(self.objective, None)
        speed = self.counts["nll"] / max(1e-9, now - self.started)
        norm = self.norms / self.steps
        return Train(place, loss, objective, means, norm, self.clipped, self.lr, tokens, speed)


def _make_optimizer(model: nn.Module, settings: Settings) -> Optimizer:
    trained = [p for p in model.parameters() if p.requires_grad]
    if settings.optimizer == "sgd":
        return SGD(trained, momentum=settings.momentum, weight_decay=settings.weight_decay)
    return AdamW(
        trained, betas=settings.betas, eps=settings.eps, weight_decay=settings.weight_decay
    )


def _autocast(device: torch.device, precision: str) -> torch.autocast:
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=precision == "bf16")


@contextmanager
def _evaluating(model: nn.Module) -> Iterator[None]:
    """Switch dropout off, and on again afterwards if it was."""
    training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(training)
