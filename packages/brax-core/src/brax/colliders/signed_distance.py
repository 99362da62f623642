"""A shape that is known by its signed distance, against any other.

The points where the two touch, or nearly do, are those of the other shape at which the distance is
least. Each of several searches goes down its slope: a step leads to the point of the other shape
that is nearest to a point straight ahead, so far that the distance falls as the slope foresees. Of
a convex shape, known by its support points, a tetrahedron of them stands for the whole, as in the
GJK iteration.

Source: Macklin et al. (2020), Local Optimization for Robust Signed Distance Field Collision, whose
step goes towards a support point, not to the nearest point.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from brax.colliders.convex import Corner, best_places, nearest_point, take, where
from brax.colliders.geometry import PLANE
from brax.colliders.interface import Collider, GeometryType, Shape, Touch
from brax.colliders.manifold import widest_four
from brax.colliders.rolling import Bent, Sym2, bent_edges, face_normal, moved
from brax.components import Mat3, Vec3, normalize, tangents

STEPS = 48
"""Of each search."""

STARTS = 8
"""Searches, from the best of some places."""

_PROJECTIONS = 8
"""Steps towards the points of a convex shape from which searches start."""

_MOST, _LEAST = 0.75, 0.4
"""Shares of the foreseen fall above and below which the next step is longer and shorter."""

_LONGER, _SHORTER = 2.0, 0.4

_NEAR = 0.02
"""Share of the size by which a touching point may be farther than the nearest."""

_APART = 10.0
"""Sizes that make the slack of `widest_four` a hundredth of the size: what is nearer is one."""

_FAR = 32.0
"""Distance, in sizes, from which the distance of a surface gives its support, to within w^2 / 64
for a support point that is w sizes off the line."""

_CLEAR = 0.125
"""Distance, in sizes, that a plane keeps from a surface by this estimate."""

_ANGLES = 2 * np.pi * np.arange(STARTS) / STARTS
_AROUND = np.stack([np.cos(_ANGLES), np.sin(_ANGLES), 0 * _ANGLES], axis=1)
"""Directions in a plane."""

_GRID = np.stack(np.meshgrid(*[(-1, 0, 1)] * 3), axis=-1).reshape(-1, 3)
_SPREAD = _GRID[np.abs(_GRID).sum(axis=1) % 2 == 1] / np.sqrt(
    np.abs(_GRID).sum(axis=1, keepdims=True)[np.abs(_GRID).sum(axis=1) % 2 == 1]
)
"""Directions all around: along axes and diagonals."""

Slope = Callable[[Vec3], tuple[jax.Array, Vec3]]
"""Gives the signed distance and its unit slope at points in the other shape's frame."""


class Search(NamedTuple):
    """The state of all searches, (starts, pairs, batch)."""

    point: Vec3
    dist: jax.Array
    slope: Vec3
    length: jax.Array
    """Of the next step [m]."""
    corners: tuple[Corner, ...]
    """Of a convex shape, three whose triangle has the point."""


class Spot(NamedTuple):
    """A point found, seen along the normal of the nearest one."""

    x: jax.Array
    y: jax.Array
    z: jax.Array
    """The distance beyond that of the nearest [m]."""
    point: Vec3
    corners: tuple[Vec3, ...]
    """Of a convex shape, three whose triangle has the point."""


Projection = tuple[Corner, tuple[Corner, Corner, Corner]]
"""A point of a convex shape, and corners whose triangle has it."""


class Other(NamedTuple):
    """The other shape, in its own frame."""

    kind: GeometryType
    shape: Shape

    def starts(self, towards: Vec3, reach: jax.Array) -> tuple[Vec3, tuple[Vec3, ...]]:
        """Places to begin at, (n, pairs, batch), and of a convex shape the corners around each.

        Args:
            towards: where the first shape is.
            reach: the first shape's size [m].
        """
        if self.kind.corners:
            return self.projected(towards + _directions(_SPREAD, reach) * reach)
        if self.kind.has_distance:
            return self.held(_directions(_SPREAD, reach) * _size(self.shape)), ()
        return self.held(towards + _directions(_AROUND, reach) * reach), ()

    def projected(self, target: Vec3) -> tuple[Vec3, tuple[Vec3, ...]]:
        """The points of a convex shape that are nearest to others, and the corners around each.

        From far corners of a large shape no search would come to the first shape.
        """
        first = self.kind.support(self.shape, normalize(target, self._up(target))[0])
        start = Corner(first, first), (Corner(first, first),) * 3

        def step(_: jax.Array, at: Projection) -> Projection:
            point, corners = at[0].point, at[1]
            new = self.kind.support(self.shape, normalize(target - point, self._up(target))[0])
            return nearest_point(target, (Corner(new, new), *corners))

        found, corners = jax.lax.fori_loop(0, _PROJECTIONS, step, start)
        return found.point, tuple(corner.point for corner in corners)

    @staticmethod
    def _up(like: Vec3) -> Vec3:
        none = jnp.zeros_like(like.x)
        return Vec3(none, none, none + 1.0)

    def held(self, point: Vec3) -> Vec3:
        """The nearest point of a plane, or of a shape with a signed distance."""
        if not self.kind.has_distance:
            return point._replace(z=jnp.zeros_like(point.z))
        dist, slope = sloped(self.kind, self.shape, point)
        return point - slope * jnp.maximum(dist, 0.0)

    def ahead(self, search: Search) -> tuple[Vec3, tuple[Corner, ...]]:
        """Where a step leads."""
        target = search.point - search.slope * search.length
        if not self.kind.corners:
            return self.held(target), ()
        new = self.kind.support(self.shape, -search.slope)
        found, corners = nearest_point(target, (Corner(new, new), *search.corners))
        return found.point, corners

    def facing(self, spot: Spot, slope: Vec3, size: jax.Array) -> tuple[Vec3, jax.Array]:
        """The normal of a flat side where the point lies on one, else the slope; and which."""
        if self.kind.corners:
            return face_normal(
                spot.corners, spot.point, slope, lambda n: self.kind.support(self.shape, n), size
            )
        none = jnp.zeros_like(slope.x)
        if self.kind.has_distance:
            return slope, none > 0.0
        return Vec3(none, none, none - 1.0), none == 0.0

    def curvature(self, spot: Spot, slope: Vec3, axes: Sequence[Vec3], size: jax.Array) -> Sym2:
        """The surface's curvature at a point, along tangents of the slope there."""
        none = jnp.zeros_like(slope.x)
        if not self.kind.corners:
            flat = Sym2(none, none, none)
            known = self.kind.has_distance
            return bend(self.kind, self.shape, spot.point, axes) if known else flat
        s, t = axes

        def support(normal: Vec3) -> Vec3:
            return self.kind.support(self.shape, normal)

        first, second = (jax.jvp(support, (-slope,), (v,))[1] for v in axes)
        radii = Sym2(s.dot(first), 0.5 * (s.dot(second) + t.dot(first)), t.dot(second))
        away = [corner - spot.point for corner in spot.corners]
        return bent_edges(radii, [Vec3(s.dot(v), t.dot(v), slope.dot(v)) for v in away], size)

    def growth(self, point: Vec3, normal: Vec3) -> jax.Array:
        """Zero, with the derivative of how far the surface at a point grows along a normal."""
        if self.kind.corners:
            reach = normal.dot(self.kind.support(self.shape, -normal))
        elif self.kind.has_distance:
            reach = self.kind.signed_distance(self.shape, point)
        else:
            return jnp.zeros_like(normal.x)
        return reach - jax.lax.stop_gradient(reach)


@dataclass(frozen=True)
class SignedDistance(Collider):
    """Up to four points: the nearest, and wide ones of those that touch.

    The distance has the derivative at the fixed point, which is its own (Danskin's theorem); the
    normal and the place have that of a point that stays on the other shape.
    """

    surface: GeometryType
    """The one whose signed distance is used."""
    other: GeometryType
    """A plane, a convex shape, or one with a signed distance too."""

    n_contacts = 4

    @property
    def types(self) -> tuple[str, str]:  # type: ignore[override]
        """Names of the two geometry types."""
        return self.surface.name, self.other.name

    def collide(self, a: Shape, b: Shape) -> list[Touch]:
        """Where the other shape's points are nearest to the surface."""
        still: tuple[Shape, Shape] = jax.tree.map(jax.lax.stop_gradient, (a, b))
        drop = self._drop(*still)
        lowered, still_lowered = (
            shape._replace(pos=shape.pos - shape.axis_z * drop) for shape in (b, still[1])
        )
        spots = self._search(still[0], still_lowered)
        return [self._touch(spot, a, lowered, drop) for spot in spots]

    def _drop(self, a: Shape, b: Shape) -> jax.Array:
        """Return how far to lower a plane so that it is clear of the surface [m]; else zero.

        The points of a plane above part of the surface are nearest to its upper side. Below all of
        it, the least distance minus the drop is the distance to the half-space at any depth.
        """
        up, reach = b.axis_z, _size(a)
        if self.other is not PLANE:
            return jnp.zeros_like(reach)
        far = a.rot.inv_rotate(up * (-_FAR * reach))
        # From far away, the distance of a surface tells its support point.
        lowest = _FAR * reach - self.surface.signed_distance(a, Vec3(*(c[None] for c in far)))[0]
        return jnp.maximum(lowest + _CLEAR * reach - up.dot(a.pos - b.pos), 0.0)

    def _search(self, a: Shape, b: Shape) -> list[Spot]:
        """The points in the other shape's frame."""
        other, slope = Other(self.other, b), self._slope(a, b)
        reach = _size(a)
        begin = _first(other, slope, b.rot.inv_rotate(a.pos - b.pos), reach)
        found = jax.lax.fori_loop(0, STEPS, lambda _, s: _step(other, slope, reach, s), begin)
        nearest = best_places(-found.dist, 1)
        best, normal = (take(nearest, v) for v in (found.point, found.slope))
        s, t = tangents(normal)
        aside = found.point - best
        least = jnp.min(found.dist, axis=0)
        corners = tuple(corner.point for corner in found.corners)
        spots = Spot(aside.dot(s), aside.dot(t), found.dist - least, found.point, corners)
        near = found.dist < jnp.maximum(least, 0.0) + _NEAR * reach
        first, *others = widest_four(spots, near, _APART * reach)
        there = [spot.z < _APART * reach for spot in others]
        return [
            first,
            *(
                spot._replace(point=where(is_there, spot.point, first.point))
                for spot, is_there in zip(others, there, strict=True)
            ),
        ]

    def _slope(self, a: Shape, b: Shape) -> Slope:
        turn: Mat3 = a.rot.inv_mul(b.rot).matrix()
        apart = a.rot.inv_rotate(b.pos - a.pos)

        def slope(point: Vec3) -> tuple[jax.Array, Vec3]:
            dist, out = sloped(self.surface, a, apart + turn.rotate(point))
            return dist, turn.inv_rotate(out)

        return slope

    def _touch(self, spot: Spot, a: Shape, b: Shape, drop: jax.Array) -> Touch:
        """The point at its place, whose distance counts if it is one of those found to be near.

        Args:
            spot: the point.
            a: the first shape.
            b: the second shape, lowered.
            drop: how far it is lowered [m].
        """
        place, normal = self._moved(spot, a, b)
        # Danskin's theorem lets the point move or not. Where it moves, a shape that slides on a
        # flat side keeps its distance even if the search has stopped short of the least.
        dist = self.surface.signed_distance(a, a.rot.inv_rotate(place - a.pos))
        still = jax.tree.map(jax.lax.stop_gradient, b.rot.inv_rotate(normal))
        dist = dist + Other(self.other, b).growth(spot.point, still) - drop
        far = _APART * _size(a)
        dist = jnp.where(spot.z < far, dist, jnp.abs(dist) + far)
        return Touch(dist, place - normal * (0.5 * dist + drop), normal)

    def _moved(self, spot: Spot, a: Shape, b: Shape) -> tuple[Vec3, Vec3]:
        """The place and the normal, with their derivatives."""
        still_a, still_b = jax.tree.map(jax.lax.stop_gradient, (a, b))
        place = still_b.pos + still_b.rot.rotate(spot.point)
        point = still_a.rot.inv_rotate(place - still_a.pos)
        out = still_a.rot.rotate(sloped(self.surface, still_a, point)[1])
        other, size = Other(self.other, still_b), _size(still_a)
        facing, flat = other.facing(spot, still_b.rot.inv_rotate(out), size)
        normal = still_b.rot.rotate(facing)
        axes = tangents(normal)
        own, others = ([rot.inv_rotate(v) for v in axes] for rot in (still_a.rot, still_b.rot))
        curved = other.curvature(spot, facing, others, size)
        curved = Sym2(*(jnp.where(flat, 0.0, c) for c in curved))
        bent = Bent.of(bend(self.surface, still_a, point, own), curved, size)
        places = a.pos + a.rot.rotate(point), b.pos + b.rot.rotate(spot.point)
        normals = a.rot.rotate(sloped(self.surface, a, point)[1]), b.rot.rotate(facing)
        return moved(bent, axes, places, normals)


def sloped(kind: GeometryType, shape: Shape, point: Vec3) -> tuple[jax.Array, Vec3]:
    """Signed distance at points in the shape's frame, and its unit slope."""
    dist, back = jax.vjp(lambda p: kind.signed_distance(shape, p), point)
    zero, one = jnp.zeros_like(dist), jnp.ones_like(dist)
    (out,) = back(one)
    return dist, normalize(out, Vec3(zero, zero, one))[0]


def bend(kind: GeometryType, shape: Shape, point: Vec3, axes: Sequence[Vec3]) -> Sym2:
    """Curvature, along unit tangents, of the surface of equal signed distance at a point."""
    s, t = axes
    first, second = (jax.jvp(lambda p: sloped(kind, shape, p)[1], (point,), (v,))[1] for v in axes)
    return Sym2(s.dot(first), 0.5 * (s.dot(second) + t.dot(first)), t.dot(second))


def _first(other: Other, slope: Slope, towards: Vec3, reach: jax.Array) -> Search:
    places, found = other.starts(Vec3(*(c[None] for c in towards)), reach)
    best = best_places(-slope(places)[0], STARTS)
    point, around = take(best, places), [take(best, corner) for corner in found]
    dist, out = slope(point)
    corners = tuple(Corner(corner, corner) for corner in around)
    return Search(point, dist, out, jnp.broadcast_to(reach, dist.shape), corners)


def _step(other: Other, slope: Slope, reach: jax.Array, search: Search) -> Search:
    point, corners = other.ahead(search)
    dist, out = slope(point)
    fall, foreseen = search.dist - dist, search.slope.dot(search.point - point)
    # Falls below rounding say nothing of a step, but the slope still leads on.
    noise = 8.0 * jnp.finfo(dist.dtype).eps * reach
    settled = foreseen < noise
    better = jnp.where(settled, fall > -noise, fall > 0)
    factor = jnp.where(fall > _MOST * foreseen, _LONGER, 1.0)
    factor = jnp.where(fall >= _LEAST * foreseen, factor, _SHORTER)
    length = search.length * jnp.where(better, jnp.where(settled, 1.0, factor), _SHORTER)
    tried = Search(point, dist, out, length, corners)
    kept = search._replace(length=length)
    return jax.tree.map(lambda x, y: jnp.where(better, x, y), tried, kept)


def _directions(unit: np.ndarray, like: jax.Array) -> Vec3:
    """Constant directions (n, 3) as components (n, pairs, batch)."""
    one = jnp.ones_like(like)
    return Vec3(*(jnp.stack([one * x for x in row]) for row in unit.T.tolist()))


def _size(shape: Shape) -> jax.Array:
    """The largest size parameter [m], (pairs, batch)."""
    return jnp.maximum(jnp.maximum(shape.size.x, shape.size.y), shape.size.z)
