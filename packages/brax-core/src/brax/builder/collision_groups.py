"""Which geoms are tested against each other, and by what."""

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
) -> Iterator[tuple[int, int]]:
    """Pairs of geoms that may touch, by MuJoCo's filter.

    The bits, not on the same link, not on a link and its parent (unless that is the world), and
    not on two bodies that were excluded.
    """
    parents = {x.name: x.parent for x in links}
    for i, a in enumerate(geoms):
        for j, b in enumerate(geoms[i + 1 :], i + 1):
            bits = a.contype & b.conaffinity or b.contype & a.conaffinity
            nested = WORLD not in (a.body, b.body) and (
                parents[a.body] == b.body or parents[b.body] == a.body
            )
            apart = a.body != b.body and frozenset((a.origin, b.origin)) not in excluded
            if bits and apart and not nested:
                yield i, j


def collision_groups(
    problems: list[str],
    geoms: Sequence[Element],
    types: Sequence[Any],
    pairs: Iterator[tuple[int, int]],
    given: Sequence[Element],
) -> tuple[CollisionGroup, ...]:
    """Groups pairs of geoms by the collider that tests them, and by their `condim`.

    The collider is the registered one, else one that follows from what the two types say of
    themselves. A pair that has neither is noted as a problem.

    Args:
        problems: where to note them.
        geoms: all geoms.
        types: of the geoms.
        pairs: of geoms that may touch.
        given: the pairs that are given what their contacts are like; they are groups of their own.
    """
    registered = functools.cache(lambda a, b: _registered(problems, a, b))
    numbers = {g.name: i for i, g in enumerate(geoms)}
    own = [(numbers[p.geom1], numbers[p.geom2]) for p in given]
    for i in sorted({i for pair in own for i in pair}):
        if not (geoms[i].contype or geoms[i].conaffinity):
            problems += geom_checks.solid(geoms[i], types[i])
    taken = {frozenset(pair) for pair in own}
    every = [(pair, p.condim, k) for k, (pair, p) in enumerate(zip(own, given, strict=True))]
    mixed = [(i, j) for i, j in pairs if frozenset((i, j)) not in taken]
    every = [((i, j), _condim(geoms[i], geoms[j]), -1) for i, j in mixed] + every
    groups: dict[tuple[Any, int, bool], list[tuple[int, int, int]]] = {}
    for (i, j), condim, number in every:
        a, b = geoms[i], geoms[j]
        known = registered(*sorted((a.type, b.type)))
        if known is _BROKEN:
            continue
        collider = known or collider_of_geoms(_solid(a, types[i]), _solid(b, types[j]))
        if collider is not None:
            pair = (i, j) if collider.types == (a.type, b.type) else (j, i)
            groups.setdefault((collider, condim, number >= 0), []).append((*pair, number))
        else:
            problems.append(
                f"{a} and {b} can touch, but no collider is registered for {a.type} and "
                f"{b.type}. Registered: {', '.join(sorted(plugins.names('collider')))}. Take the "
                "pair out by contype and conaffinity, or install a plugin that brings one"
            )
    return tuple(
        _group(collider, condim, own, pairs) for (collider, condim, own), pairs in groups.items()
    )


_BROKEN = object()
"""Stands for a collider that is registered, but cannot be loaded."""


def _registered(problems: list[str], a: str, b: str) -> Any:
    """The registered collider of two geometry types, or None; what is wrong with it is noted."""
    try:
        return plugins.find("collider", a, b)
    except PluginError as error:
        problems.append(str(error))
        return _BROKEN


def _group(
    collider: Any, condim: int, own: bool, pairs: Sequence[tuple[int, int, int]]
) -> CollisionGroup:
    first, second, numbers = zip(*pairs, strict=True)
    return CollisionGroup(collider, first, second, condim, numbers if own else ())


def _solid(geom: Element, kind: Any) -> GeomShape:
    return GeomShape(kind, geom.size, geom.points, geom.heights.shape, geom.margin + geom.gap)


def _condim(a: Element, b: Element) -> int:
    """Of a pair: the higher priority's, else the larger."""
    return int(max((g.priority, g.condim) for g in (a, b))[1])
