"""Colliders of boxes against MuJoCo's distances, from generic and from aligned places: T55, T56."""

import functools
import itertools
import os

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from brax import plugins
from brax.colliders import Shape
from brax.components import Quat, Vec3

SEEDS = int(os.environ.get("BRAX_FUZZ_SEEDS", "50"))
SIZES = [(1, 1, 1), (0.5, 1, 1.5), (2, 2, 0.05), (0.05, 0.05, 2), (1, 0.1, 0.3), (0.2, 0.2, 0.2)]
TILTS = (0, 1e-15, 1e-9, 1e-5, 1e-3, 0.05, 0.3, 0.785)
UPRIGHT = [
    q / np.linalg.norm(q)
    for q in map(np.array, itertools.product((-1, 0, 1), repeat=4))
    if np.count_nonzero(q) in (1, 2, 4) and q[np.flatnonzero(q)[0]] > 0
]
"""The 24 orientations that map axes to axes."""


@functools.cache
def compiled(pair):
    def run(*numbers):
        a, b = (
            Shape(*(kind(*x.T[:, None]) for kind, x in zip((Vec3, Quat, Vec3), rows, strict=True)))
            for rows in (numbers[:3], numbers[3:])
        )
        points = plugins.get("collider", pair).collide(a, b)
        spread = [jax.tree.map(lambda x: jnp.broadcast_to(x, a.pos.x.shape)[0], p) for p in points]
        return (
            jnp.stack([p.dist for p in spread], 1),
            jnp.stack([jnp.stack(p.normal, -1) for p in spread], 1),
        )

    return jax.jit(run)


@functools.cache
def model(pair):
    first, second = (f'<geom type="{kind}" size="1 1 1"/>' for kind in pair.split("-"))
    return mujoco.MjModel.from_xml_string(
        f'<mujoco><worldbody><body mocap="true">{first}</body>'
        f"<body><freejoint/>{second}</body></worldbody></mujoco>"
    )


def theirs(pair, row):
    """MuJoCo's signed distance, its contacts' distances and first normal."""
    m = model(pair)
    data = mujoco.MjData(m)
    m.geom_size[:], m.geom_rbound[:] = (row[2], row[5]), 100
    data.mocap_pos[0], data.mocap_quat[0] = row[0], row[1]
    data.qpos[:] = np.concatenate([row[3], row[4]])
    mujoco.mj_kinematics(m, data)
    mujoco.mj_collision(m, data)
    distance = mujoco.mj_geomDistance(m, data, 0, 1, 100, None)
    normal = data.contact.frame[data.contact.dist.argmin(), :3] if data.ncon else None
    return distance, data.contact.dist.copy(), normal


def tilted(rng, angle):
    """One of the 24 orientations, tilted a little about any axis."""
    axis = rng.normal(size=3)
    half = 0.5 * angle
    turn = np.array([np.cos(half), *(np.sin(half) * axis / np.linalg.norm(axis))])
    out = np.zeros(4)
    mujoco.mju_mulQuat(out, turn, UPRIGHT[rng.integers(24)])
    return out


def boxes(seed):
    """Eight pairs of boxes that nearly touch, or overlap a little."""
    rng = np.random.default_rng(seed)
    rows = []
    for tilt in TILTS:
        sizes = [np.array(SIZES[rng.integers(len(SIZES))], float) for _ in range(2)]
        way = rng.normal(size=3) * rng.choice([0.1, 1], 3)
        way /= np.linalg.norm(way)
        row = [np.zeros(3), tilted(rng, tilt), sizes[0], 9 * way, tilted(rng, tilt), sizes[1]]
        for _ in range(4):  # along `way` until they just touch
            row[3] = row[3] - way * theirs("box-box", row)[0]
        row[3] = row[3] - way * rng.uniform(-0.01, 0.03)
        rows.append(row)
    return rows


def ours(pair, rows):
    with jax.enable_x64(True):
        return map(np.asarray, compiled(pair)(*(np.array(x) for x in zip(*rows, strict=True))))


@pytest.mark.parametrize("seed", range(SEEDS))
def test_boxes_that_nearly_touch(seed):
    # T55
    rows = boxes(seed)
    dist, normal = ours("box-box", rows)
    for row, d, n in zip(rows, dist, normal, strict=True):
        true, *_ = theirs("box-box", row)
        scale = max(row[2].max(), row[5].max())
        what = f"seed {seed}: {row}: {d}, theirs {true}"
        assert np.ptp(n, axis=0).max() == 0, f"several normals, {what}"
        assert abs(np.linalg.norm(n[0]) - 1) < 1e-9, what
        if true > 1e-6:
            assert d.min() > 0, f"phantom, {what}"
        elif true < -1e-6:
            # Of an edge and a face almost as deep the face is taken, for it has more points.
            assert abs(d.min() - true) < 1e-4 * scale + 0.011 * abs(true), f"depth, {what}"


@pytest.mark.parametrize("pair", ["sphere-box", "capsule-box", "plane-box"])
def test_distances_are_mujocos(pair):
    # T56. A capsule's axis inside the box is left out: MuJoCo then has another rule.
    rng = np.random.default_rng(0)
    quats = rng.normal(size=(2, 200, 4))
    quats /= np.linalg.norm(quats, axis=-1, keepdims=True)
    sizes = rng.uniform(0.2, 1, (2, 200, 3))
    rows = list(
        zip(
            np.zeros((200, 3)),
            quats[0],
            sizes[0],
            rng.normal(size=(200, 3)),
            quats[1],
            sizes[1],
            strict=True,
        )
    )
    dist, normal = ours(pair, rows)
    checked = 0
    for row, d, n in zip(rows, dist, normal, strict=True):
        _, others, way = theirs(pair, row)
        if pair == "capsule-box" and min(d.min(), *others, 0) < -row[2][0] + 1e-9:
            continue
        assert (d.min() < 0) == (len(others) > 0), row
        if len(others):
            checked += 1
            assert d.min() == pytest.approx(others.min(), abs=1e-9), row
            np.testing.assert_allclose(n[d.argmin()], way, atol=1e-5)  # 1.1e-6
    assert checked > 40
