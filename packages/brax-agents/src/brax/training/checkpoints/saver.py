"""What saves the training states of a run: where, with what record, and what follows a failure."""

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
    """Saves training states while training goes on."""

    def begin(self, step: int, state: Any, metrics: Mapping[str, Any]) -> None:
        """Takes a training state after so many training steps, to be written meanwhile.

        `metrics` are those of an evaluation, if there was one, and `training/walltime`.
        """

    def check(self) -> None:
        """Tells whether what was begun has failed."""

    def finish(self) -> None:
        """Waits until what was begun is on disk."""


class Saver:
    """Saves to one folder. The first process alone writes; all take part in gathering a state."""

    def __init__(self, folder: Path | str, record: Mapping[str, Any], config: RunConfig) -> None:
        """Takes the folder.

        Args:
            folder: where checkpoints go.
            record: what every checkpoint records.
            config: how many are kept, and what follows a save that fails.

        Raises:
            CheckpointError: if it cannot be written to.
            ConfigError: if there is no way to write the record down.
        """
        _check_plain(record)
        self._record = record
        self._config = config
        self._writer = Writer(folder, config.keep_checkpoints) if hosts.first() else None

    def start(self, step: int) -> None:
        """Takes the training steps that are behind the first state.

        Raises:
            CheckpointError: if the folder holds checkpoints of later ones, unless the run may
                remove these.
        """
        if self._writer is not None:
            steps = step * self._config.env_steps_per_training_step
            self._writer.start(steps, self._config.overwrite_checkpoints)

    def begin(self, step: int, state: Any, metrics: Mapping[str, Any]) -> None:
        """Takes a training state; its mean evaluation return is the checkpoint's score."""
        state = hosts.gather(state)
        reward = float(metrics.get("eval/episode_reward", math.nan))
        score = reward if math.isfinite(reward) else None
        seconds = metrics["training/walltime"]
        told = {**self._record, "training_steps": step, "seconds": seconds, "score": score}
        with hosts.together():
            self.finish()
            if self._writer is not None:
                self._writer.begin(step * self._config.env_steps_per_training_step, state, told)

    def check(self) -> None:
        """Tells whether what was begun has failed, by an error or a warning as was chosen."""
        if self._writer is not None:
            self._report_failure(self._writer.check)

    def finish(self) -> None:
        """Waits until what was begun is on disk; tells if that fails, as `check` does."""
        if self._writer is not None:
            self._report_failure(self._writer.finish)

    def close(self) -> None:
        """Lets go of the folder."""
        if self._writer is not None:
            self._writer.close()

    def _report_failure(self, look: Callable[[], None]) -> None:
        try:
            look()
        except CheckpointError as error:
            if self._config.failed_save == "stop":
                raise
            warnings.warn(f"{error} Training goes on without it.", stacklevel=3)


def _check_plain(record: Mapping[str, Any]) -> None:
    """Refuses a record that JSON cannot say, before any long work.

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
    """Saves each part of a training state by a saver of its own."""

    def __init__(
        self,
        savers: Sequence[StateSaver],
        part: Callable[[Any, int], Any],
        of: Callable[[Mapping[str, Any], int], Mapping[str, Any]],
    ) -> None:
        """Takes the savers, and functions from all states and all metrics to one saver's."""
        self._savers, self._part, self._of = savers, part, of

    def begin(self, step: int, state: Any, metrics: Mapping[str, Any]) -> None:
        """Takes all parts."""
        for i, saver in enumerate(self._savers):
            saver.begin(step, self._part(state, i), self._of(metrics, i))

    def check(self) -> None:
        """Tells whether one has failed."""
        for saver in self._savers:
            saver.check()

    def finish(self) -> None:
        """Waits for all."""
        for saver in self._savers:
            saver.finish()
