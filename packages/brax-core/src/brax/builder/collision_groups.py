"""Collision groups: the pairs of geoms that are tested, by the collider that tests them."""

import functools
from collections.abc import Iterator, Sequence
from typing import Any

from brax import plugins
from brax.builder.checks import geoms as geom_checks
from brax.builder.elements import WORLD, Element
from brax.colliders import CollisionGroup
from brax.colliders.dispatch import GeomShape, collider_of_geoms
from brax.errors import PluginError


def candidate_pairs(
    links: Sequence[Element],
    geoms: Sequence[Element],
    excluded: set[frozenset[str]],
    filterparent: bool,
) -> Iterator[tuple[int, int]]:
    """Yield the pairs of geoms that may touch, by MuJoCo's filter.

    A pair is tested if the bits match, if its geoms are neither on one link nor on a link and its
    parent (unless that is the world, or `filterparent` is False), and if its bodies are not
    excluded. A mocap body is the parent of the links on it.

    Source: MuJoCo's documentation, chapter Computation, section Collision, Selection.
    """
    parents = {x.name: x.on or x.parent for x in links}
    for i, a in enumerate(geoms):
        for j, b in enumerate(geoms[i + 1 :], i + 1):
            bits = a.contype & b.conaffinity or b.contype & a.conaffinity
            # Geoms of a link and its parent overlap at the joint. The world does not count as a
            # parent, or nothing could stand on the ground.
            first, second = a.on or a.body, b.on or b.body
            nested = WORLD not in (first, second) and (
                parents.get(first) == second or parents.get(second) == first
            )
            # Exclusions name bodies as described, several of which may be fused into one link.
            apart = a.body != b.body and frozenset((a.origin, b.origin)) not in excluded
            if bits and apart and not (nested and filterparent):
                yield i, j


def collision_groups(
    problems: list[str],
    geoms: Sequence[Element],
    types: Sequence[object],
    pairs: Iterator[tuple[int, int]],
    given: Sequence[Element],
) -> tuple[CollisionGroup, ...]:
    """Return the pairs of geoms, grouped by collider and `condim`.

    The collider is the registered one, else one that follows from the properties of the two types.
    A pair without either is recorded as a problem.

    Args:
        problems: list that problems are added to.
        geoms: all geoms.
        types: types of the geoms.
        pairs: pairs of geoms that may touch.
        given: pairs that are described with contact parameters of their own; these are groups of
            their own.
    """
    # Cached, so that a broken collider is reported once and not for each pair.
    registered = functools.cache(lambda a, b: _registered(problems, a, b))
    numbers = {g.name: i for i, g in enumerate(geoms)}
    own = [(numbers[p.geom1], numbers[p.geom2]) for p in given]
    # A described pair is tested whatever its bits, so its geoms must be solid even without bits.
    for i in sorted({i for pair in own for i in pair}):
        if not (geoms[i].contype or geoms[i].conaffinity):
            problems += geom_checks.solid(geoms[i], types[i])
    # A described pair takes the place of the pair that the bits would give.
    taken = {frozenset(pair) for pair in own}
    every = [(pair, p.condim, k) for k, (pair, p) in enumerate(zip(own, given, strict=True))]
    mixed = [(i, j) for i, j in pairs if frozenset((i, j)) not in taken]
    every = [((i, j), _condim(geoms[i], geoms[j]), -1) for i, j in mixed] + every
    # A group is one call of its collider, on arrays of all of its pairs.
    groups: dict[tuple[Any, ...], list[tuple[int, int, int]]] = {}
    for (i, j), condim, number in every:
        a, b = geoms[i], geoms[j]
        known = registered(*sorted((a.type, b.type)))
        if known is _BROKEN:
            continue
        collider = known or collider_of_geoms(_solid(a, types[i]), _solid(b, types[j]))
        if collider is not None:
            # A collider is registered for types in one order, which its geoms must follow.
            pair = (i, j) if collider.types == (a.type, b.type) else (j, i)
            # Grids of one group are one array, so they have equally many points.
            grids = tuple(sorted(g.heights.shape for g in (a, b)))
            key = (collider, condim, number >= 0, grids)
            groups.setdefault(key, []).append((*pair, number))
        else:
            known_pairs = ", ".join(sorted(plugins.names("collider")))
            reason = (
                f"it can touch {b}, but no collider is registered for {a.type} and {b.type}. "
                f"Registered: {known_pairs}. Take the pair out by contype and conaffinity, or "
                "install a plugin that brings one"
            )
            problems.append(a.problem(reason))
    return tuple(
        _group(collider, condim, own, pairs) for (collider, condim, own, _), pairs in groups.items()
    )


_BROKEN = object()
"""Stands for a collider that is registered, but cannot be loaded."""


def _registered(problems: list[str], a: str, b: str) -> Any:
    """Return the registered collider of two geometry types, or None; record one that is broken."""
    try:
        return plugins.find("collider", a, b)
    except PluginError as error:
        problems.append(str(error))
        return _BROKEN


def _group(
    collider: Any, condim: int, own: bool, pairs: Sequence[tuple[int, int, int]]
) -> CollisionGroup:
    """Return the group of pairs (first geom, second geom, number of the described pair)."""
    first, second, numbers = zip(*pairs, strict=True)
    return CollisionGroup(collider, first, second, condim, numbers if own else ())


def _solid(geom: Element, kind: Any) -> GeomShape:
    """Return what the choice of a collider depends on."""
    return GeomShape(kind, geom.size, geom.points, geom.heights.shape, geom.margin + geom.gap)


def _condim(a: Element, b: Element) -> int:
    """Return the `condim` of a pair: that of the higher priority, else the larger."""
    return int(max((g.priority, g.condim) for g in (a, b))[1])
