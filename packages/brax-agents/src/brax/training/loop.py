"""The loop that all agents share: when to train, evaluate, report, save and stop."""

import contextlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import jax
import numpy as np

from brax.errors import TrainingError
from brax.training import hosts
from brax.training.interrupts import Interrupt

CHUNK_SECONDS = 1.0
"""Time that one call of the compiled program should take: how late an interrupt is noticed."""

MAX_BAD_UPDATES = 10
"""Updates in a row without a finite gradient after which a run is stopped."""


class Program(Protocol):
    """What an agent gives the loop: compiled functions of its training state."""

    def advance(self, state: Any, steps: int) -> tuple[Any, Any]:
        """Takes training steps; returns the state after them and a tally of sums, on the host."""

    def fresh_environments(self, state: Any) -> Any:
        """Resets every environment anew."""

    def metrics(self, tally: Any) -> dict[str, float]:
        """Public metrics of a tally."""

    def bad_updates(self, state: Any) -> int:
        """Updates in a row that were skipped because their gradient was not finite."""


@dataclass(frozen=True)
class Schedule:
    """What happens when, counted in training steps."""

    total: int
    """Training steps of the whole run."""
    env_steps: int
    """Environment steps of one training step."""
    num_evals: int
    """Evaluations; from 2 on, the first comes before training."""
    num_resets: int
    """Fresh resets of the environments between two evaluations."""

    @property
    def _gaps(self) -> int:
        return max(self.num_evals - 1, 1)

    def evaluations(self) -> set[int]:
        """Training steps after which to evaluate; the end is always one."""
        first = 0 if self.num_evals > 1 else 1
        return {round(i * self.total / self._gaps) for i in range(first, self._gaps + 1)}

    def resets(self) -> set[int]:
        """Training steps after which all environments start anew."""
        parts = self._gaps * self.num_resets
        return {round(i * self.total / parts) for i in range(1, parts)}


class Saves(Protocol):
    """Saves training states while training goes on."""

    def begin(self, step: int, state: Any, metrics: Mapping[str, Any]) -> None:
        """Takes a training state after so many training steps, to be written meanwhile."""

    def check(self) -> None:
        """Tells whether what was begun has failed."""

    def finish(self) -> None:
        """Waits until what was begun is on disk."""


@dataclass(frozen=True)
class Reports:
    """Where the loop sends what it learns. Steps are environment steps."""

    evaluate: Callable[[int, Any, Mapping[str, Any]], dict[str, Any]]
    """From steps, state and training metrics to all metrics of an evaluation."""
    progress: Callable[[int, Mapping[str, Any]], None]
    """Told steps and metrics, at evaluations and in between."""
    saves: Saves | None
    """Saves training states; None where nothing is saved."""
    every: int | None
    """Least steps between reports while training, 0 for one after every call of the program, which
    is about every second; None for no reports in between."""
    save_steps: int | None = None
    """Steps after which to save besides; None for no such saves."""
    save_seconds: float | None = None
    """Seconds of training after which to save besides; None for no such saves."""


class Window:
    """What happened since the last report."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.env_steps = 0
        self._tally: Any = None

    def add(self, seconds: float, env_steps: int, tally: Any) -> None:
        """Adds one call of the program."""
        self.seconds += seconds
        self.env_steps += env_steps
        # A window can be a run of days, which 32 bits cannot count.
        tally = jax.tree.map(_widest, tally)
        self._tally = tally if self._tally is None else jax.tree.map(np.add, self._tally, tally)

    def metrics(self, program: Program) -> dict[str, float]:
        """The program's metrics and the speed."""
        if self._tally is None:
            return {}
        sps = self.env_steps / max(self.seconds, 1e-9)
        return {**program.metrics(self._tally), "training/sps": sps}


class Loop:
    """Runs a program by a schedule."""

    def __init__(self, program: Program, schedule: Schedule, reports: Reports) -> None:
        self._program = program
        self._schedule = schedule
        self._reports = reports
        self._interrupt = Interrupt()
        self._pace = 0.0
        self._walltime = 0.0
        self._saved = (0, 0.0)  # training steps and seconds of training at the last save

    def run(self, state: Any, step: int = 0) -> tuple[Any, dict[str, Any]]:
        """Trains to the end of the schedule.

        Args:
            state: training state.
            step: training steps that are behind it.

        Returns:
            The last state and the last evaluation's metrics.

        Raises:
            TrainingError: if gradients stay without a finite value.
            KeyboardInterrupt: on Ctrl-C, after saving.
            SystemExit: on SIGTERM, after saving.
        """
        watch = self._interrupt.watch() if self._reports.saves else contextlib.nullcontext()
        with watch:
            return self._run(state, step)

    def _run(self, state: Any, step: int) -> tuple[Any, dict[str, Any]]:
        self._saved = (step, 0.0)
        evaluations, resets = self._schedule.evaluations(), self._schedule.resets()
        metrics: dict[str, Any] = {}
        if step == 0 and 0 in evaluations:
            metrics = self._evaluate(state, 0, {})
        stops = sorted(stop for stop in evaluations | resets if stop > step)
        window = Window()
        for stop in stops:
            state = self._train(state, step, stop, window)
            step = stop
            if step in resets:
                state = self._program.fresh_environments(state)
            if step in evaluations:
                metrics = self._evaluate(state, step, self._training_metrics(window))
                window = Window()
                self._save(state, step, metrics)
        self._finish_saves()
        return state, metrics

    def _train(self, state: Any, step: int, stop: int, window: Window) -> Any:
        """Trains from one step to another, in calls of about a second."""
        recent = Window()
        while step < stop:
            steps = hosts.agreed(self._steps_of_a_call(stop - step))
            start = time.perf_counter()
            state, tally = self._program.advance(state, steps)
            seconds = time.perf_counter() - start
            self._pace = seconds / steps
            self._walltime += seconds
            step += steps
            for each in (window, recent):
                each.add(seconds, steps * self._schedule.env_steps, tally)
            self._check_gradients(state, step, recent)
            with hosts.together():
                if self._reports.saves is not None:
                    self._reports.saves.check()
                if self._reports.every is not None and recent.env_steps >= self._reports.every:
                    self._reports.progress(
                        step * self._schedule.env_steps, self._training_metrics(recent)
                    )
                    recent = Window()
            if signal := hosts.largest(self._interrupt.signal or 0):
                self._interrupt.signal = signal
                self._save(state, step, {})
                self._finish_saves()
                self._interrupt.stop()
            if step < stop and hosts.agreed(self._save_is_due(step)):
                self._save(state, step, {})
        return state

    def _steps_of_a_call(self, remaining: int) -> int:
        """Training steps to take at once: few while the pace is unknown, then a second's worth."""
        if not self._pace:
            return 1
        most = max(int(CHUNK_SECONDS / self._pace), 1)
        for interval in (self._reports.every, self._reports.save_steps):
            if interval:
                most = min(most, -(-interval // self._schedule.env_steps))
        return min(most, remaining)

    def _training_metrics(self, window: Window) -> dict[str, Any]:
        return {**window.metrics(self._program), "training/walltime": self._walltime}

    def _evaluate(self, state: Any, step: int, metrics: Mapping[str, Any]) -> dict[str, Any]:
        env_steps = step * self._schedule.env_steps
        with hosts.together():
            found = self._reports.evaluate(env_steps, state, metrics)
            self._reports.progress(env_steps, found)
        return found

    def _save(self, state: Any, step: int, metrics: Mapping[str, Any]) -> None:
        if self._reports.saves is not None:
            self._reports.saves.begin(step, state, metrics)
        self._saved = (step, self._walltime)

    def _finish_saves(self) -> None:
        """Waits for the saves, in every process: one that ends sooner would end the others."""
        with hosts.together():
            if self._reports.saves is not None:
                self._reports.saves.finish()

    def _save_is_due(self, step: int) -> bool:
        """Whether steps or seconds enough have passed since the last save."""
        reports, (saved_step, saved_time) = self._reports, self._saved
        steps = (step - saved_step) * self._schedule.env_steps
        return (reports.save_steps is not None and steps >= reports.save_steps) or (
            reports.save_seconds is not None and self._walltime - saved_time >= reports.save_seconds
        )

    def _check_gradients(self, state: Any, step: int, window: Window) -> None:
        bad = self._program.bad_updates(state)
        if bad < MAX_BAD_UPDATES:
            return
        parts = ", ".join(
            f"{name.removeprefix('training/skipped_')} {value:.4g}"
            for name, value in window.metrics(self._program).items()
            if name.startswith("training/skipped_") and "loss" in name
        )
        raise TrainingError(
            f"gradient is not finite at step {step * self._schedule.env_steps}, {bad} updates in a "
            f"row (loss parts: {parts}). The parameters before them are kept; look at the rewards "
            "and observations of the environment, or lower learning_rate."
        )


def _widest(number: Any) -> np.ndarray:
    """A number in 64 bits."""
    whole = np.issubdtype(np.asarray(number).dtype, np.integer)
    return np.asarray(number, np.int64 if whole else np.float64)
