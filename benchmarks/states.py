"""MuJoCo's models of `robots`, and the states that both sides of a comparison start from.

MuJoCo makes the states, so that they do not depend on our engine.
"""

import copy
from collections.abc import Mapping
from typing import Any

import mujoco
import numpy as np
from mujoco import rollout
from worker import act

STATE = mujoco.mjtState.mjSTATE_FULLPHYSICS
SMALL, HELD = 0.1, 5
"""Controls are drawn from this share of their range, and held for so many steps."""

NOISE = 0.05
"""Standard deviation of the angles and velocities that simulations start from."""

SIMULATIONS, EACH = 64, 4
"""Simulations that states are taken from, and states of each."""

TIMES = {"settled": (3.0, 0.25), "falling": (0.05, 0.05), "trained": (2.0, 0.25)}
"""Time until the first state of a simulation, and between its states [s]."""


ARMATURE = 0.01
"""Inertia of a servo's rotor at its joint [kg m^2], as of mjlab's robots."""


class Robot:
    """A model in MuJoCo, with its start, small random controls, and those of a trained policy."""

    def __init__(self, model: Mapping[str, Any]) -> None:
        """Compile the model, and pose it."""
        spec = (
            mujoco.MjSpec.from_file(model["path"])
            if "path" in model
            else mujoco.MjSpec.from_string(model["xml"])
        )
        if "gravity" in model:
            spec.option.gravity = model["gravity"]
        if model.get("floor"):
            spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 1])
        if "stiffness" in model:
            _add_servos(spec, model["stiffness"])
        self.model = spec.compile()
        self.data, self.start = mujoco.MjData(self.model), _posed(self.model, model)
        self.centre = np.zeros(self.model.nu)
        if "stiffness" in model:
            self.centre = self.start[self.model.jnt_qposadr[self.model.actuator_trnid[:, 0]]]
        if "key" in model:
            key = self.model.key(model["key"])
            self.start, self.centre = key.qpos, key.ctrl
        self.is_free = self.model.jnt_type[0] == mujoco.mjtJoint.mjJNT_FREE
        """True if its root is free, so that it can fall."""
        self.hidden = 2 if self.is_free else 1
        """Coordinates along the ground, the first ones, which policies do not see."""
        hinges = self.model.jnt_type == mujoco.mjtJoint.mjJNT_HINGE
        self.angles = self.model.jnt_qposadr[hinges]
        """Places of the hinges' angles among the coordinates."""
        self.policy = dict(np.load(model["policy"])) if "policy" in model else {}
        self.kinds = [kind for kind in TIMES if kind != "trained" or self.policy]
        """Kinds of its states; those of a policy only where there is one."""

    def states(self, kind: str, threads: int) -> np.ndarray:
        """Return states of `kind` for a batch, (SIMULATIONS * EACH, size of a state)."""
        first, later = (max(1, round(t / self.model.opt.timestep)) for t in TIMES[kind])
        rng = np.random.default_rng(0)
        state = np.stack([self._start(rng) for _ in range(SIMULATIONS)])
        data = [mujoco.MjData(self.model) for _ in range(threads)]
        found = []
        with rollout.Rollout(nthread=threads) as pool:
            for steps in (first, *[later] * (EACH - 1)):
                controls = self.controls(kind, rng, state, steps)
                state = pool.rollout(self.model, data, state, controls)[0][:, -1]
                found.append(state)
        return np.concatenate(found)

    def controls(
        self, kind: str, rng: np.random.Generator, states: np.ndarray, steps: int
    ) -> np.ndarray:
        """Return controls of steps from `states`, (batch, steps, nu): random, or the policy's."""
        if kind == "trained":
            return self._decided(states, steps)
        drawn = rng.uniform(-1, 1, (len(states), -(-steps // HELD), self.model.nu))
        wanted = self.control(drawn, SMALL)
        return np.repeat(wanted, HELD, axis=1)[:, :steps]

    def forward(self, state: np.ndarray) -> mujoco.MjData:
        """Return MuJoCo's data at a state."""
        mujoco.mj_setState(self.model, self.data, state, STATE)
        mujoco.mj_forward(self.model, self.data)
        return self.data

    def exactly(self, states: np.ndarray, controls: np.ndarray) -> np.ndarray:
        """Return the velocities after steps with a solver that converges, (batch, nv)."""
        model = copy.copy(self.model)
        model.opt.tolerance, model.opt.iterations, model.opt.ls_iterations = 1e-12, 200, 100
        model.opt.ccd_tolerance, model.opt.ccd_iterations = 1e-14, 1000
        model.opt.noslip_iterations = 0  # ours has none
        with rollout.Rollout(nthread=0) as pool:
            after = pool.rollout(model, mujoco.MjData(model), states, controls)[0][:, -1]
        return after[:, 1 + model.nq : 1 + model.nq + model.nv]

    def control(self, action: Any, share: float = 1.0) -> Any:
        """Return the controls of actions from -1 to 1, in numpy or jax.numpy, (..., nu).

        An action of 1 is `share` of half the range of a control above its centre.
        """
        limited = self.model.actuator_ctrllimited[:, None]
        low, high = np.where(limited, self.model.actuator_ctrlrange, (-1, 1)).T
        return (self.centre + share * (high - low) / 2 * action).clip(low, high)

    def _decided(self, states: np.ndarray, steps: int) -> np.ndarray:
        """Return the policy's controls, which are found by simulating them."""
        found = []
        with rollout.Rollout(nthread=0) as pool:
            for _ in range(-(-steps // HELD)):
                seen = states[:, 1 + self.hidden : 1 + self.model.nq + self.model.nv]
                held = self.control(act(self.policy, seen, np))
                found.append(np.repeat(held[:, None], HELD, axis=1))
                states = pool.rollout(self.model, self.data, states, found[-1])[0][:, -1]
        return np.concatenate(found, axis=1)[:, :steps]

    def _start(self, rng: np.random.Generator) -> np.ndarray:
        """Return the start with small random angles and velocities."""
        data = mujoco.MjData(self.model)
        data.qpos[:] = self.start
        data.qpos[self.angles] += NOISE * rng.normal(size=len(self.angles))
        data.qvel[:] = NOISE * rng.normal(size=self.model.nv)
        state = np.empty(mujoco.mj_stateSize(self.model, STATE))
        mujoco.mj_getState(self.model, data, state, STATE)
        return state


def _posed(robot: mujoco.MjModel, model: Mapping[str, Any]) -> np.ndarray:
    """Return the coordinates that a model starts from."""
    q = robot.qpos0.copy()
    for joint in map(robot.joint, range(robot.njnt)):
        if joint.type == mujoco.mjtJoint.mjJNT_FREE and "height" in model:
            q[joint.qposadr[0] + 2] = model["height"]
        for part, angle in model.get("angles", {}).items():
            if part in joint.name:
                q[joint.qposadr[0]] = angle
    return q


def _add_servos(spec: mujoco.MjSpec, stiffness: float) -> None:
    """Add a servo to every hinge of a model, with a twentieth of the stiffness as damping."""
    for joint in spec.joints:
        if joint.type == mujoco.mjtJoint.mjJNT_HINGE:
            joint.armature = ARMATURE
            servo = spec.add_actuator(trntype=mujoco.mjtTrn.mjTRN_JOINT, target=joint.name)
            servo.set_to_position(kp=stiffness, kv=stiffness / 20)
