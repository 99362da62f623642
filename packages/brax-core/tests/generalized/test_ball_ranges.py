"""Ranges of ball joints: the whole angle, as MuJoCo's, at a step and over a swing."""

import functools

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from generalized_lab import both
from physics_lab import FAST_COMPILE

from brax.generalized.pipeline import GENERALIZED

ARM = """<mujoco><compiler angle="degree"/><option timestep=".002"/><worldbody>
<body><joint name="root" type="ball" range="0 40" limited="true" damping=".05"/>
<inertial pos=".1 .02 -.3" mass="1" diaginertia=".02 .03 .01"/>
<body pos="0 0 -.5"><joint type="slide" axis="1 0 0" range="-.1 .1" limited="true"/>
<joint name="wrist" type="ball" range="0 60" limited="true" margin=".1" armature=".002"
solreflimit=".03 .8" solimplimit=".8 .95 .05 .4 3"/>
<inertial pos="0 .1 -.2" quat=".9 .1 .2 .3" mass=".5" diaginertia=".01 .012 .008"/></body>
<body pos="0 .2 -.5"><joint type="ball"/><inertial pos="0 .1 0" mass=".2"
diaginertia=".01 .01 .01"/></body></body></worldbody></mujoco>"""
"""One ball with a range, one with a margin behind a slide, one without."""

BOB = """<mujoco><compiler angle="degree"/><worldbody><body><joint type="ball" range="0 40"
limited="true"/><inertial pos=".1 .02 -.3" mass="1" diaginertia=".02 .03 .01"/></body></worldbody>
</mujoco>"""


@functools.cache
def peer_of(xml):
    """Return the model, read twice, with a solver that converges."""
    peer = both(xml)
    sys = peer.sys
    return peer._replace(sys=sys.replace(opt=sys.opt.replace(iterations=15, ls_iterations=10)))


def stepped(sys, q, qd):
    state = GENERALIZED.step(sys, GENERALIZED.init(sys, q, qd), jnp.zeros(0))
    return state.q, state.qd


def with_limit(sys, upper, q, qd):
    """Return the rates after a step of a model with other limits."""
    return stepped(sys.tree_replace({"dof.limit": (sys.dof.limit[0], upper)}), q, qd)[1]


compiled = functools.partial(jax.jit, compiler_options=FAST_COMPILE)
step = compiled(stepped)
forward = compiled(lambda sys, args, unit: jax.jvp(lambda *x: with_limit(sys, *x), args, unit))
reverse = compiled(lambda sys, args, w: jax.vjp(lambda *x: with_limit(sys, *x), *args)[1](w))


def states(peer, n=40):
    """Coordinates and rates about the limits, and beyond them."""
    rng = np.random.default_rng(3)
    balls = np.array(peer.model.jnt_qposadr)[peer.model.jnt_type == mujoco.mjtJoint.mjJNT_BALL]
    for _ in range(n):
        q = 0.08 * rng.normal(size=peer.model.nq)
        for start in balls:
            angle, axis = rng.uniform(0.3, 3.0), rng.normal(size=3)
            sign = rng.choice([-1, 1])  # q and -q are one rotation
            turn = np.sin(angle / 2) * axis / np.linalg.norm(axis)
            q[start : start + 4] = sign * np.array([np.cos(angle / 2), *turn])
        yield q, rng.normal(size=peer.model.nv)


@pytest.mark.parametrize(
    ("xml", "counts"),
    [
        pytest.param(BOB, {0, 1}, id="one"),
        pytest.param(ARM, {1, 2, 3}, id="chain", marks=pytest.mark.slow),
    ],
)
def test_a_step_is_mujocos(xml, counts):
    """Limits that hold, that have a margin, and that are far; measured 2e-15 of the largest."""
    peer = peer_of(xml)
    seen = set()
    for q, qd in states(peer):
        peer.data.qpos[:], peer.data.qvel[:], peer.data.qacc_warmstart[:] = q, qd, 0
        mujoco.mj_step(peer.model, peer.data)
        seen.add(peer.data.nefc)
        wanted = peer.data.qvel.copy()
        found = step(peer.sys, q, qd)[1]
        np.testing.assert_allclose(found, wanted, atol=1e-9 * np.abs(wanted).max())
    assert counts <= seen


@pytest.mark.slow
def test_what_swings_through_no_angle_is_held_on_the_other_side():
    """Half a second of MuJoCo's motion; where the angle is zero its axis is nobody's."""
    peer = peer_of(ARM)
    data = peer.data
    q = np.array([np.cos(0.1), 0, np.sin(0.1), 0, 0, 1, 0, 0, 0, 1, 0, 0, 0])
    qd = np.zeros(peer.model.nv)
    qd[1] = -6.0
    data.qpos[:], data.qvel[:], data.qacc_warmstart[:] = q, qd, 0
    furthest = 0.0
    for _ in range(250):
        mujoco.mj_step(peer.model, data)
        q, qd = step(peer.sys, q, qd)
        furthest = min(furthest, data.qpos[2])
    assert furthest < -np.sin(np.radians(18))
    np.testing.assert_allclose(q, data.qpos, atol=1e-8)
    np.testing.assert_allclose(qd, data.qvel, atol=1e-7)


@pytest.mark.slow
def test_derivatives_of_a_limit_are_those_of_finite_differences():
    """By range, state and rates, where a limit holds; at no angle at all they are finite."""
    sys = both(BOB).sys
    angle, axis = np.radians(41), np.array([0.6, 0.0, 0.8])
    q = jnp.array([np.cos(angle / 2), *(np.sin(angle / 2) * axis)])
    args = sys.dof.limit[1], q, jnp.array([0.3, 0.2, 0.4])
    rng = np.random.default_rng(0)
    unit = tuple(jnp.array(rng.normal(size=x.shape)) for x in args)
    _, slope = forward(sys, args, unit)
    up, down = (
        forward(sys, tuple(a + s * 1e-6 * t for a, t in zip(args, unit, strict=True)), unit)[0]
        for s in (1, -1)
    )
    np.testing.assert_allclose(slope, (up - down) / 2e-6, atol=1e-6 * np.abs(slope).max())
    weights = jnp.arange(1.0, 1.0 + len(slope))
    back = reverse(sys, args, weights)
    both_ways = sum(float(jnp.vdot(a, b)) for a, b in zip(back, unit, strict=True))
    assert both_ways == pytest.approx(float(weights @ slope), rel=1e-10)
    assert np.abs(back[0]).max() > 0.1  # the limit holds
    still = reverse(sys, (args[0], sys.init_q, 0 * args[2]), weights)
    assert all(np.isfinite(x).all() for x in still)
