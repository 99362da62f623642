"""What the viewer page marks on the bodies: contacts and their forces, and joint axes."""

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
    """Rows (touches, point, normal) of all possible contacts, zero where surfaces are apart.

    Args:
        sys: the system.
        x: link frames, (frames, n_links, ...).
        mocap: frames of the bodies that the state places, (frames, n_mocap, ...), if any.

    Returns:
        Shape (frames, n_contacts, 7).
    """
    if not sys.collisions:
        return jnp.zeros((len(x.pos), 0, 7))
    moving = jax.tree.map(jnp.asarray, (x, mocap))
    found = jax.vmap(lambda each: contact.get(sys, *each))(moving)
    assert found is not None  # there are collisions
    rows = jnp.concatenate([found.pos, found.frame[:, :, 0]], axis=-1)
    touches = (found.dist <= 0) & jnp.isfinite(rows).all(axis=-1)
    rows = jnp.where(touches[..., None], rows, 0.0)
    return jnp.concatenate([touches[..., None].astype(rows.dtype), rows], axis=-1)


def rotational_joints(sys: System) -> list[int]:
    """Joints whose axes turn with what their links' later joints do; the others' stand still."""
    last = {link: j for j, link in enumerate(sys.joint_link)}
    return [j for j, link in enumerate(sys.joint_link) if last[link] != j]


@jax.jit
def rotation_axes(sys: System, q: jax.Array) -> jax.Array:
    """Anchor and axis of each of `rotational_joints` in its link's frame, (frames, n, 6)."""
    return jax.vmap(_axes, in_axes=(None, 0))(sys, q)


def joint_rows(sys: System) -> list[dict[str, Any]]:
    """The joints as JSON-ready values; `row` is a joint's place among the turning ones, or -1."""
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
            # an angle that is never negative has no lower limit
            "range": [float(max(lower[d], -9e9)), float(upper[d])] if limited else None,
            "anchor": np.asarray(sys.joint.pos[j], float).tolist(),
            "axis": (np.asarray(sys.joint.axis[j], float) * (kind.qd_width == 1)).tolist(),
            "row": moving.index(j) if j in moving else -1,
        }
        for j, (name, kind, limited, d) in enumerate(
            zip(sys.joint_names, sys.joint_types, sys.joint_limited, first_dof, strict=True)
        )
    ]


def _unit(sys: System, j: int) -> str:
    """Of a joint's coordinate: an angle's if the joint only turns, a length's if it only shifts."""
    kind = sys.joint_types[j]
    shift, turn = _moved(sys, j, jnp.zeros(kind.q_width))
    if kind.q_width != 1 or (shift is None) == (turn is None):
        return ""
    return "rad" if shift is None else "m"


def _axes(sys: System, q: jax.Array) -> jax.Array:
    """Of one frame: a link's frame comes after all its joints, so they are undone from the last."""
    rows: dict[int, jax.Array] = {}
    starts = sys.joint_q_start()
    for link in range(sys.num_links()):
        frame = Transform.create(pos=jnp.zeros(3))
        for j in reversed(sys.link_joints(link)):
            kind = sys.joint_types[j]
            anchor = frame.do(Transform.create(pos=sys.joint.pos[j])).pos
            axis = math.rotate(sys.joint.axis[j], frame.rot)
            rows[j] = jnp.concatenate([anchor, axis * (kind.qd_width == 1)])
            frame = _undo(sys, j, frame, anchor, q[starts[j] : starts[j] + kind.q_width])
    wanted = [rows[j] for j in rotational_joints(sys)]
    return jnp.stack(wanted) if wanted else jnp.zeros((0, 6))


def _undo(sys: System, j: int, after: Transform, anchor: jax.Array, q: jax.Array) -> Transform:
    """The link's frame before joint `j` acts, from the frame after it."""
    shift, turn = _moved(sys, j, q - sys.ref[sys.joint_q_start()[j] :][: len(q)])
    rot = after.rot if turn is None else math.quat_mul(after.rot, math.quat_inv(_vector(turn)))
    start = sys.joint.pos[j] if shift is None else sys.joint.pos[j] + _vector(shift)
    return Transform(anchor - math.rotate(start, rot), rot)


def _moved(sys: System, j: int, q: jax.Array) -> tuple[Vec3 | None, Quat | None]:
    """What a joint does at its coordinates."""
    params = JointParams(Vec3(*_components(sys.joint.axis[j])), _components(sys.joint.user[j]))
    return sys.joint_types[j].transform(params, _components(q))


def _components(values: jax.Array) -> tuple[jax.Array, ...]:
    """The numbers of one joint as joint types want them, each (1 joint, batch of 1)."""
    return tuple(value.reshape(1, 1) for value in values)


def _vector(components: Vec3 | Quat) -> jax.Array:
    return jnp.concatenate([c.reshape(1) for c in components])
