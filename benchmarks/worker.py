"""One side of a comparison: a process that compiles and runs one brax, asked in lines of JSON.

It runs under our brax and under Google's, so it uses only what both have.
"""

import json
import os
import sys
import time
from collections.abc import Mapping
from functools import cached_property
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec
from jax.stages import Compiled
from momentum import momenta

from brax.envs.base import PipelineEnv, State
from brax.envs.wrappers.training import wrap
from brax.io import mjcf

FLYING, HEIGHT, FLIGHT_STEPS = 16, 100.0, 20
"""Number of environments that fly freely, their height [m], and environment steps."""


class Task(PipelineEnv):
    """A model under motor controls, with a plain observation and reward."""

    def __init__(self, model: Mapping[str, Any], backend: str) -> None:
        sys = mjcf.load(model["path"]) if "path" in model else mjcf.loads(model["xml"])
        changes = {"opt.timestep": jnp.asarray(model["timestep"])}
        if model["gear"]:
            changes["actuator.gear"] = jnp.asarray(model["gear"])
        super().__init__(sys.tree_replace(changes), backend, n_frames=model["n_frames"])
        self.noise, self.hidden = model["noise"], model["hidden"]

    def reset(self, rng: jax.Array) -> State:
        key_q, key_qd = jax.random.split(rng)
        q = self.sys.init_q
        q = q + jax.random.uniform(key_q, q.shape, q.dtype, -self.noise, self.noise)
        qd = self.noise * jax.random.normal(key_qd, (self.sys.qd_size(),), q.dtype)
        physics = self.pipeline_init(q, qd)
        zero = jnp.zeros((), q.dtype)
        return State(physics, self.observe(physics), zero, zero, {}, {})

    def step(self, state: State, action: jax.Array) -> State:
        low, high = self.sys.actuator.ctrl_range.T
        physics = self.pipeline_step(state.pipeline_state, low + (action + 1) / 2 * (high - low))
        moved = physics.x.pos[0, 0] - state.pipeline_state.x.pos[0, 0]
        reward = moved / self.dt - 0.1 * jnp.sum(action**2)
        lost = ~jnp.isfinite(physics.x.pos[0, 2])
        return state.replace(
            pipeline_state=physics,
            obs=self.observe(physics),
            reward=reward.astype(state.reward.dtype),
            done=lost.astype(state.done.dtype),
        )

    def observe(self, physics: Any) -> jax.Array:
        return jnp.concatenate([physics.q[self.hidden :], physics.qd])


class Bench:
    """A rollout of a batch, without resets, under random actions or a trained policy."""

    def __init__(
        self,
        model: Mapping[str, Any],
        backend: str,
        batch: int,
        policy: str | None = None,
        wrapped: bool = False,
    ) -> None:
        self.model, self.env, self.batch = model, Task(model, backend), batch
        self.policy = policy and dict(np.load(policy))
        if wrapped:
            agents = wrap(self.env, episode_length=1_000_000)
            self.reset, self.step = agents.reset, agents.step
        else:
            self.reset, self.step = jax.vmap(self.env.reset), jax.vmap(self.env.step)
        self.seed = 0

    def describe(self) -> dict[str, Any]:
        """Return a description of this side."""
        device = jax.devices()[0]
        kind = f"{device.platform} {device.device_kind}"
        return {"jax": jax.__version__, "device": kind, "devices": jax.device_count()}

    def compile(self) -> dict[str, float]:
        """Seconds of tracing and of compiling the rollout, and of the first reset."""
        start = _now()
        jax.block_until_ready(self.start)
        reset = _now()
        lowered = jax.jit(self.rollout).lower(self.start, jax.random.PRNGKey(0), 1)
        traced = _now()
        self.compiled = lowered.compile()
        done = _now()
        return {
            "trace": traced[0] - reset[0],
            "compile": done[0] - traced[0],
            "reset": reset[0] - start[0],
            "cores": done[1] - reset[1],
        }

    def run(self, length: int) -> dict[str, float]:
        """Seconds of one rollout, by the clock and of all cores."""
        self.seed += 1
        key = jax.random.PRNGKey(self.seed)
        start = _now()
        self.last = jax.block_until_ready(self.compiled(self.start, key, length))
        done = _now()
        return {"seconds": done[0] - start[0], "cores": done[1] - start[1]}

    def check(self) -> dict[str, Any]:
        """Return the end of the last rollout."""
        leaves = jax.tree_util.tree_leaves_with_path(self.last)
        numbers = {jax.tree_util.keystr(path): np.asarray(leaf) for path, leaf in leaves}
        floats = {k: v for k, v in numbers.items() if np.issubdtype(v.dtype, np.floating)}
        moved = self.last.pipeline_state.x.pos - self.start.pipeline_state.x.pos
        left = getattr(self.last.pipeline_state, "overflow", None)
        return {
            "left_out": 0 if left is None else int(np.asarray(left > 0).sum()),
            "not_finite": [k for k, v in floats.items() if not np.isfinite(v).all()],
            "heights": np.asarray(self.last.pipeline_state.x.pos[:, 0, 2], float).tolist(),
            "forward": float(moved[:, 0, 0].mean()),
        }

    def flight(self) -> dict[str, Any]:
        """Momenta of some that are thrown high, where nothing touches them and no air damps."""
        still = {"vel_damping": jnp.zeros(()), "ang_damping": jnp.zeros(())}
        env = self.env.with_sys(self.env.sys.tree_replace(still))
        state = jax.vmap(env.reset)(jax.random.split(jax.random.PRNGKey(1), FLYING)).pipeline_state
        high = state.q.at[:, self.model["height"]].set(HEIGHT)
        state = jax.vmap(env.pipeline_init)(high, state.qd)
        low, high = env.sys.actuator.ctrl_range.T

        def step(state: Any, key: jax.Array) -> tuple[Any, tuple[Any, Any]]:
            action = jax.random.uniform(key, (FLYING, env.action_size), minval=low, maxval=high)
            return jax.vmap(env.pipeline_step)(state, action), (state.x, state.xd)

        keys = jax.random.split(jax.random.PRNGKey(2), FLIGHT_STEPS)
        x, xd = jax.jit(lambda s: jax.lax.scan(step, s, keys))(state)[1]
        inertia = env.sys.link.inertia
        linear, angular, turning = momenta(inertia, x, xd)
        weight = float(inertia.mass.sum()) * np.asarray(env.sys.opt.gravity, float)
        axes = [["xyz".index(c) for c in names] for names in self.model["conserved"]]
        return {
            "dt": float(env.dt),
            "weight": weight[axes[0]].tolist(),
            "linear": linear[..., axes[0]].tolist(),
            "angular": angular[..., axes[1]].tolist(),
            "turning": float(turning.max()),
        }

    def memory(self) -> dict[str, float]:
        """Bytes that a compiled environment step needs, and its state."""
        start = jax.eval_shape(self.reset, self._keys())
        action = jax.ShapeDtypeStruct((self.batch, self.env.action_size), float)
        return _bytes(jax.jit(self.step).lower(start, action).compile())

    def gradient(self, length: int, inner: int) -> dict[str, float]:
        """Reverse mode through a rollout: what it needs, and how far back it is finite.

        A rollout of a chaotic system has derivatives that grow backwards in time, out of range.

        Args:
            length: environment steps.
            inner: length of the pieces of which only the start is kept; each is run again, and
                keeps the start of its steps.
        """

        def reached(actions: jax.Array, state: State) -> jax.Array:
            def piece(state: State, actions: jax.Array) -> tuple[State, None]:
                return jax.lax.scan(one, state, actions)[0], None

            def one(state: State, action: jax.Array) -> tuple[State, None]:
                return jax.checkpoint(self.step)(state, action), None

            pieces = actions.reshape(length // inner, inner, *actions.shape[1:])
            last = jax.lax.scan(jax.checkpoint(piece), state, pieces)[0]
            return last.pipeline_state.x.pos[:, 0, 0].mean()

        shape = (length, self.batch, self.env.action_size)
        actions = 0.1 * jax.random.uniform(jax.random.PRNGKey(0), shape, minval=-1, maxval=1)
        start = _now()
        compiled = jax.jit(jax.grad(reached)).lower(actions, self.start).compile()
        middle = _now()
        found = jax.block_until_ready(compiled(actions, self.start))
        return _bytes(compiled) | {
            "compile": middle[0] - start[0],
            "seconds": _now()[0] - middle[0],
            "finite": _tail(np.isfinite(found).all((1, 2))),
        }

    def rollout(self, state: State, key: jax.Array, length: int) -> State:
        """Return the state after `length` steps."""

        def step(i: jax.Array, state: State) -> State:
            return self.step(state, self.act(state.obs, jax.random.fold_in(key, i)))

        return jax.lax.fori_loop(0, length, step, state)

    def act(self, obs: Any, key: jax.Array) -> Any:
        """Actions in [-1, 1]."""
        if not self.policy:
            shape = (self.batch, self.env.action_size)
            return jax.random.uniform(key, shape, obs.dtype, minval=-1, maxval=1)
        return act(self.policy, obs, jnp)

    @cached_property
    def start(self) -> State:
        """The batch after reset."""
        return jax.jit(self.reset)(self._keys())

    def _keys(self) -> jax.Array:
        """One key for each of the batch, which is split over all devices."""
        keys = jax.random.split(jax.random.PRNGKey(0), self.batch)
        if self.batch % jax.device_count():
            return keys
        mesh = jax.sharding.Mesh(jax.devices(), ("envs",))
        return jax.device_put(keys, NamedSharding(mesh, PartitionSpec("envs")))


def act(policy: Mapping[str, Any], obs: Any, xp: ModuleType) -> Any:
    """Return the mean action of a policy from `export_policy.py`, in jax.numpy or numpy."""
    hidden = (obs - policy["mean"]) / policy["std"]
    for i in range(last := int(policy["layers"]) - 1):
        hidden = xp.maximum(hidden @ policy[f"kernel_{i}"] + policy[f"bias_{i}"], 0)
    return xp.tanh(hidden @ policy[f"kernel_{last}"] + policy[f"bias_{last}"])


def _tail(good: np.ndarray) -> int:
    """Return how many of the last are good without a gap."""
    return int(np.cumprod(good[::-1]).sum())


def _bytes(compiled: Compiled) -> dict[str, float]:
    about = compiled.memory_analysis()
    names = {"temporary": "temp", "arguments": "argument", "results": "output"}
    return {name: getattr(about, f"{theirs}_size_in_bytes") for name, theirs in names.items()}


def _now() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


def serve(bench: object) -> None:
    """Answers each request, a method and its arguments, with a line of JSON."""
    replies = os.fdopen(int(sys.argv[1]), "w")
    for line in sys.stdin:
        method, arguments = json.loads(line)
        print(json.dumps(getattr(bench, method)(**arguments)), file=replies, flush=True)


if __name__ == "__main__":
    serve(Bench(**json.loads(sys.argv[2])))
