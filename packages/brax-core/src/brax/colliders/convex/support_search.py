"""The axis of least penetration or greatest separation of two convex shapes, by a GJK iteration.

Both are one question: along which unit normal n is the gap between the shapes the widest,

    gap(n) = min over b of n.b - max over a of n.a,

where a and b are points of the first and the second shape. The widest gap is the distance of shapes
that are apart, and minus the penetration depth of shapes that overlap. Shapes are known only by
their support points. Let D be the Minkowski difference, the set of all a - b, with the support
function h(n) = -gap(n), and let q be a point outside of D. One step of the GJK iteration towards
the point x of D that is nearest to q gives the next normal, (q - x) / |q - x|.

If the shapes are apart, q is the origin. Else q is (h + g) n, a little outside of D along the best
normal so far. Since |q - x| >= g, the exact projection has h(n') = n'.q - |q - x| <= h(n), so the
gap only widens. Shapes that overlap may have several locally best normals, so the iteration has
several starts. Where they overlap deeply it is repeated from further starts.

Source: Gilbert, Johnson, Keerthi (1988), A fast procedure for computing the distance between
complex objects in three-dimensional space; Ericson (2005), Real-Time Collision Detection, section
9.5; for the set D, van den Bergen (2003), Collision Detection in Interactive 3D Environments,
chapter 4. Departure: q moves with the normal. The usual method for overlaps, EPA (van den Bergen,
section 4.3.8), expands a polytope, whose size depends on the data.
"""

import math
from collections.abc import Callable
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp

from brax.components import Vec3, normalize, tangents
from brax.kernels.skip import where_needed

T = TypeVar("T")

Support = Callable[[Vec3], tuple[Vec3, Vec3]]
"""A function from unit directions (n, pairs, batch) to two support points: the point a of the first
shape that is farthest along them, and the point b of the second that is farthest against them."""

GJK_STEPS = {4: 32, 8: 64}
"""Steps of the iteration, by the size of a number in bytes. Where an edge and a rim overlap, four
steps gain one digit of the gap: in double precision, 32 steps left 3e-9 of it. Most other pairs are
exact after twenty."""

GJK_STARTS = 4
"""Number of normals that the iteration starts from at once."""

_DEEP_ROUNDS = 4
"""Number of rounds where shapes overlap deeply, each from other normals. Of 2564 random overlaps of
boxes and meshes, one round misses the best normal in 53, two rounds in 17 and four rounds in 3."""

_MIN_DEEP_OVERLAP = 0.008
"""Penetration depth, in sizes of D, from which further rounds follow. Shapes at rest lie less deep,
so that only impacts pay for them."""

_START_ANGLES = 0.6, 0.25
"""Angles from the best normal to the starts of the second and of the fourth round [rad]."""

_MAX_START_COSINE = 0.95
"""Cosine of the angle between two normals above which one of them is enough as a start."""

_MAX_SEPARATION_STEPS = 12
"""Steps after which two shapes count as near each other if none has shown that they are apart."""

_MIN_GAIN_ULPS = 4.0
"""Least gain of a step, in units of the precision times the size; below it no more steps follow."""

_TARGET_OFFSET = 0.05
"""Distance of the point q from D where the shapes overlap, in sizes of D."""

_FACES = ((0, 1, 2), (0, 2, 3), (0, 3, 1), (1, 2, 3))
_EDGES = ((0, 1), (0, 2), (0, 3), (1, 2), (2, 3), (3, 1))
_KEPT_FACES = (0, 1, 2, 3, 0, 1, 2, 0, 1, 2)
"""The face to keep if the nearest point is on a given face, or on a given edge. For an edge it is
one with the newest support point, which is number 0."""


class SupportPoint(NamedTuple):
    """A point of the Minkowski difference D, and the point of the first shape it comes from."""

    point: Vec3
    """The point a - b."""
    first: Vec3
    """The point a."""


class GjkState(NamedTuple):
    """The state of the iteration from all starts, (starts, pairs, batch)."""

    simplex: tuple[SupportPoint, SupportPoint, SupportPoint]
    """Three support points of D; they may coincide."""
    nearest: SupportPoint
    """The point of their triangle that is nearest to q."""
    direction: Vec3
    """The normal to try next."""
    normal: Vec3
    """The best normal so far."""
    gap: jax.Array
    """The gap along it [m]."""
    gain: jax.Array
    """Progress of the last step [m]: how far the new support point is beyond the nearest point, or
    how much the gap widened."""


class BestNormal(NamedTuple):
    """The best normal that all rounds so far have found, (pairs, batch)."""

    normal: Vec3
    """Unit normal from the first shape to the second."""
    touching: Vec3
    """The point of the first shape."""
    gap: jax.Array
    """The gap along the normal [m]."""
    start_gaps: jax.Array
    """The gaps along all normals to start from, (n, pairs, batch); minus infinity for those that
    have been used, or that lie near a used one."""


def widest_gap(support: Support, starts: Vec3, size: jax.Array) -> tuple[Vec3, Vec3]:
    """Return the unit normal, from the first shape to the second, along which the gap is widest.

    Args:
        support: the support points of the two shapes.
        starts: unit normals to begin with, (n, pairs, batch), of which the best are taken.
        size: size of the two shapes together [m], (pairs, batch).

    Returns:
        The normal, and the point of the first shape where it touches or nearly touches the second,
        (pairs, batch).
    """
    # The best pair so far is none, with a gap of minus infinity, so that the first round replaces
    # it.
    search = _GapSearch.of(support, starts, size)
    none = size * 0.0
    nowhere = Vec3(none, none, none)
    start_gaps = -starts.dot(search.support_point(starts).point)
    best = BestNormal(nowhere, nowhere, none - jnp.inf, start_gaps)
    best = jax.lax.fori_loop(0, _DEEP_ROUNDS, search.round_if_deep, best)
    return best.normal, best.touching


class SeparationState(NamedTuple):
    """The state of the search for a separating normal, (1, pairs, batch)."""

    simplex: tuple[SupportPoint, SupportPoint, SupportPoint]
    """Three support points of D; they may coincide."""
    direction: Vec3
    """The normal to try next."""
    apart: jax.Array
    """True where a normal was found along which the gap is wider than asked."""
    is_open: jax.Array
    """True where further normals may tell."""


def are_apart(support: Support, start: Vec3, reach: jax.Array) -> jax.Array:
    """Return whether a normal was found along which the gap is wider than a distance.

    It is the GJK iteration towards the origin, which ends at the first such normal. Where shapes
    are apart by a share of their size this takes two to four steps, a small part of `widest_gap`.

    Args:
        support: the support points of the two shapes.
        start: unit normal to try first, (1, pairs, batch).
        reach: the distance [m], at least zero, (pairs, batch).

    Returns:
        Truth values, (pairs, batch). They are false where a support point is NaN.
    """

    def step(found: SeparationState) -> SeparationState:
        """Try the next normal, and choose the one after it."""
        first, second = support(found.direction)
        point = first - second
        new = SupportPoint(point, point)
        apart = found.apart | (-found.direction.dot(point) > reach)
        nearest, simplex = nearest_point(point * 0.0, (new, *found.simplex))
        # Every point of D is a bound of the distance from above.
        is_open = ~apart & (nearest.point.dot(nearest.point) > reach * reach)
        direction, _ = normalize(-nearest.point, found.direction)
        return SeparationState(simplex, direction, apart, is_open)

    def step_if_open(_: jax.Array, found: SeparationState) -> SeparationState:
        """Take one step in the environments that have an open pair."""
        needed = jnp.any(found.is_open.reshape(-1, reach.shape[-1]), axis=0, keepdims=True)
        return where_needed(needed, step, found)

    first, second = support(start)
    point = first - second
    begin, never = SupportPoint(point, point), jnp.zeros(point.x.shape, bool)
    found = SeparationState((begin, begin, begin), start, never, ~never)
    found = jax.lax.fori_loop(0, _MAX_SEPARATION_STEPS, step_if_open, found)
    return found.apart[0]


class _GapSearch(NamedTuple):
    """The problem that the iteration solves, and its steps."""

    support: Support
    """The support points of the two shapes."""
    starts: Vec3
    """Unit normals to begin with, (n, pairs, batch)."""
    size: jax.Array
    """Size of D [m], (pairs, batch)."""
    min_separation: jax.Array
    """Gap above which the shapes count as apart [m]."""
    min_gain: jax.Array
    """Gain below which the iteration has converged [m]."""

    @classmethod
    def of(cls, support: Support, starts: Vec3, size: jax.Array) -> "_GapSearch":
        """Derive the tolerances from the size and its precision."""
        # Nearer to the origin than this, the direction from x to it has lost more than half of its
        # digits. Then q leaves the origin, as for shapes that overlap.
        min_separation = jnp.finfo(size.dtype).eps ** 0.5 * size
        min_gain = _MIN_GAIN_ULPS * float(jnp.finfo(size.dtype).eps) * size
        return cls(support, starts, size, min_separation, min_gain)

    def support_point(self, direction: Vec3) -> SupportPoint:
        """Return the support point of D along a direction."""
        first, second = self.support(direction)
        return SupportPoint(first - second, first)

    def step(self, found: GjkState) -> GjkState:
        """Try the next normal, and choose the one after it."""
        new = self.support_point(found.direction)
        # gap(n) = -h(n), and the support point gives h(n) = n.(a - b).
        gap = -found.direction.dot(new.point)
        beyond = found.direction.dot(new.point - found.nearest.point)
        gain = jnp.maximum(beyond, gap - found.gap)
        better = gap > found.gap
        normal = where(better, found.direction, found.normal)
        gap = jnp.maximum(gap, found.gap)
        # The point q: the origin, or (h + g) n with h = -gap.
        target = normal * jnp.where(
            gap > self.min_separation, 0.0, _TARGET_OFFSET * self.size - gap
        )
        nearest, simplex = nearest_point(target, (new, *found.simplex))
        direction, _ = normalize(target - nearest.point, normal)
        return GjkState(simplex, nearest, direction, normal, gap, gain)

    def step_if_gaining(self, _: jax.Array, found: GjkState) -> GjkState:
        """Take one step where any start of an environment's pairs still gains."""
        # One decision an environment: its lane goes idle only when all of its pairs have converged.
        gains = (found.gain > self.min_gain).reshape(-1, self.size.shape[-1])
        return where_needed(jnp.any(gains, axis=0, keepdims=True), self.step, found)

    def round(self, turn: jax.Array, best: BestNormal) -> BestNormal:
        """Run the iteration from `GJK_STARTS` normals, and keep the best normal of all rounds."""
        # Even rounds start from the best normals that are left, odd ones from around the best one
        # found so far.
        chosen, left = _distinct_starts(best.start_gaps, self.starts)
        around = turn % 2 == 1
        normal = where(around, _tilted_starts(best.normal, turn > 1), take(chosen, self.starts))
        begin = self.support_point(normal)
        gap = -normal.dot(begin.point)
        every_gain = jnp.full_like(gap, jnp.inf)
        found = GjkState((begin, begin, begin), begin, normal, normal, gap, every_gain)
        # The first step finds its start's support point again and only chooses a direction. That
        # it gains nothing must not end the iteration.
        found = self.step(found)._replace(gain=every_gain)
        steps = GJK_STEPS[self.size.dtype.itemsize]
        found = jax.lax.fori_loop(1, steps, self.step_if_gaining, found)
        # Of all starts the widest gap wins. The point of the first shape that belongs to the
        # nearest point of D is where it touches.
        chosen = best_places(found.gap, 1)
        normal, touching = (take(chosen, v) for v in (found.normal, found.nearest.first))
        gap = jnp.max(found.gap, axis=0)
        better = gap > best.gap
        return BestNormal(
            where(better, Vec3(*(c[0] for c in normal)), best.normal),
            where(better, Vec3(*(c[0] for c in touching)), best.touching),
            jnp.maximum(gap, best.gap),
            jnp.where(around, best.start_gaps, left),
        )

    def round_if_deep(self, turn: jax.Array, best: BestNormal) -> BestNormal:
        """Run one more round in environments where a pair overlaps deeply."""
        # Before the first round the gap is minus infinity, so that every environment runs it.
        deep = jnp.any(best.gap < -_MIN_DEEP_OVERLAP * self.size, axis=0, keepdims=True)
        return where_needed(deep, lambda b: self.round(turn, b), best)


def _tilted_starts(normal: Vec3, later: jax.Array) -> Vec3:
    """Return four directions around a normal; the later ones are nearer and between the others."""
    # The second round starts along two tangents and their opposites, the fourth along the
    # diagonals.
    s, t = tangents(normal)
    s, t = where(later, (s + t) * 0.5**0.5, s), where(later, (t - s) * 0.5**0.5, t)
    first, second = _START_ANGLES
    along = jnp.where(later, math.cos(second), math.cos(first)).astype(normal.x.dtype)
    across = jnp.where(later, math.sin(second), math.sin(first)).astype(normal.x.dtype)
    every = [normal * along + v * across for v in (s, -s, t, -t)]
    return Vec3(*(jnp.stack(c) for c in zip(*every, strict=True)))


def _distinct_starts(gaps: jax.Array, starts: Vec3) -> tuple[jax.Array, jax.Array]:
    """Choose the normals of widest gap that are far from each other.

    Args:
        gaps: gap along each normal, (n, pairs, batch).
        starts: the normals.

    Returns:
        The places of the chosen ones, as of `best_places`, and the gaps of those that are left.
    """
    out = []
    for _ in range(GJK_STARTS):
        out.append(best_places(gaps, 1))
        # Starts that lie close together mostly lead to the same maximum.
        alike = starts.dot(take(out[-1], starts)) > _MAX_START_COSINE
        gaps = jnp.where(alike, -jnp.inf, gaps)
    return jnp.concatenate(out), gaps


def where(condition: jax.Array, x: T, y: T) -> T:
    """Select between two vectors, or between two trees of vectors and arrays, leaf by leaf."""
    chosen: T = jax.tree.map(lambda a, b: jnp.where(condition, a, b), x, y)
    return chosen


def best_places(score: jax.Array, n: int) -> jax.Array:
    """Return one-hot masks of the `n` largest entries along the first axis.

    The shape is (n, first axis, pairs, batch). Masks and sums rather than gathers, because an index
    that differs between lanes would become a chain of selections in any case.
    """
    places = jnp.arange(score.shape[0]).reshape((-1,) + (1,) * (score.ndim - 1))
    out = []
    for _ in range(n):
        chosen = places == jnp.argmax(score, axis=0)
        out.append(chosen)
        score = jnp.where(chosen, -jnp.inf, score)
    return jnp.stack(out)


def take(chosen: jax.Array, of: T) -> T:
    """Take the entries at places from `best_places`, (n, pairs, batch), leaf by leaf."""
    taken: T = jax.tree.map(lambda c: jnp.sum(jnp.where(chosen, c, 0.0), axis=1), of)
    return taken


def nearest_point(
    target: Vec3, vertices: tuple[SupportPoint, ...]
) -> tuple[SupportPoint, tuple[SupportPoint, SupportPoint, SupportPoint]]:
    """Return the point of a tetrahedron that is nearest to an outside point, and the face with it.

    All faces and edges are tried, instead of the Voronoi regions of Ericson (2005), Real-Time
    Collision Detection, sections 5.1.5 and 5.1.6. So flat tetrahedra and coinciding vertices need
    no case of their own, and all lanes run the same operations.

    Args:
        target: the outside point q.
        vertices: four points of D, the newest first.
    """
    every: SupportPoint = jax.tree.map(lambda *c: jnp.stack(c), *vertices)

    def at(index: tuple[int, ...]) -> SupportPoint:
        return jax.tree.map(lambda c: jnp.stack([c[i] for i in index]), every)

    faces = tuple(at(index) for index in zip(*_FACES, strict=True))
    on_faces, inside = _nearest_on_planes(target, *faces)
    on_edges = _nearest_on_segments(target, *(at(index) for index in zip(*_EDGES, strict=True)))
    points = jax.tree.map(lambda x, y: jnp.concatenate([x, y]), on_faces, on_edges)
    apart = points.point - target
    far = apart.dot(apart)
    # Edges are always candidates, a face only where the projection falls within it.
    far = jnp.concatenate([jnp.where(inside, far[:4], jnp.inf), far[4:]])
    chosen = best_places(-far, 1)
    # The next simplex is a whole face, even if the nearest point is on an edge, so that it has
    # three points in every lane.
    kept = jnp.stack(
        [
            jnp.any(
                jnp.stack([chosen[0, i] for i, k in enumerate(_KEPT_FACES) if k == face]), axis=0
            )
            for face in range(4)
        ]
    )
    nearest = jax.tree.map(lambda c: jnp.sum(jnp.where(chosen[0], c, 0.0), axis=0), points)
    first, second, third = (
        jax.tree.map(lambda c: jnp.sum(jnp.where(kept, c, 0.0), axis=0), vertex) for vertex in faces
    )
    return nearest, (first, second, third)


def _nearest_on_planes(
    target: Vec3, a: SupportPoint, b: SupportPoint, c: SupportPoint
) -> tuple[SupportPoint, jax.Array]:
    """Project a point onto the planes of triangles; also return a mask of those it falls into."""
    # The barycentric coordinates of the projection are 1 - u - v, u and v (Ericson, section 3.4).
    e, f, p = b.point - a.point, c.point - a.point, target - a.point
    out = e.cross(f)
    area2 = out.dot(out)
    # A degenerate face has no plane. Its nearest point is on one of its edges, which are tried too.
    flat = area2 <= 1e-12 * e.dot(e) * f.dot(f)
    scale = 1.0 / jnp.where(flat, 1.0, area2)
    u, v = p.cross(f).dot(out) * scale, e.cross(p).dot(out) * scale
    inside = ~flat & (u >= 0) & (v >= 0) & (u + v <= 1)
    on_planes = [i + (j - i) * u + (k - i) * v for i, j, k in zip(a, b, c, strict=True)]
    return SupportPoint(*on_planes), inside


def _nearest_on_segments(target: Vec3, a: SupportPoint, b: SupportPoint) -> SupportPoint:
    """Return the points of segments that are nearest to a point (Ericson, section 5.1.2)."""
    e = b.point - a.point
    length2 = e.dot(e)
    # On a segment of length zero every parameter gives the same point.
    along = (target - a.point).dot(e) / jnp.where(length2 > 0, length2, 1.0)
    return SupportPoint(
        *(i + (j - i) * jnp.clip(along, 0.0, 1.0) for i, j in zip(a, b, strict=True))
    )
