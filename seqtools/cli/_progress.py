"""A bar on stderr while work goes on, only where stderr is a terminal.

There is no thread: the bar is drawn when the work reports, at most ten times a second, so that
forking workers stays safe and an idle pipe costs nothing.
"""

from __future__ import annotations

import os
import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING

from seqtools.cli._run import print_above

if TYPE_CHECKING:
    from rich.progress import Progress

_INTERVAL = 0.1
_DELAY = 0.5  # a bar for less is flicker


class Bar:
    """A progress bar; where it should not be seen every method does nothing.

    Args:
        unit: what is counted, for the rate (`records`, `steps`).
        quiet: never show it.
    """

    def __init__(self, unit: str, *, quiet: bool) -> None:
        self._unit = unit
        self._active = not quiet and on_terminal()
        self._progress: Progress | None = None
        self._started = time.monotonic()
        self._next = self._started + _DELAY

    def __enter__(self) -> Bar:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._progress is not None:
            print_above(None)
            self._progress.stop()
            self._progress = None

    def update(self, count: int, done: float, total: float | None, note: str = "") -> None:
        """Say how far it is.

        Args:
            count: units so far, for the rate.
            done: how much of `total` is done, in any measure (bytes, steps).
            total: None where it cannot be known.
            note: a few words beside the bar.
        """
        if not self._active:
            return
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + _INTERVAL
        if self._progress is None:
            self._progress = self._open()
        rate = count / max(now - self._started, 1e-9)
        task = self._progress.task_ids[0]
        self._progress.update(
            task, completed=done, total=total, description=f"{count:,} {self._unit}",
            rate=f"{rate:,.0f} {self._unit}/s", note=note,
        )  # fmt: skip
        self._progress.refresh()

    def _open(self) -> Progress:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        console = Console(file=sys.stderr)
        progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[note]}"),
            console=console,
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        progress.add_task("", total=None, rate="", note="")
        progress.start()
        print_above(lambda text: console.print(text, markup=False, highlight=False, soft_wrap=True))
        return progress


def on_terminal() -> bool:
    """Whether stderr is a terminal that can move its cursor."""
    try:
        return os.isatty(2) and os.environ.get("TERM") != "dumb"
    except OSError:
        return False
