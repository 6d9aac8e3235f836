"""One run of `seq-train` once torch is loaded: events become records, a bar and the model file."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from seqtools.cli import _run
from seqtools.cli._progress import Bar
from seqtools.cli._train_table import show_table
from seqtools.models.protocols import TensorBatch
from seqtools.models.store import SavedModel, save_model, summary
from seqtools.streams.outputs import ClosedReader
from seqtools.streams.records import dumps
from seqtools.training.events import Done, Event, Place, Saved, Train, Valid, record
from seqtools.training.loop import Settings, Training


class Metrics:
    """Metric records on standard output, each as soon as it is made.

    The product is the model: when nobody reads the records any more, the run goes on without.
    """

    def __init__(self) -> None:
        self._open = True

    def write(self, found: dict[str, Any]) -> None:
        """Write one record; an infinite number becomes the string "inf"."""
        if not self._open:
            return
        clean = {
            name: str(value) if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in found.items()
        }
        try:
            _run.stdout.write(dumps(clean) + b"\n")
            _run.stdout.flush()
        except ClosedReader:
            _run.stdout.discard()
            self._open = False


class Runner:
    """Trains, writes records, and puts the model at its path.

    Args:
        saved: the model with all that its file needs; how far it came is filled in here.
        path: the model file.
        settings: how to train.
        steps: how many steps there will be at most, for the bar.
        quiet: no bar and no table.
        begun: how the model began, for its record.
    """

    def __init__(
        self,
        saved: SavedModel,
        path: str,
        settings: Settings,
        *,
        steps: int,
        quiet: bool,
        begun: dict[str, Any],
    ) -> None:
        self._saved = saved
        self._path = path
        self._settings = settings
        self._steps = steps
        self._quiet = quiet
        self._begun = begun
        self._metrics = Metrics()
        self._known = dict(saved.training)
        self._best: Saved | None = None
        self._note = ""
        self._validations = 0

    def run(
        self, batches: Iterable[tuple[int, TensorBatch | None]], valid: Sequence[TensorBatch]
    ) -> None:
        """Train to the end. A signal saves what there is and then takes its way."""
        self._describe()
        with Bar("steps", quiet=self._quiet) as bar:
            watched = self._watch(batches, bar)
            training = self._training = Training(
                self._saved.model, watched, self._settings, valid=valid
            )
            try:
                for event in training:
                    self._take(event)
            except (KeyboardInterrupt, _run.Terminated):
                training.close()
                place = Place(training.step, training.epoch, 0.0)
                if training.step:
                    self._save(self._best or Saved(place, training.tokens, None), tell=False)
                raise
        average = self._settings.average
        if average and self._validations < 2:
            _run.warn(
                f"--average {average}: it takes 2 validations, and there was "
                f"{self._validations or 'none'} (--valid-every makes more)"
            )

    def _take(self, event: Event) -> None:
        if isinstance(event, Done) and self._best is None:  # else it is in its place already
            self._save(Saved(event.place, event.tokens, None))
        self._metrics.write(record(event))
        if isinstance(event, Train):
            self._note = f"loss {event.loss:.4f}"
        elif isinstance(event, Valid):
            self._validations += 1
            if event.best:
                loss = event.evaluation.loss
                self._best = Saved(event.place, event.tokens, loss, averaged=event.averaged)
                self._save(self._best)

    def _save(self, reached: Saved, *, tell: bool = True) -> None:
        """Put the model in its place, with how far it came."""
        step, epoch, _ = reached.place
        training: dict[str, Any] = {"steps": step, "epochs": epoch, "targets": reached.tokens}
        if reached.valid_loss is not None and math.isfinite(reached.valid_loss):
            training["valid_loss"] = reached.valid_loss
        if reached.averaged > 1:
            training["averaged"] = reached.averaged
        self._saved.training = self._known | training
        save_model(self._path, self._saved)
        if tell:
            self._metrics.write(record(reached))

    def _watch(
        self, batches: Iterable[tuple[int, TensorBatch | None]], bar: Bar
    ) -> Iterator[tuple[int, TensorBatch | None]]:
        started, limit = time.monotonic(), self._settings.max_time or math.inf
        for pair in batches:
            step = self._training.step
            done = max(step / self._steps, (time.monotonic() - started) / limit)
            bar.update(step, done, 1.0, self._note)
            yield pair

    def _describe(self) -> None:
        """The model as the first record, and as a table on stderr."""
        saved = self._saved
        parameters = summary(saved.model)
        self._metrics.write(
            {
                "event": "model",
                "architecture": saved.architecture,
                "task": saved.task,
                "parameters": sum(count for _, _, count in parameters),
                "vocabularies": {name: len(v) for name, v in saved.vocabularies.items()},
                "config": saved.config,
                **self._begun,
            }
        )
        if not self._quiet:
            rows = [(name, shape) for name, shape, _ in parameters]
            show_table(f"{saved.architecture} for {saved.task}", rows)
