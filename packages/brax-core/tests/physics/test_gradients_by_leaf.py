"""Derivatives by every number of a model: T77.

The foot touches, slips and has been pushed past its hinge's limit, so that every number counts;
nothing of it is at a kink. `positional` has the derivative of the solution, which is that of the
program where the sweeps converge. Here that takes many of them, and the contact and the limit one
after the other: together they hold the foot so that thousands would not suffice.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from physics_lab import FAST_COMPILE

from brax.builder import ModelBuilder
from brax.generalized.pipeline import GENERALIZED
from brax.positional.pipeline import POSITIONAL
from brax.spring.pipeline import SPRING

PIPELINES = [
    pytest.param(SPRING, id="spring"),
    pytest.param(POSITIONAL, id="positional", marks=pytest.mark.long),
    pytest.param(GENERALIZED, id="generalized"),
]


@functools.lru_cache
def foot():
    """Return a body on a slide and a hinge with a capsule for a foot, which touches the floor."""
    model = ModelBuilder()
    model.add_body("leg", mass=1.2, inertia=(0.1, 0.12, 0.09), ipos=(0.02, 0, -0.1))
    model.add_joint("leg", "slide", axis=(0.2, 0, 1), damping=0.1)
    model.add_joint(
        "leg", "hinge", "hip", axis=(0, 1, 0.1), range=(-0.3, 0.3), pos=(0.01, 0, 0.02),
        damping=0.2, stiffness=0.7, springref=0.1, armature=0.03,
    )  # fmt: skip
    model.add_actuator("hip", gear=2.0)
    surface: dict[str, Any] = dict(friction=(0.3, 0, 0), solref=(0.02, 0.8), elasticity=0.2)
    # A pair has the larger friction: of two equal ones it would have two derivatives.
    model.add_geom(type="plane", size=(0, 0, 1), **surface | dict(friction=(0.25, 0, 0)))
    model.add_geom("leg", "capsule", pos=(0.05, 0, -0.4), size=(0.1, 0.2), **surface)
    model.set_option(timestep=0.004, cone="elliptic", iterations=30, ls_iterations=20)
    return model.build()


def starts(pipeline):
    """Return models with coordinates, rates and controls, in which every number counts."""
    sys = foot()
    if pipeline is not POSITIONAL:
        return [(sys, *state(0.671, 0.31))]
    sys = sys.replace(opt=sys.opt.replace(sweeps=200))
    return [(sys, *state(0.671, 0.2)), (sys, *state(1.2, 0.31))]


def state(slide, hinge):
    """Return coordinates, rates and controls; the limit is at .3, and above 1 m nothing touches."""
    return jnp.array([slide, hinge]), jnp.array([-0.4, 0.9]), jnp.array([0.6])


def after(pipeline, inputs):
    sys, q, qd, act = inputs
    state = pipeline.step(sys, pipeline.init(sys, q, qd), act, 2)
    return jnp.concatenate([state.q, state.qd, state.x.pos.ravel(), state.xd.vel.ravel()])


@functools.partial(jax.jit, static_argnames="pipeline", compiler_options=FAST_COMPILE)
def forward(pipeline, inputs, move):
    return jax.jvp(functools.partial(after, pipeline), (inputs,), (move,))


@functools.partial(jax.jit, static_argnames="pipeline", compiler_options=FAST_COMPILE)
def reverse(pipeline, inputs, weights):
    return jax.vjp(functools.partial(after, pipeline), inputs)[1](weights)[0]


def shifted(inputs, move, h):
    return jax.tree.map(lambda x, t: x + h * t, inputs, move)


def difference(pipeline, inputs, move, h):
    """Return the central difference along a move."""
    ends = [forward(pipeline, shifted(inputs, move, s * h), move)[0] for s in (1, -1)]
    return (ends[0] - ends[1]) / (2 * h)


COUNT = {
    "opt.timestep", "opt.gravity", "link.inertia.mass", "link.inertia.moments",
    "link.inertia.transform.pos", "joint.pos", "joint.axis", "dof.armature", "dof.damping",
    "dof.stiffness", "dof.springref", "dof.limit", "geom.size", "geom.friction",
    "geom.transform.pos", "actuator.gear",
}  # fmt: skip
"""Leaves by which the derivative is not zero."""


@pytest.mark.slow
@pytest.mark.parametrize("pipeline", PIPELINES)
def test_derivatives_by_every_number(f64, pipeline):
    # T77
    worst: dict[Any, Any] = {}
    dead = set(COUNT)
    for inputs in starts(pipeline):
        errors, counting = errors_by_leaf(pipeline, inputs)
        worst |= {k: max(v, worst.get(k, 0.0)) for k, v in errors.items()}
        dead -= counting
    assert max(worst.values()) < 1e-6, {k: v for k, v in worst.items() if v > 1e-6}
    assert not dead


def errors_by_leaf(pipeline, inputs):
    """Return the relative error of the derivative by each leaf, and those by which it is not 0."""
    inputs = jax.tree.map(lambda x: jnp.asarray(x, float), inputs)
    paths = [jax.tree_util.keystr(p, simple=True, separator=".") for p, _ in
             jax.tree_util.tree_leaves_with_path(inputs)]  # fmt: skip
    flat, structure = jax.tree.flatten(inputs)
    rng = np.random.default_rng(0)
    weights = jnp.asarray(rng.normal(size=forward(pipeline, inputs, inputs)[0].shape))
    slopes = jax.tree.leaves(reverse(pipeline, inputs, weights))
    errors, counting = {}, set()
    for i, (path, leaf) in enumerate(zip(paths, flat, strict=True)):
        unit = [jnp.zeros_like(x) for x in flat]
        unit[i] = jnp.asarray(rng.uniform(-1, 1, leaf.shape)) * jnp.maximum(jnp.abs(leaf), 1e-2)
        unit[i] = jnp.where(jnp.isfinite(leaf), unit[i], 0.0)
        unit = jax.tree.unflatten(structure, unit)
        moved = forward(pipeline, inputs, unit)[1]
        # Rates that come of places over the step are rounded to 1e-14; this makes it 1e-10.
        near, far = (difference(pipeline, inputs, unit, h) for h in (1e-4, 2e-4))
        want = (4 * near - far) / 3  # Richardson's extrapolation: of fourth order
        scale = max(1e-3, float(jnp.abs(want).max()))
        errors[path] = float(jnp.abs(moved - want).max()) / scale
        forth, back = float(weights @ moved), float(jnp.vdot(slopes[i], jax.tree.leaves(unit)[i]))
        assert back == pytest.approx(forth, rel=1e-9, abs=1e-9 * scale), path
        if jnp.abs(moved).max() > 0:
            counting |= {c for c in COUNT if path.removeprefix("0.").startswith(c)}
    return errors, counting
