"""The training loop that all agents share: when to train, evaluate, report, save and stop.

Start reading at `Loop._run` (from evaluation to evaluation), then `Loop._train` (between them).
"""

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
"""Duration of one call of the compiled program [s], which bounds the delay of an interrupt."""

MAX_BAD_UPDATES = 10
"""Number of consecutive updates with a non-finite gradient at which a run stops."""

MAX_LOST_STEP_SHARE = 0.01
"""Share of the environment steps that may break without a warning."""


class CompiledProgram(Protocol):
    """The compiled functions of a training state, as the loop calls them."""

    def advance(self, state: Any, steps: int) -> tuple[Any, Any]:
        """Take training steps; return the state after them and the sums of a tally, on the host."""

    def fresh_environments(self, state: Any) -> Any:
        """Reset all environments."""

    def metrics(self, tally: Any) -> dict[str, float]:
        """Return the public metrics of a tally."""

    def bad_updates(self, state: Any) -> int:
        """Return the number of consecutive updates that were skipped for a non-finite gradient."""


@dataclass(frozen=True)
class Schedule:
    """The times of evaluations and resets, counted in training steps."""

    total: int
    """Training steps of the whole run."""
    env_steps: int
    """Environment steps per training step."""
    num_evals: int
    """Number of evaluations; from 2 on, the first comes before training."""
    num_resets: int
    """Number of resets of all environments between two evaluations."""
    before_updates: int = 0
    """Training steps at the start that make no update, and so take much less time than others."""

    @property
    def _gaps(self) -> int:
        """Number of intervals between evaluations, at least 1."""
        return max(self.num_evals - 1, 1)

    def evaluations(self) -> set[int]:
        """Return the training steps after which to evaluate; the last step is always one."""
        first = 0 if self.num_evals > 1 else 1
        # Rounding spreads evaluations evenly where the total is no multiple of their number.
        return {round(i * self.total / self._gaps) for i in range(first, self._gaps + 1)}

    def resets(self) -> set[int]:
        """Return the training steps after which all environments are reset."""
        parts = self._gaps * self.num_resets
        return {round(i * self.total / parts) for i in range(1, parts)}


@dataclass(frozen=True)
class Reports:
    """The functions that receive the loop's results. Steps are environment steps."""

    evaluate: Callable[[int, Any, Mapping[str, Any]], dict[str, Any]]
    """Function from steps, state and training metrics to all metrics of an evaluation."""
    hand_out: Callable[[int, Any], None]
    """Function that receives steps and state of every evaluation, before it is reported."""
    progress: Callable[[int, Mapping[str, Any]], None]
    """Function that receives steps and metrics, at evaluations and in between."""
    saves: StateSaver | None
    """Saver of training states; None if nothing is saved."""
    every: int | None
    """Minimum number of steps between reports while training. 0 reports after every call of the
    program, about once a second; None reports at evaluations only.
    """
    save_steps: int | None = None
    """Steps between checkpoints besides those at evaluations; None for no such checkpoints."""
    save_seconds: float | None = None
    """Seconds of training between such checkpoints; None for no such checkpoints."""


@dataclass(frozen=True)
class StoppingCriteria:
    """The conditions that end a run before its last step.

    If `reward` or `deadline` ends the run, it is evaluated and saved as at its last step.
    """

    reward: float | None = None
    """Mean return of an evaluation that suffices."""
    deadline: float | None = None
    """Time of `time.monotonic` [s]."""
    bad_updates: int | None = MAX_BAD_UPDATES
    """Number of consecutive updates with a non-finite gradient that is an error; None: no limit."""


class MetricsWindow:
    """The sums since the last report."""

    def __init__(self) -> None:
        """Start with nothing summed."""
        self.seconds = 0.0
        self.env_steps = 0
        self._tally: Any = None

    def add(self, seconds: float, env_steps: int, tally: Any) -> None:
        """Add one call of the program."""
        self.seconds += seconds
        self.env_steps += env_steps
        # A window can be a run of days, which 32 bits cannot count.
        tally = jax.tree.map(_as_64_bit, tally)
        self._tally = tally if self._tally is None else jax.tree.map(np.add, self._tally, tally)

    def metrics(self, program: CompiledProgram) -> dict[str, float]:
        """Return the program's metrics and the speed."""
        if self._tally is None:
            return {}
        # A clock of low resolution may measure zero seconds.
        sps = self.env_steps / max(self.seconds, 1e-9)
        return {**program.metrics(self._tally), "training/sps": sps}


class Loop:
    """The training loop, which runs a program by a schedule."""

    def __init__(
        self,
        program: CompiledProgram,
        schedule: Schedule,
        reports: Reports,
        limits: StoppingCriteria = StoppingCriteria(),
    ) -> None:
        """Store the parts; nothing is computed."""
        self._program = program
        self._schedule = schedule
        self._reports = reports
        self._limits = limits
        self._interrupt = Interrupt()
        # 0 is not measured yet: the first call takes one step.
        self._seconds_per_step = 0.0
        self._walltime = 0.0
        self._saved = (0, 0.0)  # training steps and seconds of training at the last save
        self._recent = MetricsWindow()  # since the last report
        self._warned_of_lost = False

    def run(self, state: Any, step: int = 0, seconds: float = 0.0) -> tuple[Any, dict[str, Any]]:
        """Train to the end of the schedule.

        Args:
            state: training state.
            step: training steps behind it.
            seconds: seconds of training behind it.

        Returns:
            The last state and the last evaluation's metrics.

        Raises:
            TrainingError: if gradients stay non-finite.
            KeyboardInterrupt: on Ctrl-C, after saving.
            SystemExit: on SIGTERM and SIGHUP, after saving.
        """
        saves = self._reports.saves is not None
        # A run that saves nothing has nothing to finish: signals end it at once, as usual.
        with self._interrupt.watch() if saves else contextlib.nullcontext():
            self._walltime, self._saved = seconds, (step, seconds)
            return self._run(state, step)

    def _run(self, state: Any, step: int) -> tuple[Any, dict[str, Any]]:
        """Train from stop to stop, where a stop is an evaluation or a reset."""
        evaluations, resets = self._schedule.evaluations(), self._schedule.resets()
        metrics: dict[str, Any] = {}
        # A resumed run takes up the schedule of the whole run: only what lies behind it is left
        # out.
        stops = sorted(stop for stop in evaluations | resets if stop > step)
        # A run that trains nothing is evaluated all the same; a new one saves its first state then.
        if (step == 0 and 0 in evaluations) or not stops:
            metrics, ended = self._evaluate(state, step, {}, save=step == 0 and not stops)
            stops = [] if ended else stops
        window = MetricsWindow()
        for stop in stops:
            state, step = self._train(state, step, stop, window)
            if step in resets:
                # After the step and before the evaluation's checkpoint, so that a resumed run has
                # them too.
                state = self._program.fresh_environments(state)
            evaluated, ended = step in evaluations, False
            # Past the deadline, a run is evaluated at once, also before the stop or at a reset.
            if evaluated or hosts.broadcast_from_first(self._is_past_deadline()):
                own = self._training_metrics(window)
                metrics, ended = self._evaluate(state, step, own, save=True)
                evaluated = True
                # An evaluation reports everything since the one before, and the next report starts
                # afresh.
                window = self._recent = MetricsWindow()
            interrupted = self._is_interrupted()
            # An evaluation has saved the state already; a reset has not.
            if not evaluated and (
                interrupted or hosts.broadcast_from_first(self._save_is_due(step))
            ):
                self._save(state, step, {})
            if interrupted:
                self._exit_on_signal()
            if ended:
                break
        self._finish_saves()
        if self._is_interrupted():  # in what came last
            self._interrupt.stop()
        return state, metrics

    def _train(self, state: Any, step: int, stop: int, window: MetricsWindow) -> tuple[Any, int]:
        """Train to a stop, or to the deadline, in calls of about a second.

        An interrupt at the last step is obeyed by the caller, after the reset, evaluation and
        checkpoint that are due there. A run that is resumed from there is then the same as one that
        never stopped.
        """
        while step < stop:
            # The number follows from measured time; all processes must take the same.
            steps = hosts.broadcast_from_first(self._steps_per_call(step, stop))
            start = time.perf_counter()
            state, tally = self._program.advance(state, steps)
            seconds = time.perf_counter() - start
            self._walltime += seconds
            step += steps
            # Where updates begin, the speed is not known any more: the next call takes one step.
            known = step != self._schedule.before_updates
            self._seconds_per_step = seconds / steps if known else 0.0
            # The first window lasts to the next evaluation, the second to the next report.
            for each in (window, self._recent):
                each.add(seconds, steps * self._schedule.env_steps, tally)
            # Before the report, which clears the losses that the error message shows.
            self._check_gradients(state, step)
            with hosts.together():
                if self._reports.saves is not None:
                    # A failed save ends the run within a second, not at the next save.
                    self._reports.saves.check()
                every = self._reports.every
                if every is not None and self._recent.env_steps >= every:
                    self._reports.progress(step * self._schedule.env_steps, self._interim_metrics())
                    self._recent = MetricsWindow()
            # At the stop itself the caller acts, after the reset and the evaluation there.
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
        # A scheduler may signal one process only. All stop together, or the rest would wait for
        # ever.
        found = hosts.max_over_processes(self._interrupt.signal or 0)
        # A signal that has arrived meanwhile, of which the others do not know, is kept for the next
        # time.
        if found:
            self._interrupt.signal = found
        return bool(found)

    def _exit_on_signal(self) -> NoReturn:
        """End as the signal would, when everything is on disk."""
        self._finish_saves()
        self._interrupt.stop()

    def _is_past_deadline(self) -> bool:
        """Return whether the time of the run is over."""
        return self._limits.deadline is not None and time.monotonic() >= self._limits.deadline

    def _reached_reward(self, metrics: Mapping[str, Any]) -> bool:
        """Return whether an evaluation reached the return at which training ends."""
        reward, enough = metrics.get("eval/episode_reward"), self._limits.reward
        return enough is not None and reward is not None and reward >= enough

    def _steps_per_call(self, step: int, stop: int) -> int:
        """Return the training steps of one call: 1 at first, then as many as take a second."""
        if not self._seconds_per_step:
            return 1
        most = max(int(CHUNK_SECONDS / self._seconds_per_step), 1)
        # No call is longer than an interval between reports or saves.
        for interval in (self._reports.every, self._reports.save_steps):
            if interval:
                most = min(most, -(-interval // self._schedule.env_steps))
        # No call has steps with and without updates: the speed of one says nothing of the other.
        if step < self._schedule.before_updates:
            stop = min(stop, self._schedule.before_updates)
        return min(most, stop - step)

    def _training_metrics(self, window: MetricsWindow) -> dict[str, Any]:
        """Return the metrics of a window; warn once if many environment steps broke."""
        found = window.metrics(self._program)
        lost = found.get("training/nan_envs", 0.0)
        # Once in a run: the same fault would repeat in every report.
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
        """Return the metrics of a report between evaluations.

        Losses and speed are in it as `episode/...` too, their names in Google's agents.
        """
        found = self._training_metrics(self._recent)
        also = {
            f"episode/{name.removeprefix('training/')}": x
            for name, x in found.items()
            if name.startswith("training/") and name != "training/walltime"
        }
        return also | found

    def _evaluate(
        self, state: Any, step: int, metrics: Mapping[str, object], save: bool
    ) -> tuple[dict[str, Any], bool]:
        """Evaluate, save and report, in this order: an error in a user's function loses nothing.

        Returns:
            All metrics, and whether the run ends here, by its return or by its deadline.
        """
        env_steps = step * self._schedule.env_steps
        with hosts.together():
            found = self._reports.evaluate(env_steps, state, metrics)
        # The first process decides for all, since times and rounding may differ between processes.
        ended = bool(
            hosts.broadcast_from_first(self._reached_reward(found) or self._is_past_deadline())
        )
        if save or ended:
            self._save(state, step, found)
        with hosts.together():
            self._reports.hand_out(env_steps, state)
            self._reports.progress(env_steps, found)
        return found, ended

    def _save(self, state: Any, step: int, metrics: Mapping[str, object]) -> None:
        """Begin to save a state, if anything is saved."""
        if self._reports.saves is not None:
            recorded = {**metrics, "training/walltime": self._walltime}
            self._reports.saves.begin(step, state, recorded)
        self._saved = (step, self._walltime)

    def _finish_saves(self) -> None:
        """Wait for the saves, in every process: one that ends earlier would end the others."""
        with hosts.together():
            if self._reports.saves is not None:
                self._reports.saves.finish()

    def _save_is_due(self, step: int) -> bool:
        """Return whether enough steps or seconds have passed since the last save."""
        reports, (saved_step, saved_time) = self._reports, self._saved
        steps = (step - saved_step) * self._schedule.env_steps
        return (reports.save_steps is not None and steps >= reports.save_steps) or (
            reports.save_seconds is not None and self._walltime - saved_time >= reports.save_seconds
        )

    def _check_gradients(self, state: Any, step: int) -> None:
        """Save the state and end the run if gradients stay non-finite."""
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
            else "Nothing is saved without save_checkpoint_path"
        )
        raise TrainingError(
            f"gradient is not finite at step {env_steps}, {bad} updates in a row (loss parts: "
            f"{parts}). {kept}. Look at the rewards and observations of the environment, lower "
            "learning_rate, or set failed_update=skip to continue."
        )


def _as_64_bit(number: Any) -> np.ndarray:
    """Return a number in 64 bits."""
    whole = np.issubdtype(np.asarray(number).dtype, np.integer)
    return np.asarray(number, np.int64 if whole else np.float64)
