"""Transmissions to ball and free joints: a force and a torque on the joint's link.

On a ball joint the force is zero, and the torque acts between the link and the one that carries it.
The length is the product of the torque's direction with the joint's rotation vector. On a free
joint the force is along the world's axes, and the length is zero. The torque is along axes of the
link, or of the frame before the joint (MuJoCo's `jointinparent`).

Source: MuJoCo's documentation, chapter XML reference, attribute `joint` of actuators.
"""

import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from brax.actuators.site_transmission import LinkTransmission
from brax.base import System
from brax.components import Quat, Vec3, log_quat, normalize_quat, rows, vec3
from brax.kinematics import Frames
from brax.spatial import Spatial
from brax.tree import sum_rows


def on_rotations(sys: System) -> tuple[int, ...]:
    """Return the actuators on ball and free joints."""
    driving = (a for a, j in enumerate(sys.actuator_joint) if j >= 0)
    return tuple(a for a in driving if _joint_type(sys, a).qd_width > 1)


def rotation_transmission(sys: System, q: jax.Array, links: Frames) -> LinkTransmission:
    """Return the transmission of the actuators on ball and free joints.

    Args:
        sys: the model, with such an actuator, its leaves with a trailing batch axis.
        q: coordinates (nq, batch).
        links: frames of the links in the world, and their velocities, in the model's order.
    """
    driving = on_rotations(sys)
    balls = [a for a in driving if _joint_type(sys, a).is_ball]
    poses = [a for a in driving if _joint_type(sys, a).is_free]
    parts = [
        transmission(sys, acting, q, links)
        for acting, transmission in ((balls, _on_balls), (poses, _on_free_joints))
        if acting
    ]
    return functools.reduce(LinkTransmission.joined, parts)


def _on_balls(sys: System, acting: Sequence[int], q: jax.Array, links: Frames) -> LinkTransmission:
    """Return the transmission of the actuators on ball joints."""
    joints = [sys.actuator_joint[a] for a in acting]
    link = [sys.joint_link[j] for j in joints]
    first = [sys.joint_q_start()[j] for j in joints]
    turn = normalize_quat(Quat(*(rows(q, [i + k for i in first]) for k in range(4))))
    _, ang = _directions(sys, acting)
    # The rotation vector is the same in the axes before and after the rotation.
    length = ang.dot(log_quat(turn))
    ang = rows(links, link).rot.rotate(_choose(sys, acting, turn.inv_rotate(ang), ang))
    # The torque also acts on the link that carries the joint's, with the opposite sign.
    carried = [k for k, i in enumerate(link) if sys.link_parents[i] >= 0]
    both = jax.tree.map(lambda x: jnp.concatenate([x, -rows(x, carried)]), ang)
    owner = [acting[k] for k in (*range(len(acting)), *carried)]
    places = (*link, *(sys.link_parents[link[k]] for k in carried))
    push = Spatial(both, jax.tree.map(jnp.zeros_like, both))
    return _transmission(
        sys, owner, places, push, sum_rows(length, tuple(acting), sys.act_size()), links
    )


def _on_free_joints(
    sys: System, acting: Sequence[int], q: jax.Array, links: Frames
) -> LinkTransmission:
    """Return the transmission of the actuators on free joints, which have no length."""
    # The coordinates are not read: the pipelines in maximal coordinates have none of free joints.
    link = [sys.joint_link[sys.actuator_joint[a]] for a in acting]
    lin, ang = _directions(sys, acting)
    # The frame before the joint is the world's.
    ang = _choose(sys, acting, ang, rows(links, link).rot.rotate(ang))
    length = jnp.zeros_like(q, shape=(sys.act_size(), *q.shape[1:]))
    return _transmission(sys, acting, tuple(link), Spatial(ang, lin), length, links)


def _joint_type(sys: System, actuator: int) -> Any:
    """Return the type of the joint that an actuator drives."""
    return sys.joint_types[sys.actuator_joint[actuator]]


def _directions(sys: System, acting: Sequence[int]) -> tuple[Vec3, Vec3]:
    """Return force and torque of actuators per unit, in the axes that the model gives them in."""
    wrench = rows(sys.actuator.gear[:, None] * sys.actuator.wrench, acting)
    return vec3(wrench[:, :3]), vec3(wrench[:, 3:])


def _choose(sys: System, acting: Sequence[int], before: Vec3, after: Vec3) -> Vec3:
    """Return vectors `before` for actuators along axes before the joint, else `after`."""
    parent = jnp.array([[sys.actuator_in_parent[a]] for a in acting])
    return jax.tree.map(lambda x, y: jnp.where(parent, x, y), before, after)


def _transmission(
    sys: System,
    owner: Sequence[int],
    link: tuple[int, ...],
    push: Spatial,
    length: jax.Array,
    links: Frames,
) -> LinkTransmission:
    """Return a transmission with the velocities of its owners."""
    moved = rows(links, link)
    # By virtual work, the velocity of the length is the power of a unit force.
    velocity = sum_rows(push.dot(Spatial(moved.ang, moved.vel)), tuple(owner), sys.act_size())
    return LinkTransmission(tuple(owner), link, push, length, velocity)
