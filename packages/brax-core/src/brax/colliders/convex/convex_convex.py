"""Any two convex shapes, by their support points."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp

from brax.colliders.convex.clipping import ClipPoint, clip_faces
from brax.colliders.convex.support_search import Support, where, widest_gap
from brax.colliders.interface import Collider, GeometryType, Shape, Touch
from brax.components import Mat3, Vec3, normalize, tangents

_EDGE_SINE_POWER = 0.32
"""Power of the precision that is the sine of the angle up to which an edge counts as lying across
the normal: 6e-3 in single, 1e-5 in double precision."""


_MAX_POINT_OFFSET = 1e-4
"""Share of the size by which the points that touch may lie aside of each other."""


class RelativeShapes(NamedTuple):
    """Two shapes as the first sees them."""

    kinds: tuple[GeometryType, GeometryType]
    a: Shape
    b: Shape
    apart: Vec3
    """Place of the second in the first's frame."""
    turn: Mat3
    """Axes of the second in the first's frame."""

    def support(self, normal: Vec3) -> tuple[Vec3, Vec3]:
        """The first's point that is farthest along a normal, the second's farthest against it."""
        second = self.kinds[1].support(self.b, self.turn.inv_rotate(-normal))
        return self.kinds[0].support(self.a, normal), self.apart + self.turn.rotate(second)

    def faces(self, normal: Vec3) -> tuple[list[Vec3], list[Vec3]]:
        """The sides that face each other."""
        second = self.kinds[1].face(self.b, self.turn.inv_rotate(-normal))
        return self.kinds[0].face(self.a, normal), [
            self.apart + self.turn.rotate(corner) for corner in second
        ]


def _relative(kinds: tuple[GeometryType, GeometryType], a: Shape, b: Shape) -> RelativeShapes:
    apart, turn = a.rot.inv_rotate(b.pos - a.pos), a.rot.inv_mul(b.rot).matrix()
    return RelativeShapes(kinds, a, b, apart, turn)


def _stopped(pair: RelativeShapes) -> RelativeShapes:
    return pair._replace(
        **{
            key: jax.tree.map(jax.lax.stop_gradient, getattr(pair, key))
            for key in ("a", "b", "apart", "turn")
        }
    )


def _stack(vectors: Sequence[Vec3]) -> Vec3:
    return Vec3(*(jnp.stack(jnp.broadcast_arrays(*c)) for c in zip(*vectors, strict=True)))


def _starts(pair: RelativeShapes) -> Vec3:
    """Axes of both shapes, what is across one of each, diagonals, and the line of the frames."""
    zero, one = jnp.zeros_like(pair.turn.x.x), jnp.ones_like(pair.turn.x.x)
    own = [Vec3(one, zero, zero), Vec3(zero, one, zero), Vec3(zero, zero, one)]
    across = [normalize(a.cross(b), a)[0] for a in own for b in pair.turn]
    between, _ = normalize(pair.apart, own[2])
    oblique = [Vec3(one, one * i, one * j) * 3**-0.5 for i in (1, -1) for j in (1, -1)]
    every = [*own, *pair.turn, *across, *oblique]
    return _stack([*every, *(-v for v in every), between])


def _size(support: Support, starts: Vec3) -> jax.Array:
    """Mean of the widths of two shapes together along the axes of the first."""
    n = starts.x.shape[0] // 2
    own = Vec3(*(jnp.concatenate([c[:3], c[n : n + 3]]) for c in starts))
    first, second = support(own)
    return jnp.sum(own.dot(first - second), axis=0) / 3.0


def _edges(corners: Sequence[Vec3]) -> Vec3:
    """Unit vectors along the edges of a side; zero where corners coincide."""
    if len(corners) < 2:
        return Vec3(*(jnp.zeros_like(c)[None] for c in corners[0]))
    side = _stack(corners)
    ahead = Vec3(*(jnp.roll(c, -1, axis=0) for c in side)) - side
    return normalize(ahead)[0]


def _gap(pair: RelativeShapes, normal: Vec3) -> jax.Array:
    first, second = pair.support(normal)
    return normal.dot(second - first)


def _refined(pair: RelativeShapes, normal: Vec3, size: jax.Array) -> Vec3:
    """A Newton step from a normal near the best one, with the derivative of the best one.

    The gap is the widest where the point a - b of the two supports has no part across the normal.
    What is round is curved as the support's derivative says. A straight edge of either side that
    lies across the normal stays across it: a stiff spring holds it there. What depends on the
    shapes is the step's residual, so its derivative is that of the implicit function.
    """
    eps = float(jnp.finfo(size.dtype).eps)
    still = _stopped(pair)
    s, t = tangents(normal)
    sides = [_edges(side) for side in pair.faces(normal)]
    edges = Vec3(*(jnp.concatenate(c) for c in zip(*sides, strict=True)))
    spring = size * eps**-0.4 * (jnp.abs(normal.dot(edges)) < eps**_EDGE_SINE_POWER)

    def residual(pair: RelativeShapes, edges: Vec3, n: Vec3) -> tuple[jax.Array, jax.Array]:
        first, second = pair.support(n)
        point, pull = first - second, spring * n.dot(edges)
        height = n.dot(point)
        held = [jnp.sum(v.dot(edges) * pull, axis=0) for v in (s, t)]
        x, y = (v.dot(point) - v.dot(n) * height for v in (s, t))
        return x + held[0], y + held[1]

    stopped = jax.tree.map(jax.lax.stop_gradient, edges)
    _, (xx, yx) = jax.jvp(lambda n: residual(still, stopped, n), (normal,), (s,))
    _, (xy, yy) = jax.jvp(lambda n: residual(still, stopped, n), (normal,), (t,))
    xy = 0.5 * (xy + yx)
    det = xx * yy - xy * xy
    sound = (xx + yy > 0) & (det > eps * jnp.maximum(xx * xx + yy * yy, size * size))
    scale = jnp.where(sound, 1.0 / jnp.where(sound, det, 1.0), 0.0)

    def step(x: jax.Array, y: jax.Array) -> Vec3:
        moved = s * ((yy * x - xy * y) * scale) + t * ((xx * y - xy * x) * scale)
        return normalize(normal - moved, normal)[0]

    x, y = residual(pair, edges, normal)
    fixed_x, fixed_y = jax.lax.stop_gradient((x, y))
    tried = step(fixed_x, fixed_y)
    worse = _gap(still, tried) < _gap(still, normal) - 8 * eps * size
    return step(x - jnp.where(worse, fixed_x, 0.0), y - jnp.where(worse, fixed_y, 0.0))


def _swing(pair: RelativeShapes, normal: Vec3, touching: Vec3, size: jax.Array) -> jax.Array:
    """Zero, with the derivative by the second shape's turn that its support point lacks.

    Where the supports lie across from each other they are the points that touch. Else one of them
    is any point of a whole side, and the point of the second shape that touches is another.
    """
    still = _stopped(pair)
    first, second = still.support(normal)
    aside = second - first - normal * normal.dot(second - first)
    there = touching + normal * normal.dot(second - first)
    away = where(aside.dot(aside) > (_MAX_POINT_OFFSET * size) ** 2, there - second, aside * 0.0)
    moved = normal.dot(pair.turn.rotate(still.turn.inv_rotate(away)))
    return moved - jax.lax.stop_gradient(moved)


@dataclass(frozen=True)
class ConvexConvex(Collider):
    """One point if either shape is round, two if either is straight, else up to four.

    The distance has the derivative at the fixed best normal and points, which is its own (Danskin's
    theorem).
    """

    first: GeometryType
    second: GeometryType

    @property
    def types(self) -> tuple[str, str]:  # type: ignore[override]
        """Names of the two geometry types."""
        return self.first.name, self.second.name

    @property
    def n_contacts(self) -> int:  # type: ignore[override]
        """As many as the corners of the narrower side."""
        return min(self.first.corners, self.second.corners)

    def collide(self, a: Shape, b: Shape) -> list[Touch]:
        """Along the normal with the widest gap."""
        pair = _relative((self.first, self.second), a, b)
        still = _stopped(pair)
        starts = _starts(still)
        size = _size(still.support, starts)
        found, touching = widest_gap(still.support, starts, size)
        normal = _refined(pair, found, size)
        best = jax.tree.map(jax.lax.stop_gradient, normal)
        dist = _gap(pair, best) + _swing(pair, best, touching, size)
        axes = a.rot.matrix()
        out = axes.rotate(normal)

        def touch(dist: jax.Array, pos: Vec3) -> Touch:
            return Touch(dist, a.pos + axes.rotate(pos), out)

        if self.first.corners == 1:
            return [touch(dist, pair.support(normal)[0] + normal * (0.5 * dist))]
        if self.second.corners == 1:
            return [touch(dist, pair.support(normal)[1] - normal * (0.5 * dist))]
        s, t = tangents(normal)

        def seen(point: Vec3) -> Vec3:
            point = point - touching
            return Vec3(s.dot(point), t.dot(point), normal.dot(point))

        sides = [[seen(corner) for corner in side] for side in pair.faces(best)]
        zero = jnp.zeros_like(dist)
        spots = clip_faces(sides[0], sides[1], ClipPoint(zero, zero, dist, zero), size)
        spots = spots[: self.n_contacts]
        gaps = [dist, *(p.z for p in spots[1:])]
        return [
            touch(gap, touching + s * p.x + t * p.y + normal * (p.height + 0.5 * gap))
            for p, gap in zip(spots, gaps, strict=True)
        ]
