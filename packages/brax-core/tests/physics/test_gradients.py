"""Derivatives of a step against finite differences, in both modes: T77, T83.

Central differences err by about eps / h + h^2, some 1e-10 of the scale at h = 1e-6; the bound is
T77's 1e-6.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from physics_lab import PIPELINES, ball_on_plane, chain, free_body, rail

from brax import plugins
from brax.spring.pipeline import SPRING

MODELS = {
    "hinge": lambda: chain(1, 0.02, actuated=True, armature=0.05, damping=0.2, stiffness=0.4),
    "free-box": free_body,
    "hinge-chain": lambda: chain(2, 0.02, actuated=True, armature=0.05, damping=0.2, stiffness=0.4),
}


@functools.lru_cache
def problem(name):
    """Return the model, and derivatives of a step of it in both modes; compiled once."""
    sys = MODELS[name]()

    def after(q, qd, act, mass, dt):
        new = sys.tree_replace({"link.inertia.mass": mass, "opt.timestep": dt})
        state = SPRING.step(new, SPRING.init(new, q, qd), act)
        return jnp.concatenate([state.q, state.qd, state.x.pos.ravel()])

    def pull(args, weights):
        out, back = jax.vjp(after, *args)
        return out, back(weights)

    def push(args, tangents):
        return jax.jvp(after, args, tangents)

    return sys, jax.jit(pull), jax.jit(push)


def state_of(sys, seed):
    """Return a generic state near the model's rest, and a direction in which to move it."""
    rng = np.random.default_rng(seed)

    def normal(like, scale=1.0):
        return jnp.asarray(scale * rng.standard_normal(np.shape(like)))

    base = (
        sys.init_q,
        jnp.zeros(sys.qd_size()),
        jnp.zeros(sys.act_size()),
        sys.link.inertia.mass,
        sys.opt.timestep,
    )
    noise = (0.01, 0.3, 0.5, 0.0, 0.0)
    args = tuple(x + normal(x, s) for x, s in zip(base, noise, strict=True))
    unit = jax.tree.map(normal, args)
    return args, (*unit[:4], unit[4] * 1e-2), normal


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_derivatives_agree_with_finite_differences(f64, name):
    # T77
    # 4e-11 for the box, 9e-11 for a chain
    for seed in range(3):
        sys, pull, push = problem(name)
        check_derivatives(sys, pull, push, seed)


def check_derivatives(sys, pull, push, seed):
    """Both modes against central differences, in one direction at a generic state."""
    args, unit, normal = state_of(sys, seed)
    out, moved = push(args, unit)

    h = 1e-6
    ends = [
        push(jax.tree.map(lambda x, t, s=s: x + s * h * t, args, unit), unit)[0] for s in (1, -1)
    ]
    differences = (ends[0] - ends[1]) / (2 * h)
    scale = np.abs(differences).max()
    np.testing.assert_allclose(moved, differences, rtol=0, atol=1e-6 * scale)

    weights = normal(out)
    _, slopes = pull(args, weights)
    forward = float(weights @ moved)
    reverse = sum(float(jnp.vdot(s, t)) for s, t in zip(slopes, unit, strict=True))
    assert reverse == pytest.approx(forward, rel=1e-10, abs=1e-10 * scale)


@pytest.mark.slow
def test_the_time_step_and_the_mass_matter(f64):
    # T77
    # The directions above would hide an argument whose derivative were lost.
    sys, pull, _ = problem("hinge")
    args, _, _ = state_of(sys, 0)
    _, slopes = pull(args, jnp.ones(sys.q_size() + sys.qd_size() + 3 * sys.num_links()))
    for slope in slopes:
        assert (np.abs(slope) > 1e-8).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["hinge", "free-box"])
def test_derivatives_in_single_precision(name):
    # T77
    with jax.enable_x64(True):
        sys, _, push = problem(name)
        args, unit, normal = state_of(sys, 0)
        out, want = push(args, unit)
        weights = normal(out)
    _, pull, push = problem.__wrapped__(name)
    narrow = jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), (args, unit, weights))
    _, moved = push(*narrow[:2])
    scale = np.abs(want).max()
    np.testing.assert_allclose(moved, want, rtol=0, atol=3e-3 * scale)
    _, slopes = pull(narrow[0], narrow[2])
    reverse = sum(float(jnp.vdot(s, t)) for s, t in zip(slopes, narrow[1], strict=True))
    size = float(np.abs(weights) @ np.abs(want))
    assert reverse == pytest.approx(float(np.vdot(weights, want)), abs=3e-3 * size)


def gradient_of_a_step(sys, q, qd):
    """Return derivatives of everything after a step by everything before it."""

    def total(sys, q, qd, act):
        state = SPRING.step(sys, SPRING.init(sys, q, qd), act)
        return sum(jnp.sum(x) for x in jax.tree.leaves((state.q, state.qd, state.x, state.xd)))

    return jax.jit(jax.grad(total, argnums=(0, 1, 2, 3)))(sys, q, qd, jnp.zeros(sys.act_size()))


def finite(tree):
    return all(np.isfinite(x).all() for x in jax.tree.leaves(tree))


@pytest.mark.slow
def test_gradient_is_finite_at_rest_on_the_floor(f64):
    # T83: friction at zero velocity.
    sys = ball_on_plane()
    assert finite(gradient_of_a_step(sys, sys.init_q, jnp.zeros(6)))


@pytest.mark.slow
def test_gradient_is_finite_at_rest_in_a_chain(f64):
    # T83: no rotation between the links, no rates.
    sys = chain(2, 0.02)
    assert finite(gradient_of_a_step(sys, jnp.zeros(2), jnp.zeros(2)))


@pytest.mark.slow
def test_gradient_is_finite_on_an_unlimited_slide(f64):
    # Bounds of infinity, and a joint that rests at zero.
    sys = rail(actuators=[{}])
    assert finite(gradient_of_a_step(sys, jnp.zeros(1), jnp.zeros(1)))


@pytest.mark.slow
@pytest.mark.parametrize("name", PIPELINES)
def test_both_modes_agree_over_a_loop_by_every_number_of_a_model(f64, name):
    """Cotangents of a model have empty arrays, which a kernel may not write to."""
    pipeline, sys = plugins.get("pipeline", name), chain(2, 0.02, armature=0.05, damping=0.2)
    floats, structure = jax.tree.flatten(sys)
    moving = [i for i, x in enumerate(floats) if jnp.issubdtype(jnp.result_type(x), jnp.floating)]

    def end(q, numbers):
        leaves = dict(enumerate(floats)) | dict(zip(moving, numbers, strict=True))
        new = jax.tree.unflatten(structure, list(leaves.values()))
        state = pipeline.init(new, q, jnp.full(2, 0.5))
        steps = jnp.arange(12)
        step = lambda s, _: (pipeline.step(new, s, jnp.zeros(new.act_size())), None)  # noqa: E731
        state, _ = jax.lax.scan(step, state, steps)
        return jnp.sum(state.q) + 0.3 * jnp.sum(state.qd**2)

    given = jnp.array([0.4, -0.3]), [jnp.asarray(floats[i]) for i in moving]
    back = jax.jit(jax.grad(end, (0, 1)))(*given)[0]
    forth = jax.jit(jax.jacfwd(end))(*given)
    np.testing.assert_allclose(back, forth, rtol=1e-10)
