"""The pairs of a model's geoms, by the collider that tests them at each state.

A program that finds the contacts of convex shapes is long, and takes a compiler long. So all pairs
of convex types share one, and all pairs of a height field and a convex type: their colliders take
`any_convex` types.
"""

from typing import Any, NamedTuple

import numpy as np

from brax.base import System
from brax.colliders.convex.any_convex import any_of
from brax.colliders.convex.convex_convex import ConvexConvex
from brax.colliders.convex.convex_height_field import HeightFieldConvex
from brax.colliders.dispatch import is_derived
from brax.colliders.interface import Collider, CollisionGroup, GeometryType
from brax.colliders.narrow_phase import of_one_collider
from brax.colliders.shapes.capsule import CAPSULE
from brax.colliders.shapes.plane import PlaneGeometry
from brax.colliders.shapes.sphere import SPHERE


class ColliderPairs(NamedTuple):
    """The pairs that one collider tests."""

    collider: Collider
    """The collider."""
    kinds: tuple[GeometryType, GeometryType]
    """The two types that it takes."""
    groups: tuple[int, ...]
    """Indices of the collision groups."""
    pairs: np.ndarray
    """Indices of the pairs, among the pairs of all groups."""
    kept: int
    """Number of candidate pairs, which are tested at each state."""
    is_bounded: bool
    """True if the gaps of the pairs have a lower bound."""
    is_long: bool
    """True if the collider's program is long."""
    search: ConvexConvex | HeightFieldConvex | None
    """The collider if it searches for the contacts of convex shapes, the longest program. Its
    `are_apart` tells of most pairs that they need none."""


def collider_pairs(sys: System, most: int) -> list[ColliderPairs]:
    """Return the pairs of each collider, of which it tests `most` if their gaps have bounds."""
    counts = [len(g.geom1) for g in sys.collisions]
    starts = np.cumsum([0, *counts])
    out = []
    for groups in _of_one_program(sys):
        pairs = np.concatenate([starts[i] + np.arange(counts[i]) for i in groups])
        group = sys.collisions[groups[0]]
        # Pairs without a bound of their gap, such as those of signed distances, are all tested.
        bounded = _is_bounded(sys, group)
        kept = min(most, len(pairs)) if bounded else len(pairs)
        first, second = zip(*(_kinds(sys, sys.collisions[i]) for i in groups), strict=True)
        kinds = any_of(first), any_of(second)
        collider = _collider([sys.collisions[i].collider for i in groups], kinds)
        search = None
        if isinstance(collider, ConvexConvex | HeightFieldConvex) and _searches(group.collider):
            search = collider
        long = is_derived(group.collider)
        out.append(
            ColliderPairs(collider, kinds, tuple(groups), pairs, kept, bounded, long, search)
        )
    return out


def _is_bounded(sys: System, group: CollisionGroup) -> bool:
    """Return whether the gaps of a group's pairs have a lower bound: support functions give it.

    A height field counts by its bounding box; the pairs of a group must share it.
    """
    a, b = _kinds(sys, group)
    if a.has_heights:
        return len(set(group.geom1)) == 1 and b.corners > 0
    return (isinstance(a, PlaneGeometry) or a.corners > 0) and b.corners > 0


def pair_geoms(sys: System) -> tuple[np.ndarray, np.ndarray]:
    """Return the first and the second geoms of the pairs of all groups."""
    first, second = ([g for c in sys.collisions for g in getattr(c, k)] for k in ("geom1", "geom2"))
    return np.array(first), np.array(second)


def _kinds(sys: System, group: CollisionGroup) -> tuple[GeometryType, GeometryType]:
    """Return the two types of the geoms of a group's pairs."""
    return sys.geom_types[group.geom1[0]], sys.geom_types[group.geom2[0]]


def _of_one_program(sys: System) -> list[list[int]]:
    """Return the indices of the groups, collected into lists that share one program."""
    out: dict[Any, list[int]] = {}
    for groups in of_one_collider(sys):
        out.setdefault(_program(sys, groups[0]), []).extend(groups)
    return list(out.values())


def _program(sys: System, number: int) -> Any:
    """Return a key that the groups of one program share."""
    group = sys.collisions[number]
    collider = group.collider
    if _searches(collider):
        if isinstance(collider, ConvexConvex):
            return "convex"
        # Without bounds all pairs are tested, and the heights of several fields are no table that
        # groups could share.
        if isinstance(collider, HeightFieldConvex) and _is_bounded(sys, group):
            return collider.grid, tuple(set(group.geom1))
    return number


def _searches(collider: Collider) -> bool:
    """Return whether a collider searches for the contacts of convex shapes."""
    # A package's own colliders are left as they are.
    if not is_derived(collider):
        return False
    # Spheres and capsules have closed forms on a field, which are short.
    on_field = isinstance(collider, HeightFieldConvex) and collider.kind not in (SPHERE, CAPSULE)
    return on_field or isinstance(collider, ConvexConvex)


def _collider(colliders: list[Collider], kinds: tuple[GeometryType, GeometryType]) -> Collider:
    """Return the collider that stands for some that share a program."""
    collider = colliders[0]
    if is_derived(collider) and isinstance(collider, ConvexConvex):
        return ConvexConvex(*kinds)
    if is_derived(collider) and isinstance(collider, HeightFieldConvex):
        windows = [c.window for c in colliders if isinstance(c, HeightFieldConvex)]
        rows, columns = (max(side) for side in zip(*windows, strict=True))
        return HeightFieldConvex(kinds[1], collider.grid, (rows, columns))
    return collider
