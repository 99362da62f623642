"""Models in which so many shapes could touch that only the nearest are followed at each state.

What one collider tests are the pairs of least gap, bounded from below by the gap of their shadows
on some lines: the one between the centres and the axes of what has flat sides, or a plane's normal.
Points count as the box around them. Of the points found the nearest are the contacts; which pairs
these are of changes as the model moves.

Source: Ericson (2005), Real-Time Collision Detection, section 5.2: separating axes.
"""

import functools
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from brax.base import System
from brax.colliders.interface import Collider, GeometryType, Shape, Touch
from brax.colliders.narrow_phase import (
    LinkFrames,
    collide,
    local_shape,
    of_one_collider,
    place_shapes,
    side_by_side,
)
from brax.colliders.shapes.plane import PlaneGeometry
from brax.components import Vec3, normalize, quat, rows, vec3
from brax.kernels.fusion_barrier import compiled_apart
from brax.tree import join

T = TypeVar("T")

MAX_UNCULLED_POINTS = 1000
"""Points of contact that could be, from which on the nearest are followed unless all are asked."""

MAX_CANDIDATE_PAIRS, MAX_NEAREST_CONTACTS = 64, 128
"""Pairs of one collider, and contacts of one number of directions, that are then followed."""

FACE_CORNERS = 4
"""Corners of a side that is flat in both directions."""


class NearestContacts(NamedTuple):
    """The contacts of one number of directions, no order among them."""

    touch: Touch
    """(contacts, batch)."""
    pair: jax.Array
    """The pair of each, among those of all groups, (contacts, batch)."""
    geoms: tuple[jax.Array, jax.Array]
    """Its first and its second geom."""
    overflow: jax.Array
    """How many more there are within their margins, as far as is known, (1, batch)."""


class ColliderPairs(NamedTuple):
    """The pairs that one collider tests."""

    collider: Collider
    groups: tuple[int, ...]
    pairs: np.ndarray
    """Their numbers among the pairs of all groups."""
    kept: int
    """How many of them are tested at a state."""


def uses_broad_phase(sys: System) -> bool:
    """Return whether only the nearest contacts of a model are followed."""
    pairs, points = _limits(sys)
    few = all(len(a.pairs) == a.kept for a in _collider_pairs(sys, pairs))
    return not (few and all(n <= points for n in _widths(sys, pairs).values()))


def contact_widths(sys: System) -> dict[int, int]:
    """Of a crowded model how many contacts are followed, by the number of their directions."""
    pairs, points = _limits(sys)
    return {width: min(n, points) for width, n in _widths(sys, pairs).items()}


def _limits(sys: System) -> tuple[int, int]:
    """How many pairs of a collider, and contacts of a number of directions, are followed."""
    every = sum(len(g.geom1) * g.collider.n_contacts for g in sys.collisions)
    asked = sys.opt.max_geom_pairs, sys.opt.max_contact_points
    usual = (
        (MAX_CANDIDATE_PAIRS, MAX_NEAREST_CONTACTS)
        if every > MAX_UNCULLED_POINTS
        else (every, every)
    )
    return asked[0] or usual[0], asked[1] or usual[1]


def _widths(sys: System, most: int) -> dict[int, int]:
    """How many points there can be at a state, by the number of directions."""
    out: dict[int, int] = {}
    width = _width(sys)
    for alike in _collider_pairs(sys, most):
        for w, n in zip(*np.unique(width[alike.pairs], return_counts=True), strict=True):
            count = min(int(n), alike.kept) * alike.collider.n_contacts
            out[int(w)] = out.get(int(w), 0) + count
    return out


def _width(sys: System) -> np.ndarray:
    """How many directions the contacts of each pair of all groups have."""
    return np.repeat(
        [max(g.condim, 3) for g in sys.collisions], [len(g.geom1) for g in sys.collisions]
    )


def _collider_pairs(sys: System, most: int) -> list[ColliderPairs]:
    counts = [len(g.geom1) for g in sys.collisions]
    starts = np.cumsum([0, *counts])
    out = []
    for groups in of_one_collider(sys):
        pairs = np.concatenate([starts[i] + np.arange(counts[i]) for i in groups])
        group = sys.collisions[groups[0]]
        kinds = [sys.geom_types[geoms[0]] for geoms in (group.geom1, group.geom2)]
        kept = min(most, len(pairs)) if _bounded(*kinds) else len(pairs)
        out.append(ColliderPairs(group.collider, tuple(groups), pairs, kept))
    return out


def _bounded(a: GeometryType, b: GeometryType) -> bool:
    return (isinstance(a, PlaneGeometry) or a.corners > 0) and b.corners > 0


def pair_geoms(sys: System) -> tuple[np.ndarray, np.ndarray]:
    """First and second geoms of the pairs of all groups."""
    first, second = ([g for c in sys.collisions for g in getattr(c, k)] for k in ("geom1", "geom2"))
    return np.array(first), np.array(second)


def nearest_contacts(sys: System, margins: jax.Array, frames: LinkFrames) -> list[NearestContacts]:
    """The contacts of a crowded model at a state, in the order of `contact_widths`.

    Args:
        sys: the model, its leaves with a trailing batch axis.
        margins: of the pairs of all groups, as in `Surface`, (pairs, 1 or batch).
        frames: gives the links' frames.
    """
    most, _ = _limits(sys)
    local = Shape(vec3(sys.geom.transform.pos), quat(sys.geom.transform.rot), vec3(sys.geom.size))
    geoms = place_shapes(local, sys.geom_link, frames)
    alike, width = _collider_pairs(sys, most), _width(sys)
    tested = [
        _candidate_pairs(sys, a, geoms, margins)
        if a.kept < len(a.pairs)
        else _all_pairs(sys, a, frames)
        for a in alike
    ]
    out = []
    for w, count in contact_widths(sys).items():
        parts = [t for t, a in zip(tested, alike, strict=True) if (width[a.pairs] == w).any()]
        touch, pair, overflow = (join(list(part)) for part in zip(*parts, strict=True))
        beyond = touch.dist - picked(margins, pair)
        beyond = jnp.where(jnp.asarray(width == w)[pair], beyond, jnp.inf)
        index = _least(beyond, count)
        passed = jnp.sum(beyond < 0, axis=0, keepdims=True) - count
        touch, pair = picked((touch, pair), index)
        first, second = (jnp.asarray(side)[pair] for side in pair_geoms(sys))
        more = jnp.maximum(passed, 0) + jnp.sum(overflow, axis=0, keepdims=True)
        out.append(NearestContacts(touch, pair, (first, second), more.astype(beyond.dtype)))
    return out


def links_of(sys: System, geoms: jax.Array) -> jax.Array:
    """Links that geoms are on, -1 for the world."""
    return jnp.asarray(sys.geom_link)[geoms]


Tested = tuple[Touch, jax.Array, jax.Array]
"""Points and their pairs, (points, batch), and how many near pairs were left out, (1, batch)."""


def _all_pairs(sys: System, alike: ColliderPairs, frames: LinkFrames) -> Tested:
    groups = [sys.collisions[i] for i in alike.groups]
    placed = [
        [
            place_shapes(local_shape(sys, side), [sys.geom_link[g] for g in side], frames)
            for side in (group.geom1, group.geom2)
        ]
        for group in groups
    ]
    touch = _flat(collide(alike.collider, *side_by_side(placed)))
    pair = np.tile(alike.pairs, alike.collider.n_contacts)[:, None]
    whole = jnp.broadcast_to(jnp.asarray(pair), touch.dist.shape)
    return touch, whole, jnp.zeros_like(whole[:1])


def _candidate_pairs(sys: System, alike: ColliderPairs, geoms: Shape, margins: jax.Array) -> Tested:
    sides = [side[alike.pairs] for side in pair_geoms(sys)]
    a, b = (_BoundedShapes.of(sys, geoms, side) for side in sides)
    gap = _gap(a, b) - rows(margins, alike.pairs.tolist())
    index = _least(gap, alike.kept)
    overflow = jnp.maximum(jnp.sum(gap < 0, axis=0, keepdims=True) - alike.kept, 0)
    shapes = [_chosen(sys, geoms, side, jnp.asarray(side)[index]) for side in sides]
    touch = _flat(collide(alike.collider, *shapes))
    pair = jnp.tile(jnp.asarray(alike.pairs)[index], (alike.collider.n_contacts, 1))
    return touch, pair, overflow


class _BoundingBox(NamedTuple):
    """What the points of shapes fill along the axes of their frames, (pairs, 1 or batch)."""

    middle: Vec3
    half: Vec3
    """Half of its sides [m]."""


class _BoundedShapes(NamedTuple):
    """Shapes of one type, and the boxes around those of points, (pairs, 1 or batch)."""

    kind: GeometryType
    shape: Shape
    box: _BoundingBox | None

    @staticmethod
    def of(sys: System, geoms: Shape, which: np.ndarray) -> "_BoundedShapes":
        """Of given geoms of all."""
        kind, index = sys.geom_types[which[0]], which.tolist()
        box = _bounding_boxes(sys, which) if sys.geom_points[which[0]] else None
        return _BoundedShapes(kind, rows(geoms, index), box)

    def extent(self, direction: Vec3) -> jax.Array:
        """How far the shapes reach from their origins along unit directions, or further."""
        local = self.shape.rot.inv_rotate(direction)
        if self.box is not None:
            along = Vec3(*(jnp.abs(c) for c in local))
            return self.box.middle.dot(local) + self.box.half.dot(along)
        ahead = Vec3(*(c[None] for c in local))
        return self.kind.support(self.shape, ahead).dot(ahead)[0]

    def sideways(self) -> list[Vec3]:
        """Unit directions, besides the one between two centres, in which it may end early."""
        if self.kind.corners < FACE_CORNERS:
            return []
        return [n for axis in self.shape.rot.matrix() for n in (axis, -axis)]


def _bounding_boxes(sys: System, which: np.ndarray) -> _BoundingBox:
    """Around the points of given geoms."""
    geoms, place = np.unique(which, return_inverse=True)
    counts = np.array(sys.geom_points)
    nth = np.minimum(np.arange(counts.max())[:, None], counts[geoms] - 1)
    at = np.cumsum([0, *counts])[geoms] + nth
    points = Vec3(*(c.at[at].get(mode="promise_in_bounds") for c in vec3(sys.points)))
    most, least = (Vec3(*(end(c, axis=0) for c in points)) for end in (jnp.max, jnp.min))
    return rows(_BoundingBox((most + least) * 0.5, (most - least) * 0.5), place.tolist())


def _gap(a: _BoundedShapes, b: _BoundedShapes) -> jax.Array:
    """What the distance between two shapes is not less than, (pairs, batch)."""
    apart = b.shape.pos - a.shape.pos
    if isinstance(a.kind, PlaneGeometry):
        up = a.shape.axis_z
        return up.dot(apart) - b.extent(-up)
    line, _ = normalize(apart)
    gaps = [n.dot(apart) - a.extent(n) - b.extent(-n) for n in (line, *a.sideways(), *b.sideways())]
    return functools.reduce(jnp.maximum, gaps)


def _chosen(sys: System, geoms: Shape, which: np.ndarray, index: jax.Array) -> Shape:
    """Geoms by their numbers (pairs, batch), each one of `which`, with their points."""
    shape: Shape = picked(geoms, index)
    counts = np.array(sys.geom_points)
    most = int(counts[which].max())
    if not most:
        return shape
    starts = jnp.asarray(np.cumsum([0, *counts[:-1]]))
    last = starts + jnp.maximum(jnp.asarray(counts), 1) - 1
    at = jnp.minimum(starts[index] + jnp.arange(most)[:, None, None], last[index])
    flat = picked(vec3(sys.points), at.reshape(-1, at.shape[-1]))
    return shape._replace(points=jax.tree.map(lambda x: x.reshape(*at.shape[:2], -1), flat))


def _least(x: jax.Array, n: int) -> jax.Array:
    """Where the `n` least of (rows, batch) are, (n, batch); what is NaN comes first."""
    x = jax.lax.stop_gradient(x)
    return jax.lax.top_k(-jnp.where(jnp.isnan(x), -jnp.inf, x).T, n)[1].T


def picked(tree: T, index: jax.Array) -> T:
    """Takes rows of (rows, 1 or batch), in each environment its own, (n, batch)."""

    def take(leaf: jax.Array) -> jax.Array:
        if leaf.shape[-1] == 1:
            return leaf[:, 0].at[index].get(mode="promise_in_bounds")
        wide = jnp.broadcast_to(index, (len(index), leaf.shape[-1]))
        return jnp.take_along_axis(leaf, wide, axis=0, mode="promise_in_bounds")

    return compiled_apart(lambda tree, _: jax.tree.map(take, tree), tree, index)


def _flat(touch: Touch) -> Touch:
    """Points of pairs as rows, with what their first tangents lie along."""
    sized = touch._replace(along=touch.edge())
    return jax.tree.map(lambda x: x.reshape(-1, x.shape[-1]), sized)
