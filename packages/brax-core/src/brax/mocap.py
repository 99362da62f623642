"""Mocap bodies: bodies whose frames the user sets in the state, and that nothing else moves.

During a step they are part of the world, at rest. So a step uses the model with all that mocap
bodies carry moved to where the state has them.
"""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from brax.base import Equality, System, Transform
from brax.components import Quat, Vec3, normalize_quat, quat, rows, stack, vec3

Shift = tuple[Vec3, Quat]
"""Displacement of each mocap body from its frame in the model, as a translation after a rotation
about the world's origin. The last row is the identity, for what is on no mocap body."""


def at_rest(sys: System) -> Transform | None:
    """Return the frames of the mocap bodies in the model, (n_mocap, ...); None if it has none."""
    return rows(sys.fixed, sys.mocap_fixed) if sys.mocap_fixed else None


def placed(sys: System, mocap: Transform | None) -> System:
    """Return the model with its mocap bodies, and all that they carry, at given frames.

    Args:
        sys: the model, its leaves with a trailing batch axis.
        mocap: frames in the world (n_mocap, ..., batch); None means the model's.
    """
    if mocap is None or not sys.mocap_fixed:
        return sys
    shift = _shift(rows(sys.fixed, sys.mocap_fixed), mocap)
    moved: dict[str, Any] = {
        "link.transform": _moved(sys.link.transform, sys.link_mocap, shift),
        "geom.transform": _moved(sys.geom.transform, sys.geom_mocap, shift),
        "site.transform": _moved(sys.site.transform, sys.site_mocap, shift),
        "fixed": _moved(sys.fixed, sys.fixed_mocap, shift),
    }
    if any(max(pair) >= 0 for pair in sys.equality_mocap):
        moved["equality"] = _displaced_equality(sys, shift)
    return sys.tree_replace(moved)


def _shift(before: Transform, after: Transform) -> Shift:
    """Return the displacement from one frame of each mocap body to another."""
    # Users may set quaternions of any length.
    old, new = quat(before.rot), normalize_quat(quat(after.rot))
    turn = new.mul_inv(old)
    pos = vec3(after.pos) - turn.rotate(vec3(before.pos))

    def with_none(x: jax.Array, none: float) -> jax.Array:
        """Append the identity's row."""
        return jnp.concatenate([x, jnp.full_like(x[:1], none)])

    still = (1.0, 0.0, 0.0, 0.0)
    return (
        Vec3(*(with_none(x, 0.0) for x in pos)),
        Quat(*(with_none(x, none) for x, none in zip(turn, still, strict=True))),
    )


def _of(shift: Shift, which: Sequence[int]) -> Shift:
    """Return the displacement of what is on each given mocap body, the identity for -1."""
    last = len(shift[0].x) - 1
    return rows(shift, [last if k < 0 else k for k in which])


def _moved(frames: Transform, which: Sequence[int], shift: Shift) -> Transform:
    """Displace frames, each with the mocap body that it is on, -1 for none."""
    if max(which, default=-1) < 0:
        return frames
    by, turn = _of(shift, which)
    pos, rot = by + turn.rotate(vec3(frames.pos)), turn.mul(quat(frames.rot))
    return Transform(stack(pos), stack(rot))


def _displaced_equality(sys: System, shift: Shift) -> Equality:
    """Displace the ends of equality constraints that are on mocap bodies.

    These ends become points of the world, as those of any constraint to the world. A weld's
    relative orientation is that from the first frame to the second. Its error is then measured
    along the world's axes and not the body's, which has no effect, because all axes have the same
    weight.
    """
    data = sys.equality.data
    first, second = (_of(shift, [pair[side] for pair in sys.equality_mocap]) for side in (0, 1))
    welds = [kind == "weld" for kind in sys.equality_types]
    links = [kind in ("weld", "connect") for kind in sys.equality_types]
    swapped = jnp.array(welds)[:, None]
    points = vec3(data[:, 0:3]), vec3(data[:, 3:6])
    # A weld stores its two points in the opposite order of a `connect`.
    out = []
    for place, (mine, other) in enumerate(((first, second), (second, first))):
        a, b = (by + turn.rotate(points[place]) for by, turn in (mine, other))
        out.append(Vec3(*(jnp.where(swapped, y, x) for x, y in zip(a, b, strict=True))))
    turn = first[1].mul(quat(data[:, 6:10])).mul_inv(second[1])
    rest = jnp.broadcast_to(data[:, 10:], (*data[:, 10:].shape[:-1], turn.w.shape[-1]))
    numbers = jnp.concatenate([stack(out[0]), stack(out[1]), stack(turn), rest], axis=1)
    between = jnp.array(links)[:, None, None]
    return sys.equality.replace(data=jnp.where(between, numbers, data))
