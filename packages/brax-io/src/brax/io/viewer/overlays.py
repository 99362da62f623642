"""The marks on bodies in the viewer page: contacts with their forces, and joint axes."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from brax import contact, math
from brax.base import System, Transform
from brax.components import Quat, Vec3
from brax.joints.interface import JointParams


@jax.jit
def contacts(sys: System, x: Transform, mocap: Transform | None = None) -> jax.Array:
    """Return rows (active, point, normal) of all possible contacts, zero where inactive.

    Args:
        sys: the system.
        x: poses of the links, (frames, n_links, ...).
        mocap: poses of the mocap bodies, (frames, n_mocap, ...), if any.

    Returns:
        Shape (frames, n_contacts, 7).
    """
    moving = jax.tree.map(jnp.asarray, (x, mocap))
    touches, *places = jax.vmap(lambda each: contact.touching(sys, *each))(moving)
    rows = jnp.concatenate(places, axis=-1)
    touches = touches & jnp.isfinite(rows).all(axis=-1)
    rows = jnp.where(touches[..., None], rows, 0.0)
    return jnp.concatenate([touches[..., None].astype(rows.dtype), rows], axis=-1)


def rotational_joints(sys: System) -> list[int]:
    """Return the joints whose axes move in the frames of their links.

    These are all but the last joint of each link: the joints after them rotate the link.
    """
    last = {link: j for j, link in enumerate(sys.joint_link)}
    return [j for j, link in enumerate(sys.joint_link) if last[link] != j]


@jax.jit
def rotation_axes(sys: System, q: jax.Array) -> jax.Array:
    """Return anchor and axis of each of `rotational_joints` in its link's frame, (frames, n, 6)."""
    return jax.vmap(_axes, in_axes=(None, 0))(sys, q)


def joint_rows(sys: System) -> list[dict[str, Any]]:
    """Return the joints as JSON values; `row` is the index in `rotational_joints`, or -1."""
    moving, starts = rotational_joints(sys), sys.joint_q_start()
    first_dof = sys.joint_qd_start()
    lower, upper = (np.asarray(bound, float) for bound in sys.dof.limit)
    return [
        {
            "name": name,
            "type": kind.name,
            "link": sys.joint_link[j],
            "q": [starts[j], kind.q_width],
            "unit": _unit(sys, j),
            # A bound may be infinite, which JSON cannot be: a joint is bounded on one side, or the
            # angle of a ball joint is never negative.
            "range": np.clip([lower[d], upper[d]], -9e9, 9e9).tolist() if limited else None,
            "anchor": np.asarray(sys.joint.pos[j], float).tolist(),
            "axis": (np.asarray(sys.joint.axis[j], float) * (kind.qd_width == 1)).tolist(),
            "row": moving.index(j) if j in moving else -1,
        }
        for j, (name, kind, limited, d) in enumerate(
            zip(sys.joint_names, sys.joint_types, sys.joint_limited, first_dof, strict=True)
        )
    ]


def _unit(sys: System, j: int) -> str:
    """Return the unit of a joint's coordinate: rad for a rotation, m for a translation."""
    kind = sys.joint_types[j]
    translation, rotation = _joint_transform(sys, j, jnp.zeros(kind.q_width))
    if kind.q_width != 1 or (translation is None) == (rotation is None):
        return ""
    return "rad" if translation is None else "m"


def _axes(sys: System, q: jax.Array) -> jax.Array:
    """Return `rotation_axes` of one frame.

    A link's pose is the result of all its joints, so the joints are undone from the last to the
    first.
    """
    rows: dict[int, jax.Array] = {}
    starts = sys.joint_q_start()
    for link in range(sys.num_links()):
        frame = Transform.create(pos=jnp.zeros(3))
        for j in reversed(sys.link_joints(link)):
            kind = sys.joint_types[j]
            anchor = frame.do(Transform.create(pos=sys.joint.pos[j])).pos
            axis = math.rotate(sys.joint.axis[j], frame.rot)
            # Only a joint with one degree of freedom has an axis to draw.
            rows[j] = jnp.concatenate([anchor, axis * (kind.qd_width == 1)])
            frame = _undo(sys, j, frame, anchor, q[starts[j] : starts[j] + kind.q_width])
    wanted = [rows[j] for j in rotational_joints(sys)]
    return jnp.stack(wanted) if wanted else jnp.zeros((0, 6))


def _undo(sys: System, j: int, after: Transform, anchor: jax.Array, q: jax.Array) -> Transform:
    """Return the link's pose before joint `j` acts, from the pose after it."""
    translation, rotation = _joint_transform(
        sys, j, q - sys.ref[sys.joint_q_start()[j] :][: len(q)]
    )
    rot = (
        after.rot
        if rotation is None
        else math.quat_mul(after.rot, math.quat_inv(_vector(rotation)))
    )
    start = sys.joint.pos[j] if translation is None else sys.joint.pos[j] + _vector(translation)
    return Transform(anchor - math.rotate(start, rot), rot)


def _joint_transform(sys: System, j: int, q: jax.Array) -> tuple[Vec3 | None, Quat | None]:
    """Return the translation and the rotation of a joint at its coordinates."""
    params = JointParams(Vec3(*_components(sys.joint.axis[j])), _components(sys.joint.user[j]))
    return sys.joint_types[j].transform(params, _components(q))


def _components(values: jax.Array) -> tuple[jax.Array, ...]:
    """Return the numbers of one joint as joint types take them, each (1 joint, batch of 1)."""
    return tuple(value.reshape(1, 1) for value in values)


def _vector(components: Vec3 | Quat) -> jax.Array:
    return jnp.concatenate([c.reshape(1) for c in components])
