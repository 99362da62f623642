"""The contacts of a whole model: its shapes placed in the world and tested pair by pair."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from brax.base import System
from brax.colliders.interface import Collider, CollisionGroup, Shape, Touch
from brax.components import Quat, Vec3, quat, rows, total, vec3
from brax.tree import join

FramePart = TypeVar("FramePart", Vec3, Quat)

MIN_FRICTION = 1e-5
"""MuJoCo's bound from below."""


class GroupContacts(NamedTuple):
    """The contacts of one collision group: every point of every pair, (points, pairs, batch)."""

    touch: Touch
    friction: jax.Array
    """Sliding friction, the larger of the two geoms', (pairs, batch)."""
    sideways: jax.Array
    """That along the second tangent; the same but in a pair of its own friction."""
    turning: tuple[jax.Array, jax.Array, jax.Array]
    """Torsional and, twice, rolling friction [m]."""
    elasticity: jax.Array
    """Restitution, the mean of the two, (pairs, batch)."""


class AnisotropicFriction(NamedTuple):
    """Contacts whose friction differs along their two tangents, by collision group."""

    first: Vec3
    """The first tangent, (points, pairs, batch)."""
    second: Vec3
    slide: jax.Array
    """Sliding friction along the second as a share of that along the first, (pairs, batch)."""
    roll: jax.Array
    """The same of friction against rolling about them."""

    def length(self, v: Vec3, share: jax.Array) -> jax.Array:
        """Of vectors across the normal, what is along the second tangent counted by its share."""
        a, b = v.dot(self.first), v.dot(self.second) / share
        return jnp.sqrt(a * a + b * b + 1e-30)


def anisotropic_friction(
    sys: System, group: CollisionGroup, touch: Touch, surface: "ContactSurface"
) -> AnisotropicFriction | None:
    """Finds how they differ; None of a group in which none does."""
    if not any(sys.pair_uneven[p] for p in group.pairs):
        return None
    _, *roll = surface.turning
    slides, rolls = (
        jnp.maximum(b, MIN_FRICTION) / jnp.maximum(a, MIN_FRICTION)
        for a, b in ((surface.friction, surface.sideways), roll)
    )
    return AnisotropicFriction(*touch.across(), slides, rolls)


class ContactSurface(NamedTuple):
    """What the contacts of each pair of one collision group are like, (pairs, batch)."""

    friction: jax.Array
    """Sliding friction, the larger of the two geoms'; zero where `condim` is 1."""
    sideways: jax.Array
    """That along the second tangent; the same but in a pair of its own friction."""
    turning: tuple[jax.Array, jax.Array, jax.Array]
    """Torsional and, twice, rolling friction, the larger of the two [m]."""
    elasticity: jax.Array
    """Restitution, the mean of the two."""
    solref: tuple[jax.Array, ...]
    """MuJoCo's two numbers: the mean weighted by `solmix`, or the smaller if one is negative."""
    solimp: tuple[jax.Array, ...]
    """MuJoCo's five numbers: the mean weighted by `solmix`."""
    margin: jax.Array
    """Distance at which they begin to act [m], the sum of the two."""
    gap: jax.Array
    """How much farther adhesion reaches [m], the sum of the two."""


def contact_links(sys: System) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Links of the first and the second geom of each pair, -1 for the world, by group."""
    return [
        (tuple(sys.geom_link[g] for g in first), tuple(sys.geom_link[g] for g in second))
        for first, second in map(_geoms, sys.collisions)
    ]


LinkFrames = Callable[[Sequence[int]], tuple[Vec3, Quat]]
"""Gives the frames in the world of the links that it is asked for, components (links, batch); of
link -1, the world's own."""


def contacts(sys: System, frames: LinkFrames) -> list[GroupContacts]:
    """Tests all pairs.

    Args:
        sys: the model, its leaves with a trailing batch axis.
        frames: gives the links' frames.

    Returns:
        The contacts of each collision group.
    """
    found = find_touches(sys, local_shapes(sys), frames)
    return [
        GroupContacts(
            touch, surface.friction, surface.sideways, surface.turning, surface.elasticity
        )
        for touch, surface in zip(found, surfaces(sys), strict=True)
    ]


def local_shapes(sys: System) -> list[tuple[Shape, Shape]]:
    """The geoms of each pair in the frames of their links, by group; constant as `surfaces` is."""
    return [(local_shape(sys, g.geom1), local_shape(sys, g.geom2)) for g in sys.collisions]


def local_shape(sys: System, geoms: Sequence[int]) -> Shape:
    """Geoms of one type in the frames of their links."""
    pos, rot, size = rows((sys.geom.transform.pos, sys.geom.transform.rot, sys.geom.size), geoms)
    return Shape(vec3(pos), quat(rot), vec3(size), _points(sys, geoms), _heights(sys, geoms))


def _points(sys: System, geoms: Sequence[int]) -> Vec3 | None:
    """The geoms' points, (points, pairs, batch); the last is repeated where others have more."""
    counts = [sys.geom_points[g] for g in geoms]
    if not any(counts):
        return None
    starts = np.cumsum([0, *sys.geom_points])[list(geoms)]
    last = starts + np.maximum(counts, 1) - 1
    index = np.minimum(starts + np.arange(max(counts))[:, None], last)
    return Vec3(*(c[index] for c in vec3(sys.points)))


def _heights(sys: System, geoms: Sequence[int]) -> jax.Array | None:
    """The geoms' heights, (rows * columns, pairs, batch); one pair for all if they have one geom.

    A collider is of one grid, so that all geoms of a group have equally many.
    """
    counts = [rows * columns for rows, columns in sys.geom_grid]
    if not any(counts[g] for g in geoms):
        return None
    starts = np.cumsum([0, *counts])
    alone = geoms[:1] if len(set(geoms)) == 1 else geoms
    return jnp.stack([sys.heights[starts[g] : starts[g + 1]] for g in alone], axis=1)


def find_touches(
    sys: System, shapes: Sequence[tuple[Shape, Shape]], frames: LinkFrames
) -> list[Touch]:
    """The points of all pairs, (points, pairs, batch), by collision group; see `contacts`.

    Groups of one collider are one call of it: some are long programs.
    """
    placed = [
        [place_shapes(*each, frames) for each in zip(local, links, strict=True)]
        for links, local in zip(contact_links(sys), shapes, strict=True)
    ]
    out: dict[int, Touch] = {}
    for same in of_one_collider(sys):
        together = side_by_side([placed[i] for i in same])
        found = collide(sys.collisions[same[0]].collider, *together)
        ends = np.cumsum([len(sys.collisions[i].geom1) for i in same])
        for i, each in zip(same, _split(found, ends.tolist()), strict=True):
            out[i] = each
    return [out[i] for i in range(len(out))]


def side_by_side(placed: Sequence[Sequence[Shape]]) -> list[Shape]:
    """The first and the second shapes of several groups, each together."""
    return [join([shapes[side] for shapes in placed]) for side in (0, 1)]


def collide(collider: Collider, a: Shape, b: Shape) -> Touch:
    """The points of all pairs, (points, pairs, batch)."""
    points = collider.collide(a, b)
    return jax.tree.map(lambda *x: jnp.stack(jnp.broadcast_arrays(*x)), *points)


def of_one_collider(sys: System) -> list[list[int]]:
    """Numbers of the groups, those together whose shapes can be side by side."""
    out: list[list[int]] = []
    for i, group in enumerate(sys.collisions):
        plain = not any(
            sys.geom_points[g] or sys.geom_grid[g][0] for geoms in _geoms(group) for g in geoms
        )
        same = [s for s in out if sys.collisions[s[0]].collider == group.collider]
        if plain and same:
            same[0].append(i)
        else:
            out.append([i])
    return out


def _split(found: Touch, ends: Sequence[int]) -> list[Touch]:
    """The points of all pairs, cut behind pairs (the last end is that of all)."""
    if len(ends) == 1:
        return [found]
    starts = (0, *ends[:-1])
    return [
        jax.tree.map(lambda x, a=a, b=b: x[:, a:b], found)
        for a, b in zip(starts, ends, strict=True)
    ]


def place_shapes(shape: Shape, links: Sequence[int], frames: LinkFrames) -> Shape:
    """Shapes in the world; those of the world itself are where they are."""
    if all(link < 0 for link in links):
        return shape
    pos, rot = frames(links)
    return shape._replace(pos=pos + rot.rotate(shape.pos), rot=rot.mul(shape.rot))


def surfaces(sys: System) -> list[ContactSurface]:
    """Combines the parameters of the two geoms of each pair; constant, so outside of any loop.

    A pair that is given its own has those, but for the geoms' elasticity. Else, where one geom has
    the higher priority, its friction, `solref` and `solimp` count alone.

    Source: MuJoCo's documentation, Computation, "Contact parameters".
    """
    return [_given(sys, group) if group.pairs else _surface(sys, group) for group in sys.collisions]


def _given(sys: System, group: CollisionGroup) -> ContactSurface:
    mine = rows(sys.pair, group.pairs)
    first, second, *turning = (mine.friction[:, k] for k in range(5))
    elasticity = [rows(sys.geom.elasticity, geoms) for geoms in _geoms(group)]
    none = jnp.zeros_like(first)
    return ContactSurface(
        first if group.condim > 1 else none,
        second if group.condim > 1 else none,
        (turning[0], turning[1], turning[2]),
        0.5 * total(elasticity),
        tuple(mine.solref[:, i] for i in range(2)),
        tuple(mine.solimp[:, i] for i in range(5)),
        mine.margin,
        mine.gap,
    )


def _surface(sys: System, group: CollisionGroup) -> ContactSurface:
    ruling = _ruling(sys, group)

    def both(leaf: jax.Array, geoms: Any = ruling) -> tuple[jax.Array, jax.Array]:
        return rows(leaf, geoms[0]), rows(leaf, geoms[1])

    geom = sys.geom
    friction, twist, roll = (jnp.maximum(*both(geom.friction[:, k])) for k in range(3))
    sliding = friction if group.condim > 1 else jnp.zeros_like(friction)
    mix1, mix2 = both(jnp.maximum(geom.solmix, 1e-15))
    share = mix1 / (mix1 + mix2)
    solref1, solref2 = both(geom.solref)
    solimp1, solimp2 = both(geom.solimp)
    weigh = share[:, None]
    direct = (solref1[:, :1] <= 0) | (solref2[:, :1] <= 0)
    solref = jnp.where(
        direct, jnp.minimum(solref1, solref2), weigh * solref1 + (1 - weigh) * solref2
    )
    solimp = weigh * solimp1 + (1 - weigh) * solimp2
    return ContactSurface(
        sliding,
        sliding,
        (twist, roll, roll),
        0.5 * total(both(geom.elasticity, _geoms(group))),
        tuple(solref[:, i] for i in range(2)),
        tuple(solimp[:, i] for i in range(5)),
        total(both(geom.margin, _geoms(group))),
        total(both(geom.gap, _geoms(group))),
    )


def _ruling(sys: System, group: CollisionGroup) -> tuple[tuple[int, ...], ...]:
    """The geoms whose parameters count: the two of a pair, or twice the one of priority."""
    order = sys.geom_priority
    pairs = [
        (a, b) if order[a] == order[b] else (max(a, b, key=order.__getitem__),) * 2
        for a, b in zip(*_geoms(group), strict=True)
    ]
    return tuple(zip(*pairs, strict=True))


def _geoms(group: CollisionGroup) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return group.geom1, group.geom2


def frames_of(link_pos: Vec3, link_rot: Quat) -> LinkFrames:
    """Gives link frames kept in the model's order, components (n_links, batch)."""

    def frames(links: Sequence[int]) -> tuple[Vec3, Quat]:
        if min(links) >= 0:
            return rows(link_pos, links), rows(link_rot, links)
        index = [link + 1 for link in links]
        return (
            rows(_with_world(link_pos, (0.0, 0.0, 0.0)), index),
            rows(_with_world(link_rot, (1.0, 0.0, 0.0, 0.0)), index),
        )

    return frames


def _with_world(frame: FramePart, world: tuple[float, ...]) -> FramePart:
    """Puts the world's row before the links' rows."""
    return type(frame)(
        *(
            jnp.concatenate([jnp.full_like(a[:1], w), a], axis=0)
            for a, w in zip(frame, world, strict=True)
        )
    )
