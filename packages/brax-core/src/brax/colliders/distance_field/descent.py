"""Projected gradient descent to the points of a shape that are nearest to a signed distance field.

The field is the signed distance of the first shape, and the points belong to the other one. A step
goes down the distance's gradient and then projects onto the other shape, that is, to its nearest
point. Step lengths follow Barzilai and Borwein, and a step that increases the distance is repeated
with a smaller length. The projection is the shape's `nearest` if it has one. A convex shape that is
known only by its support points is approximated by a tetrahedron of them, as in the GJK iteration.

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
from brax.components import Vec3, normalize, tangents
from brax.kernels.skip import where_needed

MAX_DESCENT_STEPS = 16
"""Largest number of steps of each search."""

MAX_LAST_DESCENT_STEPS = 48
"""Largest number of further steps of the best search."""

DESCENT_STARTS = 8
"""Number of searches, which start from the best of some places."""

MAX_DISTANCE_EXCESS = 0.02
"""Share of the size by which a contact point may be farther than the nearest one."""

_CONVERGED_TILT, _CONVERGED_STEP = 0.03, 1e-3
"""Tilt, and length of a step in sizes, below which a search ends, unless it is the best one."""

_START_PROJECTIONS = 8
"""Number of projection steps to the points of a convex shape from which the searches start."""

_MAX_STEP_GROWTH, _MIN_STEP_GROWTH = 4.0, 0.25
"""Largest and smallest factor by which the length of a step changes."""

_NORMAL_HEIGHT = 0.1
"""Height, in sizes, of the point over a contact whose nearest point gives normal and curvature."""

_MAX_SLOPE_TILT = 0.05
"""Sine of the angle between the gradient and the other shape's normal up to which the normal is
used. The search only approaches the point where the two are parallel."""

_SHARP_RADIUS_SHARE = 1e-5
"""Radius that stands for the zero radius of an edge, as a share of `_NORMAL_HEIGHT`."""

_ANGLES = 2 * np.pi * np.arange(DESCENT_STARTS) / DESCENT_STARTS
_AROUND = np.stack([np.cos(_ANGLES), np.sin(_ANGLES), 0 * _ANGLES], axis=1)
"""Unit directions in the plane z = 0, (8, 3)."""

_GRID = np.stack(np.meshgrid(*[(-1, 0, 1)] * 3), axis=-1).reshape(-1, 3)
_CORNERS = _GRID[np.abs(_GRID).sum(axis=1) % 2 == 1]
_START_DIRECTIONS = _CORNERS / np.linalg.norm(_CORNERS, axis=1, keepdims=True)
"""Unit directions along the six half-axes and the eight diagonals of a cube, (14, 3)."""

_PENALTY = 2.0
"""Factor of the distance of a point from the shape that it should belong to."""

_EXTENT_SIZES = 1.5
"""Radius of the ball around a shape with a signed distance that its points are sought in, in
sizes: the ring of a torus reaches farther than its largest size parameter."""

_MIN_APART_SIZES = 1e-3
"""Distance of two shapes, in sizes, below which they count as concentric."""

_IN_BALL_ANGLES = np.pi * (3 - np.sqrt(5)) * np.arange(24)
_HEIGHTS = (2 * np.arange(24) + 1) / 24 - 1
_RADII = ((5 * np.arange(24) % 24 + 0.5) / 24) ** (1 / 3)
_IN_BALL = _RADII[:, None] * np.stack(
    [
        np.sqrt(1 - _HEIGHTS**2) * np.cos(_IN_BALL_ANGLES),
        np.sqrt(1 - _HEIGHTS**2) * np.sin(_IN_BALL_ANGLES),
        _HEIGHTS,
    ],
    axis=1,
)
"""Points of the unit ball, (24, 3): directions of a Fibonacci lattice, whose spacing in longitude
is the golden angle, at distances that fill the ball evenly."""

Slope = Callable[[Vec3], tuple[jax.Array, Vec3]]
"""A function from points in the other shape's frame to the signed distance and unit gradient."""


class DescentState(NamedTuple):
    """The state of all searches, (starts, pairs, batch), in the other shape's frame."""

    point: Vec3
    """The point of the other shape [m]."""
    dist: jax.Array
    """The first shape's signed distance there [m]."""
    slope: Vec3
    """The unit gradient of the distance there."""
    length: jax.Array
    """Length of the next step [m]."""
    corners: tuple[SupportPoint, ...]
    """The simplex of a shape without `nearest`: three support points whose triangle contains the
    point. Empty for other shapes."""
    tilt: jax.Array
    """Distance covered by the last step over its length before the projection. It is zero at the
    solution, where the gradient is perpendicular to the surface."""


Projection = tuple[SupportPoint, tuple[SupportPoint, SupportPoint, SupportPoint]]
"""A point of a convex shape, and the three support points whose triangle contains it."""


class OtherShape(NamedTuple):
    """The shape that points are sought on, in its own frame."""

    kind: GeometryType
    """Its type."""
    shape: Shape
    """Its size and vertices."""

    @property
    def by_corners(self) -> bool:
        """True if the shape is known only by its support points."""
        return not (self.kind.has_nearest or self.kind.has_distance)

    def starts(self, towards: Vec3, reach: jax.Array) -> tuple[Vec3, tuple[Vec3, ...]]:
        """Return points to start from, (n, pairs, batch), and the simplex around each, if any.

        Args:
            towards: position of the first shape [m].
            reach: size of the first shape [m].
        """
        # Starts lie around the first shape where the other one may be much larger, such as a plane,
        # and around the other one where nothing but its size is known.
        if self.by_corners:
            return self.projected(towards + _directions(_START_DIRECTIONS, reach) * reach)
        if self.kind.only_static:
            return self.nearest(towards + _directions(_AROUND, reach) * reach), ()
        if self.kind.has_nearest:
            return self.nearest(towards + _directions(_START_DIRECTIONS, reach) * reach), ()
        around = _directions(_START_DIRECTIONS, reach) * size_of(self.shape)
        between = self._between(towards, reach)
        every = (jnp.concatenate(parts) for parts in zip(around, between, strict=True))
        return self.nearest(Vec3(*every)), ()

    def _between(self, towards: Vec3, reach: jax.Array) -> Vec3:
        """Return points in the space that two shapes may share, (n, pairs, batch).

        It is the intersection of two balls around them. Of shapes with many hollows, such as two
        gears, a search that starts elsewhere ends in another one.

        Args:
            towards: position of the first shape [m].
            reach: size of the first shape [m].
        """
        first, own = _EXTENT_SIZES * reach, _EXTENT_SIZES * size_of(self.shape)
        towards = Vec3(*(c[0] for c in towards))
        way, apart = normalize(towards, self._up(towards))
        near, far = jnp.maximum(apart - first, -own), jnp.minimum(apart + first, own)
        # The circle in which the two spheres intersect has its centre on the line between theirs.
        # Where it is not between them, the space is as wide as the smaller ball.
        less = jnp.minimum(first, own)
        apart = jnp.maximum(apart, _MIN_APART_SIZES * less)
        centre = 0.5 * (apart + (own - first) * (own + first) / apart)
        is_between = (centre > 0) & (centre < apart) & (centre < own)
        wide = jnp.where(
            is_between, jnp.sqrt(jnp.where(is_between, own * own - centre * centre, 1.0)), less
        )
        s, t = tangents(way)
        ball = _directions(_IN_BALL, reach)
        middle, half = 0.5 * (near + far), 0.5 * jnp.maximum(far - near, 0.0)
        return s * (wide * ball.x) + t * (wide * ball.y) + way * (middle + half * ball.z)

    def projected(self, target: Vec3) -> tuple[Vec3, tuple[Vec3, ...]]:
        """Return the points of a convex shape nearest to given points, and the simplex around each.

        Support points are no good starts: from the far corners of a large shape no search
        would reach the first shape.
        """
        # The GJK iteration for the distance of a point (Ericson 2005, Real-Time Collision
        # Detection, section 9.5).
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
        """Return the z axis, for vectors without a direction."""
        none = jnp.zeros_like(like.x)
        return Vec3(none, none, none + 1.0)

    def nearest(self, point: Vec3) -> Vec3:
        """Return the points of the shape that are nearest to given points."""
        if self.kind.has_nearest:
            return self.kind.nearest(self.shape, point)
        # A true distance has a unit gradient, so that one step along it leads to the surface.
        dist, slope = distance_and_slope(self.kind, self.shape, point)
        return point - slope * jnp.maximum(dist, 0.0)

    def ahead(self, search: DescentState) -> tuple[Vec3, tuple[SupportPoint, ...]]:
        """Return the point that a step leads to, and the simplex around it."""
        target = search.point - search.slope * search.length
        # A nearest point in closed form is several times cheaper than a step of the GJK iteration.
        if not self.by_corners:
            return self.nearest(target), ()
        new = self.kind.support(self.shape, -search.slope)
        found, corners = nearest_point(target, (SupportPoint(new, new), *search.corners))
        return found.point, corners

    def facing(
        self, point: Vec3, corners: Sequence[Vec3], slope: Vec3, size: jax.Array
    ) -> tuple[Vec3, jax.Array]:
        """Return the shape's inward normal at a point, and whether it is the normal of a face.

        If the gradient is not nearly the normal, the gradient is returned. Faces are recognised
        only of shapes that are known by their support points.

        Args:
            point: a point of the surface.
            corners: the simplex around it.
            slope: unit gradient of the first shape's distance there.
            size: size of the first shape [m].
        """
        if self.by_corners:
            return face_normal(
                corners, point, slope, lambda n: self.kind.support(self.shape, n), size
            )
        # Shapes in closed form have exact normals and need no faces.
        flat = jnp.zeros_like(size) > 0.0
        if not self.kind.has_nearest:
            return slope, flat
        # The nearest point of a point above a smooth surface is straight below it.
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
        """Return the surface's curvature at a point, along tangents of the inward normal there.

        Args:
            point: a point of the surface.
            corners: the simplex around it.
            normal: the inward normal there.
            axes: two unit tangents.
            size: size of the first shape [m].
        """
        if self.by_corners:
            return self._curvature_by_corners(point, corners, normal, axes, size)
        if not self.kind.has_nearest:
            return curvature(self.kind, self.shape, point, axes)
        height = _NORMAL_HEIGHT * size
        # Where a point above the surface moves by a unit along it, its nearest point moves by
        # 1 / (1 + height * curvature). Solving for the curvature needs the inverse of that share,
        # which is zero at an edge. There the edge gets a small radius.
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
        """Return the curvature of a shape that is known by its support points."""
        s, t = axes

        radii = derivative(lambda v: self.kind.support(self.shape, v), -normal, axes)
        away = [corner - point for corner in corners]
        return edge_curvature(radii, [Vec3(s.dot(v), t.dot(v), normal.dot(v)) for v in away], size)

    def growth(self, point: Vec3, normal: Vec3) -> jax.Array:
        """Return zero, with the derivative of the surface's position along a normal by the sizes.

        Args:
            point: a point of the surface.
            normal: the inward normal there.
        """
        if self.kind.corners:
            reach = normal.dot(self.kind.support(self.shape, -normal))
        elif self.kind.has_distance:
            reach = self.kind.signed_distance(self.shape, point)
        else:
            return jnp.zeros_like(normal.x)
        return reach - jax.lax.stop_gradient(reach)


def descend(other: OtherShape, slope: Slope, towards: Vec3, reach: jax.Array) -> DescentState:
    """Run several searches until they are near the least distance, and the best to convergence.

    Args:
        other: the shape whose points are sought.
        slope: the distance to minimize, and its gradient.
        towards: position of the first shape in the other's frame [m].
        reach: size of the first shape [m].

    Returns:
        The results, (1 + starts, pairs, batch): first the best, then that of each search.
    """
    slope = _with_penalty(other, slope)

    def close(search: DescentState) -> jax.Array:
        """Return a mask of the searches that need no more steps."""
        # A step still lowers the distance by about the tilt. Searches that cannot come near the
        # least distance give no contact point, so they need not converge.
        falls = search.dist - reach * search.tilt
        matters = falls < jnp.min(search.dist, axis=0) + MAX_DISTANCE_EXCESS * reach
        return (
            ~matters | (search.tilt < _CONVERGED_TILT) | (search.length < _CONVERGED_STEP * reach)
        )

    def at_the_end(search: DescentState) -> jax.Array:
        """Return a mask of the searches that have converged to the precision."""
        # Near the minimum the distance grows with the square of the tilt.
        eps = jnp.finfo(reach.dtype).eps
        return (search.tilt < eps**0.5) | (search.length < eps**0.75 * reach)

    def run(
        search: DescentState, done: Callable[[DescentState], jax.Array], steps: int
    ) -> DescentState:
        """Take up to `steps` steps, each only in environments where a search is not done."""

        def step(_: jax.Array, search: DescentState) -> DescentState:
            going = ~done(search).reshape(-1, reach.shape[-1])
            needed = jnp.any(going, axis=0, keepdims=True)
            return where_needed(needed, lambda s: _step(other, slope, reach, s), search)

        return jax.lax.fori_loop(0, steps, step, search)

    # All searches run to a loose tolerance, because each may end in a contact point of its own.
    # Only the best one, whose distance counts most, continues to the precision.
    every = run(_first(other, slope, towards, reach), close, MAX_DESCENT_STEPS)
    chosen = best_places(-every.dist, 1)
    best = take(chosen, every)
    # A tilt of one, because the best search may have stopped at the looser tolerance.
    best = run(best._replace(tilt=jnp.ones_like(best.tilt)), at_the_end, MAX_LAST_DESCENT_STEPS)
    return jax.tree.map(lambda *c: jnp.concatenate(c), best, every)


def _with_penalty(other: OtherShape, slope: Slope) -> Slope:
    """Return a distance to minimize that is larger where a point is off the other shape.

    One step along a distance's gradient ends next to the surface, not on it, where the surface is
    curved or has edges. A distance changes by at most as much as its point moves, so that with any
    factor above one the least value is at a point of the shape (an exact penalty; Nocedal and
    Wright 2006, Numerical Optimization, section 17.2).
    """
    if other.by_corners or other.kind.has_nearest:
        return slope

    def penalized(point: Vec3) -> tuple[jax.Array, Vec3]:
        """Return the distance with the penalty, and the gradient without it."""
        dist, out = slope(point)
        off = jnp.maximum(other.kind.signed_distance(other.shape, point), 0.0)
        return dist + _PENALTY * off, out

    return penalized


def _first(other: OtherShape, slope: Slope, towards: Vec3, reach: jax.Array) -> DescentState:
    """Return the searches at their starts, the nearest `DESCENT_STARTS` of all."""
    places, found = other.starts(Vec3(*(c[None] for c in towards)), reach)
    point, around = places, list(found)
    if len(places.x) > DESCENT_STARTS:
        best = best_places(-slope(places)[0], DESCENT_STARTS)
        point, around = take(best, places), [take(best, corner) for corner in found]
    # A tilt of one, that of a search that has not moved, counts as far from converged.
    dist, out = slope(point)
    corners = tuple(SupportPoint(corner, corner) for corner in around)
    # Far from the surface the first step covers the whole distance.
    length = jnp.maximum(dist, reach)
    return DescentState(point, dist, out, length, corners, jnp.ones_like(dist))


def _step(other: OtherShape, slope: Slope, reach: jax.Array, search: DescentState) -> DescentState:
    """Take one projected step of each search, or shorten its length if the distance grew.

    Source: Birgin, Martínez, Raydan (2000), section 2. Departure: the line search
    is monotone, and a step that increases the distance is repeated with a smaller length.
    """
    point, corners = other.ahead(search)
    dist, out = slope(point)
    way, turn = point - search.point, out - search.slope
    fall, foreseen = search.dist - dist, -search.slope.dot(way)
    # Where the expected decrease is below rounding, the measured one says nothing. The step counts
    # unless the distance clearly grew, because the gradient still points the way.
    noise = 8.0 * jnp.finfo(dist.dtype).eps * reach
    better = jnp.where(foreseen < noise, fall > -noise, fall > 0)
    # The Barzilai-Borwein length s.s / s.y, where s is the change of the point and y that of the
    # gradient. Where s.y is too small or negative, the length grows by the largest factor.
    square, bent = way.dot(way), way.dot(turn)
    most, least = _MAX_STEP_GROWTH * search.length, _MIN_STEP_GROWTH * search.length
    spectral = square / jnp.where(bent > 0, bent, 1.0)
    longer = jnp.where(bent * most > square, jnp.maximum(spectral, least), most)
    tilt = jnp.sqrt(square) / search.length
    tried = DescentState(point, dist, out, longer, corners, tilt)
    return where(better, tried, search._replace(length=least))


def _directions(unit: np.ndarray, like: jax.Array) -> Vec3:
    """Return constant directions (n, 3) as components (n, pairs, batch)."""
    one = jnp.ones_like(like)
    return Vec3(*(jnp.stack([one * x for x in row]) for row in unit.T.tolist()))


def size_of(shape: Shape) -> jax.Array:
    """Return the largest size parameter [m], (pairs, batch)."""
    return jnp.maximum(jnp.maximum(shape.size.x, shape.size.y), shape.size.z)
