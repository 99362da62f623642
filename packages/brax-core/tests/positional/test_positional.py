"""Tests of the positional pipeline beside the shared answers: T08, T18, T59, T69, T70, T83.

Where a bound has a comment, the number in it is the residual that was measured.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from physics_lab import (
    BOX,
    G,
    ball_on_plane,
    box_on_plane,
    chain,
    free_body,
    pendulum,
    record,
    settings,
)
from test_free_body import momentum

from brax.integrators.variational import VARIATIONAL
from brax.positional.pipeline import POSITIONAL


@pytest.mark.parametrize("dt", [0.01, 0.001])
def test_tumbling_box_keeps_its_angular_momentum(bound, dt):
    # T08
    sys = settings(free_body(), dt, (0, 0, 0))
    L = momentum(record(sys, qd=[0, 0, 0, 1, 2, 3], steps=round(2 / dt)))
    drift = np.linalg.norm(L - np.array(BOX) * (1, 2, 3), axis=-1).max() / np.linalg.norm(L[0])
    assert drift < bound(1e-10, 1e-5)


@pytest.mark.slow
def test_the_floor_bears_a_box_at_rest(f64):
    # T58: no acceleration is left of m g, and no penetration beyond rounding.
    motion = record(settings(box_on_plane(1.0), 1e-3), steps=300)
    assert np.abs(np.diff(motion.qd[-100:], axis=0)).max() < 1e-4 * G * 1e-3
    assert motion.q[-1, 2] == pytest.approx(0.05, abs=1e-6)


def test_what_had_sunk_in_comes_out_without_flying_off(f64):
    # Half of a box under the floor: the position is mended, the velocity is not changed by it.
    motion = record(settings(box_on_plane(1.0), 1e-3), q=[0, 0, 0.03, 1, 0, 0, 0], steps=100)
    assert motion.q[-1, 2] == pytest.approx(0.05, abs=1e-4)
    assert motion.q[:, 2].max() < 0.0501


def test_a_hinge_without_limits_stays_on_its_axis(f64):
    # DEFECTS 6.1.3: pulled sideways by gravity across its axis.
    sys = settings(pendulum(moment=0.01), 0.01, (0, 5.0, -5.0))
    motion = record(sys, q=[0.5], qd=[3.0], steps=200)
    assert np.abs(motion.rot[:, 0, [1, 3]]).max() < 1e-3  # rotation about y alone
    assert np.abs(motion.qd).max() > 1


@pytest.mark.slow
def test_coordinates_are_those_of_the_frames(f64):
    # Two hinges that turn more than once round: q and x tell the same, by forward kinematics.
    sys = settings(chain(2, 0.02), 0.005)
    state = POSITIONAL.init(sys, jnp.array([1.0, 2.0]), jnp.array([12.0, -3.0]))
    step = jax.jit(lambda s: POSITIONAL.step(sys, s, jnp.zeros(0), 200))
    state = step(state)
    there = POSITIONAL.init(sys, state.q, state.qd)
    assert np.abs(state.q).max() > 2 * np.pi
    np.testing.assert_allclose(there.x.pos, state.x.pos, atol=2e-3)  # 8e-4
    same = np.sum(np.asarray(there.x.rot) * np.asarray(state.x.rot), axis=-1)
    np.testing.assert_allclose(np.abs(same), 1.0, atol=1e-5)


def step_of(sys):
    def one(q, qd):
        state = POSITIONAL.step(sys, POSITIONAL.init(sys, q, qd), jnp.zeros(sys.act_size()))
        return jnp.concatenate([state.q, state.qd])

    return one


@pytest.mark.slow
def test_a_batch_steps_as_its_members_and_only_the_broken_one_breaks(f64):
    # T69
    sys = ball_on_plane()
    rng = np.random.default_rng(0)
    q = jnp.asarray(np.asarray(sys.init_q) + 0.02 * rng.standard_normal((7, 7)))
    qd = jnp.asarray(rng.standard_normal((7, 6)))
    batch, single = jax.jit(jax.vmap(step_of(sys))), jax.jit(step_of(sys))
    whole = np.asarray(batch(q, qd))
    alone = np.stack([single(*pair) for pair in zip(q, qd, strict=True)])
    size = np.finfo(float).eps * np.maximum(1.0, np.abs(alone))
    assert np.max(np.abs(whole - alone) / size) <= 8
    broken = np.asarray(batch(q, qd.at[3].set(np.nan)))
    others = np.arange(7) != 3
    np.testing.assert_array_equal(broken[others], whole[others])


@pytest.mark.slow
def test_one_call_is_as_many_steps(f64):
    # T70
    sys = settings(chain(2, 0.02), 0.01)
    once = record(sys, q=[0.3, -0.2], qd=[0.5, 1.0], steps=1, n_frames=20)
    steps = record(sys, q=[0.3, -0.2], qd=[0.5, 1.0], steps=20)
    np.testing.assert_allclose(once.q[-1], steps.q[-1], atol=1e-5)


@pytest.mark.slow
def test_gradient_is_finite_at_rest_on_the_floor(f64):
    # T83: friction at zero velocity, no rotation, the contact just closed.
    sys = ball_on_plane()

    def total(sys, q, qd):
        state = POSITIONAL.step(sys, POSITIONAL.init(sys, q, qd), jnp.zeros(0))
        return sum(jnp.sum(x) for x in jax.tree.leaves((state.q, state.qd, state.x, state.xd)))

    slopes = jax.jit(jax.grad(total, argnums=(0, 1, 2)))(sys, sys.init_q, jnp.zeros(6))
    assert all(np.isfinite(x).all() for x in jax.tree.leaves(slopes))


@pytest.mark.slow
def test_the_gradient_of_a_bounce_is_right(f64):
    # T79: a ball at 1 m falls at 2 m/s for a second, in 480 steps, without gravity, e = 1: the
    # height at the end changes by -1 with the height, by -1 s with the speed. Exact to rounding,
    # since what is left of the step after the impact is thrown back.
    sys = ball_on_plane(mass=1.0, radius=0.1, friction=0.0, elasticity=1.0)
    sys = settings(sys, 1 / 480, (0, 0, 0))

    def end(height, speed):
        q = jnp.array([0, 0, 1.0, 1.0, 0, 0, 0]).at[2].set(height)
        state = POSITIONAL.init(sys, q, jnp.zeros(6).at[2].set(speed))
        return jax.lax.fori_loop(
            0, 480, lambda _, s: POSITIONAL.step(sys, s, jnp.zeros(0)), state
        ).q[2]

    slope = jax.jit(jax.jacfwd(end, argnums=(0, 1)))(1.0, -2.0)
    np.testing.assert_allclose(slope, (-1.0, -1.0), rtol=2e-2)


@pytest.mark.slow
def test_an_integrator_of_second_order_converges_faster(f64):
    # T65: half a drift, a kick, half a drift quarters the error with every halving of the step.
    sys = settings(pendulum(moment=0.1), 0.01).replace(integrator=VARIATIONAL)
    ends = [
        record(settings(sys, dt), q=[1.5], steps=round(0.64 / dt)).q[-1, 0]
        for dt in (0.01, 0.005, 0.0025, 0.00125)
    ]
    steps = np.abs(np.diff(ends))
    assert np.log2(steps[:-1] / steps[1:]) == pytest.approx(2.0, abs=0.1)


def double_pendulum(moment, angles, seconds, n=10_000):
    """Lagrange's equations of two rods with masses of one at their ends, by RK4."""

    def rate(y):
        (a, b), (u, v) = y
        c, s = np.cos(a - b), np.sin(a - b)
        mass = np.array([[2 + moment, c], [c, 1 + moment]])
        force = [-s * v * v - 2 * G * np.sin(a), s * u * u - G * np.sin(b)]
        return np.array([[u, v], np.linalg.solve(mass, force)])

    y, h = np.array([angles, (0.0, 0.0)]), seconds / n
    for _ in range(n):
        k1 = rate(y)
        k2 = rate(y + h / 2 * k1)
        k3 = rate(y + h / 2 * k2)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + rate(y + h * k3))
    return y[0]


@pytest.mark.slow
def test_a_double_pendulum_follows_lagranges_equations(f64):
    # T18: one second from 1 and 1.5 rad; 2e-2 at dt 5e-4, and the error is of first order.
    want = double_pendulum(0.022, (1.0, 1.5), 1.0)
    errors = []
    for n in (1000, 2000):
        motion = record(settings(chain(2, 0.02), 1 / n), q=[1.0, 0.5], steps=n, every=n // 100)
        errors.append(np.abs(np.cumsum(motion.q[-1]) - want).max())
    assert errors[1] < 2e-2
    assert errors[0] / errors[1] == pytest.approx(2.0, abs=0.2)


def derivatives(sys):
    """Return a step as a function of state, control, masses and time step, and its tangent."""

    def after(q, qd, act, mass, dt):
        new = sys.tree_replace({"link.inertia.mass": mass, "opt.timestep": dt})
        state = POSITIONAL.step(new, POSITIONAL.init(new, q, qd), act)
        return jnp.concatenate([state.q, state.qd, state.x.pos.ravel()])

    return after


MODELS = {
    "hinge": lambda: chain(1, 0.02, actuated=True, armature=0.05, damping=0.2, stiffness=0.4),
    "chain": lambda: chain(2, 0.02, actuated=True, armature=0.05, damping=0.2, stiffness=0.4),
    "free": free_body,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_derivatives_agree_with_finite_differences(f64, name):
    # T77, in both modes, by state, control, mass and time step.
    sys = MODELS[name]()
    after = derivatives(sys)
    push = jax.jit(lambda args, unit: jax.jvp(after, args, unit))
    pull = jax.jit(lambda args, weights: jax.vjp(after, *args)[1](weights))
    rng = np.random.default_rng(1)
    sizes = (sys.q_size(), sys.qd_size(), sys.act_size(), sys.num_links())
    q, qd, act = (jnp.asarray(rng.standard_normal(n)) for n in sizes[:3])
    args = (sys.init_q + 0.1 * q, 0.3 * qd, 0.5 * act, sys.link.inertia.mass, jnp.asarray(0.01))
    unit = (*(jnp.asarray(rng.standard_normal(n)) for n in sizes), jnp.asarray(0.01))
    out, moved = push(args, unit)
    h = 1e-6
    ends = [
        push(jax.tree.map(lambda x, t, s=s: x + s * h * t, args, unit), unit)[0] for s in (1, -1)
    ]
    want = (ends[0] - ends[1]) / (2 * h)
    np.testing.assert_allclose(moved, want, rtol=0, atol=1e-6 * np.abs(want).max())
    weights = jnp.asarray(rng.standard_normal(out.shape))
    reverse = sum(float(jnp.vdot(s, t)) for s, t in zip(pull(args, weights), unit, strict=True))
    assert reverse == pytest.approx(float(weights @ moved), rel=1e-10)
