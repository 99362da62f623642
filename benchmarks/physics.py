"""Parts that both sides of `models` share: the states, and the search for the fastest batch."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from states import Robot

LONGEST = 20.0
"""A batch is not tried if one call is expected to take longer [s]."""


class Physics:
    """A side that simulates batches of physics steps, from each kind of states."""

    def __init__(
        self, model: Mapping[str, Any], batches: Sequence[int], seconds: float, threads: int
    ) -> None:
        """Make the states.

        Args:
            model: from `robots`.
            batches: sizes of the batch to choose from, rising.
            seconds: how long a measurement lasts at least.
            threads: of MuJoCo.
        """
        self.robot, self.batches, self.seconds = Robot(model), batches, seconds
        self.states = {kind: self.robot.states(kind, threads) for kind in self.robot.kinds}
        self.best: dict[str, int] = {}
        """The fastest batch, by the kind of states."""

    def advance(self, kind: str, batch: int, length: int) -> None:
        """Simulate so many physics steps of a batch, from the same states in each call."""
        raise NotImplementedError

    def run(self, length: int) -> dict[str, dict[str, float]]:
        """Measure the fastest batch of each kind of states, which the first call finds.

        Args:
            length: physics steps of a call.

        Returns:
            By kind: `batch`, physics `steps` of all environments, `seconds`, and of all `cores`.
        """
        for kind in self.robot.kinds:
            if kind not in self.best:
                self.best[kind] = self._fastest(kind, length)
        return {kind: self._timed(kind, batch, length) for kind, batch in self.best.items()}

    def start(self, kind: str, batch: int) -> np.ndarray:
        """Return the states of a batch, which repeat those that there are."""
        states = self.states[kind]
        return states[np.arange(batch) % len(states)]

    def _fastest(self, kind: str, length: int) -> int:
        """Return the batch with the most steps a second."""
        speeds: dict[int, float] = {}
        for batch in self.batches:
            # The time of one call, if the speed is that of the batch before.
            if speeds and batch * length / list(speeds.values())[-1] > LONGEST:
                break
            self.advance(kind, batch, length)  # compiles, and warms up
            found = self._timed(kind, batch, length)
            speeds[batch] = found["steps"] / found["seconds"]
        return max(speeds, key=speeds.__getitem__)

    def _timed(self, kind: str, batch: int, length: int) -> dict[str, float]:
        calls, wall, cores = 0, time.perf_counter(), time.process_time()
        while not calls or time.perf_counter() - wall < self.seconds:
            self.advance(kind, batch, length)
            calls += 1
        return {
            "batch": batch,
            "steps": calls * batch * length,
            "seconds": time.perf_counter() - wall,
            "cores": time.process_time() - cores,
        }
