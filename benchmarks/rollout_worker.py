"""MuJoCo C as a side of `models`: `mujoco.rollout` of physics alone, on several threads."""

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import mujoco
import numpy as np
from mujoco import rollout
from physics import Physics
from worker import serve


class Bench(Physics):
    """Batches of `mujoco.rollout`."""

    def __init__(
        self, model: Mapping[str, Any], batches: Sequence[int], seconds: float, threads: int
    ) -> None:
        super().__init__(model, batches, seconds, threads)
        # Ours computes sensors only where they are asked for.
        self.robot.model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_SENSOR)
        self.data = [mujoco.MjData(self.robot.model) for _ in range(threads)]
        self.pool, self.random = rollout.Rollout(nthread=threads), np.random.default_rng(1)
        self.calls: dict[tuple[str, int, int], tuple[np.ndarray, np.ndarray]] = {}

    def describe(self) -> dict[str, Any]:
        """Return the degrees of freedom, and the mean numbers of contacts of the states."""
        contacts = {
            kind: float(np.mean([self.robot.forward(state).ncon for state in self.states[kind]]))
            for kind in self.robot.kinds
        }
        return {"device": "cpu cpu", "dofs": self.robot.model.nv, "contacts": contacts}

    def compile(self) -> dict[str, float]:
        """Nothing."""
        return {"trace": 0.0, "compile": 0.0, "cores": 0.0}

    def advance(self, kind: str, batch: int, length: int) -> None:
        """Simulate in one call."""
        if (kind, batch, length) not in self.calls:
            start = self.start(kind, batch)
            controls = self.robot.controls(kind, self.random, start, length)
            self.calls[kind, batch, length] = start, controls
        self.pool.rollout(self.robot.model, self.data, *self.calls[kind, batch, length])

    def check(self) -> dict[str, list[str]]:
        """Return what is wrong: nothing, since ours is compared with this side."""
        return {"problems": []}


if __name__ == "__main__":
    serve(Bench(**json.loads(sys.argv[2])))
