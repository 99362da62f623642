"""The display of a run: a live table in a terminal, plain lines elsewhere."""

import sys
import threading
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

STATUS_LINE_SECONDS = 8.0
"""Longest silence [s] where there is no terminal."""

_MAX_TABLE_ROWS = 10


class Progress:
    """A display of steps, returns, speed and remaining time; a context manager around training."""

    def __init__(
        self,
        title: str,
        total_steps: int,
        console: Console | None = None,
        clock: Callable[[], float] = time.monotonic,
        resumed: bool = False,
    ) -> None:
        """Store the settings of the display.

        Args:
            title: name of the run.
            total_steps: environment steps of the whole run; 0 if not known.
            console: console to write to; standard output by default.
            clock: function that returns the time [s].
            resumed: whether the first report is that of a checkpoint, before any training.
        """
        self._title = title
        self._total = total_steps
        # A notebook asks for colours in what its shells run, and rich then takes their pipes for
        # terminals, which get the table anew four times a second.
        terminal = None if sys.stdout.isatty() else False
        self._console = console or Console(force_terminal=terminal)
        self._clock = clock
        self._start = self._last_line = clock()
        self._steps = 0
        self._sps = 0.0
        self._first = None if resumed else 0
        self._training = False
        self._began: tuple[int, float] | None = None
        self._pace = 0.0
        self._rows: list[tuple[str, ...]] = []
        self._stop = threading.Event()
        self._live: Live | None = None
        self._heart: threading.Thread | None = None

    def __enter__(self) -> Self:
        """Start the display, with a thread that keeps it alive while JAX compiles."""
        if self._console.is_terminal:
            self._live = Live(
                console=self._console, get_renderable=self._render, refresh_per_second=4
            )
            self._live.start()
        else:
            steps = f"{self._total:,} steps; " if self._total else ""
            self._line(f"{self._title}: {steps}{self._status()}")
            # A daemon, since a thread that waits would keep a failed program alive.
            self._heart = threading.Thread(target=self._beat, daemon=True)
            self._heart.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        """End the display."""
        self._stop.set()
        if self._live:
            self._live.stop()
        if self._heart:
            self._heart.join()

    def update(self, steps: int, metrics: Mapping[str, Any]) -> None:
        """Show a report: environment steps so far and metrics."""
        self._steps = steps
        self._sps = float(metrics.get("training/sps", self._sps))
        # A resumed run's first report has its checkpoint's steps: training shows by a later number.
        self._first = steps if self._first is None else self._first
        # A trainer that reports no speed is known to train by its steps.
        self._training = self._training or "training/sps" in metrics or steps > self._first
        if self._training:
            # The remaining time is that of the whole run's pace, evaluations included: the speed of
            # a single report changes with every other program of the machine.
            now = self._clock()
            since, then = self._began = self._began or (steps, now)
            trained = steps > since and now > then
            self._pace = (steps - since) / (now - then) if trained else self._sps
        # Only evaluations make a row of the table.
        if "eval/episode_reward" not in metrics:
            return
        row = (
            f"{steps:,}",
            _shown(metrics, "eval/episode_reward", ".1f"),
            _shown(metrics, "eval/episode_reward_std", ".1f"),
            _shown(metrics, "eval/avg_episode_length", ".0f"),
            f"{self._sps:,.0f}" if self._sps else "-",
            _duration(self._clock() - self._start),
        )
        self._rows.append(row)
        if self._live is None:
            deviation = f" +- {row[2]}" if row[2] != "-" else ""
            length = f", length {row[3]}" if row[3] != "-" else ""
            self._line(f"{row[0]} steps: return {row[1]}{deviation}{length}; {self._status()}")

    def _status(self) -> str:
        """Return the state of the run in one line."""
        elapsed = _duration(self._clock() - self._start)
        if not self._training:
            return f"compiling, {elapsed} elapsed"
        done = f"{self._steps:,} steps"
        if self._total:
            done = f"{min(self._steps / self._total, 1.0):.0%}, {done}"
        if not self._sps:
            return f"{done}, {elapsed} elapsed"
        left = max(self._total - self._steps, 0) / self._pace
        return f"{done}, {self._sps:,.0f} steps/s, {elapsed} elapsed, {_duration(left)} left"

    def _render(self) -> RenderableType:
        """Return the live display."""
        # In a string rich would read names in brackets as its markup, and leave them out.
        title = Text(self._title, "table.title")
        table = Table(title=title, title_justify="left", box=None, padding=(0, 2))
        for name in ("steps", "return", "+-", "length", "steps/s", "time"):
            table.add_column(name, justify="right")
        for row in self._rows[-_MAX_TABLE_ROWS:]:
            table.add_row(*row)
        # A moving bar while there is no share of the whole to show.
        pulse = not (self._training and self._total)
        bar = ProgressBar(self._total, min(self._steps, self._total), width=50, pulse=pulse)
        return Group(table, Text(self._status()), bar)

    def _beat(self) -> None:
        """Print a line whenever there has been none for a while."""
        while not self._stop.wait(0.5):
            if self._clock() - self._last_line >= STATUS_LINE_SECONDS:
                self._line(self._status())

    def _line(self, text: str) -> None:
        """Print a line and note its time."""
        self._last_line = self._clock()
        self._console.print(text, soft_wrap=True, highlight=False, markup=False)


def _shown(metrics: Mapping[str, Any], name: str, form: str) -> str:
    """Return a metric as text, or a hyphen if the trainer does not report it."""
    return f"{float(metrics[name]):{form}}" if name in metrics else "-"


def _duration(seconds: float) -> str:
    """Return a duration as minutes and seconds, with hours if there are any."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
