"""The same physics on whatever devices JAX chose: one CPU, eight virtual ones, a GPU.

The report's header says which they were.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from brax import plugins
from brax.builder import ModelBuilder

BATCH = 64


@pytest.fixture(scope="module")
def swing():
    """Return a pendulum of 1 m beside a free ball, and the step of a batch, compiled once."""
    builder = ModelBuilder()
    builder.set_option(timestep=0.002)
    builder.add_body("bob", mass=1.0, inertia=(1e-6,) * 3, ipos=(0, 0, -1))
    builder.add_joint("bob", "hinge", axis=(0, 1, 0))
    builder.add_body("ball", mass=2.0, inertia=(0.1, 0.2, 0.3))
    builder.add_joint("ball", "free")
    system = builder.build()
    pipeline = plugins.get("pipeline", "spring")

    @jax.jit
    def run(q, qd):
        def one(q, qd):
            return pipeline.step(system, pipeline.init(system, q, qd), jnp.zeros(0), 250)

        state = jax.vmap(one)(q, qd)
        return state.q, state.qd

    return run


@pytest.fixture(scope="module")
def start():
    """Pendulums let go at small angles; balls thrown up and spinning."""
    angle = np.linspace(0.01, 0.05, BATCH)
    q, qd = np.zeros((BATCH, 8)), np.zeros((BATCH, 7))
    q[:, 0], q[:, 4] = angle, 1.0
    qd[:, 3], qd[:, 4:] = 2.0, [0.3, 2.0, -0.5]
    return jnp.asarray(q, jnp.float32), jnp.asarray(qd, jnp.float32)


def test_arrays_live_on_the_default_device(swing, start):
    q, _ = swing(*start)
    assert q.devices() == {jax.devices()[0]}


def test_closed_forms_hold_on_this_device(swing, start):
    """Half a second: a small pendulum is a cosine, a thrown ball falls freely."""
    q, qd = swing(*start)
    omega = math.sqrt(9.81)
    np.testing.assert_allclose(q[:, 0], start[0][:, 0] * math.cos(omega * 0.5), atol=3e-4)
    np.testing.assert_allclose(qd[:, 3], 2.0 - 9.81 * 0.5, rtol=1e-4)
    np.testing.assert_allclose(jnp.linalg.norm(q[:, 4:8], axis=1), 1.0, atol=1e-6)


def test_a_batch_spread_over_all_devices_gives_the_same(swing, start):
    mesh = jax.make_mesh((jax.device_count(),), ("env",))
    spread = jax.NamedSharding(mesh, jax.P("env"))
    alone = swing(*start)
    together = swing(*jax.device_put(start, spread))
    assert len(together[0].devices()) == jax.device_count()
    for a, b in zip(alone, together, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
