"""One side of a comparison: a process that compiles and runs one brax, asked in lines of JSON.

It runs under our brax and under Google's, so it uses only what both have.
"""

import json
import os
import sys
import time
from functools import cached_property

import jax
import numpy as np
from momentum import momenta

from brax import envs
from brax.envs.wrappers.training import wrap

FLYING, HEIGHT, FLIGHT_STEPS = 16, 100.0, 20
"""How many ants fly free, from how high [m], for how many environment steps."""


class Bench:
    """A rollout of a batch of environments under random actions, without resets."""

    def __init__(self, environment, backend, loop, batch, length):
        self.env = envs.get_environment(environment, backend=backend)
        self.batch, self.length = batch, length
        if loop == "training":
            wrapped = wrap(self.env, episode_length=1_000_000)
            self.reset, self.step = wrapped.reset, wrapped.step
        else:
            self.reset, self.step = jax.vmap(self.env.reset), jax.vmap(self.env.step)
        self.seed = 0

    def describe(self):
        """What this side is."""
        device = jax.devices()[0]
        return {"jax": jax.__version__, "device": f"{device.platform} {device.device_kind}"}

    def compile(self):
        """Seconds of tracing and of compiling the rollout, and of the first reset."""
        start = time.perf_counter()
        jax.block_until_ready(self.start)
        reset = time.perf_counter()
        lowered = jax.jit(self.rollout).lower(self.start, jax.random.PRNGKey(0))
        traced = time.perf_counter()
        self.compiled = lowered.compile()
        done = time.perf_counter()
        return {"trace": traced - reset, "compile": done - traced, "reset": reset - start}

    def run(self):
        """Seconds of one rollout, by the clock and of all cores."""
        self.seed += 1
        key = jax.random.PRNGKey(self.seed)
        wall, cores = time.perf_counter(), time.process_time()
        self.last = jax.block_until_ready(self.compiled(self.start, key))
        return {"seconds": time.perf_counter() - wall, "cores": time.process_time() - cores}

    def check(self):
        """What the last rollout ended in."""
        leaves = jax.tree_util.tree_leaves_with_path(self.last)
        numbers = {jax.tree_util.keystr(path): np.asarray(leaf) for path, leaf in leaves}
        floats = {k: v for k, v in numbers.items() if np.issubdtype(v.dtype, np.floating)}
        heights = np.asarray(self.last.pipeline_state.x.pos[:, 0, 2], float)
        return {
            "not_finite": [k for k, v in floats.items() if not np.isfinite(v).all()],
            "heights": heights.tolist(),
        }

    def flight(self):
        """Linear and angular momentum of ants that are thrown high, where nothing touches them."""
        state = jax.vmap(self.env.reset)(jax.random.split(jax.random.PRNGKey(1), FLYING))
        physics = state.pipeline_state
        high = jax.vmap(self.env.pipeline_init)(physics.q.at[:, 2].set(HEIGHT), physics.qd)

        def step(physics, key):
            action = jax.random.uniform(key, (FLYING, self.env.action_size), minval=-1, maxval=1)
            return jax.vmap(self.env.pipeline_step)(physics, action), (physics.x, physics.xd)

        keys = jax.random.split(jax.random.PRNGKey(2), FLIGHT_STEPS)
        x, xd = jax.jit(lambda p: jax.lax.scan(step, p, keys))(high)[1]
        inertia = self.env.sys.link.inertia
        linear, angular = momenta(inertia, x, xd)
        weight = np.sum(inertia.mass) * np.asarray(self.env.sys.opt.gravity, float)
        return {
            "dt": float(self.env.dt),
            "weight": weight.tolist(),
            "linear": linear.tolist(),
            "angular": angular.tolist(),
        }

    def rollout(self, state, key):
        """The state after `length` steps."""

        def step(state, key):
            shape = (self.batch, self.env.action_size)
            return self.step(state, jax.random.uniform(key, shape, minval=-1, maxval=1)), None

        return jax.lax.scan(step, state, jax.random.split(key, self.length))[0]

    @cached_property
    def start(self):
        """The batch after reset."""
        return jax.jit(self.reset)(jax.random.split(jax.random.PRNGKey(0), self.batch))


def main():
    """Answers each request, the name of a method, with a line of JSON."""
    replies = os.fdopen(int(sys.argv[1]), "w")
    bench = Bench(**json.loads(sys.argv[2]))
    for line in sys.stdin:
        print(json.dumps(getattr(bench, line.strip())()), file=replies, flush=True)


if __name__ == "__main__":
    main()
