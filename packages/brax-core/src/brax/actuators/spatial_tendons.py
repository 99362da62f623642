"""Spatial tendons: shortest paths over sites and around geoms.

A path is a row of segments, each from one site to the next, straight or around a geom. The tendon's
length changes only with the points where the path bends: because the path is the shortest, its
length does not depend to first order on where it touches a geom (envelope theorem).

Source: MuJoCo's documentation, chapter Computation, section Tendons, and XML reference, spatial.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from brax.actuators.site_transmission import LinkTransmission, attached, site_frames
from brax.actuators.tendon_wrapping import WrappedPath, around_axis, around_point
from brax.base import System
from brax.components import Vec3, normalize, rows, total, vec3
from brax.kinematics import Frames
from brax.spatial import Spatial
from brax.tree import sum_rows

WRAPPINGS: dict[str, Callable[[Vec3, Vec3, jax.Array, Vec3 | None], WrappedPath]] = {
    "point": around_point,
    "axis": around_axis,
}
"""Functions that wrap a path around a geom, by the `wrapped` of the geom's type."""


class TensionWrenches(NamedTuple):
    """Forces at points along some tendons, for a unit of tension that lengthens them."""

    owner: tuple[int, ...]
    """The tendon."""
    link: tuple[int, ...]
    """The link of each point, -1 for the world."""
    point: Vec3
    force: Vec3
    length: jax.Array
    """Length of each segment, (segments, batch)."""
    of: tuple[int, ...]
    """The tendon of each segment."""


class TendonSegments(NamedTuple):
    """Some segments of paths, by columns of `System.tendon_path`."""

    tendon: tuple[int, ...]
    number: tuple[int, ...]
    """Index of each segment among those of all tendons."""
    first: tuple[int, ...]
    last: tuple[int, ...]
    geom: tuple[int, ...]
    side: tuple[int, ...]


def has_paths(sys: System) -> bool:
    """Return whether any tendon is spatial."""
    return any(sys.tendon_path)


def path_links(sys: System, tendon: int) -> list[int]:
    """Return the links that a spatial tendon runs over, -1 for the world."""
    found = []
    for first, last, geom, _ in sys.tendon_path[tendon]:
        found += [sys.site_link[first], sys.site_link[last]]
        found += [sys.geom_link[geom]] if geom >= 0 else []
    return sorted(set(found))


def tendon_reach(sys: System, links: Frames) -> LinkTransmission:
    """Return the transmission of the spatial tendons, at given frames of the links.

    Args:
        sys: the model, with a spatial tendon, its leaves with a trailing batch axis.
        links: frames of the links in the world, and their velocities, in the model's order.
    """
    # Segments of one kind are computed together, as arrays.
    found = [
        _straight(sys, links, s) if wrapping == "" else _around(sys, links, s, wrapping, has_side)
        for (wrapping, has_side), s in _kinds(sys).items()
    ]
    n, size = len(sys.tendon_names), links.pos.x.shape[-1]
    length = total(sum_rows(jnp.broadcast_to(p.length, (len(p.of), size)), p.of, n) for p in found)
    pulled = [(p, k) for p in found for k, link in enumerate(p.link) if link >= 0]
    owner, link = (tuple(getattr(p, key)[k] for p, k in pulled) for key in ("owner", "link"))
    real = [rows((p.point, p.force), [k for q, k in pulled if q is p]) for p in found]
    point, force = jax.tree.map(lambda *x: jnp.concatenate(x), *real)
    moved = rows(links, link)
    # Forces on the world do nothing, so points without a link were left out above.
    push = Spatial((point - moved.pos).cross(force), force)
    velocity = sum_rows(push.dot(Spatial(moved.ang, moved.vel)), owner, n)
    return LinkTransmission(owner, link, push, length, velocity)


def _kinds(sys: System) -> dict[tuple[str, bool], TendonSegments]:
    """Return the segments by the kind of wrapping, and by whether they have a side site."""
    found: dict[tuple[str, bool], list[tuple[int, ...]]] = {}
    number = 0
    for tendon, path in enumerate(sys.tendon_path):
        for first, last, geom, side in path:
            wrapping = sys.geom_types[geom].wrapped if geom >= 0 else ""
            mine = found.setdefault((wrapping, side >= 0), [])
            mine.append((tendon, number, first, last, geom, side))
            number += 1
    return {key: TendonSegments(*zip(*mine, strict=True)) for key, mine in found.items()}


def _ends(sys: System, links: Frames, s: TendonSegments) -> tuple[Vec3, Vec3]:
    """Return the positions of both ends of segments."""
    return site_frames(sys, s.first, links).pos, site_frames(sys, s.last, links).pos


def _on(sys: System, sites: Sequence[int]) -> tuple[int, ...]:
    """Return the links of some sites."""
    return tuple(sys.site_link[i] for i in sites)


def _straight(sys: System, links: Frames, s: TendonSegments) -> TensionWrenches:
    """Return the wrenches of straight segments."""
    a, b = _ends(sys, links, s)
    share = rows(sys.tendon.share, s.number)
    along, length = normalize(b - a)
    # Behind a pulley a segment counts by one over the divisor, in length and so in force.
    pull = along * share
    point, force = _joined([(a, -pull), (b, pull)])
    return TensionWrenches(
        s.tendon * 2, _on(sys, s.first) + _on(sys, s.last), point, force, share * length, s.tendon
    )


def _around(
    sys: System, links: Frames, s: TendonSegments, wrapping: str, has_side: bool
) -> TensionWrenches:
    """Return the wrenches of segments around geoms."""
    a, b = _ends(sys, links, s)
    share = rows(sys.tendon.share, s.number)
    geom_link = tuple(sys.geom_link[g] for g in s.geom)
    geom = attached(sys, geom_link, rows(sys.geom.transform, s.geom), links)

    def local(point: Vec3) -> Vec3:
        return geom.rot.inv_rotate(point - geom.pos)

    side = local(site_frames(sys, s.side, links).pos) if has_side else None
    found = WRAPPINGS[wrapping](local(a), local(b), vec3(rows(sys.geom.size, s.geom)).x, side)
    first, last = (geom.pos + geom.rot.rotate(p) for p in (found.first, found.last))
    # A segment that does not wrap becomes two straight halves: both ends of its arc are the middle,
    # where no force acts.
    middle = (a + b) * 0.5
    first, last = (
        Vec3(*(jnp.where(found.wraps, x, m) for x, m in zip(p, middle, strict=True)))
        for p in (first, last)
    )
    (before, size), (after, more) = normalize(first - a), normalize(b - last)
    before, after = before * share, after * share
    touched = [v * found.wraps for v in (before, -after)]
    point, force = _joined([(a, -before), (first, touched[0]), (last, touched[1]), (b, after)])
    on = (*_on(sys, s.first), *geom_link, *geom_link, *_on(sys, s.last))
    length = share * (size + found.length + more)
    return TensionWrenches(s.tendon * 4, on, point, force, length, s.tendon)


def _joined(parts: Sequence[tuple[Vec3, Vec3]]) -> tuple[Vec3, Vec3]:
    """Return points and forces, concatenated."""
    found: tuple[Vec3, Vec3] = jax.tree.map(lambda *x: jnp.concatenate(x), *parts)
    return found
