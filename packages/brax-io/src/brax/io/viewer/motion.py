"""What moves in the viewer page: poses, contacts and joint axes, a row per frame."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from brax import contact, math
from brax.base import State, System, Transform
from brax.components import Quat, Vec3
from brax.errors import ConfigError, ModelError
from brax.joints.interface import JointParams


def arrays(sys: System, states: State | Sequence[State]) -> dict[str, np.ndarray]:
    """Returns the numbers of a trajectory, each array with frames in front.

    Args:
        sys: the system that the states belong to.
        states: states in order of time, or one state whose leaves have time in front.

    Returns:
        `pos` (frames, n_links, 3) and `rot` (frames, n_links, 4) of the links; `contacts`
        (frames, n, 7): whether it touches, point and normal; `joints` (frames, n_joints, 6):
        anchor and axis, the axis zero unless the joint has exactly one degree of freedom.

    Raises:
        ConfigError: if there is no state, or the states are not one trajectory.
        ModelError: if the states belong to another system, or are not finite.
    """
    x, q = _checked(sys, states)
    touches, axes = jax.device_get(_overlays(sys, x, q))
    touches = touches[:, touches[..., 0].any(axis=0)]  # points that never touch need no rows
    return {"pos": x.pos, "rot": x.rot, "contacts": touches, "joints": axes}


def moment(sys: System, state: State) -> dict[str, np.ndarray]:
    """Returns the numbers of one state as `arrays` does, with a row for every possible contact."""
    x, q = _checked(sys, [state])
    contacts, axes = jax.device_get(_overlays(sys, x, q))
    return {"pos": x.pos, "rot": x.rot, "contacts": contacts, "joints": axes}


def poses(sys: System, states: State | Sequence[State]) -> tuple[np.ndarray, np.ndarray]:
    """Returns the link frames alone, (frames, n_links, 3) and (frames, n_links, 4).

    Arguments and errors are those of `arrays`.
    """
    x, _ = _checked(sys, states)
    return np.asarray(x.pos), np.asarray(x.rot)


def interval(sys: System, dt: float | None) -> float:
    """The time between two states [s]: `dt`, by default the system's time step.

    Raises:
        ConfigError: if it is not a positive number.
    """
    seconds = float(sys.opt.timestep if dt is None else dt)
    if not 0 < seconds < float("inf"):
        raise ConfigError(f"dt must be a positive number of seconds, got {seconds}")
    return seconds


def _checked(sys: System, states: State | Sequence[State]) -> tuple[Transform, np.ndarray]:
    x, q = _stack(states)
    _check(sys, x, q)
    return x, q


def _stack(states: State | Sequence[State]) -> tuple[Transform, np.ndarray]:
    if not isinstance(states, Sequence):
        x, q = jax.device_get((states.x, states.q))
        if x.pos.ndim != 3 or q.ndim != 2:
            raise ConfigError(
                f"states.x.pos has shape {x.pos.shape}: give a list of states, or one state whose "
                "leaves have time (and nothing else) in front"
            )
        return x, q
    if not states:
        raise ConfigError("the trajectory is empty: give at least one state")
    rows = jax.device_get([(state.x, state.q) for state in states])
    shapes = [row[0].pos.shape for row in rows]
    odd = next((i for i, shape in enumerate(shapes) if shape != shapes[0] or len(shape) != 2), None)
    if odd is not None:
        raise ConfigError(
            f"frame {odd}: state.x.pos has shape {shapes[odd]}, not (n_links, 3): "
            "give the states of one environment of one system"
        )
    x, q = jax.tree.map(lambda *leaves: np.stack(leaves), *rows)
    return x, q


def _check(sys: System, x: Transform, q: np.ndarray) -> None:
    wanted = (sys.num_links(), sys.q_size())
    if (x.pos.shape[1], q.shape[1]) != wanted:
        raise ModelError(
            f"the states have {x.pos.shape[1]} links and {q.shape[1]} coordinates, the system has "
            f"{wanted[0]} and {wanted[1]}: they come from another system"
        )
    if not len(q):
        raise ConfigError("the trajectory is empty: give at least one state")
    finite = np.isfinite(x.pos).all(-1) & np.isfinite(x.rot).all(-1)
    if not finite.all():
        frame, link = np.argwhere(~finite)[0]
        raise ModelError(f"frame {frame}, link '{sys.link_names[link]}': not finite")


@jax.jit
def _overlays(sys: System, x: Transform, q: jax.Array) -> tuple[jax.Array, jax.Array]:
    return _touching(sys, x), jax.vmap(_joint_axes, in_axes=(None, 0, 0))(sys, x, q)


def _touching(sys: System, x: Transform) -> jax.Array:
    """Rows (touches, point, normal) of each frame, zero where the surfaces are apart."""
    if not sys.collisions:
        return jnp.zeros((len(x.pos), 0, 7))
    found = jax.vmap(contact.get, (None, 0))(sys, jax.tree.map(jnp.asarray, x))
    assert found is not None  # there are collisions
    rows = jnp.concatenate([found.pos, found.frame[:, :, 0]], axis=-1)
    touches = (found.dist <= 0) & jnp.isfinite(rows).all(axis=-1)
    rows = jnp.where(touches[..., None], rows, 0.0)
    return jnp.concatenate([touches[..., None].astype(rows.dtype), rows], axis=-1)


def _joint_axes(sys: System, x: Transform, q: jax.Array) -> jax.Array:
    """Rows (anchor, axis) in the world.

    A link's frame comes after all of its joints, so they are undone from the last to the first.
    """
    rows: dict[int, jax.Array] = {}
    starts = sys.joint_q_start()
    for link in range(sys.num_links()):
        frame = x.take(link)
        for j in reversed(sys.link_joints(link)):
            kind = sys.joint_types[j]
            anchor = frame.do(Transform.create(pos=sys.joint.pos[j])).pos
            axis = math.rotate(sys.joint.axis[j], frame.rot)
            rows[j] = jnp.concatenate([anchor, axis * (kind.qd_width == 1)])
            frame = _undo(sys, j, frame, anchor, q[starts[j] : starts[j] + kind.q_width])
    return jnp.stack([rows[j] for j in sorted(rows)]) if rows else jnp.zeros((0, 6))


def _undo(sys: System, j: int, after: Transform, anchor: jax.Array, q: jax.Array) -> Transform:
    """The link's frame before joint `j` acts, from the frame after it."""
    params = JointParams(Vec3(*_components(sys.joint.axis[j])), _components(sys.joint.user[j]))
    shift, turn = sys.joint_types[j].transform(params, _components(q))
    rot = after.rot if turn is None else math.quat_mul(after.rot, math.quat_inv(_vector(turn)))
    start = sys.joint.pos[j] if shift is None else sys.joint.pos[j] + _vector(shift)
    return Transform(anchor - math.rotate(start, rot), rot)


def _components(values: jax.Array) -> tuple[jax.Array, ...]:
    """The numbers of one joint as joint types want them, each (1 joint, batch of 1)."""
    return tuple(value.reshape(1, 1) for value in values)


def _vector(components: Vec3 | Quat) -> jax.Array:
    return jnp.concatenate([c.reshape(1) for c in components])
