"""Searches for the points of one shape that are nearest to another, known by its signed distance.

Each search is a projected gradient descent: a step leads to the point of the other shape that is
nearest to a point straight ahead. Step lengths follow Barzilai and Borwein, and a step that leads
up is taken again, shorter. A shape that gives its nearest points is asked for them. Of a convex
shape known only by its support points, a tetrahedron of them stands for the whole, as in the GJK
iteration.

Sources: Macklin et al. (2020), Local Optimization for Robust Signed Distance Field Collision, whose
step goes towards a support point, not to the nearest point; Birgin, Martínez, Raydan (2000),
Nonmonotone spectral projected gradient methods on convex sets, for the step lengths.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from brax.colliders.convex.contact_derivatives import (
    Sym2,
    curvature,
    derivative,
    distance_and_slope,
    edge_curvature,
    face_normal,
)
from brax.colliders.convex.support_search import (
    SupportPoint,
    best_places,
    nearest_point,
    take,
    where,
)
from brax.colliders.interface import GeometryType, Shape
from brax.components import Vec3, normalize
from brax.kernels.skip import where_needed

MAX_DESCENT_STEPS = 16
"""The most steps of each search."""

MAX_LAST_DESCENT_STEPS = 48
"""The most steps that the best search goes on for."""

DESCENT_STARTS = 8
"""Searches, from the best of some places."""

MAX_DISTANCE_EXCESS = 0.02
"""Share of the size by which a touching point may be farther than the nearest."""

_CONVERGED_TILT, _CONVERGED_STEP = 0.03, 1e-3
"""Tilt, and length of a step in sizes, below which a search that is not the best one ends."""

_START_PROJECTIONS = 8
"""Steps towards the points of a convex shape from which searches start."""

_MAX_STEP_GROWTH, _MIN_STEP_GROWTH = 4.0, 0.25
"""The most and the least by which a step's length changes."""

_NORMAL_HEIGHT = 0.1
"""Height, in sizes, of the point over a place whose nearest point gives normal and curvature."""

_MAX_SLOPE_TILT = 0.05
"""Sine of the angle between a slope and the other shape's normal up to which the normal counts,
which the search only approaches."""

_SHARP_RADIUS_SHARE = 1e-5
"""Share of `_NORMAL_HEIGHT` that is the radius of a sharp edge."""

_ANGLES = 2 * np.pi * np.arange(DESCENT_STARTS) / DESCENT_STARTS
_AROUND = np.stack([np.cos(_ANGLES), np.sin(_ANGLES), 0 * _ANGLES], axis=1)
"""Directions in a plane."""

_GRID = np.stack(np.meshgrid(*[(-1, 0, 1)] * 3), axis=-1).reshape(-1, 3)
_CORNERS = _GRID[np.abs(_GRID).sum(axis=1) % 2 == 1]
_START_DIRECTIONS = _CORNERS / np.linalg.norm(_CORNERS, axis=1, keepdims=True)
"""Directions all around: along axes and diagonals."""

Slope = Callable[[Vec3], tuple[jax.Array, Vec3]]
"""Gives the signed distance and its unit slope at points in the other shape's frame."""


class DescentState(NamedTuple):
    """The state of all searches, (starts, pairs, batch)."""

    point: Vec3
    dist: jax.Array
    slope: Vec3
    length: jax.Array
    """Length of the next step [m]."""
    corners: tuple[SupportPoint, ...]
    """Three support points whose triangle has the point, of a shape without nearest points."""
    tilt: jax.Array
    """How far the last step led, as a share of its length: zero where the slope is the normal."""


Projection = tuple[SupportPoint, tuple[SupportPoint, SupportPoint, SupportPoint]]
"""A point of a convex shape, and corners whose triangle has it."""


class OtherShape(NamedTuple):
    """The other shape, in its own frame."""

    kind: GeometryType
    shape: Shape

    @property
    def by_corners(self) -> bool:
        """True if only support points tell the shape's points."""
        return not (self.kind.has_nearest or self.kind.has_distance)

    def starts(self, towards: Vec3, reach: jax.Array) -> tuple[Vec3, tuple[Vec3, ...]]:
        """Places to begin at, (n, pairs, batch), and of a convex shape the corners around each.

        Args:
            towards: where the first shape is.
            reach: the first shape's size [m].
        """
        if self.by_corners:
            return self.projected(towards + _directions(_START_DIRECTIONS, reach) * reach)
        if self.kind.only_static:
            return self.nearest(towards + _directions(_AROUND, reach) * reach), ()
        if self.kind.has_nearest:
            return self.nearest(towards + _directions(_START_DIRECTIONS, reach) * reach), ()
        return self.nearest(_directions(_START_DIRECTIONS, reach) * size_of(self.shape)), ()

    def projected(self, target: Vec3) -> tuple[Vec3, tuple[Vec3, ...]]:
        """The points of a convex shape that are nearest to others, and the corners around each.

        From far corners of a large shape no search would come to the first shape.
        """
        first = self.kind.support(self.shape, normalize(target, self._up(target))[0])
        start = SupportPoint(first, first), (SupportPoint(first, first),) * 3

        def step(_: jax.Array, at: Projection) -> Projection:
            point, corners = at[0].point, at[1]
            new = self.kind.support(self.shape, normalize(target - point, self._up(target))[0])
            return nearest_point(target, (SupportPoint(new, new), *corners))

        found, corners = jax.lax.fori_loop(0, _START_PROJECTIONS, step, start)
        return found.point, tuple(corner.point for corner in corners)

    @staticmethod
    def _up(like: Vec3) -> Vec3:
        none = jnp.zeros_like(like.x)
        return Vec3(none, none, none + 1.0)

    def nearest(self, point: Vec3) -> Vec3:
        """The nearest points of the shape."""
        if self.kind.has_nearest:
            return self.kind.nearest(self.shape, point)
        dist, slope = distance_and_slope(self.kind, self.shape, point)
        return point - slope * jnp.maximum(dist, 0.0)

    def ahead(self, search: DescentState) -> tuple[Vec3, tuple[SupportPoint, ...]]:
        """Where a step leads."""
        target = search.point - search.slope * search.length
        if not self.by_corners:
            return self.nearest(target), ()
        new = self.kind.support(self.shape, -search.slope)
        found, corners = nearest_point(target, (SupportPoint(new, new), *search.corners))
        return found.point, corners

    def facing(
        self, point: Vec3, corners: Sequence[Vec3], slope: Vec3, size: jax.Array
    ) -> tuple[Vec3, jax.Array]:
        """The shape's inward normal at a point if the slope is nearly that, else the slope; and
        whether it is the normal of a flat side, of a shape known by its corners."""
        if self.by_corners:
            return face_normal(
                corners, point, slope, lambda n: self.kind.support(self.shape, n), size
            )
        flat = jnp.zeros_like(size) > 0.0
        if not self.kind.has_nearest:
            return slope, flat
        above = point - slope * (_NORMAL_HEIGHT * size)
        normal, _ = normalize(self.nearest(above) - above, slope)
        off = normal - slope
        return where(off.dot(off) < _MAX_SLOPE_TILT**2, normal, slope), flat

    def curvature(
        self,
        point: Vec3,
        corners: Sequence[Vec3],
        normal: Vec3,
        axes: Sequence[Vec3],
        size: jax.Array,
    ) -> Sym2:
        """The surface's curvature at a point, along tangents of the inward normal there."""
        if self.by_corners:
            return self._curvature_by_corners(point, corners, normal, axes, size)
        if not self.kind.has_nearest:
            return curvature(self.kind, self.shape, point, axes)
        height = _NORMAL_HEIGHT * size
        # The nearest point moves by 1 / (1 + height * curvature) of what the point above moves by.
        share = derivative(self.nearest, point - normal * height, axes)
        soft = Sym2(
            *(
                c * (1.0 - _SHARP_RADIUS_SHARE) + _SHARP_RADIUS_SHARE * one
                for c, one in zip(share, (1, 0, 1), strict=True)
            )
        )
        inverse = soft.inverse(jnp.zeros_like(size))
        return Sym2(*((c - one) / height for c, one in zip(inverse, (1, 0, 1), strict=True)))

    def _curvature_by_corners(
        self,
        point: Vec3,
        corners: Sequence[Vec3],
        normal: Vec3,
        axes: Sequence[Vec3],
        size: jax.Array,
    ) -> Sym2:
        s, t = axes

        radii = derivative(lambda v: self.kind.support(self.shape, v), -normal, axes)
        away = [corner - point for corner in corners]
        return edge_curvature(radii, [Vec3(s.dot(v), t.dot(v), normal.dot(v)) for v in away], size)

    def growth(self, point: Vec3, normal: Vec3) -> jax.Array:
        """Zero, with the derivative of how far the surface at a point grows along a normal."""
        if self.kind.corners:
            reach = normal.dot(self.kind.support(self.shape, -normal))
        elif self.kind.has_distance:
            reach = self.kind.signed_distance(self.shape, point)
        else:
            return jnp.zeros_like(normal.x)
        return reach - jax.lax.stop_gradient(reach)


def descend(other: OtherShape, slope: Slope, towards: Vec3, reach: jax.Array) -> DescentState:
    """Run several searches until they are close to the least distance, and the best to the end.

    Args:
        other: the shape whose points are sought.
        slope: of the distance that is to be least.
        towards: where the first shape is, in the other's frame.
        reach: the first shape's size [m].

    Returns:
        What is found: first the best, then what each search found.
    """

    def close(search: DescentState) -> jax.Array:
        falls = search.dist - reach * search.tilt
        matters = falls < jnp.min(search.dist, axis=0) + MAX_DISTANCE_EXCESS * reach
        return (
            ~matters | (search.tilt < _CONVERGED_TILT) | (search.length < _CONVERGED_STEP * reach)
        )

    def at_the_end(search: DescentState) -> jax.Array:
        eps = jnp.finfo(reach.dtype).eps
        return (search.tilt < eps**0.5) | (search.length < eps**0.75 * reach)

    def run(
        search: DescentState, done: Callable[[DescentState], jax.Array], steps: int
    ) -> DescentState:
        def step(_: jax.Array, search: DescentState) -> DescentState:
            going = ~done(search).reshape(-1, reach.shape[-1])
            needed = jnp.any(going, axis=0, keepdims=True)
            return where_needed(needed, lambda s: _step(other, slope, reach, s), search)

        return jax.lax.fori_loop(0, steps, step, search)

    every = run(_first(other, slope, towards, reach), close, MAX_DESCENT_STEPS)
    chosen = best_places(-every.dist, 1)
    best = take(chosen, every)
    best = run(best._replace(tilt=jnp.ones_like(best.tilt)), at_the_end, MAX_LAST_DESCENT_STEPS)
    return jax.tree.map(lambda *c: jnp.concatenate(c), best, every)


def _first(other: OtherShape, slope: Slope, towards: Vec3, reach: jax.Array) -> DescentState:
    places, found = other.starts(Vec3(*(c[None] for c in towards)), reach)
    point, around = places, list(found)
    if len(places.x) > DESCENT_STARTS:
        best = best_places(-slope(places)[0], DESCENT_STARTS)
        point, around = take(best, places), [take(best, corner) for corner in found]
    dist, out = slope(point)
    corners = tuple(SupportPoint(corner, corner) for corner in around)
    length = jnp.maximum(dist, reach)
    return DescentState(point, dist, out, length, corners, jnp.ones_like(dist))


def _step(other: OtherShape, slope: Slope, reach: jax.Array, search: DescentState) -> DescentState:
    point, corners = other.ahead(search)
    dist, out = slope(point)
    way, turn = point - search.point, out - search.slope
    fall, foreseen = search.dist - dist, -search.slope.dot(way)
    # Falls below rounding say nothing of a step, but the slope still leads on.
    noise = 8.0 * jnp.finfo(dist.dtype).eps * reach
    better = jnp.where(foreseen < noise, fall > -noise, fall > 0)
    square, bent = way.dot(way), way.dot(turn)
    most, least = _MAX_STEP_GROWTH * search.length, _MIN_STEP_GROWTH * search.length
    spectral = square / jnp.where(bent > 0, bent, 1.0)
    longer = jnp.where(bent * most > square, jnp.maximum(spectral, least), most)
    tilt = jnp.sqrt(square) / search.length
    tried = DescentState(point, dist, out, longer, corners, tilt)
    return where(better, tried, search._replace(length=least))


def _directions(unit: np.ndarray, like: jax.Array) -> Vec3:
    """Constant directions (n, 3) as components (n, pairs, batch)."""
    one = jnp.ones_like(like)
    return Vec3(*(jnp.stack([one * x for x in row]) for row in unit.T.tolist()))


def size_of(shape: Shape) -> jax.Array:
    """The largest size parameter [m], (pairs, batch)."""
    return jnp.maximum(jnp.maximum(shape.size.x, shape.size.y), shape.size.z)
