"""Broad phase and lists of contacts: the pairs that may touch, and the contacts that are active.

At each state, every collider lists the pairs whose gap may be within their margin, by its lower
bound (`bounds`), and tests those. Of the contact points that the colliders find, those within their
margin are listed. The lists change as the model moves. Their lengths are fixed because the shapes
of arrays are; what is not filled is passed over.
"""

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from brax.base import System
from brax.colliders.bounds import FACE_CORNERS, BoundedShapes, least_gap
from brax.colliders.collider_pairs import ColliderPairs, collider_pairs, pair_geoms
from brax.colliders.convex.any_convex import AnyConvex
from brax.colliders.convex.convex_convex import ConvexConvex
from brax.colliders.convex.convex_height_field import HeightFieldConvex
from brax.colliders.interface import GeometryType, Shape, Touch
from brax.colliders.narrow_phase import (
    LinkFrames,
    collide,
    height_table,
    local_shape,
    place_shapes,
    side_by_side,
)
from brax.colliders.shapes.plane import PlaneGeometry
from brax.components import quat, rows, total, vec3
from brax.kernels.compaction import flagged
from brax.kernels.gather import picked
from brax.kernels.skip import empty, in_chunks, map_needed, rows_needed, unread, where_needed
from brax.tree import join

T = TypeVar("T")

MAX_UNCULLED_POINTS = 1000
"""Number of possible contact points above which lists have bounds, unless the model's options say
otherwise."""

MIN_LISTED_POINTS = 48
"""Number of possible contact points from which on the active ones are listed at each state."""

BOXED_PAIRS = 16
"""Least number of pairs of a group that are first compared by boxes along the world's axes."""

FAR = 1e3
"""Distance of an empty contact [m]: beyond all margins."""

MAX_CANDIDATE_PAIRS, MAX_LISTED_CONTACTS = 64, 128
"""Longest lists of pairs of each collider, and of contacts of each `condim`, in models with more
possible points than `MAX_UNCULLED_POINTS` and few trees."""

PAIRS_OF_TREE, CONTACTS_OF_TREE = 6, 12
"""Pairs and contacts of each tree for which the lists have room in models with many trees. Fifty
boxes in a heap have up to 1.7 and 4.3 of them each, in MuJoCo."""


class ListedContacts(NamedTuple):
    """The listed contacts of one `condim`, in the order of colliders and of their pairs.

    Nobody may read an empty one; `whole` is for those who read all.
    """

    touch: Touch
    """The contact points, (contacts, batch); empty ones are at the distance `FAR`."""
    pair: jax.Array
    """Index of the pair of each, among the pairs of all groups, (contacts, batch)."""
    number: jax.Array
    """Number of each among the points of all pairs, (contacts, batch)."""
    filled: jax.Array
    """Number of contacts that are not empty; they come first, (1, batch)."""
    geoms: tuple[jax.Array, jax.Array]
    """The first and the second geom of each, (contacts, batch)."""
    overflow: jax.Array
    """Number of further contacts within their margins that are left out, (1, batch). It is a lower
    bound: pairs that are not tested count once."""

    def whole(self) -> "ListedContacts":
        """Return the same contacts, of which all may be read: zeros where a row is empty."""
        some = rows_needed(self.filled, len(self.number))
        touch, pair, number, geoms = jax.tree.map(
            lambda x: jnp.where(some, x, 0), (self.touch, self.pair, self.number, self.geoms)
        )
        return self._replace(touch=_beyond(touch, some), pair=pair, number=number, geoms=geoms)


def uses_broad_phase(sys: System) -> bool:
    """Return whether the broad phase limits the pairs or the contacts of a model."""
    pairs, points = _limits(sys)
    few = all(len(a.pairs) == a.kept for a in collider_pairs(sys, pairs))
    return not (few and all(n <= points for n in _widths(sys, pairs).values()))


def lists_contacts(sys: System) -> bool:
    """Return whether `generalized` lists the active contacts of a model at each state."""
    return uses_broad_phase(sys) or _point_counts(sys).sum() >= MIN_LISTED_POINTS


def contact_widths(sys: System) -> dict[int, int]:
    """Return the length of the lists of contacts, by their dimension."""
    pairs, points = _limits(sys)
    return {width: min(n, points) for width, n in _widths(sys, pairs).items()}


def _limits(sys: System) -> tuple[int, int]:
    """Return the largest number of candidate pairs per collider, and of contacts per dimension."""
    every = int(_point_counts(sys).sum())
    asked = sys.opt.max_geom_pairs, sys.opt.max_contact_points
    # In models with few possible points the limits are their number, so that nothing is left out.
    trees = sys.link_parents.count(-1)
    usual = (
        (
            max(MAX_CANDIDATE_PAIRS, PAIRS_OF_TREE * trees),
            max(MAX_LISTED_CONTACTS, CONTACTS_OF_TREE * trees),
        )
        if every > MAX_UNCULLED_POINTS
        else (every, every)
    )
    return asked[0] or usual[0], asked[1] or usual[1]


def _widths(sys: System, most: int) -> dict[int, int]:
    """Return the number of contact points of all candidate pairs, by their dimension."""
    # Contacts of each dimension are a block of constraint rows of their own, so they are counted
    # apart.
    out: dict[int, int] = {}
    width, points = _width(sys), _point_counts(sys)
    for entry in collider_pairs(sys, most):
        for w, n in zip(*np.unique(width[entry.pairs], return_counts=True), strict=True):
            # At most all candidate pairs of a collider may have the same dimension.
            count = min(int(n), entry.kept) * entry.collider.n_contacts
            found = int(points[entry.pairs[width[entry.pairs] == w]].sum())
            out[int(w)] = out.get(int(w), 0) + min(count, found)
    return out


def _width(sys: System) -> np.ndarray:
    """Return the dimension of the contacts of each pair of all groups: 3, 4 or 6."""
    # Frictionless contacts (1) have three rows too, with a friction coefficient of zero.
    return _of_pairs(sys, [max(g.condim, 3) for g in sys.collisions])


def _point_counts(sys: System) -> np.ndarray:
    """Return the number of contact points of each pair of all groups."""
    return _of_pairs(sys, [g.collider.n_contacts for g in sys.collisions])


def _of_pairs(sys: System, of_groups: Sequence[int]) -> np.ndarray:
    """Return numbers of collision groups for each pair of all groups."""
    return np.repeat(of_groups, [len(g.geom1) for g in sys.collisions])


def listed_contacts(sys: System, reach: jax.Array, frames: LinkFrames) -> list[ListedContacts]:
    """Return the contacts at a state that are within reach, in the order of `contact_widths`.

    Args:
        sys: the model, its leaves with a trailing batch axis.
        reach: distance up to which the contacts of each pair of all groups are listed, their
            margin and gap, (pairs, 1 or batch).
        frames: a function that returns the links' frames.
    """
    most, _ = _limits(sys)
    # All geoms are placed once; candidate pairs then gather theirs by index.
    local = Shape(vec3(sys.geom.transform.pos), quat(sys.geom.transform.rot), vec3(sys.geom.size))
    geoms = place_shapes(local, sys.geom_link, frames)
    by_collider, width = collider_pairs(sys, most), _width(sys)
    tested = [
        _candidate_pairs(sys, a, geoms, reach)
        if _is_culled(a)
        else _all_pairs(sys, a, frames, reach)
        for a in by_collider
    ]
    out = []
    for w, most in contact_widths(sys).items():
        parts = [t for t, a in zip(tested, by_collider, strict=True) if (width[a.pairs] == w).any()]
        # Contacts of other dimensions, which the same collider found, have lists of their own.
        near = join([t.near if (width == w).all() else t.near & (t.width == w) for t in parts])
        every = [t.points for t in parts]
        index, found = flagged(near, most)
        index, count = jax.lax.stop_gradient(index), jnp.minimum(found, most)

        def filled(
            given: tuple[jax.Array, jax.Array],
            every: Sequence[_Points] = every,
            count: jax.Array = count,
        ) -> _Listed:
            place, index = given
            touch, pair, number = _of_parts(every, index)
            first, second = (jnp.asarray(side)[pair] for side in pair_geoms(sys))
            return _Listed(_beyond(touch, place < count), pair, number, (first, second))

        chunks = in_chunks((jnp.arange(most, dtype=jnp.int32)[:, None], index), most)
        none = empty(filled, jax.tree.map(lambda x: x[0], chunks))
        none = none._replace(touch=_beyond(none.touch, jnp.zeros_like(none.touch.dist, bool)))
        listed = map_needed(count, filled, chunks, unread(none))
        listed = jax.tree.map(lambda x: x.reshape(-1, x.shape[-1]), listed)
        # More points than are kept may be within reach, and more pairs than are tested.
        more = found - count + total(jnp.sum(t.overflow, axis=0, keepdims=True) for t in parts)
        out.append(
            ListedContacts(
                listed.touch,
                listed.pair,
                listed.number,
                count,
                listed.geoms,
                more.astype(reach.dtype),
            )
        )
    return out


def _beyond(touch: Touch, some: jax.Array) -> Touch:
    """Return contacts that are empty but for some, which a mask tells: far, with a normal."""
    normal = touch.normal
    return touch._replace(
        dist=jnp.where(some, touch.dist, FAR),
        # A unit vector, so that whatever follows stays finite.
        normal=normal._replace(z=jnp.where(some, normal.z, 1.0)),
    )


def links_of(sys: System, geoms: jax.Array) -> jax.Array:
    """Return the links that geoms are on, -1 for the world."""
    return jnp.asarray(sys.geom_link)[geoms]


class _Listed(NamedTuple):
    """Some contacts, (contacts, batch); see `ListedContacts`."""

    touch: Touch
    pair: jax.Array
    number: jax.Array
    geoms: tuple[jax.Array, jax.Array]


class _Points(NamedTuple):
    """Contact points, (points, batch)."""

    touch: Touch
    """Distances, positions and normals."""
    pair: jax.Array
    """Index of the pair of each, among the pairs of all groups."""
    number: jax.Array
    """Number of each among the points of all pairs."""


class _Tested(NamedTuple):
    """The points of a collider's tested pairs, and which are within reach, (points, batch).

    All but `near` may be read only of points within reach.
    """

    points: _Points
    """The contact points."""
    near: jax.Array
    """True where a point is within reach."""
    width: jax.Array
    """Dimension of each, see `contact_widths`, (points, 1 or batch)."""
    overflow: jax.Array
    """Number of near pairs that were left out, (1, batch)."""


def _of_parts(parts: Sequence[_Points], index: jax.Array) -> _Points:
    """Return the points of several colliders, one after another, at some indices, (1, batch)."""
    # Joined they would be copied: room for all points that there could be, for the few there are.
    found, start = picked(parts[0], jnp.minimum(index, len(parts[0].number) - 1)), 0
    for before, mine in itertools.pairwise(parts):
        start += len(before.number)
        place = jnp.clip(index - start, 0, len(mine.number) - 1)

        def of_part(_: _Points, mine: _Points = mine, place: jax.Array = place) -> _Points:
            return picked(mine, place)

        found = where_needed(index >= start, of_part, found)
    return found


class _Near(NamedTuple):
    """Pairs of a group, of which some may be within reach."""

    number: jax.Array
    """Their numbers, (pairs, 1 or batch)."""
    near: jax.Array
    """True for those that may be within reach, (pairs, batch)."""
    found: jax.Array | None = None
    """The number of these, (1, batch), if they come first; else None."""


def _is_culled(entry: ColliderPairs) -> bool:
    """Return whether only the candidate pairs of a collider are tested, not all."""
    if not entry.is_bounded:
        return False
    # The test of two capsules costs as much as a bound of their gap, and more than boxes of many.
    segments = not isinstance(entry.kinds[0], PlaneGeometry) and entry.collider.n_contacts > 1
    return _needs_bounds(entry) or (segments and len(entry.pairs) >= BOXED_PAIRS)


def _needs_bounds(entry: ColliderPairs) -> bool:
    """Return whether bounds of gaps are worth their cost: for long tests, or to choose pairs."""
    first, second = entry.kinds
    flat = not isinstance(first, PlaneGeometry) and second.corners >= FACE_CORNERS
    return entry.kept < len(entry.pairs) or flat or entry.is_long


def _all_pairs(sys: System, entry: ColliderPairs, frames: LinkFrames, reach: jax.Array) -> _Tested:
    """Test all pairs of a collider."""
    groups = [sys.collisions[i] for i in entry.groups]
    placed = [
        [
            place_shapes(local_shape(sys, side), [sys.geom_link[g] for g in side], frames)
            for side in (group.geom1, group.geom2)
        ]
        for group in groups
    ]
    touch = _flat(collide(entry.collider, *side_by_side(placed)))
    count = entry.collider.n_contacts
    pair = np.tile(entry.pairs, count)
    near = ~(touch.dist >= rows(reach, pair.tolist()))
    whole, number = (
        jnp.broadcast_to(jnp.asarray(x, jnp.int32)[:, None], touch.dist.shape)
        for x in (pair, _numbers(sys)[np.arange(count)[:, None], entry.pairs].reshape(-1))
    )
    dimension = jnp.asarray(_width(sys)[pair])[:, None]
    points = _Points(touch, whole, number)
    return _Tested(points, near, dimension, jnp.zeros_like(whole[:1]))


def _candidate_pairs(sys: System, entry: ColliderPairs, geoms: Shape, reach: jax.Array) -> _Tested:
    """List the candidate pairs of a collider by the bounds of their gaps, and test those."""
    sides = [side[entry.pairs] for side in pair_geoms(sys)]
    # Which pairs are near has no derivative.
    still, margin = jax.lax.stop_gradient((geoms, rows(reach, entry.pairs.tolist())))
    ends = np.cumsum([0, *(len(sys.collisions[i].geom1) for i in entry.groups)]).tolist()
    # The pairs of each group have the same two types.
    groups = [
        _near_pairs(sys, still, [side[a:b] for side in sides], margin[a:b], a, _needs_bounds(entry))
        for a, b in itertools.pairwise(ends)
    ]
    most, points = entry.kept, entry.collider.n_contacts
    index, found = _candidates(groups, most)
    count = jnp.minimum(found, most)
    overflow = found - count

    def shapes(index: jax.Array) -> list[Shape]:
        """Return the shapes of both sides of some pairs."""
        return [
            _chosen(sys, geoms, kind, side, jnp.asarray(side)[index])
            for kind, side in zip(entry.kinds, sides, strict=True)
        ]

    if entry.search:
        # Most pairs whose bounds overlap are apart, which a few support points tell. Those that are
        # left are listed anew, so that the long program runs for as few pairs as there are.
        apart = _are_apart(entry, entry.search, shapes, reach, (index, count))
        place, count = flagged(~apart & rows_needed(count, most), most)
        index = picked(index, place)

    def test(index: jax.Array) -> tuple[_Points, jax.Array, jax.Array]:
        touch = collide(entry.collider, *shapes(index))
        touch = touch._replace(along=touch.edge())
        pair = jnp.asarray(entry.pairs, jnp.int32)[index]
        # A collider of several types may give more points than that of the pair's own types.
        own = jnp.arange(points)[:, None, None] < jnp.asarray(_point_counts(sys))[pair]
        near = own & ~(touch.dist >= picked(reach, pair))
        number = jnp.asarray(_numbers(sys), jnp.int32)[:points, pair]
        whole, dimension = (
            jnp.broadcast_to(x, near.shape) for x in (pair, jnp.asarray(_width(sys))[pair])
        )
        return _Points(touch, whole, number), near, dimension

    nothing, nowhere, no_width = empty(test, index[:1])
    none = unread(nothing), nowhere, unread(no_width)
    found_there = map_needed(count, test, in_chunks(index, most), none)
    # Axes (pairs, points, 1, batch) become (all points, batch).
    points_there, near, width = jax.tree.map(lambda x: x.reshape(-1, x.shape[-1]), found_there)
    return _Tested(points_there, near, width, overflow)


def _near_pairs(
    sys: System,
    geoms: Shape,
    sides: list[np.ndarray],
    reach: jax.Array,
    start: int,
    bounds: bool,
) -> _Near:
    """Return which pairs of a group may be within reach, by lower bounds of their gaps.

    Args:
        sys: the model.
        geoms: all geoms in the world.
        sides: the first and the second geom of each pair.
        reach: the reach of each pair, (pairs, 1 or batch).
        start: the number of the first pair.
        bounds: whether the pairs of many whose boxes overlap are told apart by closer bounds.

    Returns:
        Numbers of pairs, each once at most and in order; pairs that are not there are beyond reach.
    """
    kinds = [sys.geom_types[side[0]] for side in sides]
    endless = any(kind.has_heights or isinstance(kind, PlaneGeometry) for kind in kinds)
    if len(reach) < BOXED_PAIRS or endless:
        near = _is_near([BoundedShapes.of(sys, geoms, side) for side in sides], reach)
        return _Near(start + jnp.arange(len(reach), dtype=jnp.int32)[:, None], near)
    # Most pairs of many are far apart, which boxes along the world's axes tell: each geom has one,
    # and a pair of them needs six differences.
    which, place = zip(*(np.unique(side, return_inverse=True) for side in sides), strict=True)
    shapes = [BoundedShapes.of(sys, geoms, geom) for geom in which]
    boxes = [shape.world_box() for shape in shapes]
    (low, high), (low2, high2) = (
        rows(box, index.tolist()) for box, index in zip(boxes, place, strict=True)
    )
    gaps = [*(low - high2), *(low2 - high)]
    index, found = flagged(~(functools.reduce(jnp.maximum, gaps) >= reach), len(reach))
    if not bounds:
        return _Near(start + index, rows_needed(found, len(reach)), found)

    def near_of(index: jax.Array) -> jax.Array:
        own = [
            shape.picked(jnp.asarray(at, jnp.int32)[index])
            for shape, at in zip(shapes, place, strict=True)
        ]
        return _is_near(own, picked(reach, index))

    chunks = in_chunks(index, len(reach))
    near = map_needed(found, near_of, chunks, empty(near_of, index[:1]))
    return _Near(start + index, near.reshape(len(reach), -1))


def _candidates(groups: Sequence[_Near], most: int) -> tuple[jax.Array, jax.Array]:
    """Return the numbers of the first near pairs, (most, batch), and how many are near."""
    if len(groups) == 1 and groups[0].found is not None:
        return groups[0].number[:most], groups[0].found
    number, near = join([(group.number, group.near) for group in groups])
    place, found = flagged(near, most)
    return picked(number, place), found


def _is_near(sides: Sequence[BoundedShapes], reach: jax.Array) -> jax.Array:
    """Return whether pairs of shapes, the first and the second of each, may be within reach."""
    first, second = sides
    # A bound below zero means that they may. NaN counts, so that the result shows it.
    return ~(least_gap(first, second) - reach >= 0)


def _are_apart(
    entry: ColliderPairs,
    collider: ConvexConvex | HeightFieldConvex,
    shapes: Callable[[jax.Array], list[Shape]],
    reach: jax.Array,
    listed: tuple[jax.Array, jax.Array],
) -> jax.Array:
    """Return which of the listed pairs of convex shapes are surely beyond reach, (pairs, batch).

    Args:
        entry: the pairs.
        collider: their collider.
        shapes: a function that returns the shapes of both sides of some pairs.
        reach: distance up to which the contacts of each pair of all groups are listed.
        listed: the indices of the listed pairs, and how many they are.
    """
    index, count = listed
    most = len(index)
    pair = jnp.asarray(entry.pairs, jnp.int32)

    def test(index: jax.Array) -> jax.Array:
        a, b = jax.lax.stop_gradient(shapes(index))
        return collider.are_apart(a, b, jax.lax.stop_gradient(picked(reach, pair[index])))

    none = empty(test, index[:1])
    return map_needed(count, test, in_chunks(index, most), none).reshape(most, -1)


def _numbers(sys: System) -> np.ndarray:
    """Return the number of each point of each pair of all groups, (points, pairs).

    Contacts are numbered by group, then by point, then by pair.
    """
    counts = [(len(g.geom1), g.collider.n_contacts) for g in sys.collisions]
    starts = np.cumsum([0, *(pairs * points for pairs, points in counts)])
    most = max(points for _, points in counts)
    each = [
        start + np.arange(most)[:, None] * pairs + np.arange(pairs)
        for start, (pairs, _) in zip(starts, counts, strict=False)
    ]
    return np.concatenate(each, axis=1)


def _chosen(
    sys: System, geoms: Shape, kind: GeometryType, which: np.ndarray, index: jax.Array
) -> Shape:
    """Gather geoms by indices that differ between environments, with their vertices.

    Args:
        sys: the model.
        geoms: all geoms in the world.
        kind: the type that they have, or that stands for theirs.
        which: the geoms that the indices may be.
        index: the indices, (pairs, batch).
    """
    shape: Shape = picked(geoms, index)
    if kind.has_heights:
        return shape._replace(heights=height_table(sys, [int(which[0])]))
    if isinstance(kind, AnyConvex):
        number = [kind.kinds.index(t) if t in kind.kinds else 0 for t in sys.geom_types]
        shape = shape._replace(kind=jnp.asarray(number)[index])
    counts = np.array(sys.geom_points)
    most = int(counts[which].max())
    if not most:
        return shape
    # Vertices of all geoms are one table. As in `narrow_phase`, geoms with fewer vertices than
    # others repeat their last one.
    starts = jnp.asarray(np.cumsum([0, *counts[:-1]]))
    last = starts + jnp.maximum(jnp.asarray(counts), 1) - 1
    # A geom without vertices gets some, which its type does not read.
    last = jnp.minimum(last, int(counts.sum()) - 1)
    at = jnp.minimum(starts[index] + jnp.arange(most)[:, None, None], last[index])
    flat = picked(vec3(sys.points), at.reshape(-1, at.shape[-1]))
    return shape._replace(points=jax.tree.map(lambda x: x.reshape(*at.shape[:2], -1), flat))


def _flat(touch: Touch) -> Touch:
    """Merge the axes of points and pairs, and fill in the direction of the first tangents."""
    sized = touch._replace(along=touch.edge())
    return jax.tree.map(lambda x: x.reshape(-1, x.shape[-1]), sized)
