"""Our side of `models`: physics steps of `generalized`, without anything around them."""

import json
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.stages import Compiled
from physics import Physics
from states import HELD
from worker import serve

from brax import plugins
from brax.base import State
from brax.io import mjcf

sys.path.append(str(Path(__file__).parents[1] / "docs"))
import mujoco_steps

COMPARED = 64
"""States from which steps are compared with MuJoCo's."""

CLOSE, NEAR = 1e-3, 1e-2
"""Errors of velocities in single precision that half of the states and nine of ten may have, as a
share of the largest change, or of what gravity changes if that is more."""


class Bench(Physics):
    """Batches that one compiled program steps."""

    def __init__(
        self, model: Mapping[str, Any], batches: Sequence[int], seconds: float, threads: int
    ) -> None:
        super().__init__(model, batches, seconds, threads)
        start = time.perf_counter()
        plain = "path" in model and "floor" not in model
        self.sys = (
            mjcf.load(model["path"], allow_external_assets=True)
            if plain
            else mjcf.load_model(self.robot.model)
        )
        self.load = time.perf_counter() - start
        self.engine = plugins.get("pipeline", "generalized")
        self.calls: dict[tuple[str, int, int], tuple[Compiled, State, jax.Array]] = {}
        self.last: dict[str, State] = {}
        self.random = np.random.default_rng(1)

    def describe(self) -> dict[str, Any]:
        """Return a description of this side."""
        return {"device": "cpu cpu", "load": self.load}

    def compile(self) -> dict[str, float]:
        """Seconds of tracing and of compiling the steps of the smallest batch."""
        begin, cores = time.perf_counter(), time.process_time()
        arguments = self._arguments(self.robot.kinds[0], self.batches[0], HELD)
        middle = time.perf_counter()
        lowered = jax.jit(self.rollout).lower(*arguments)
        traced = time.perf_counter()
        lowered.compile()
        return {
            "trace": traced - middle,
            "compile": time.perf_counter() - traced,
            "start": middle - begin,
            "cores": time.process_time() - cores,
        }

    def rollout(self, state: State, controls: jax.Array) -> State:
        """Return the states after steps with controls (calls, batch, nu)."""
        step = jax.vmap(lambda s, u: self.engine.step(self.sys, s, u, HELD))
        return jax.lax.scan(lambda s, u: (step(s, u), None), state, controls)[0]

    def advance(self, kind: str, batch: int, length: int) -> None:
        """Simulate in one call of the compiled program."""
        if (kind, batch, length) not in self.calls:
            state, controls = self._arguments(kind, batch, length)
            program = jax.jit(self.rollout).lower(state, controls).compile()
            self.calls[kind, batch, length] = program, state, controls
        program, *arguments = self.calls[kind, batch, length]
        self.last[kind] = jax.block_until_ready(program(*arguments))

    def check(self) -> dict[str, Any]:
        """Return what is wrong with the last steps, and how far some are from MuJoCo's."""
        problems, errors = [], {}
        for kind, state in self.last.items():
            if not (np.isfinite(state.q).all() and np.isfinite(state.qd).all()):
                problems.append(f"{kind} states are not finite")
            if state.overflow is not None and (left := int((np.asarray(state.overflow) > 0).sum())):
                problems.append(f"{left} {kind} states have more contacts than were followed")
            of = f"{HELD} steps"
            start, controls = self._arguments(kind, COMPARED, HELD)
            end = jax.jit(self.rollout)(start, controls)
            half, most = np.quantile(self._errors(kind, start, controls, end), (0.5, 0.9))
            if (half > CLOSE or most > NEAR) and self.sys.collisions:
                # The two may choose other points of the same two faces. Where both have the same
                # contacts, their motion must agree.
                of = "a step with our contacts"
                half, most = np.quantile(
                    self._errors_with_our_contacts(end, controls[-1]), (0.5, 0.9)
                )
            errors[kind] = of, float(half), float(most)
            if half > CLOSE or most > NEAR:
                problems.append(
                    f"{kind} states: {of} is off by {half:.2g} (median) and {most:.2g} (nine of "
                    "ten) of the largest change of a velocity"
                )
        return {"problems": problems, "errors": errors}

    def _arguments(self, kind: str, batch: int, length: int) -> tuple[State, jax.Array]:
        """Return the states and controls of a call."""
        init = jax.jit(jax.vmap(lambda q, qd: self.engine.init(self.sys, q, qd)))
        start = self.start(kind, batch)
        _, q, qd, activation = self._parts(start)
        state = init(jnp.asarray(q), jnp.asarray(qd))
        if activation.size:
            state = state.replace(activation=jnp.asarray(activation))
        return state, self._controls(kind, start, length)

    def _parts(self, states: np.ndarray) -> list[np.ndarray]:
        """Split MuJoCo's states into time, coordinates, velocities and activations."""
        robot = self.robot.model
        return np.split(states, np.cumsum([1, robot.nq, robot.nv]), axis=1)

    def _controls(self, kind: str, start: np.ndarray, length: int) -> jax.Array:
        """Return the controls of a call, (calls of the step, batch, nu)."""
        controls = self.robot.controls(kind, self.random, start, length)[:, ::HELD]
        return jnp.asarray(np.swapaxes(controls, 0, 1))

    def _errors(self, kind: str, start: State, controls: jax.Array, end: State) -> np.ndarray:
        """Return how far `HELD` steps from `start` to `end` are from MuJoCo's; see `CLOSE`."""
        held = np.repeat(np.swapaxes(np.asarray(controls), 0, 1), HELD, axis=1)
        theirs = self.robot.exactly(self.start(kind, COMPARED), held)
        return self._off(np.asarray(start.qd), np.asarray(end.qd), theirs, HELD)

    def _errors_with_our_contacts(self, state: State, controls: jax.Array) -> np.ndarray:
        """Return how far a step is from one of MuJoCo's that has our contacts; see `CLOSE`."""
        step = jax.vmap(lambda s, u: self.engine.step(self.sys, s, u))
        ours = np.asarray(jax.jit(step)(state, controls).qd)
        activation = state.activation if self.robot.model.na else np.zeros((COMPARED, 0))
        before = mujoco_steps.Before(
            *(np.asarray(x, float) for x in (state.q, state.qd, activation, controls))
        )
        model = mujoco_steps.exact(self.robot.model)
        found = mujoco_steps.contacts_at(self.sys, model, before)
        theirs, _ = mujoco_steps.with_contacts(self.sys, model, before, found)
        return self._off(before.qd, ours, theirs, 1)

    def _off(
        self, before: np.ndarray, ours: np.ndarray, theirs: np.ndarray, steps: int
    ) -> np.ndarray:
        """Return the errors of velocities after steps, relative to their changes."""
        # At rest nothing changes, though the floor undoes what gravity does.
        fall = np.linalg.norm(self.robot.model.opt.gravity) * self.robot.model.opt.timestep * steps
        change = np.maximum(np.abs(theirs - before).max(axis=1), fall)
        return np.abs(ours - theirs).max(axis=1) / change


if __name__ == "__main__":
    serve(Bench(**json.loads(sys.argv[2])))
