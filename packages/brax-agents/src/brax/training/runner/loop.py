"""The loop that all agents share: when to train, evaluate, report, save and stop."""

import contextlib
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol

import jax
import numpy as np

from brax.errors import TrainingError
from brax.training.checkpoints.saver import StateSaver
from brax.training.distributed import hosts
from brax.training.runner.interrupts import Interrupt

CHUNK_SECONDS = 1.0
"""Time that one call of the compiled program should take: how late an interrupt is noticed."""

MAX_BAD_UPDATES = 10
"""Updates in a row without a finite gradient after which a run is stopped."""

MAX_LOST_STEP_SHARE = 0.01
"""Share of the environment steps that may break without a warning."""


class CompiledProgram(Protocol):
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


@dataclass(frozen=True)
class Reports:
    """Where the loop sends what it learns. Steps are environment steps."""

    evaluate: Callable[[int, Any, Mapping[str, Any]], dict[str, Any]]
    """From steps, state and training metrics to all metrics of an evaluation."""
    hand_out: Callable[[int, Any], None]
    """Given steps and state of every evaluation, before it is reported."""
    progress: Callable[[int, Mapping[str, Any]], None]
    """Told steps and metrics, at evaluations and in between."""
    saves: StateSaver | None
    """Saves training states; None where nothing is saved."""
    every: int | None
    """Least steps between reports while training, 0 for one after every call of the program, which
    is about every second; None for no reports in between."""
    save_steps: int | None = None
    """Steps after which to save besides; None for no such saves."""
    save_seconds: float | None = None
    """Seconds of training after which to save besides; None for no such saves."""


@dataclass(frozen=True)
class StoppingCriteria:
    """What ends a run before its last step. At the first two it is evaluated and saved as there."""

    reward: float | None = None
    """Mean return of an evaluation that is enough."""
    deadline: float | None = None
    """Time of `time.monotonic` [s]."""
    bad_updates: int | None = MAX_BAD_UPDATES
    """Updates in a row without a finite gradient; that is an error."""


class MetricsWindow:
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
        tally = jax.tree.map(_as_64_bit, tally)
        self._tally = tally if self._tally is None else jax.tree.map(np.add, self._tally, tally)

    def metrics(self, program: CompiledProgram) -> dict[str, float]:
        """The program's metrics and the speed."""
        if self._tally is None:
            return {}
        sps = self.env_steps / max(self.seconds, 1e-9)
        return {**program.metrics(self._tally), "training/sps": sps}


class Loop:
    """Runs a program by a schedule."""

    def __init__(
        self,
        program: CompiledProgram,
        schedule: Schedule,
        reports: Reports,
        limits: StoppingCriteria = StoppingCriteria(),
    ) -> None:
        self._program = program
        self._schedule = schedule
        self._reports = reports
        self._limits = limits
        self._interrupt = Interrupt()
        self._seconds_per_step = 0.0
        self._walltime = 0.0
        self._saved = (0, 0.0)  # training steps and seconds of training at the last save
        self._recent = MetricsWindow()  # since the last report
        self._warned_of_lost = False

    def run(self, state: Any, step: int = 0, seconds: float = 0.0) -> tuple[Any, dict[str, Any]]:
        """Trains to the end of the schedule.

        Args:
            state: training state.
            step: training steps that are behind it.
            seconds: seconds of training that are.

        Returns:
            The last state and the last evaluation's metrics.

        Raises:
            TrainingError: if gradients stay without a finite value.
            KeyboardInterrupt: on Ctrl-C, after saving.
            SystemExit: on SIGTERM and SIGHUP, after saving.
        """
        saves = self._reports.saves is not None
        with self._interrupt.watch() if saves else contextlib.nullcontext():
            self._walltime, self._saved = seconds, (step, seconds)
            return self._run(state, step)

    def _run(self, state: Any, step: int) -> tuple[Any, dict[str, Any]]:
        evaluations, resets = self._schedule.evaluations(), self._schedule.resets()
        metrics: dict[str, Any] = {}
        stops = sorted(stop for stop in evaluations | resets if stop > step)
        if (step == 0 and 0 in evaluations) or not stops:
            metrics = self._evaluate(state, step, {}, save=step == 0 and not stops)
        window = MetricsWindow()
        for stop in stops:
            state, step = self._train(state, step, stop, window)
            late = step < stop
            if step in resets and not late:
                state = self._program.fresh_environments(state)
            evaluated = step in evaluations or late
            if evaluated:
                metrics = self._evaluate(state, step, self._training_metrics(window), save=True)
                window = self._recent = MetricsWindow()
            if self._is_interrupted():
                if not evaluated:
                    self._save(state, step, {})
                self._exit_on_signal()
            if late or (evaluated and hosts.broadcast_from_first(self._reached_reward(metrics))):
                break
        self._finish_saves()
        if self._is_interrupted():  # in what came last
            self._interrupt.stop()
        return state, metrics

    def _train(self, state: Any, step: int, stop: int, window: MetricsWindow) -> tuple[Any, int]:
        """Trains from one step to another, or to the deadline, in calls of about a second.

        What was asked to stop at the last step does so after what else is to happen there, so that
        a run that goes on from there is as one that never stopped.
        """
        while step < stop:
            steps = hosts.broadcast_from_first(self._steps_per_call(stop - step))
            start = time.perf_counter()
            state, tally = self._program.advance(state, steps)
            seconds = time.perf_counter() - start
            self._seconds_per_step = seconds / steps
            self._walltime += seconds
            step += steps
            for each in (window, self._recent):
                each.add(seconds, steps * self._schedule.env_steps, tally)
            self._check_gradients(state, step)
            with hosts.together():
                if self._reports.saves is not None:
                    self._reports.saves.check()
                every = self._reports.every
                if every is not None and self._recent.env_steps >= every:
                    self._reports.progress(step * self._schedule.env_steps, self._interim_metrics())
                    self._recent = MetricsWindow()
            if step < stop and self._is_interrupted():
                self._save(state, step, {})
                self._exit_on_signal()
            if step < stop and hosts.broadcast_from_first(self._is_past_deadline()):
                break
            if step < stop and hosts.broadcast_from_first(self._save_is_due(step)):
                self._save(state, step, {})
        return state, step

    def _is_interrupted(self) -> bool:
        """Return whether any process was asked to stop."""
        self._interrupt.signal = hosts.max_over_processes(self._interrupt.signal or 0) or None
        return self._interrupt.signal is not None

    def _exit_on_signal(self) -> NoReturn:
        """Ends as the signal would, when all is on disk."""
        self._finish_saves()
        self._interrupt.stop()

    def _is_past_deadline(self) -> bool:
        return self._limits.deadline is not None and time.monotonic() >= self._limits.deadline

    def _reached_reward(self, metrics: Mapping[str, Any]) -> bool:
        reward, enough = metrics.get("eval/episode_reward"), self._limits.reward
        return enough is not None and reward is not None and reward >= enough

    def _steps_per_call(self, remaining: int) -> int:
        """Training steps to take at once: few while the pace is unknown, then a second's worth."""
        if not self._seconds_per_step:
            return 1
        most = max(int(CHUNK_SECONDS / self._seconds_per_step), 1)
        for interval in (self._reports.every, self._reports.save_steps):
            if interval:
                most = min(most, -(-interval // self._schedule.env_steps))
        return min(most, remaining)

    def _training_metrics(self, window: MetricsWindow) -> dict[str, Any]:
        found = window.metrics(self._program)
        lost = found.get("training/nan_envs", 0.0)
        if lost > MAX_LOST_STEP_SHARE * window.env_steps and not self._warned_of_lost:
            self._warned_of_lost = True
            warnings.warn(
                f"in {lost:,.0f} of {window.env_steps:,} environment steps the state, the "
                "observation or the reward was not finite, or beyond 1e10: such a step earns "
                "nothing and ends its episode. Look at the environment's reset and step.",
                stacklevel=4,
            )
        return {**found, "training/walltime": self._walltime}

    def _interim_metrics(self) -> dict[str, Any]:
        """Metrics of a report between evaluations: losses and speed are called `episode/...` too,
        which is what Google's agents call them there."""
        told = self._training_metrics(self._recent)
        also = {
            f"episode/{name.removeprefix('training/')}": x
            for name, x in told.items()
            if name.startswith("training/") and name != "training/walltime"
        }
        return also | told

    def _evaluate(
        self, state: Any, step: int, metrics: Mapping[str, Any], save: bool
    ) -> dict[str, Any]:
        """Evaluates, saves, and tells: where a user's function fails then, nothing is lost."""
        env_steps = step * self._schedule.env_steps
        with hosts.together():
            found = self._reports.evaluate(env_steps, state, metrics)
        if save:
            self._save(state, step, found)
        with hosts.together():
            self._reports.hand_out(env_steps, state)
            self._reports.progress(env_steps, found)
        return found

    def _save(self, state: Any, step: int, metrics: Mapping[str, Any]) -> None:
        if self._reports.saves is not None:
            told = {**metrics, "training/walltime": self._walltime}
            self._reports.saves.begin(step, state, told)
        self._saved = (step, self._walltime)

    def _finish_saves(self) -> None:
        """Waits for the saves, in every process: one that ends sooner would end the others."""
        with hosts.together():
            if self._reports.saves is not None:
                self._reports.saves.finish()

    def _save_is_due(self, step: int) -> bool:
        """Return whether steps or seconds enough have passed since the last save."""
        reports, (saved_step, saved_time) = self._reports, self._saved
        steps = (step - saved_step) * self._schedule.env_steps
        return (reports.save_steps is not None and steps >= reports.save_steps) or (
            reports.save_seconds is not None and self._walltime - saved_time >= reports.save_seconds
        )

    def _check_gradients(self, state: Any, step: int) -> None:
        """Ends the run where gradients stay without a finite value; the state is saved first."""
        bad = self._program.bad_updates(state)
        if self._limits.bad_updates is None or bad < self._limits.bad_updates:
            return
        parts = ", ".join(
            f"{name.removeprefix('training/skipped_')} {value:.4g}"
            for name, value in self._recent.metrics(self._program).items()
            if name.startswith("training/skipped_") and "loss" in name
        )
        self._save(state, step, {})
        self._finish_saves()
        env_steps = step * self._schedule.env_steps
        kept = (
            f"The checkpoint of step {env_steps} has the state, with the parameters before them"
            if self._reports.saves is not None
            else "Nothing is kept without save_checkpoint_path"
        )
        raise TrainingError(
            f"gradient is not finite at step {env_steps}, {bad} updates in a row (loss parts: "
            f"{parts}). {kept}. Look at the rewards and observations of the environment, lower "
            "learning_rate, or set failed_update=skip to go on."
        )


def _as_64_bit(number: Any) -> np.ndarray:
    """A number in 64 bits."""
    whole = np.issubdtype(np.asarray(number).dtype, np.integer)
    return np.asarray(number, np.int64 if whole else np.float64)
