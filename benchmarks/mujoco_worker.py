"""MuJoCo C as a side of a comparison: `mujoco.rollout` on several threads."""

import json
import sys
import time
from collections.abc import Mapping
from typing import Any

import mujoco
import numpy as np
from mujoco import rollout
from worker import act, serve

FULL = mujoco.mjtState.mjSTATE_FULLPHYSICS


class Bench:
    """A rollout of a batch, without resets, under random actions or a trained policy."""

    def __init__(
        self, model: Mapping[str, Any], batch: int, threads: int, policy: str | None = None
    ) -> None:
        self.model = (
            mujoco.MjModel.from_xml_path(model["path"])
            if "path" in model
            else mujoco.MjModel.from_xml_string(model["xml"])
        )
        self.model.opt.timestep = model["timestep"]
        self.hidden, self.n_frames, self.batch = model["hidden"], model["n_frames"], batch
        self.threads, self.policy = threads, policy and dict(np.load(policy))
        self.data = [mujoco.MjData(self.model) for _ in range(threads)]
        self.pool = rollout.Rollout(nthread=threads)
        self.random = np.random.default_rng(0)
        self.start = np.stack([self._start(model["noise"]) for _ in range(batch)])

    def describe(self) -> dict[str, Any]:
        """Return a description of this side."""
        return {"mujoco": mujoco.__version__, "threads": self.threads, "device": "cpu cpu"}

    def compile(self) -> dict[str, float]:
        """Nothing."""
        return {"trace": 0.0, "compile": 0.0, "reset": 0.0, "cores": 0.0}

    def run(self, length: int) -> dict[str, float]:
        """Seconds of one rollout, by the clock and of all cores: physics alone, in one call."""
        controls = self._controls(length)
        wall, cores = time.perf_counter(), time.process_time()
        self.last = self._roll(self.start, controls)
        return {"seconds": time.perf_counter() - wall, "cores": time.process_time() - cores}

    def check(self) -> dict[str, Any]:
        """Return the end of the last rollout."""
        q, start = self._observe(self.last), self._observe(self.start)
        return {
            "not_finite": [] if np.isfinite(self.last).all() else ["state"],
            "heights": q[:, 2].tolist(),
            "forward": float((q[:, 0] - start[:, 0]).mean()),
        }

    def _start(self, noise: float) -> np.ndarray:
        data = self.data[0]
        mujoco.mj_resetData(self.model, data)
        shift = self.random.uniform(-noise, noise, self.model.nq)
        if _names_start(self.model):
            data.qpos[:] = self.model.numeric("init_qpos").data
        data.qpos[:] += shift
        data.qvel[:] = noise * self.random.standard_normal(self.model.nv)
        mujoco.mj_normalizeQuat(self.model, data.qpos)
        state = np.empty(mujoco.mj_stateSize(self.model, FULL))
        mujoco.mj_getState(self.model, data, state, FULL)
        return state

    def _controls(self, length: int) -> np.ndarray:
        """Return the controls of all steps; a policy is run beforehand to find them."""
        shape = (self.batch, length, self.model.nu)
        if not self.policy:
            return self.random.uniform(-1, 1, shape)
        controls, state = np.empty(shape), self.start
        for i in range(length):
            controls[:, i] = act(self.policy, self._observe(state)[:, self.hidden :], np)
            state = self._roll(state, controls[:, i : i + 1])
        return controls

    def _roll(self, state: np.ndarray, controls: np.ndarray) -> np.ndarray:
        """Return the last states of rollouts, each control held for one step of the environment."""
        held = np.repeat(controls, self.n_frames, axis=1)
        return self.pool.rollout(self.model, self.data, state, held)[0][:, -1]

    def _observe(self, state: np.ndarray) -> np.ndarray:
        """Coordinates and velocities; the state begins with the time."""
        return state[:, 1 : 1 + self.model.nq + self.model.nv]


def _names_start(model: mujoco.MjModel) -> bool:
    """Return whether a file says where it starts."""
    names = [model.numeric(i).name for i in range(model.nnumeric)]
    return "init_qpos" in names


if __name__ == "__main__":
    serve(Bench(**json.loads(sys.argv[2])))
