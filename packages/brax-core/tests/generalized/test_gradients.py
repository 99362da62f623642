"""Derivatives of a step, contacts included, against finite differences; and transformations."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from generalized_lab import both, random_tree
from physics_lab import FAST_COMPILE, ball_on_plane, chain, settings
from test_equality import MODELS as EQUALITIES

from brax.generalized.pipeline import GENERALIZED


def outcome(sys, inputs):
    q, qd, act, dt, mass = inputs
    sys = sys.replace(opt_timestep=dt, body_mass=mass)
    after = GENERALIZED.step(sys, GENERALIZED.init(sys, q, qd), act)
    return jnp.concatenate([after.q, after.qd])


compiled = functools.partial(jax.jit, compiler_options=FAST_COMPILE)
step = compiled(outcome)
forward = compiled(lambda sys, x, t: jax.jvp(lambda x: outcome(sys, x), (x,), (t,)))
reverse = compiled(lambda sys, x, c: jax.vjp(lambda x: outcome(sys, x), x)[1](c)[0])


def compare(sys, inputs, seed, h=1e-6):
    """Departures of forward mode from differences, and of reverse from forward mode."""
    rng = np.random.default_rng(seed)
    tangent = jax.tree.map(lambda x: jnp.asarray(rng.normal(size=x.shape)) * 0.1, inputs)
    # The world's mass is nothing.
    tangent = (*tangent[:-1], tangent[-1].at[0].set(0.0))
    tangent = (*tangent[:3], tangent[3] * 1e-3, tangent[4])

    def along(s):
        """Return the outcome some way along a tangent, and its derivative along it."""
        return forward(sys, jax.tree.map(lambda x, t: x + s * t, inputs, tangent), tangent)

    (ahead, _), (behind, _), (_, out) = along(h), along(-h), along(0.0)
    c = jnp.asarray(rng.normal(size=out.shape))
    back = reverse(sys, inputs, c)
    pairing = sum(jnp.vdot(a, b) for a, b in zip(back, tangent, strict=True))
    scale = jnp.abs(out).max()
    return jnp.abs((ahead - behind) / (2 * h) - out).max() / scale, abs(
        pairing - out @ c
    ) / jnp.abs(out * c).sum()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["chain", pytest.param("tree", marks=pytest.mark.long)])
def test_a_smooth_step_has_the_derivatives_of_differences(name):
    """T77, with respect to coordinates, rates, controls, time step and masses."""
    sys = chain(actuated=True, stiffness=2.0, damping=0.3)
    if name == "tree":
        sys = both(random_tree(5, 3)).sys
    for seed in range(5):
        rng = np.random.default_rng(seed)
        q, qd, act = (
            jnp.asarray(rng.normal(size=n)) for n in (sys.q_size(), sys.qd_size(), sys.act_size())
        )
        inputs = (q, qd, act, jnp.array(0.004), sys.body_mass)
        differences, modes = compare(sys, inputs, seed)
        assert differences < 1e-6 and modes < 1e-10


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("name", ["joints", "weld", "tendons", "rolling, elliptic"])
def test_a_step_with_equalities_has_the_derivatives_of_differences(name):
    """Links and tendons under equalities, and a ball that rolls with friction; at the solution."""
    sys = both(EQUALITIES[name]).sys
    sys = sys.replace(opt=sys.opt.replace(iterations=20))
    for seed in range(3):
        rng = np.random.default_rng(seed)
        q = sys.init_q + 0.02 * rng.normal(size=sys.q_size())
        if name.startswith("rolling"):
            q = q.at[jnp.array([2, 9, 16])].set(jnp.array([0.098, 0.048, 0.098]))
        rates = jnp.asarray(0.3 * rng.normal(size=sys.qd_size()))
        inputs = (q, rates, jnp.zeros(0), jnp.array(0.002), sys.body_mass)
        differences, modes = compare(sys, inputs, seed)
        assert differences < 1e-6 and modes < 1e-10


def balls():
    sys = settings(ball_on_plane(mass=1.0, radius=0.1), dt=0.004)
    return sys.replace(opt=sys.opt.replace(cone="elliptic", iterations=20))


@pytest.mark.slow
def test_a_step_with_contact_has_the_derivatives_of_differences():
    """Pressed into the floor, sliding and spinning: implicit differentiation at the solution."""
    sys = balls()
    for seed in range(5):
        rng = np.random.default_rng(seed)
        q = sys.init_q.at[2].add(-0.002) + jnp.concatenate([jnp.zeros(3), rng.normal(size=4)])
        inputs = (q, jnp.asarray(rng.normal(size=6)), jnp.zeros(0), jnp.array(0.004), sys.body_mass)
        differences, modes = compare(sys, inputs, seed)
        assert differences < 1e-6 and modes < 1e-10


@jax.jit
def ten_steps(sys, start, weights):
    """Return a sum of the state after ten steps, and its derivative by the first state."""

    def total(start):
        state = GENERALIZED.init(sys, start[:7], start[7:])
        step = jax.checkpoint(lambda s, _: (GENERALIZED.step(sys, s, jnp.zeros(0)), None))
        state = jax.lax.scan(step, state, None, length=10)[0]
        return weights @ jnp.concatenate([state.q, state.qd])

    return jax.vmap(jax.value_and_grad(total))(start)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("iterations", [1, 4, 100])
def test_derivatives_through_ten_steps_of_contact(iterations):
    """T84: of fifty states the median is within a twentieth of differences, whatever the solver."""
    sys = balls()
    sys = sys.replace(opt=sys.opt.replace(iterations=iterations))
    rng = np.random.default_rng(0)
    start = np.tile(np.concatenate([sys.init_q, np.zeros(6)]), (50, 1))
    start[:, 2] -= rng.uniform(0.001, 0.003, size=50)
    start[:, 3:7] = rng.normal(size=(50, 4))
    start[:, 3:7] /= np.linalg.norm(start[:, 3:7], axis=1, keepdims=True)
    start[:, 7:] = 0.3 * rng.normal(size=(50, 6))
    unit, weights = rng.normal(size=start.shape), jnp.asarray(rng.normal(size=13))
    _, slopes = ten_steps(sys, start, weights)
    assert np.isfinite(slopes).all()
    up, down = (ten_steps(sys, start + s * 1e-6 * unit, weights)[0] for s in (1, -1))
    want, found = (up - down) / 2e-6, (slopes * unit).sum(axis=1)
    error = np.abs(found - want) / np.abs(want)
    # With 4 steps 6e-11, 95th percentile 3e-8
    assert np.median(error) < 0.05


@pytest.mark.slow
@pytest.mark.parametrize("iterations", [1, 5])
def test_derivatives_are_finite_at_rest(iterations):
    """T83: nothing moves, the ball touches with its lowest point, or is far above the floor."""
    sys = balls()
    sys = sys.replace(opt=sys.opt.replace(iterations=iterations))
    inputs = (sys.init_q, jnp.zeros(6), jnp.zeros(0), jnp.array(0.004), sys.body_mass)
    for depth in (0.0, 1e-3, -1e-3, -1.0):
        at = (sys.init_q.at[2].add(-depth), *inputs[1:])
        back = reverse(sys, at, jnp.ones(13))
        assert all(np.isfinite(x).all() for x in jax.tree.leaves(back))


@pytest.mark.slow
def test_rest_depth_follows_gravity():
    """T78: the depth is g (1 - d) / stiffness, so its slope is (1 - d) / stiffness."""
    sys = balls().replace(
        geom_solref=jnp.full((2, 2), -100.0).at[:, 1].set(-20.0),
        geom_solimp=jnp.tile(jnp.array([0.9, 0.9, 0.001, 0.5, 2.0]), (2, 1)),
    )

    def depth(g):
        heavy = sys.replace(opt_gravity=jnp.array([0.0, 0.0, -1.0]) * g)
        start = GENERALIZED.init(heavy, sys.init_q, jnp.zeros(6))

        def one(state, _):
            return GENERALIZED.step(heavy, state, jnp.zeros(0)), None

        state = jax.lax.scan(jax.checkpoint(one), start, None, length=1500)[0]
        return 0.1 - state.q[2]

    slope = compiled(jax.grad(depth))(9.81)
    np.testing.assert_allclose(slope, 0.1 / 100.0, rtol=1e-4)


@pytest.mark.slow
def test_frames_batches_and_bad_neighbours():
    """Two frames are two steps; a batch is its members; one that is not a number stays alone."""
    sys = balls()
    q = jnp.stack([sys.init_q, sys.init_q.at[2].add(-1e-3), sys.init_q.at[0].set(jnp.nan)])
    qd = jnp.tile(jnp.array([1.0, 0, -1, 0, 2, 3]), (3, 1))

    start = jax.vmap(lambda q, qd: GENERALIZED.init(sys, q, qd))(q, qd)
    one = compiled(lambda state: GENERALIZED.step(sys, state, jnp.zeros(0)))
    many = compiled(jax.vmap(lambda state: GENERALIZED.step(sys, state, jnp.zeros(0), 2)))
    together = many(start)
    for i in range(2):
        alone = one(one(jax.tree.map(lambda x, i=i: x[i], start)))
        for a, b in zip(jax.tree.leaves(alone), jax.tree.leaves(together), strict=True):
            np.testing.assert_allclose(a, b[i], rtol=1e-12, atol=1e-12)
    assert np.isnan(together.q[2]).any()


@pytest.mark.slow
def test_derivatives_agree_eagerly_and_in_single_precision():
    with jax.enable_x64(False):
        sys = balls()
        inputs = (sys.init_q, jnp.ones(6), jnp.zeros(0), jnp.array(0.004), sys.body_mass)
        assert step(sys, inputs).dtype == jnp.float32
        single = reverse(sys, inputs, jnp.ones(13))
    with jax.enable_x64(True):
        sys = balls()
        inputs = (sys.init_q, jnp.ones(6), jnp.zeros(0), jnp.array(0.004), sys.body_mass)
        double = reverse(sys, inputs, jnp.ones(13))
    for a, b in zip(single, double, strict=True):
        np.testing.assert_allclose(a, b, rtol=3e-3, atol=3e-3)
