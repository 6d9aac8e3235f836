"""What a training run yields: one small value for each thing that happens."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple


def perplexity(loss: float) -> float:
    """The exponential of a mean loss in nats, infinite where that is no float."""
    try:
        return math.exp(loss)
    except OverflowError:
        return math.inf


@dataclass(frozen=True)
class Evaluation:
    """Mean loss in nats per target over `targets` targets."""

    loss: float
    targets: int

    @property
    def perplexity(self) -> float:
        """Its exponential, infinite where that is no float."""
        return perplexity(self.loss)

    @property
    def bits(self) -> float:
        """The loss in bits per target."""
        return self.loss / math.log(2)


class Place(NamedTuple):
    """Steps and epochs begun so far, and seconds since the start of the run."""

    step: int
    epoch: int
    seconds: float


@dataclass(frozen=True)
class Train:
    """Means over the steps since the last such event.

    Attributes:
        loss: nats per target, unsmoothed.
        objective: mean of what is optimised, None where it is the loss itself.
        terms: means of the other named terms.
        grad_norm: mean norm of the gradients before clipping.
        clipped: number of steps whose gradients were clipped.
        lr: learning rate of the last step.
        tokens: targets since the start of the run.
        tokens_per_second: targets per second, without the time for validation.
    """

    place: Place
    loss: float
    objective: float | None
    terms: dict[str, float]
    grad_norm: float
    clipped: int
    lr: float
    tokens: int
    tokens_per_second: float


@dataclass(frozen=True)
class Valid:
    """A validation after `tokens` targets of training.

    While an event with `best` is in hand, the model holds the best weights so far. `averaged` is 1,
    or the number of validations of whose weights these are the mean.
    """

    place: Place
    evaluation: Evaluation
    tokens: int
    best: bool
    averaged: int = 1


@dataclass(frozen=True)
class Saved:
    """The model was put into its file; made by who does that, not by the run itself.

    `tokens` targets were trained on, `valid_loss` is None without validation, `averaged` as in
    `Valid`.
    """

    place: Place
    tokens: int
    valid_loss: float | None
    averaged: int = 1


@dataclass(frozen=True)
class Skipped:
    """A batch without a target that counts; `skipped` of them so far."""

    place: Place
    skipped: int


@dataclass(frozen=True)
class Done:
    """The end: the model holds the best weights, or the last ones where nothing was validated.

    Attributes:
        reason: `data` (all read), `max-steps`, `max-time` or `patience`.
        tokens: targets trained on.
        skipped: batches without targets.
        valid_loss: the lowest validation loss, None without validation.
    """

    place: Place
    reason: str
    tokens: int
    skipped: int
    valid_loss: float | None


Event = Train | Valid | Saved | Skipped | Done


def record(event: Event) -> dict[str, Any]:
    """The event as a metric record, JSON-able but for an infinite perplexity or loss.

    Means are sums of float32 and are given with as many digits as such have.
    """
    step, epoch, seconds = event.place
    found: dict[str, Any] = {"event": type(event).__name__.lower(), "step": step, "epoch": epoch}
    match event:
        case Train():
            found |= _losses(event.loss)
            if event.objective is not None:
                found["objective"] = _short(event.objective)
            found |= {name: _short(mean) for name, mean in event.terms.items()}
            found |= {
                "grad_norm": _short(event.grad_norm),
                "clipped": event.clipped,
                "lr": _short(event.lr),
                "tokens": event.tokens,
                "tokens_per_second": round(event.tokens_per_second, 1),
            }
        case Valid(evaluation=valid):
            found |= _losses(valid.loss) | {"bits": _short(valid.bits)}
            found |= {"targets": valid.targets, "best": event.best} | _averaged(event.averaged)
        case Saved():
            found |= {"tokens": event.tokens} | _averaged(event.averaged)
            if event.valid_loss is not None:
                found |= _losses(event.valid_loss)
        case Skipped():
            found |= {"reason": "no targets", "skipped": event.skipped}
        case Done():
            found |= {"reason": event.reason, "tokens": event.tokens, "skipped": event.skipped}
            if event.valid_loss is not None:
                found |= _losses(event.valid_loss)
    found["seconds"] = round(seconds, 3)
    return found


def _averaged(count: int) -> dict[str, int]:
    return {"averaged": count} if count > 1 else {}


def _losses(loss: float) -> dict[str, float]:
    return {"loss": _short(loss), "perplexity": _short(perplexity(loss))}


def _short(value: float) -> float:
    return float(f"{value:.7g}")
