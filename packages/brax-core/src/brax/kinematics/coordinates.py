"""From link frames back to joint coordinates."""

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
    """Where the links of a group are, and how they move."""

    parent: Frames | None
    own: Frames


def _inverse(sys: System, x: Transform, xd: Motion) -> tuple[jax.Array, jax.Array]:
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
"""Gauss-Newton steps for links with several joints; the first guess is exact for three hinges."""


def _put(q: jax.Array, group: Group, values: Sequence[Sequence[jax.Array]]) -> jax.Array:
    """Writes the coordinates of a group's joints, by place in the stack."""
    for index, coordinates in zip(group.q, values, strict=True):
        for i, value in zip(index, coordinates, strict=True):
            q = q.at[jnp.asarray(i)].set(value)
    return q


def _taken(q: jax.Array, group: Group) -> list[tuple[jax.Array, ...]]:
    return [tuple(rows(q, i) for i in index) for index in group.q]


def _guess(sys: System, plan: Layout, group: Group, target: _Target) -> list[tuple[jax.Array, ...]]:
    """Coordinates of one joint exactly; of several, their rotations where there are up to three."""
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
    """Angles of two or three rotations, the second in the half nearer to zero; else none.

    Source: Murray, Li, Sastry (1994), A Mathematical Introduction to Robotic Manipulation, 3.3.2.
    """
    if len(axes) == 1:
        return [2 * jnp.arctan2(turn.vec.dot(axes[0]), turn.w)]
    if len(axes) == 2:
        a, b = axes
        return [_angle_about(a, b, turn.rotate(b)), _angle_about(b, turn.conj.rotate(a), a)]
    if len(axes) != 3:
        return []
    a, b, c = axes
    # a . R c = offset + even cos(q) + odd sin(q), where q is the second angle
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
    return angle - 2 * jnp.pi * jnp.round(angle / (2 * jnp.pi))


def _angle_about(axis: Vec3, start: Vec3, end: Vec3) -> jax.Array:
    """The turn about `axis` that takes one vector to the other."""
    sine = axis.dot(start.cross(end))
    return jnp.arctan2(sine, start.dot(end) - axis.dot(start) * axis.dot(end))


def _columns(
    sys: System, plan: Layout, group: Group, target: _Target, q: jax.Array
) -> tuple[Frames, list[Spatial]]:
    """The group's frames at rest on its parents, and their velocity for each unit of rate."""
    still = jnp.zeros((sys.qd_size(), 1), q.dtype)
    here = stack_frames(sys, plan, group, target.parent, q, still)

    def moved(rates: jax.Array) -> Spatial:
        frames = stack_frames(sys, plan, group, target.parent, q, rates)
        return Spatial(frames.ang - here.ang, frames.vel - here.vel)

    units = [still.at[jnp.asarray(index)].set(1.0) for index in group.qd]
    every = jax.vmap(moved)(jnp.stack(units))
    return here, [jax.tree.map(lambda a, k=k: a[k], every) for k in range(len(units))]


def _least_squares(columns: list[Spatial], wanted: Spatial) -> list[jax.Array]:
    """Rates whose motion is nearest to the one wanted; the least of them where many are."""
    tiny = 10 * jnp.finfo(wanted.ang.x.dtype).eps
    normal = [
        [a.dot(b) + (tiny if i == j else 0.0) for j, b in enumerate(columns)]
        for i, a in enumerate(columns)
    ]
    sides = [a.dot(wanted) for a in columns]
    return [total(m * s for m, s in zip(row, sides, strict=True)) for row in invert(normal)]


def _correct(sys: System, plan: Layout, group: Group, target: _Target, q: jax.Array) -> jax.Array:
    """One Gauss-Newton step on the pose."""
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
    """Joint coordinates and velocities of link frames; undoes `forward`.

    Angles come within half a turn, the second of three hinges within a quarter where its axis is
    at right angles to the others'. At gimbal lock, and where a link has more freedom than six or
    two parallel axes, coordinates are not unique and one solution is returned. Frames that the
    joints cannot reach give the nearest coordinates.

    Args:
        sys: the model.
        x: link frames in the world, shape (n_links, ...).
        xd: velocities of their origins, world axes, shape (n_links, ...).

    Returns:
        Joint coordinates (nq,) and velocities (nv,).
    """
    return _inverse_behind_boundary(sys, x, xd)
