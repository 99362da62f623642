"""Savers: write the training states of a run to a folder, and react to failures."""

import json
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from brax.errors import CheckpointError, ConfigError
from brax.training.checkpoints.writer import Writer
from brax.training.config import RunConfig
from brax.training.distributed import hosts


class StateSaver(Protocol):
    """A saver of training states, which works while training continues."""

    def begin(self, step: int, state: object, metrics: Mapping[str, object]) -> None:
        """Take a training state after a number of training steps; it is written in the background.

        `metrics` are those of an evaluation, if there was one, and `training/walltime`.
        """

    def check(self) -> None:
        """Report whether a save has failed."""

    def finish(self) -> None:
        """Wait until the saves are on disk."""


class Saver:
    """A saver to one folder. Only the first process writes; all take part in gathering a state."""

    def __init__(self, folder: Path | str, record: Mapping[str, object], config: RunConfig) -> None:
        """Take the folder.

        Args:
            folder: folder of the checkpoints.
            record: record of every checkpoint.
            config: settings: how many checkpoints are kept, and the reaction to a failed save.

        Raises:
            CheckpointError: if the folder cannot be written to.
            ConfigError: if JSON cannot represent the record.
        """
        _check_plain(record)
        self._record = record
        self._config = config
        self._writer = Writer(folder, config.keep_checkpoints) if hosts.first() else None

    def start(self, step: int) -> None:
        """Prepare the folder for a run that starts after a number of training steps.

        Raises:
            CheckpointError: if the folder holds checkpoints of later steps, unless the run may
                remove them.
        """
        if self._writer is not None:
            steps = step * self._config.env_steps_per_training_step
            self._writer.start(steps, self._config.overwrite_checkpoints)

    def begin(self, step: int, state: object, metrics: Mapping[str, Any]) -> None:
        """Take a training state; its mean evaluation return is the checkpoint's score."""
        # Every process takes part, also those that do not write: it is a collective operation.
        state = hosts.gather(state)
        reward = float(metrics.get("eval/episode_reward", math.nan))
        # JSON has no NaN. A checkpoint without a score is never the best.
        score = reward if math.isfinite(reward) else None
        seconds = metrics["training/walltime"]
        record = {**self._record, "training_steps": step, "seconds": seconds, "score": score}
        with hosts.together():
            # One save at a time. An error of the last one is raised in every process.
            self.finish()
            if self._writer is not None:
                self._writer.begin(step * self._config.env_steps_per_training_step, state, record)

    def check(self) -> None:
        """Report a save that has failed, by an error or a warning as the settings say."""
        if self._writer is not None:
            self._report_failure(self._writer.check)

    def finish(self) -> None:
        """Wait until the saves are on disk; report a failure as `check` does."""
        if self._writer is not None:
            self._report_failure(self._writer.finish)

    def close(self) -> None:
        """Release the folder."""
        if self._writer is not None:
            self._writer.close()

    def _report_failure(self, look: Callable[[], None]) -> None:
        """Run a check; turn its error into a warning if training should continue."""
        try:
            look()
        except CheckpointError as error:
            if self._config.failed_save == "stop":
                raise
            warnings.warn(f"{error} Training continues without it.", stacklevel=3)


def _check_plain(record: Mapping[str, Any]) -> None:
    """Reject a record that JSON cannot represent, before any long work.

    Raises:
        ConfigError: naming the setting.
    """
    for name, value in {**record, **record.get("config", {}), "config": None}.items():
        try:
            json.dumps(value)
        except (TypeError, ValueError) as error:
            raise ConfigError(
                f"{name}={value!r} cannot be written into checkpoints: {error}. Give numbers, "
                "text, lists or dictionaries."
            ) from error


class SaverGroup:
    """A group of savers, one for each part of a training state."""

    def __init__(
        self,
        savers: Sequence[StateSaver],
        part: Callable[[Any, int], object],
        of: Callable[[Mapping[str, Any], int], Mapping[str, object]],
    ) -> None:
        """Store the savers, with functions that select one saver's part of states and metrics."""
        self._savers, self._part, self._of = savers, part, of

    def begin(self, step: int, state: object, metrics: Mapping[str, object]) -> None:
        """Take all parts."""
        for i, saver in enumerate(self._savers):
            saver.begin(step, self._part(state, i), self._of(metrics, i))

    def check(self) -> None:
        """Report whether any save has failed."""
        for saver in self._savers:
            saver.check()

    def finish(self) -> None:
        """Wait for all savers."""
        for saver in self._savers:
            saver.finish()
