"""The collider of any two convex shapes, by their support points.

Four stages: the normal along which the gap is widest (`support_search`), one Newton step on it that
also gives its derivative (`_newton_step`), the distance along it (`_gap`), and the contact manifold
of the two facing faces (`clipping`). All of it happens in the frame of the first shape.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp

from brax.colliders.convex.any_convex import AnyConvex
from brax.colliders.convex.clipping import ClipPoint, clip_faces
from brax.colliders.convex.support_search import Support, are_apart, where, widest_gap
from brax.colliders.interface import Collider, GeometryType, Shape, Touch
from brax.components import Mat3, Vec3, normalize, tangents

_EDGE_SINE_POWER = 0.32
"""Exponent of the machine precision that gives the sine of the angle up to which an edge counts as
perpendicular to the normal: 6e-3 in single and 1e-5 in double precision."""

_MAX_POINT_OFFSET = 1e-4
"""Tangential distance, in sizes, up to which two support points are the points that touch."""


class RelativeShapes(NamedTuple):
    """Two shapes in the frame of the first."""

    kinds: tuple[GeometryType, GeometryType]
    """The types of both."""
    a: Shape
    """The first shapes, (pairs, batch)."""
    b: Shape
    """The second shapes, (pairs, batch)."""
    apart: Vec3
    """Position of the second in the first's frame [m]."""
    turn: Mat3
    """Orientation of the second in the first's frame."""

    def support(self, normal: Vec3) -> tuple[Vec3, Vec3]:
        """Return the support points of the first along a normal and of the second against it."""
        second = self.kinds[1].support(self.b, self.turn.inv_rotate(-normal))
        return self.kinds[0].support(self.a, normal), self.apart + self.turn.rotate(second)

    def faces(self, normal: Vec3) -> tuple[list[Vec3], list[Vec3]]:
        """Return the two faces that face each other along a normal."""
        second = self.kinds[1].face(self.b, self.turn.inv_rotate(-normal))
        return self.kinds[0].face(self.a, normal), [
            self.apart + self.turn.rotate(corner) for corner in second
        ]


def _relative(kinds: tuple[GeometryType, GeometryType], a: Shape, b: Shape) -> RelativeShapes:
    """Express two shapes, given in the world, in the frame of the first."""
    # In one shape's frame half of the support points need no rotation, and coordinates far from
    # the world's origin do not cost digits.
    apart, turn = a.rot.inv_rotate(b.pos - a.pos), a.rot.inv_mul(b.rot).matrix()
    return RelativeShapes(kinds, a, b, apart, turn)


def _stopped(pair: RelativeShapes) -> RelativeShapes:
    """Return a pair of shapes without derivatives."""
    return pair._replace(
        **{
            key: jax.tree.map(jax.lax.stop_gradient, getattr(pair, key))
            for key in ("a", "b", "apart", "turn")
        }
    )


def _stack(vectors: Sequence[Vec3]) -> Vec3:
    """Stack vectors on a new first axis."""
    return Vec3(*(jnp.stack(jnp.broadcast_arrays(*c)) for c in zip(*vectors, strict=True)))


def _starts(pair: RelativeShapes) -> Vec3:
    """Return the unit normals from which the search may start, (39, pairs, batch).

    They are those along which the widest gap of two boxes lies, the axes of both shapes and the
    products of one axis of each (Ericson 2005, section 4.4.1), and four diagonals, each in both
    directions; and the direction from the first frame's origin to the second's.
    """
    zero, one = jnp.zeros_like(pair.turn.x.x), jnp.ones_like(pair.turn.x.x)
    own = [Vec3(one, zero, zero), Vec3(zero, one, zero), Vec3(zero, zero, one)]
    across = [normalize(a.cross(b), a)[0] for a in own for b in pair.turn]
    between, _ = normalize(pair.apart, own[2])
    oblique = [Vec3(one, one * i, one * j) * 3**-0.5 for i in (1, -1) for j in (1, -1)]
    every = [*own, *pair.turn, *across, *oblique]
    return _stack([*every, *(-v for v in every), between])


def _mean_width(support: Support, starts: Vec3) -> jax.Array:
    """Return the mean width of the Minkowski difference along the first shape's axes [m]."""
    # The starts begin with the three axes, and their opposites are half-way through.
    n = starts.x.shape[0] // 2
    own = Vec3(*(jnp.concatenate([c[:3], c[n : n + 3]]) for c in starts))
    first, second = support(own)
    return jnp.sum(own.dot(first - second), axis=0) / 3.0


def _edges(corners: Sequence[Vec3]) -> Vec3:
    """Return unit vectors along the edges of a face; zero where vertices coincide."""
    if len(corners) < 2:
        return Vec3(*(jnp.zeros_like(c)[None] for c in corners[0]))
    face = _stack(corners)
    ahead = Vec3(*(jnp.roll(c, -1, axis=0) for c in face)) - face
    return normalize(ahead)[0]


def _gap(pair: RelativeShapes, normal: Vec3) -> jax.Array:
    """Return the gap between the shapes along a normal [m], negative where they overlap."""
    first, second = pair.support(normal)
    return normal.dot(second - first)


def _newton_step(pair: RelativeShapes, normal: Vec3, size: jax.Array) -> Vec3:
    """Return a normal after one Newton step, with the derivative of the best normal.

    The gap is widest where the point a - b of the two support points has no tangential part. The
    derivative of the support points has the curvature of round surfaces, but not that of edges. So
    a stiff spring keeps a straight edge that is perpendicular to the normal perpendicular to it.
    Only the residual of the step depends on the shapes, not its matrix. Hence the derivative of the
    step is that of the implicit function.
    """
    eps = float(jnp.finfo(size.dtype).eps)
    still = _stopped(pair)
    s, t = tangents(normal)
    faces = [_edges(face) for face in pair.faces(normal)]
    edges = Vec3(*(jnp.concatenate(c) for c in zip(*faces, strict=True)))
    # The stiffness has the residual's unit [m]. It is 590 sizes in single and 1.8e6 sizes in double
    # precision, where the radii of round shapes are about one size.
    spring = size * eps**-0.4 * (jnp.abs(normal.dot(edges)) < eps**_EDGE_SINE_POWER)

    def residual(pair: RelativeShapes, edges: Vec3, n: Vec3) -> tuple[jax.Array, jax.Array]:
        """Return the tangential part of a - b, and what the springs add to it."""
        first, second = pair.support(n)
        point, pull = first - second, spring * n.dot(edges)
        height = n.dot(point)
        held = [jnp.sum(v.dot(edges) * pull, axis=0) for v in (s, t)]
        x, y = (v.dot(point) - v.dot(n) * height for v in (s, t))
        return x + held[0], y + held[1]

    stopped = jax.tree.map(jax.lax.stop_gradient, edges)
    _, (xx, yx) = jax.jvp(lambda n: residual(still, stopped, n), (normal,), (s,))
    _, (xy, yy) = jax.jvp(lambda n: residual(still, stopped, n), (normal,), (t,))
    # The exact matrix is a Hessian, minus that of the gap, so that it is symmetric.
    xy = 0.5 * (xy + yx)
    det = xx * yy - xy * xy
    # Where the matrix is not positive definite, the normal stays what the search found.
    sound = (xx + yy > 0) & (det > eps * jnp.maximum(xx * xx + yy * yy, size * size))
    scale = jnp.where(sound, 1.0 / jnp.where(sound, det, 1.0), 0.0)

    def step(x: jax.Array, y: jax.Array) -> Vec3:
        """Return the normal after a step against a residual."""
        moved = s * ((yy * x - xy * y) * scale) + t * ((xx * y - xy * x) * scale)
        return normalize(normal - moved, normal)[0]

    x, y = residual(pair, edges, normal)
    fixed_x, fixed_y = jax.lax.stop_gradient((x, y))
    tried = step(fixed_x, fixed_y)
    # A step that narrows the gap by more than rounding is not taken, but its derivative is: the
    # values of the residual are taken away and its derivative stays.
    worse = _gap(still, tried) < _gap(still, normal) - 8 * eps * size
    return step(x - jnp.where(worse, fixed_x, 0.0), y - jnp.where(worse, fixed_y, 0.0))


def _rotation_derivative(
    pair: RelativeShapes, normal: Vec3, touching: Vec3, size: jax.Array
) -> jax.Array:
    """Return zero, with the derivative by the second shape's rotation that its support point lacks.

    Where the support points face each other, they are the points that touch. Else one of them is
    an arbitrary point of a whole face, and another point of the second shape touches. That point
    moves differently under a rotation.
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
    """Collider of two convex shapes, with one point if either is round, two if either is straight.

    It returns up to four points for two shapes with flat faces. By Danskin's theorem, the distance
    has the derivative at the fixed best normal and fixed points.
    """

    first: GeometryType
    """The first type."""
    second: GeometryType
    """The second type."""

    @property
    def types(self) -> tuple[str, str]:  # type: ignore[override]
        """Names of the two geometry types."""
        return self.first.name, self.second.name

    @property
    def n_contacts(self) -> int:  # type: ignore[override]
        """The number of vertices of the smaller face."""
        return min(self.first.corners, self.second.corners)

    def are_apart(self, a: Shape, b: Shape, reach: jax.Array) -> jax.Array:
        """Return whether shapes are surely farther from each other than a distance.

        Args:
            a: shapes of the first type.
            b: shapes of the second type.
            reach: the distance [m], (pairs, batch).
        """
        pair = _relative((self.first, self.second), a, b)
        upwards = Vec3(*(jnp.full_like(reach, c) for c in (0.0, 0.0, 1.0)))
        between, _ = normalize(pair.apart, upwards)
        start = Vec3(*(c[None] for c in between))
        return are_apart(pair.support, start, jnp.maximum(reach, 0.0))

    def collide(self, a: Shape, b: Shape) -> list[Touch]:
        """Return the contact manifold along the normal of widest gap."""
        pair = _relative((self.first, self.second), a, b)
        still = _stopped(pair)
        starts = _starts(still)
        size = _mean_width(still.support, starts)
        found, touching = widest_gap(still.support, starts, size)
        normal = _newton_step(pair, found, size)
        # Danskin's theorem: the gap is stationary in the normal, so that its derivative at the best
        # normal is that at a fixed normal.
        best = jax.tree.map(jax.lax.stop_gradient, normal)
        dist = _gap(pair, best) + _rotation_derivative(pair, best, touching, size)
        axes = a.rot.matrix()
        out = axes.rotate(normal)

        def touch(dist: jax.Array, pos: Vec3) -> Touch:
            """Return a contact point, given in the first shape's frame, in the world."""
            return Touch(dist, a.pos + axes.rotate(pos), out)

        # The support point of a round shape is where it touches; half the distance leads from it to
        # the midpoint between the surfaces.
        if self.first.corners == 1:
            return [touch(dist, pair.support(normal)[0] + normal * (0.5 * dist))]
        if self.second.corners == 1:
            return [touch(dist, pair.support(normal)[1] - normal * (0.5 * dist))]
        s, t = tangents(normal)

        def in_contact_frame(point: Vec3) -> Vec3:
            """Return a point in the contact frame: tangents and normal, from the touching point."""
            point = point - touching
            return Vec3(s.dot(point), t.dot(point), normal.dot(point))

        faces = [[in_contact_frame(corner) for corner in face] for face in pair.faces(best)]
        zero = jnp.zeros_like(dist)
        manifold = clip_faces(faces[0], faces[1], ClipPoint(zero, zero, dist, zero), size)
        manifold = manifold[: self.n_contacts]
        # The first point is the exact one, whose distance has the right derivative.
        gaps = [dist, *(p.z for p in manifold[1:])]
        places = [
            touching + s * p.x + t * p.y + normal * (p.height + 0.5 * gap)
            for p, gap in zip(manifold, gaps, strict=True)
        ]
        # Of several types some may be round.
        if isinstance(self.second, AnyConvex):
            at_end = pair.support(normal)[1] - normal * (0.5 * dist)
            places[0] = where(self.second.is_round(b), at_end, places[0])
        if isinstance(self.first, AnyConvex):
            at_end = pair.support(normal)[0] + normal * (0.5 * dist)
            places[0] = where(self.first.is_round(a), at_end, places[0])
        return [touch(gap, place) for gap, place in zip(gaps, places, strict=True)]
