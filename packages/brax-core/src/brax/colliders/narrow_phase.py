"""Narrow phase: places the geoms of a model in the world and finds the contacts of all pairs.

The contact points come from each pair's collider, whose `collide` is called by `collide` here. What
else a contact needs (friction, restitution, softness, margin) is combined from the two geoms by
`surfaces`. Arrays are batch last: (points, pairs, batch) for points, (pairs, batch) for parameters.
"""

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
"""Lower bound of friction coefficients, MuJoCo's mjMINMU."""


class AnisotropicFriction(NamedTuple):
    """Friction that differs along the two tangents, of the contacts of one collision group."""

    first: Vec3
    """The first unit tangent, (points, pairs, batch)."""
    second: Vec3
    """The second unit tangent, (points, pairs, batch)."""
    slide: jax.Array
    """Sliding friction along the second tangent over that along the first, (pairs, batch)."""
    roll: jax.Array
    """Rolling friction about the second tangent over that about the first, (pairs, batch)."""

    def length(self, v: Vec3, share: jax.Array) -> jax.Array:
        """Return the length of tangential vectors in the metric of an elliptic friction cone.

        Args:
            v: the vectors.
            share: the ratio of the friction along the second tangent to that along the first.
        """
        # Dividing the second component by the ratio turns the ellipse into a circle. The summand
        # keeps the derivative of the root finite at zero.
        a, b = v.dot(self.first), v.dot(self.second) / share
        return jnp.sqrt(a * a + b * b + 1e-30)


def anisotropic_friction(
    sys: System, group: CollisionGroup, found: "Contacts"
) -> AnisotropicFriction | None:
    """Find the anisotropic friction of a group's contacts; None if its friction is isotropic."""
    # Only explicit pairs can have it, since geoms have one coefficient of sliding friction.
    if not any(sys.pair_uneven[p] for p in group.pairs):
        return None
    surface = found.surface
    _, *roll = surface.turning
    slides, rolls = (
        jnp.maximum(b, MIN_FRICTION) / jnp.maximum(a, MIN_FRICTION)
        for a, b in ((surface.friction, surface.sideways), roll)
    )
    return AnisotropicFriction(*found.touch.across(), slides, rolls)


class ContactSurface(NamedTuple):
    """Contact parameters of the pairs of one collision group, each (pairs, batch)."""

    friction: jax.Array
    """Sliding friction, the larger of the two geoms'; zero where `condim` is 1."""
    sideways: jax.Array
    """Sliding friction along the second tangent; it differs only in explicit pairs."""
    turning: tuple[jax.Array, jax.Array, jax.Array]
    """Torsional friction, and rolling friction about both tangents, the larger of the two [m]."""
    elasticity: jax.Array
    """Coefficient of restitution, the mean of the two."""
    solref: tuple[jax.Array, ...]
    """MuJoCo's two numbers: the mean weighted by `solmix`, or the smaller if one is negative."""
    solimp: tuple[jax.Array, ...]
    """MuJoCo's five numbers: the mean weighted by `solmix`."""
    margin: jax.Array
    """Distance from which a contact is active [m], the sum of the two."""
    gap: jax.Array
    """Distance beyond the margin within which only adhesion acts [m], the sum of the two."""
    adhesion: jax.Array | None
    """Pull of the surfaces [N], the sum of the two or that of the geom of higher priority; None if
    no surface of the model is adhesive."""


class Contacts(NamedTuple):
    """Contacts with their parameters, of one collision group or of all of them as one array."""

    touch: Touch
    """The contact points, (points, pairs, batch)."""
    surface: ContactSurface
    """Friction, restitution and softness, (pairs, batch)."""


def contact_links(sys: System) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Return the links of both geoms of each pair, -1 for the world, by collision group."""
    return [
        (tuple(sys.geom_link[g] for g in first), tuple(sys.geom_link[g] for g in second))
        for first, second in map(_geoms, sys.collisions)
    ]


LinkFrames = Callable[[Sequence[int]], tuple[Vec3, Quat]]
"""A function from indices of links to their frames in the world, components (links, batch). Index
-1 gives the world's own frame."""


def contacts(sys: System, frames: LinkFrames) -> list[Contacts]:
    """Find the contacts of all pairs of a model.

    Args:
        sys: the model, its leaves with a trailing batch axis.
        frames: a function that returns the links' frames.

    Returns:
        The contacts of each collision group.
    """
    found = find_touches(sys, local_shapes(sys), frames)
    return [Contacts(*each) for each in zip(found, surfaces(sys), strict=True)]


def local_shapes(sys: System) -> list[tuple[Shape, Shape]]:
    """Return the geoms of each pair in the frames of their links, by group.

    They do not depend on the state, so callers compute them outside of loops over steps.
    """
    return [(local_shape(sys, g.geom1), local_shape(sys, g.geom2)) for g in sys.collisions]


def local_shape(sys: System, geoms: Sequence[int]) -> Shape:
    """Return geoms of one type in the frames of their links."""
    pos, rot, size = rows((sys.geom.transform.pos, sys.geom.transform.rot, sys.geom.size), geoms)
    return Shape(vec3(pos), quat(rot), vec3(size), vertices(sys, geoms), height_table(sys, geoms))


def vertices(sys: System, geoms: Sequence[int]) -> Vec3 | None:
    """Return the geoms' vertices, (points, pairs, batch); None if the type has none."""
    # One rectangular array: geoms with fewer vertices repeat their last one, which changes neither
    # a convex hull nor its support points.
    counts = [sys.geom_points[g] for g in geoms]
    if not any(counts):
        return None
    starts = np.cumsum([0, *sys.geom_points])[list(geoms)]
    last = starts + np.maximum(counts, 1) - 1
    index = np.minimum(starts + np.arange(max(counts))[:, None], last)
    return Vec3(*(c[index] for c in vec3(sys.points)))


def height_table(sys: System, geoms: Sequence[int]) -> jax.Array | None:
    """Return the geoms' heights, (rows * columns, pairs, batch); None if the type has none."""
    # A height field's collider has one grid, so all geoms of a group have equally many heights. A
    # group with a single field, the usual case, stores it once and broadcasts it over the pairs.
    counts = [rows * columns for rows, columns in sys.geom_grid]
    if not any(counts[g] for g in geoms):
        return None
    starts = np.cumsum([0, *counts])
    distinct = geoms[:1] if len(set(geoms)) == 1 else geoms
    return jnp.stack([sys.heights[starts[g] : starts[g + 1]] for g in distinct], axis=1)


def find_touches(
    sys: System, shapes: Sequence[tuple[Shape, Shape]], frames: LinkFrames
) -> list[Touch]:
    """Find the contact points of all pairs, (points, pairs, batch), by collision group.

    Args:
        sys: the model, its leaves with a trailing batch axis.
        shapes: from `local_shapes`.
        frames: a function that returns the links' frames.
    """
    # Both sides of every pair are placed in the world; colliders know no links.
    placed = [
        [place_shapes(*each, frames) for each in zip(local, links, strict=True)]
        for links, local in zip(contact_links(sys), shapes, strict=True)
    ]
    out: dict[int, Touch] = {}
    # Groups that differ only in `condim` or priority share one call of their collider. One call a
    # group compiled long programs, such as that of convex shapes, once for each of them.
    for same in of_one_collider(sys):
        together = side_by_side([placed[i] for i in same])
        # The ends of each group among the pairs of the joint call.
        found = collide(sys.collisions[same[0]].collider, *together)
        ends = np.cumsum([len(sys.collisions[i].geom1) for i in same])
        for i, each in zip(same, _split(found, ends.tolist()), strict=True):
            out[i] = each
    return [out[i] for i in range(len(out))]


def side_by_side(placed: Sequence[Sequence[Shape]]) -> list[Shape]:
    """Concatenate the first shapes of several groups, and the second ones, along the pairs."""
    return [join([shapes[side] for shapes in placed]) for side in (0, 1)]


def collide(collider: Collider, a: Shape, b: Shape) -> Touch:
    """Call a collider and stack its points, (points, pairs, batch)."""
    points = collider.collide(a, b)
    return jax.tree.map(lambda *x: jnp.stack(jnp.broadcast_arrays(*x)), *points)


def of_one_collider(sys: System) -> list[list[int]]:
    """Return the indices of the groups, collected into lists that share one call of a collider."""
    out: list[list[int]] = []
    for i, group in enumerate(sys.collisions):
        # Shapes with vertices or heights have arrays of different lengths: their groups stay apart.
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
    """Split the points of all pairs into groups, which end before the given pairs."""
    if len(ends) == 1:
        return [found]
    starts = (0, *ends[:-1])
    return [
        jax.tree.map(lambda x, a=a, b=b: x[:, a:b], found)
        for a, b in zip(starts, ends, strict=True)
    ]


def place_shapes(shape: Shape, links: Sequence[int], frames: LinkFrames) -> Shape:
    """Return shapes, given in the frames of their links, in the world frame.

    Args:
        shape: the shapes.
        links: the link of each, -1 for the world.
        frames: a function that returns the links' frames.
    """
    # Geoms of the world are given in the world frame already.
    if all(link < 0 for link in links):
        return shape
    pos, rot = frames(links)
    return shape._replace(pos=pos + rot.rotate(shape.pos), rot=rot.mul(shape.rot))


def surfaces(sys: System) -> list[ContactSurface]:
    """Return the contact parameters of each pair, by collision group.

    An explicit pair has parameters of its own, except for restitution. Else they are combined from
    the two geoms. Where one geom has a higher priority, only its friction, `solref`, `solimp` and
    adhesion count. The result does not depend on the state, so callers compute it outside of loops.

    Source: MuJoCo's documentation, Computation, "Contact parameters".
    """
    return [_given(sys, group) if group.pairs else _surface(sys, group) for group in sys.collisions]


def _given(sys: System, group: CollisionGroup) -> ContactSurface:
    """Return the parameters of a group of explicit pairs."""
    # MuJoCo's order of a pair's five coefficients: two tangents, torsion, two rolling axes.
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
        mine.adhesion if _is_adhesive(sys) else None,
    )


def _surface(sys: System, group: CollisionGroup) -> ContactSurface:
    """Combine the parameters of the two geoms of each pair of a group."""
    ruling = _ruling(sys, group)

    def both(leaf: jax.Array, geoms: Any = ruling) -> tuple[jax.Array, jax.Array]:
        """Return a parameter of the first and the second geom of each pair."""
        return rows(leaf, geoms[0]), rows(leaf, geoms[1])

    geom = sys.geom
    # The larger coefficient of the two geoms counts, or that of the geom of higher priority.
    friction, twist, roll = (jnp.maximum(*both(geom.friction[:, k])) for k in range(3))
    sliding = friction if group.condim > 1 else jnp.zeros_like(friction)
    # The bound is MuJoCo's mjMINVAL: two weights of zero mix evenly instead of giving NaN.
    mix1, mix2 = both(jnp.maximum(geom.solmix, 1e-15))
    share = mix1 / (mix1 + mix2)
    solref1, solref2 = both(geom.solref)
    solimp1, solimp2 = both(geom.solimp)
    weigh = share[:, None]
    # A `solref` that is not positive is MuJoCo's direct format, minus stiffness and minus damping.
    # A mean of the two formats means nothing, so MuJoCo takes the smaller numbers.
    direct = (solref1[:, :1] <= 0) | (solref2[:, :1] <= 0)
    solref = jnp.where(
        direct, jnp.minimum(solref1, solref2), weigh * solref1 + (1 - weigh) * solref2
    )
    solimp = weigh * solimp1 + (1 - weigh) * solimp2
    adhesion = None
    if _is_adhesive(sys):
        # Twice the geom of priority has twice its adhesion.
        counted = jnp.array([[1.0 + (a == b)] for a, b in zip(*ruling, strict=True)])
        adhesion = total(both(geom.adhesion)) / counted
    return ContactSurface(
        sliding,
        sliding,
        (twist, roll, roll),
        0.5 * total(both(geom.elasticity, _geoms(group))),
        tuple(solref[:, i] for i in range(2)),
        tuple(solimp[:, i] for i in range(5)),
        # Margin and gap do not depend on priority: both geoms count.
        total(both(geom.margin, _geoms(group))),
        total(both(geom.gap, _geoms(group))),
        adhesion,
    )


def _is_adhesive(sys: System) -> bool:
    """Return whether any surface or pair of the model is adhesive."""
    return any(sys.geom_adhesive) or any(sys.pair_adhesive)


def _ruling(sys: System, group: CollisionGroup) -> tuple[tuple[int, ...], ...]:
    """Return the geoms whose parameters count: both of a pair, or twice the one of priority."""
    order = sys.geom_priority
    pairs = [
        (a, b) if order[a] == order[b] else (max(a, b, key=order.__getitem__),) * 2
        for a, b in zip(*_geoms(group), strict=True)
    ]
    return tuple(zip(*pairs, strict=True))


def _geoms(group: CollisionGroup) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the first and the second geoms of a group's pairs."""
    return group.geom1, group.geom2


def frames_of(link_pos: Vec3, link_rot: Quat) -> LinkFrames:
    """Return a function that looks up link frames, from components (n_links, batch).

    Args:
        link_pos: positions of all links, in the model's order.
        link_rot: orientations of all links.
    """

    def frames(links: Sequence[int]) -> tuple[Vec3, Quat]:
        """Return the frames of some links, -1 for the world."""
        # The world's row is only added where a pair needs it.
        if min(links) >= 0:
            return rows(link_pos, links), rows(link_rot, links)
        index = [link + 1 for link in links]
        return (
            rows(_with_world(link_pos, (0.0, 0.0, 0.0)), index),
            rows(_with_world(link_rot, (1.0, 0.0, 0.0, 0.0)), index),
        )

    return frames


def _with_world(frame: FramePart, world: tuple[float, ...]) -> FramePart:
    """Prepend the world's row to the links' rows, so that link -1 is row 0."""
    return type(frame)(
        *(
            jnp.concatenate([jnp.full_like(a[:1], w), a], axis=0)
            for a, w in zip(frame, world, strict=True)
        )
    )
