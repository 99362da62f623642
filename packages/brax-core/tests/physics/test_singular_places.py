"""Derivatives where directions are nobody's: T83, a step of every pipeline.

Whatever has no direction (a rotation by no angle, a normal between centres that coincide) has some
finite derivative, and so has everything else in the model.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from physics_lab import FAST_COMPILE, PIPELINES

from brax import plugins
from brax.builder import ModelBuilder

pytestmark = pytest.mark.slow


def touching(*shapes):
    """Free bodies, each a shape at a place, that touch one another alone."""
    model = ModelBuilder()
    for i, (kind, size, pos) in enumerate(shapes):
        model.add_body(f"body{i}", pos=pos, mass=1.0, inertia=(0.01, 0.01, 0.01))
        model.add_joint(f"body{i}", "free")
        model.add_geom(f"body{i}", kind, size=size, elasticity=0.5)
    return model


def centres():
    """Two balls in one place: no normal."""
    return touching(("sphere", (0.1,), (0, 0, 0)), ("sphere", (0.1,), (0, 0, 0)))


def lines():
    """Two capsules side by side: no nearest points."""
    size = (0.1, 0.3)
    return touching(("capsule", size, (0, 0, 0)), ("capsule", size, (0.19, 0, 0)))


def faces():
    """Two boxes face to face, edges on edges."""
    size = (0.1, 0.1, 0.1)
    return touching(("box", size, (0, 0, 0)), ("box", size, (0, 0, 0.199)))


def joints():
    """Return a ball joint at zero rotation, with range and spring, and hinges in gimbal lock."""
    model = ModelBuilder()
    model.add_body("ball", mass=1.0, inertia=(0.1, 0.1, 0.1), ipos=(0, 0, -0.2))
    model.add_joint("ball", "ball", range=(0, 0.5), stiffness=0.9)
    model.add_body("top", mass=1.0, inertia=(0.1, 0.12, 0.14), ipos=(0, 0, -0.3))
    for axis in np.eye(3):
        model.add_joint("top", "hinge", axis=tuple(axis), armature=0.01, range=(-2, 2))
    return model


CASES = {"centres": centres, "lines": lines, "joints": joints, "faces": faces}
LOCKED = np.array([1.0, 0, 0, 0, 0, np.pi / 2, 0])


@functools.partial(jax.jit, static_argnames="pipeline", compiler_options=FAST_COMPILE)
def slopes(pipeline, sys, q, qd):
    """Return derivatives of all outputs of a step by all of its inputs."""

    def total(sys, q, qd):
        state = pipeline.step(sys, pipeline.init(sys, q, qd), jnp.zeros(0))
        return sum(jnp.sum(x) for x in jax.tree.leaves((state.q, state.qd, state.x, state.xd)))

    return jax.grad(total, argnums=(0, 1, 2))(sys, q, qd)


def check(pipeline, name):
    sys = CASES[name]().build()
    q = jnp.asarray(LOCKED, float) if name == "joints" else sys.init_q
    found = slopes(plugins.get("pipeline", pipeline), sys, q, jnp.zeros(sys.qd_size()))
    for path, slope in jax.tree_util.tree_leaves_with_path(found):
        assert np.isfinite(slope).all(), jax.tree_util.keystr(path)
    assert any(np.abs(x).max() > 0 for x in jax.tree.leaves(found))


ONE = "centres"
"""Each case compiles for half a minute."""
HERE = [pytest.param(p, marks=[pytest.mark.long] * (p == "generalized")) for p in PIPELINES]
EACH = [pytest.param(n, marks=[] if n == ONE else [pytest.mark.long]) for n in CASES]


@pytest.mark.parametrize("name", EACH)
@pytest.mark.parametrize("pipeline", HERE)
def test_derivatives_are_finite(f64, pipeline, name):
    # T83
    check(pipeline, name)


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("pipeline", PIPELINES)
def test_derivatives_are_finite_in_single_precision(pipeline, name):
    check(pipeline, name)
