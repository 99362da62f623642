"""T50: boxes on one another stay where they are."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from physics_lab import FAST_COMPILE

from brax import plugins
from brax.builder import ModelBuilder

HALF, GAP = 0.05, 0.001


def tower(n):
    """Return a tower of wooden boxes, each dropped by a millimetre.

    Contact bits alternate, so that each box touches its neighbours only.
    """
    model, mass = ModelBuilder(), 1000 * (2 * HALF) ** 3
    model.set_option(timestep=0.002)
    model.add_geom("world", "plane", size=(5, 5, 1))
    for i in range(n):
        height = HALF + GAP + i * (2 * HALF + GAP)
        inertia = (mass * (2 * HALF) ** 2 / 6,) * 3
        model.add_body(f"box{i}", pos=(0, 0, height), mass=mass, inertia=inertia)
        model.add_joint(f"box{i}", "free")
        bits: dict[str, Any] = dict(contype=1 << (i % 2), conaffinity=1 | 1 << (i + 1) % 2)
        model.add_geom(f"box{i}", "box", size=(HALF,) * 3, **bits)
    return model.build()


@functools.partial(jax.jit, static_argnames="name", compiler_options=FAST_COMPILE)
def after(sys, name, steps):
    pipeline = plugins.get("pipeline", name)
    still = jnp.zeros(sys.qd_size())
    start = pipeline.init(sys, sys.init_q, still)
    return jax.lax.fori_loop(0, steps, lambda _, s: pipeline.step(sys, s, jnp.zeros(0)), start)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "n", "speed"),
    [
        ("spring", 3, 1e-3),
        ("positional", 3, 0.1),
        pytest.param("positional", 5, 0.1, marks=pytest.mark.long),
        ("generalized", 3, 1e-3),
        pytest.param("generalized", 20, 1e-3, marks=pytest.mark.long),
    ],
)
def test_a_tower_stands(f64, name, n, speed):
    """For three seconds: no box has moved sideways, turned, or sunk in by more than a tenth."""
    # T50
    end = after(tower(n), name, 1500)
    heights = HALF + 2 * HALF * np.arange(n)
    np.testing.assert_allclose(end.x.pos[:, 2], heights, atol=0.1 * HALF * n)
    np.testing.assert_allclose(end.x.pos[:, :2], 0, atol=0.1 * HALF)
    np.testing.assert_allclose(np.abs(end.x.rot[:, 0]), 1, atol=1e-3)
    assert np.abs(end.qd).max() < speed
