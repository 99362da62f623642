"""Inverse kinematics: joint coordinates and velocities from link frames.

The coordinates of a link with one joint are exact. Those of a link with several joints start at a
closed form for up to three rotations and continue with Gauss-Newton steps.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from brax.base import Motion, System, Transform
from brax.components import Quat, Vec3, exp_quat, log_quat, quat, rows, sqrt, total, vec3
from brax.kernels.batch_last import batch_last
from brax.kinematics.frames import Frames, joint_params, stack_frames
from brax.math import safe_arccos
from brax.spatial import Spatial, invert
from brax.tree import Group, Layout, layout


class _Target(NamedTuple):
    """The given frames of a group's links."""

    parent: Frames | None
    """Frames of the parents; None for the world."""
    own: Frames
    """Frames of the links."""


def _inverse(sys: System, x: Transform, xd: Motion) -> tuple[jax.Array, jax.Array]:
    """Compute `inverse` for arrays with a trailing batch axis."""
    # Link frames are given, so that every group is solved by itself, relative to its parents.
    plan = layout(sys)
    world = Frames(vec3(x.pos), quat(x.rot), vec3(xd.ang), vec3(xd.vel))
    size = max(leaf.shape[-1] for leaf in jax.tree.leaves((sys, world)))
    q = jnp.zeros((sys.q_size(), size), x.pos.dtype)
    qd = jnp.zeros((sys.qd_size(), size), x.pos.dtype)
    for group in plan.stacks:
        links = [plan.order[p] for p in group.links]
        parents = None if group.parents is None else [plan.order[p] for p in group.parents]
        target = _Target(None if parents is None else rows(world, parents), rows(world, links))
        q = _put(q, group, _guess(sys, plan, group, target))
        # A single joint is exact at once.
        if len(group.types) > 1:
            q = jax.lax.fori_loop(
                0, _CORRECTIONS, lambda _, q, g=group, t=target: _correct(sys, plan, g, t, q), q
            )
        here, columns = _columns(sys, plan, group, target, q)
        rates = _least_squares(columns, Spatial(*target.own[2:]) - Spatial(*here[2:]))
        for index, rate in zip(group.qd, rates, strict=True):
            qd = qd.at[jnp.asarray(index)].set(rate)
    return q + sys.ref, qd


_CORRECTIONS = 12
"""Number of Gauss-Newton steps for links with several joints; three hinges start exactly."""


def _put(q: jax.Array, group: Group, values: Sequence[Sequence[jax.Array]]) -> jax.Array:
    """Write the coordinates of a group's joints into `q`, by place in the stack."""
    for index, coordinates in zip(group.q, values, strict=True):
        for i, value in zip(index, coordinates, strict=True):
            q = q.at[jnp.asarray(i)].set(value)
    return q


def _taken(q: jax.Array, group: Group) -> list[tuple[jax.Array, ...]]:
    """Read the coordinates of a group's joints from `q`, by place in the stack."""
    return [tuple(rows(q, i) for i in index) for index in group.q]


def _guess(sys: System, plan: Layout, group: Group, target: _Target) -> list[tuple[jax.Array, ...]]:
    """Return the exact coordinates of one joint, or a start for the coordinates of several.

    The start has the angles of the rotational joints if there are up to three; others are zero.
    """
    # `bare` is the pose with all joints at zero, `turn` the rotation that the joints must make.
    none = jnp.zeros((sys.q_size(), 1)), jnp.zeros((sys.qd_size(), 1))
    rest = _put(none[0], group, [k.zero(jnp.zeros(())[None, None]) for k in group.types])
    bare = stack_frames(sys, plan, group, target.parent, rest, none[1])
    turn = bare.rot.conj.mul(target.own.rot)
    params = [joint_params(sys, joints) for joints in group.joints]
    if len(group.types) == 1:
        anchor = vec3(rows(sys.joint.pos, group.joints[0]))
        shift = bare.rot.conj.rotate(target.own.pos - bare.pos) + turn.rotate(anchor) - anchor
        return [tuple(group.types[0].coordinates(params[0], shift, turn))]
    zero = jnp.zeros_like(turn.w)
    start = [k.zero(zero) for k in group.types]
    axes = {}
    for place, (kind, p) in enumerate(zip(group.types, params, strict=True)):
        for twist in kind.motion_subspace(p, start[place]) if kind.qd_width == 1 else []:
            if twist.ang is not None and twist.vel is None:
                axes[place] = twist.ang
    for place, angle in zip(axes, _angles(list(axes.values()), turn), strict=False):
        start[place] = (angle,)
    return start


def _angles(axes: list[Vec3], turn: Quat) -> list[jax.Array]:
    """Return the angles of up to three rotations about given axes that compose a rotation.

    Of the two solutions for three axes, that with the smaller second angle is taken. For more axes
    there is none.

    Source: Murray, Li, Sastry (1994), A Mathematical Introduction to Robotic Manipulation, 3.3.2.
    """
    if len(axes) == 1:
        return [_wrapped(2 * jnp.arctan2(turn.vec.dot(axes[0]), turn.w))]
    if len(axes) == 2:
        a, b = axes
        return [_angle_about(a, b, turn.rotate(b)), _angle_about(b, turn.conj.rotate(a), a)]
    if len(axes) != 3:
        return []
    a, b, c = axes
    # The first and the third rotation do not move their own axes, so that
    # a . R c = offset + even cos(q) + odd sin(q), where q is the second angle.
    offset = a.dot(b) * b.dot(c)
    even, odd = a.dot(c) - offset, a.dot(b.cross(c))
    length = sqrt(even * even + odd * odd)
    cosine = (a.dot(turn.rotate(c)) - offset) / jnp.where(length > 0, length, 1.0)
    middle, spread = jnp.arctan2(odd, even), safe_arccos(cosine)
    both = [_wrapped(middle + s * spread) for s in (1, -1)]
    second = jnp.where(jnp.abs(both[0]) <= jnp.abs(both[1]), both[0], both[1])
    inner = exp_quat(b * second)
    first = _angle_about(a, inner.rotate(c), turn.rotate(c))
    third = _angle_about(c, turn.conj.rotate(a), inner.conj.rotate(a))
    return [first, second, third]


def _wrapped(angle: jax.Array) -> jax.Array:
    """Return an angle within half a turn of zero."""
    return angle - 2 * jnp.pi * jnp.round(angle / (2 * jnp.pi))


def _angle_about(axis: Vec3, start: Vec3, end: Vec3) -> jax.Array:
    """Return the angle about `axis` that takes one vector to another."""
    # Both are projected onto the plane across the axis.
    sine = axis.dot(start.cross(end))
    return jnp.arctan2(sine, start.dot(end) - axis.dot(start) * axis.dot(end))


def _columns(
    sys: System, plan: Layout, group: Group, target: _Target, q: jax.Array
) -> tuple[Frames, list[Spatial]]:
    """Return the frames of a group's links, and the Jacobian of their velocities, by columns."""
    still = jnp.zeros((sys.qd_size(), 1), q.dtype)
    here = stack_frames(sys, plan, group, target.parent, q, still)

    def moved(rates: jax.Array) -> Spatial:
        """Return the velocity of the links relative to their parents at joint velocities."""
        frames = stack_frames(sys, plan, group, target.parent, q, rates)
        return Spatial(frames.ang - here.ang, frames.vel - here.vel)

    # Velocities are linear in the rates: a unit rate of each degree of freedom gives a column.
    units = [still.at[jnp.asarray(index)].set(1.0) for index in group.qd]
    every = jax.vmap(moved)(jnp.stack(units))
    return here, [jax.tree.map(lambda a, k=k: a[k], every) for k in range(len(units))]


def _least_squares(columns: list[Spatial], wanted: Spatial) -> list[jax.Array]:
    """Return the joint velocities whose motion is nearest to a given one, by normal equations."""
    # The regularization selects the smallest of many solutions, at gimbal lock for example.
    tiny = 10 * jnp.finfo(wanted.ang.x.dtype).eps
    normal = [
        [a.dot(b) + (tiny if i == j else 0.0) for j, b in enumerate(columns)]
        for i, a in enumerate(columns)
    ]
    sides = [a.dot(wanted) for a in columns]
    return [total(m * s for m, s in zip(row, sides, strict=True)) for row in invert(normal)]


def _correct(sys: System, plan: Layout, group: Group, target: _Target, q: jax.Array) -> jax.Array:
    """Take one Gauss-Newton step towards the given pose."""
    here, columns = _columns(sys, plan, group, target, q)
    off = Spatial(
        here.rot.rotate(log_quat(here.rot.conj.mul(target.own.rot))), target.own.pos - here.pos
    )
    step = iter(_least_squares(columns, off))
    moved = [
        kind.integrate(mine, tuple(next(step) for _ in range(kind.qd_width)), 1.0)
        for kind, mine in zip(group.types, _taken(q, group), strict=True)
    ]
    return _put(q, group, moved)


_inverse_behind_boundary = batch_last(_inverse)


def inverse(sys: System, x: Transform, xd: Motion) -> tuple[jax.Array, jax.Array]:
    """Return joint coordinates and velocities from link frames: the inverse of `forward`.

    Angles are within half a turn of the joint's `ref`. The second of three hinges is within a
    quarter turn if its axis is perpendicular to the others. At gimbal lock, and where a link has
    more than six degrees of freedom or two parallel axes, coordinates are not unique and one
    solution is returned. Frames that the joints cannot reach give the nearest coordinates.

    Args:
        sys: the model.
        x: link frames in the world, shape (n_links, ...).
        xd: velocities of their origins [rad/s, m/s], world axes, shape (n_links, ...).

    Returns:
        Joint coordinates (nq,) and velocities (nv,).
    """
    return _inverse_behind_boundary(sys, x, xd)
