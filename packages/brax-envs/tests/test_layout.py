"""Observations of environments, part by part, against MuJoCo in the same state."""

from typing import Any

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from brax import envs
from brax.envs.observation import observe, slices
from brax.envs.task import ASSETS
from brax.errors import ConfigError


def runner(model, data):
    """Parts of a planar body: height or rise, pitch, angles, and velocities within 10."""
    rates = np.clip(data.qvel, -10, 10) if model.joint("rootz").qpos0 else data.qvel
    height = data.body("torso").xpos[2] - (0 if model.joint("rootz").qpos0 else 0.7)
    forward = data.body("torso").xmat.reshape(3, 3)[:, 0]
    pitch = np.arctan2(-forward[2], forward[0])
    return [[height], [pitch], data.qpos[3:], rates[:2], rates[2:3], rates[3:]]


def swimmer(model, data):
    forward = data.body("torso").xmat.reshape(3, 3)[:, 0]
    heading = np.arctan2(forward[1], forward[0])
    return [[heading], data.qpos[3:], data.qvel[:2], data.qvel[2:3], data.qvel[3:]]


def free_body(model, data):
    """Parts of a body whose root is free."""
    torso = data.body("torso")
    spin = torso.xmat.reshape(3, 3).T @ velocity(model, data, torso.id)[0]
    position = torso.xpos[2:], torso.xquat, data.qpos[7:]
    return [*position, velocity(model, data, torso.id)[1], spin, data.qvel[6:]]


def humanoid(model, data):
    links = [b for b in range(model.nbody) if model.body_dofnum[b]]
    mass = model.body_mass[links]
    center = mass @ data.xipos[links] / mass.sum()
    # MuJoCo's table is about the same point, since all bodies are in the torso's tree.
    np.testing.assert_allclose(center, data.subtree_com[links[0]], atol=1e-9)
    motion = [
        np.concatenate([m / mass.sum() * v, w])
        for b, m in zip(links, mass, strict=True)
        for w, v in [velocity(model, data, b, mujoco.mjtObj.mjOBJ_BODY)]
    ]
    inertia = data.cinert[links].ravel()
    return [*free_body(model, data), inertia, np.ravel(motion), data.qfrc_actuator]


def double_pendulum(model, data):
    angles = data.qpos[1:]
    rates = np.clip(data.qvel, -10, 10)
    return [data.qpos[:1], np.sin(angles), np.cos(angles), rates[:1], rates[1:]]


def pendulum(model, data):
    return [data.qpos[:1], data.qpos[1:], data.qvel[:1], data.qvel[1:]]


def reacher(model, data):
    tip, target = data.body("fingertip"), data.body("target")
    moving = velocity(model, data, tip.id)[1]
    angles = data.qpos[:2]
    return [np.cos(angles), np.sin(angles), target.xpos[:2], moving[:2], tip.xpos - target.xpos]


def pusher(model, data):
    fingers = data.geom("left_tip").xpos, data.geom("right_tip").xpos
    places = np.mean(fingers, axis=0), data.body("object").xpos, data.body("goal").xpos
    return [data.qpos[:7], data.qvel[:7], *places]


def acrobot(model, data):
    return [np.cos(data.qpos), np.sin(data.qpos), data.qvel]


def fetch(model, data):
    trunk, target = data.body("trunk"), data.body("target")
    spin, moving = velocity(model, data, trunk.id)
    axes, way = trunk.xmat.reshape(3, 3).T, target.xpos - trunk.xpos
    joints = data.qpos[7:9], data.qpos[9:17]
    moves = axes @ moving, axes @ spin, data.qvel[6:16]
    return [trunk.xpos[2:], axes[:, 2], *joints, *moves, axes @ (way * [1, 1, 0])]


def grasp(model, data):
    palm, ball, target = (data.body(name).xpos for name in ("palm", "ball", "target"))
    tips = [f"{finger}_tip" for finger in ("east", "north", "west", "south")]
    # A fingertip's capsule begins in its body's origin and has its middle half-way.
    ends = [2 * data.geom(tip).xpos - data.body(tip).xpos for tip in tips]
    moving = velocity(model, data, data.body("ball").id)[1]
    return [
        data.body("palm").xpos - [0, 0, 0.3],
        data.qpos[3:19],
        data.qvel[:3],
        data.qvel[3:19],
        ball - palm,
        moving,
        np.ravel([ball - end for end in ends]),
        target - ball,
    ]


def ur5e(model, data):
    tool, target = data.body("tool").xpos, data.body("target").xpos
    angles = data.qpos[:6]
    return [np.cos(angles), np.sin(angles), data.qvel[:6], tool, target - tool]


EXPECTED = {
    "acrobot": acrobot,
    "ant": free_body,
    "fetch": fetch,
    "grasp": grasp,
    "halfcheetah": runner,
    "hopper": runner,
    "humanoid": humanoid,
    "humanoidstandup": humanoid,
    "inverted_double_pendulum": double_pendulum,
    "inverted_pendulum": pendulum,
    "pusher": pusher,
    "reacher": reacher,
    "reacherangle": reacher,
    "swimmer": swimmer,
    "ur5e": ur5e,
    "walker2d": runner,
}
SIZES = {
    "acrobot": (6, 1),
    "ant": (27, 8),
    "fetch": (33, 10),
    "grasp": (59, 19),
    "halfcheetah": (17, 6),
    "hopper": (11, 3),
    "humanoid": (244, 17),
    "humanoidstandup": (244, 17),
    "inverted_double_pendulum": (8, 1),
    "inverted_pendulum": (4, 1),
    "pusher": (23, 7),
    "reacher": (11, 2),
    "reacherangle": (11, 2),
    "swimmer": (8, 2),
    "ur5e": (24, 6),
    "walker2d": (17, 6),
}
"""Lengths of observation and action."""


def velocity(model, data, body, frame=mujoco.mjtObj.mjOBJ_XBODY):
    """Angular and linear velocity of a body's frame, or of its centre of mass, world axes."""
    six = np.zeros(6)
    mujoco.mj_objectVelocity(model, data, frame, body, six, 0)
    return six[:3], six[3:]


QUICK = "acrobot", "hopper", "inverted_double_pendulum", "inverted_pendulum", "reacher", "swimmer"


@pytest.mark.parametrize(
    "name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in EXPECTED]
)
def test_parts(name):
    env: Any = envs.get_environment(name, backend="generalized")
    assert (env.observation_size, env.action_size) == SIZES[name]
    model = mujoco.MjModel.from_xml_path(str(ASSETS / env.model))
    data, rng = mujoco.MjData(model), np.random.default_rng(0)
    data.qpos[:] = np.asarray(env.sys.init_q) + rng.uniform(-0.3, 0.3, model.nq)
    data.qvel[:] = rng.uniform(-12, 12, model.nv)
    data.ctrl[:] = rng.uniform(-0.3, 0.3, model.nu)
    mujoco.mj_forward(model, data)

    @jax.jit
    def seen(q, qd, ctrl):
        return observe(env.observation_layout, env.sys, env.pipeline_init(q, qd), ctrl)

    obs = seen(*(np.asarray(a, np.float32) for a in (data.qpos, data.qvel, data.ctrl)))
    expected = EXPECTED[name](model, data)
    for (entries, part), value in zip(slices(env.observation_layout), expected, strict=True):
        scale = max(1, np.abs(value).max())
        np.testing.assert_allclose(obs[entries] / scale, np.asarray(value) / scale, atol=2e-5)
        assert part.size == len(value), part.name


WITHOUT_VELOCITIES = {
    "acrobot": 4,
    "hopper": 5,
    "inverted_double_pendulum": 5,
    "inverted_pendulum": 2,
    "reacher": 9,
    "swimmer": 3,
}
"""Lengths of observations with `hide_velocities`: one velocity less for each of the joints, and for
`reacher` the two of its tip.
"""


@pytest.mark.parametrize("name", WITHOUT_VELOCITIES)
def test_hidden_velocities(name):
    env: Any = envs.get_environment(name, hide_velocities=True)
    assert env.observation_size == WITHOUT_VELOCITIES[name]
    q, qd, ctrl = env.sys.init_q, np.zeros(env.sys.qd_size()), jnp.zeros(env.action_size)

    @jax.jit
    def seen(qd):
        return observe(env.observation_layout, env.sys, env.pipeline_init(q, qd), ctrl)

    # Two states that differ only in their velocities look the same.
    np.testing.assert_array_equal(seen(qd), seen(qd + 1.0))


def test_hidden_velocities_are_a_choice():
    with pytest.raises(ConfigError, match="hide_velocities='yes' must be True or False"):
        envs.get_environment("inverted_pendulum", hide_velocities="yes")
