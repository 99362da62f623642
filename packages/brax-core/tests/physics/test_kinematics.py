"""Frames from coordinates and back: T33, closed forms, and velocities by differences."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from physics_lab import record, settings

from brax import math
from brax.builder import ModelBuilder
from brax.kinematics import forward, inverse

TURN = (0.8, 0.0, 0.6, 0.0)


@functools.lru_cache
def arm(double):
    """Return a free base, a link with three hinges, and one with a slide and a hinge."""
    model = ModelBuilder()
    model.add_body("base", mass=2.0, inertia=(0.1, 0.1, 0.1))
    model.add_joint("base", "free")
    model.add_body("ball", "base", (0.3, 0, 0.1), TURN, mass=1.0, inertia=(0.05, 0.05, 0.05))
    for axis in np.eye(3):
        model.add_joint("ball", "hinge", pos=(0, 0.1, 0), axis=axis)
    model.add_body("tool", "ball", (0, 0, 0.5), mass=0.5, inertia=(0.02, 0.02, 0.02))
    model.add_joint("tool", "slide", pos=(0, 0, 0.2), axis=(0, 0.6, 0.8))
    model.add_joint("tool", "hinge", pos=(0, 0.2, 0), axis=(1, 0, 0))
    model.set_option(timestep=0.001, gravity=(0, 0, 0))
    return model.build()


frames = jax.jit(forward)


def turned(axis, angle):
    """Matrix of a rotation, by Rodrigues' formula."""
    a = np.array(axis)
    k = np.array([[0, -a[2], a[1]], [a[2], 0, -a[0]], [-a[1], a[0], 0]])
    return np.eye(3) + np.sin(angle) * k + (1 - np.cos(angle)) * k @ k


def matrix(quat):
    w, v = quat[0], np.array(quat[1:])
    return (
        turned(v / np.linalg.norm(v), 2 * np.arctan2(np.linalg.norm(v), w)) if w < 1 else np.eye(3)
    )


Q = np.array([0.1, -0.2, 0.3, 0.8, 0.0, 0.0, 0.6, 0.4, -0.9, 1.3, 0.25, 0.7])
QD = np.array([0.5, -1.0, 0.3, 0.7, -0.2, 1.1, 0.9, -0.4, 0.6, 0.8, -1.2])


def expected(q):
    """Return the frames by matrices, joint by joint."""
    pos, rot = np.array(q[:3]), matrix(q[3:7])
    out = [(pos, rot)]
    pos, rot = pos + rot @ [0.3, 0, 0.1], rot @ matrix(TURN)
    for axis, angle in zip(np.eye(3), q[7:10], strict=True):
        anchor = np.array([0, 0.1, 0])
        pos = pos + rot @ (anchor - turned(axis, angle) @ anchor)
        rot = rot @ turned(axis, angle)
    out.append((pos, rot))
    pos = pos + rot @ [0, 0, 0.5] + rot @ np.array([0, 0.6, 0.8]) * q[10]
    anchor, r = np.array([0, 0.2, 0]), turned((1, 0, 0), q[11])
    out.append((pos + rot @ (anchor - r @ anchor), rot @ r))
    return out


def test_frames_are_products_of_the_joints(bound_slow):
    sys = arm(bound_slow(True, False))
    x, _ = frames(sys, jnp.array(Q), jnp.zeros(11))
    for i, (pos, rot) in enumerate(expected(Q)):
        np.testing.assert_allclose(x.pos[i], pos, atol=bound_slow(1e-14, 1e-6))
        np.testing.assert_allclose(math.quat_to_3x3(x.rot[i]), rot, atol=bound_slow(1e-14, 1e-6))


def moved(q, qd, h):
    """Coordinates after a short time: angular velocity of the free joint in body axes."""
    new = np.concatenate([q[:3] + h * qd[:3], q[3:7], q[7:] + h * qd[6:]])
    w = qd[3:6] * h
    angle = np.linalg.norm(w)
    turn = np.array([np.cos(angle / 2), *(np.sin(angle / 2) * w / angle)])
    new[3:7] = math.quat_mul(jnp.array(q[3:7]), jnp.array(turn))
    return new


def test_velocities_are_the_rates_of_the_frames(f64):
    sys, h = arm(True), 1e-6
    _, xd = frames(sys, jnp.array(Q), jnp.array(QD))
    ahead, behind = (frames(sys, jnp.array(moved(Q, QD, s * h)), jnp.zeros(11))[0] for s in (1, -1))
    np.testing.assert_allclose(xd.vel, (ahead.pos - behind.pos) / (2 * h), atol=1e-8)
    turn = math.quat_mul(ahead.rot, math.quat_inv(behind.rot))
    np.testing.assert_allclose(xd.ang, turn[:, 1:] / h, atol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize(
    "joints",
    [
        (0.4, -0.9, 1.3, 0.25, 0.7),
        (np.pi - 1e-3, 0.3, -np.pi + 1e-3, -0.4, np.pi - 1e-3),
        (0.2, np.pi / 2 - 0.05, -0.7, 0.1, -2.0),  # three hinges near gimbal lock
        (7.0, 0.5, -8.0, 0.0, 20.0),  # whole turns are kept
    ],
)
def test_coordinates_survive_a_step_at_rest(bound_slow, joints):
    # T33: q -> frames -> q, within the pipeline; nothing moves.
    q = np.array([0.1, -0.2, 0.3, 0.8, 0.0, 0.0, 0.6, *joints])
    motion = record(arm(bound_slow(True, False)), q=q, steps=5)
    np.testing.assert_allclose(motion.q[-1], q, atol=bound_slow(1e-9, 1e-4))


@pytest.mark.slow
def test_frames_and_coordinates_keep_together(f64):
    # A second of motion: the frames are those of the coordinates, but for the joints' give.
    motion = record(settings(arm(True), 0.001), q=Q, qd=0.5 * QD, steps=1000)
    x, _ = frames(arm(True), jnp.array(motion.q[-1]), jnp.zeros(11))
    np.testing.assert_allclose(motion.pos[-1], x.pos, atol=1e-5)
    np.testing.assert_allclose(
        motion.ang[-1],
        frames(arm(True), *map(jnp.array, (motion.q[-1], motion.qd[-1])))[1].ang,
        atol=1e-3,
    )


@functools.lru_cache
def gallery(double):
    """One tree with each kind of stack: ball, slides, hinges on slanted axes, with references."""
    del double  # one program for each precision
    model = ModelBuilder()

    def link(name, parent, *joints, **values):
        model.add_body(name, parent, (0.1, 0.2, 0.3), TURN, mass=1.0, inertia=(1, 1, 1))
        for kind, axis in joints:
            model.add_joint(name, kind, pos=(0.1, 0, -0.2), axis=axis, **values)

    link("base", "world", ("free", (0, 0, 1)))
    link("ball", "base", ("ball", (0, 0, 1)))
    link("door", "ball", ("hinge", (0, 0.6, 0.8)), ref=0.3)
    link("table", "base", ("slide", (1, 0, 0)), ("slide", (0, 1, 1)), ("hinge", (0, 0, 1)))
    link("wrist", "table", ("hinge", (1, 0, 0)), ("hinge", (0, 1, 0.2)), ref=-0.2)
    link("hip", "wrist", ("hinge", (1, 0, 0)), ("hinge", (0, 1, 0)), ("hinge", (0, 0.3, 1)))
    return model.build()


there_and_back = jax.jit(lambda sys, q, qd: inverse(sys, *forward(sys, q, qd)))


@pytest.mark.slow
@pytest.mark.parametrize("case", ["generic", "half a turn", "near gimbal lock"])
def test_coordinates_from_frames(bound_slow, case):
    # T33: q -> frames -> q. Generic: 2e-13 / 4e-5
    sys, rng = gallery(bound_slow(True, False)), np.random.default_rng(0)
    q, qd = rng.uniform(-1.2, 1.2, sys.q_size()), rng.normal(size=sys.qd_size())
    for start in (3, 7):
        q[start : start + 4] /= np.linalg.norm(q[start : start + 4])
        q[start : start + 4] *= np.sign(q[start])
    if case == "half a turn":
        q[11], q[14], q[15], q[17], q[19] = np.pi - 1e-3, 1e-3 - np.pi, 3.0, -np.pi + 1e-3, 3.0
    if case == "near gimbal lock":
        q[18] = np.pi / 2 - 0.05
    back = there_and_back(sys, jnp.array(q), jnp.array(qd))
    far = 10 if case == "near gimbal lock" else 1
    for start in (3, 7):  # a quaternion and its negative are the same
        sign = np.sign(back[0][start])
        back = (back[0].at[start : start + 4].multiply(sign), back[1])
    turns = np.round((np.asarray(back[0]) - q) / (2 * np.pi)) * 2 * np.pi
    np.testing.assert_allclose(back[0] - turns, q, atol=far * bound_slow(1e-9, 1e-4))
    np.testing.assert_allclose(back[1], qd, atol=far * bound_slow(1e-8, 1e-3))


@pytest.mark.parametrize("angle", [3.5, -3.5, 6.2, -3.1])
@pytest.mark.parametrize("sign", [1, -1])
def test_the_angle_of_a_planar_base_is_within_half_a_turn(f64, angle, sign):
    """A quaternion and its negative have the same angle."""
    model = ModelBuilder()
    model.add_body("base", mass=1.0, inertia=(1, 1, 1))
    for kind, axis in (("slide", (1, 0, 0)), ("slide", (0, 0, 1)), ("hinge", (0, 1, 0))):
        model.add_joint("base", kind, axis=axis)
    sys = model.build()
    x, xd = frames(sys, jnp.array([0.1, 0.2, angle]), jnp.zeros(3))
    q, _ = jax.jit(inverse)(sys, x.replace(rot=sign * x.rot), xd)
    want = np.arctan2(np.sin(angle), np.cos(angle))
    np.testing.assert_allclose(q, [0.1, 0.2, want], atol=1e-9)
