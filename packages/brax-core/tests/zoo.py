"""Ordinary programs of other people, to be compiled with and without brax in the process.

    python zoo.py FILE [brax] [mjx]

FILE gets the results, as numpy's `.npz`. With `brax` it is imported first and steps a model, so
that everything that it does to JAX is done. `mjx` adds MuJoCo's step in JAX.
"""

import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

KEY = jax.random.PRNGKey(0)


def normal(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def replay_buffer():
    """Rows of different shapes are written at one place, and some are drawn."""
    table = [jnp.zeros(50), jnp.zeros(50), jnp.zeros((50, 3))]
    rows = [jnp.float32(1.5), jnp.float32(2.5), jnp.ones(3)]

    def add_and_draw(table, rows, i, key):
        table = [t.at[i].set(r) for t, r in zip(table, rows, strict=True)]
        drawn = jax.random.randint(key, (8,), 0, 50)
        return table, [jnp.take(t, drawn, axis=0) for t in table]

    one = jax.jit(add_and_draw)(table, rows, 7, KEY)
    batch = [jnp.broadcast_to(r, (4, *r.shape)) for r in rows]

    def add_batch(table, batch, i):
        place = (i + jnp.arange(4)) % 50
        return [t.at[place].set(r) for t, r in zip(table, batch, strict=True)]

    def circular(carry, _):
        table, i = carry
        table = [
            jax.lax.dynamic_update_slice_in_dim(t, r, i, 0)
            for t, r in zip(table, batch, strict=True)
        ]
        return (table, (i + 4) % 48), None

    many = jax.jit(jax.vmap(add_batch, (None, None, 0)))(table, batch, jnp.arange(3))
    return one, many, jax.jit(lambda c: jax.lax.scan(circular, c, length=20)[0])((table, 0))


def population():
    """Train a population of networks, whose best replace its worst."""
    import optax

    optimizer = optax.adam(1e-2)
    params = {"w": normal(4, 3, 8), "b": normal(4, 8), "v": normal(4, 8, 1)}
    x, y = normal(16, 3, seed=1), normal(16, 1, seed=2)

    def loss(p):
        return jnp.mean((jnp.tanh(x @ p["w"] + p["b"]) @ p["v"] - y) ** 2)

    def update(p, state):
        value, grads = jax.value_and_grad(loss)(p)
        updates, state = optimizer.update(grads, state)
        return optax.apply_updates(p, updates), state, value

    def generation(p, state):
        p, state, value = jax.vmap(update)(p, state)
        order = jnp.argsort(value)
        parents = jnp.concatenate([order[:2], order[:2]])
        return jax.tree.map(lambda leaf: leaf[parents], (p, state)), value

    return jax.jit(generation)(params, jax.vmap(optimizer.init)(params))


def scatters():
    """Scatters, gathers and sums by segment."""

    @jax.jit
    def run(x, i):
        added = jnp.zeros((5, 3)).at[i].add(x)
        largest = jnp.full((5, 3), -9.0).at[i].max(x)
        sums = jax.ops.segment_sum(x, i, 5)
        mean = sums / jnp.maximum(jax.ops.segment_sum(jnp.ones(len(i)), i, 5), 1)[:, None]
        return added, largest, mean[i] - x, jnp.take_along_axis(x, i[:, None] % 3, 1)

    return run(normal(12, 3), jnp.array([0, 1, 2, 3, 4, 4, 3, 2, 1, 0, 0, 2]))


def sorts():
    """Sorts, ranks, the largest, quantiles and a permutation."""

    @jax.jit
    def run(x):
        ranks = jnp.argsort(jnp.argsort(x, axis=1), axis=1)
        found = jnp.searchsorted(jnp.sort(x[0]), x[1])
        shuffled = jax.random.permutation(KEY, x, axis=1)
        return jnp.sort(x), ranks, jax.lax.top_k(x, 3), jnp.median(x, axis=1), found, shuffled

    return run(normal(6, 20))


def transforms():
    """Compute a Fourier transform and convolutions, with a gradient."""

    @jax.jit
    def run(signal, image, kernel):
        def loss(kernel):
            out = jax.lax.conv_general_dilated(image, kernel, (2, 2), "SAME")
            return jnp.sum(jax.nn.relu(out) ** 2)

        spectrum = jnp.abs(jnp.fft.rfft(signal))
        smooth = jnp.fft.irfft(jnp.fft.rfft(signal) * (jnp.arange(17) < 5), 32)
        return spectrum, smooth, jax.grad(loss)(kernel)

    return run(normal(2, 32), normal(2, 3, 16, 16), normal(4, 3, 3, 3))


def factorizations():
    """Decompositions of matrices, alone and in a batch, and a solve with its gradient."""

    @jax.jit
    def run(a, b):
        spd = a @ a.mT + 3 * jnp.eye(5)
        values, vectors = jnp.linalg.eigh(spd)
        grads = jax.grad(lambda m: jnp.sum(jnp.linalg.solve(m, b)))(spd)
        lu, pivots, _ = jax.lax.linalg.lu(a)
        again = (vectors * values[:, None]) @ vectors.mT
        return jnp.linalg.cholesky(spd), lu, pivots, values, again, grads

    return run(normal(3, 5, 5), normal(3, 5, 2, seed=1))


def recurrences():
    """Loops: returns by time, an associative scan, an iteration until it converges."""

    @jax.jit
    def run(rewards, done):
        def back(value, inputs):
            reward, end = inputs
            value = reward + 0.9 * (1 - end) * value
            return value, value

        returns = jax.lax.scan(back, jnp.zeros(4), (rewards, done), reverse=True)[1]
        sums = jax.lax.associative_scan(jnp.maximum, rewards)

        def newton(x):
            return 0.5 * (x + 2.0 / x)

        roots = jax.lax.while_loop(
            lambda x: jnp.any(jnp.abs(x * x - 2) > 1e-5), newton, jnp.abs(rewards[0]) + 1
        )
        picked = jax.lax.switch(done[0, 0].astype(int), [jnp.sin, jnp.cos], rewards)
        return returns, sums, roots, picked, jnp.cumsum(rewards, 0), jnp.diff(rewards, axis=0)

    return run(normal(30, 4), (normal(30, 4, seed=1) > 1).astype(np.float32))


def module():
    """Compute the gradient of a Flax network with attention and normalization."""
    from flax import linen

    class Net(linen.Module):
        @linen.compact
        def __call__(self, x):
            x = linen.LayerNorm()(linen.swish(linen.Dense(8)(x)))
            x = x + linen.MultiHeadDotProductAttention(num_heads=2)(x, x)
            return linen.Dense(1)(x)

    net: Any = Net()
    x = normal(4, 6, 5)
    params = net.init(KEY, x)
    return jax.jit(jax.grad(lambda p: jnp.mean(net.apply(p, x) ** 2)))(params)


def mjx():
    """MuJoCo's engine in JAX: a ball and a pendulum over a floor, in a batch."""
    import mujoco
    from mujoco import mjx

    model = mujoco.MjModel.from_xml_string(
        """<mujoco><option iterations="2" ls_iterations="4"/><worldbody>
        <geom type="plane" size="5 5 .1"/>
        <body pos="0 0 .09"><freejoint/><geom size=".1"/></body>
        <body pos="1 0 1"><joint axis="0 1 0"/>
        <geom type="capsule" size=".05" fromto="0 0 0 0 0 -.5"/></body>
        </worldbody></mujoco>"""
    )
    theirs = mjx.put_model(model)
    data = mjx.make_data(theirs)

    def step(velocity):
        after = mjx.step(theirs, data.replace(qvel=velocity))
        return after.qpos, after.qvel

    return jax.jit(jax.vmap(step))(normal(3, model.nv))


PROGRAMS = (
    *(replay_buffer, population, scatters, sorts, transforms, factorizations, recurrences),
    module,
)


def step_a_pendulum():
    """Import brax and have it step a model, which registers its kernels."""
    from brax import plugins
    from brax.builder import ModelBuilder

    made = ModelBuilder()
    made.add_body("arm", mass=1.0, inertia=(1, 1, 1))
    made.add_joint("arm", "hinge", axis=(0, 1, 0))
    sys = made.build()
    engine = plugins.get("pipeline", "spring")

    def step(q):
        return engine.step(sys, engine.init(sys, q, q), jnp.zeros(0)).q

    jax.block_until_ready(jax.jit(jax.vmap(step))(jnp.zeros((64, 1))))


def main(path, *options):
    if "brax" in options:
        step_a_pendulum()
    programs = (mjx,) if "mjx" in options else PROGRAMS
    results: dict[str, Any] = {
        f"{program.__name__}{jax.tree_util.keystr(where)}": np.asarray(leaf)
        for program in programs
        for where, leaf in jax.tree_util.tree_leaves_with_path(program())
    }
    np.savez(path, **results)


if __name__ == "__main__":
    main(*sys.argv[1:])
