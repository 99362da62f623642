"""Spatial tendons: paths over sites and around geoms, as long as they are short.

A path is a row of stretches, each from one site to the next, straight or around a geom. Its length
changes as the points move where it bends, whichever way it touches a geom: the way is the shortest.

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
"""How a path leads around a geom, by the `wrapped` of its type."""


class TensionWrenches(NamedTuple):
    """What a unit of tension would do at points, were it to lengthen the tendons."""

    owner: tuple[int, ...]
    """The tendon."""
    link: tuple[int, ...]
    """The link of each point, -1 for the world."""
    point: Vec3
    force: Vec3
    length: jax.Array
    """Of each stretch of a tendon, (stretches, batch)."""
    of: tuple[int, ...]
    """Its tendon."""


class TendonSegments(NamedTuple):
    """Some stretches of paths; columns of `System.tendon_path`."""

    tendon: tuple[int, ...]
    number: tuple[int, ...]
    """Of each among those of all tendons."""
    first: tuple[int, ...]
    last: tuple[int, ...]
    geom: tuple[int, ...]
    side: tuple[int, ...]


def has_paths(sys: System) -> bool:
    """Return whether any tendon is a spatial one."""
    return any(sys.tendon_path)


def path_links(sys: System, tendon: int) -> list[int]:
    """Links that a spatial tendon runs over, -1 for the world."""
    found = []
    for first, last, geom, _ in sys.tendon_path[tendon]:
        found += [sys.site_link[first], sys.site_link[last]]
        found += [sys.geom_link[geom]] if geom >= 0 else []
    return sorted(set(found))


def tendon_reach(sys: System, links: Frames) -> LinkTransmission:
    """Lengths of the spatial tendons, and what each does to the links where they are.

    Args:
        sys: the model, with a spatial tendon, its leaves with a trailing batch axis.
        links: frames of the links in the world, and their velocities, in the model's order.
    """
    found = [
        _straight(sys, links, s) if way == "" else _around(sys, links, s, way, sided)
        for (way, sided), s in _kinds(sys).items()
    ]
    n, size = len(sys.tendon_names), links.pos.x.shape[-1]
    length = total(sum_rows(jnp.broadcast_to(p.length, (len(p.of), size)), p.of, n) for p in found)
    pulled = [(p, k) for p in found for k, link in enumerate(p.link) if link >= 0]
    owner, link = (tuple(getattr(p, key)[k] for p, k in pulled) for key in ("owner", "link"))
    real = [rows((p.point, p.force), [k for q, k in pulled if q is p]) for p in found]
    point, force = jax.tree.map(lambda *x: jnp.concatenate(x), *real)
    moved = rows(links, link)
    push = Spatial((point - moved.pos).cross(force), force)
    velocity = sum_rows(push.dot(Spatial(moved.ang, moved.vel)), owner, n)
    return LinkTransmission(owner, link, push, length, velocity)


def _kinds(sys: System) -> dict[tuple[str, bool], TendonSegments]:
    """Stretches by the way that they lead around a geom, and whether a side site says how."""
    found: dict[tuple[str, bool], list[tuple[int, ...]]] = {}
    number = 0
    for tendon, path in enumerate(sys.tendon_path):
        for first, last, geom, side in path:
            way = sys.geom_types[geom].wrapped if geom >= 0 else ""
            mine = found.setdefault((way, side >= 0), [])
            mine.append((tendon, number, first, last, geom, side))
            number += 1
    return {key: TendonSegments(*zip(*mine, strict=True)) for key, mine in found.items()}


def _ends(sys: System, links: Frames, s: TendonSegments) -> tuple[Vec3, Vec3]:
    return site_frames(sys, s.first, links).pos, site_frames(sys, s.last, links).pos


def _on(sys: System, sites: Sequence[int]) -> tuple[int, ...]:
    return tuple(sys.site_link[i] for i in sites)


def _straight(sys: System, links: Frames, s: TendonSegments) -> TensionWrenches:
    a, b = _ends(sys, links, s)
    share = rows(sys.tendon.share, s.number)
    along, length = normalize(b - a)
    pull = along * share
    point, force = _joined([(a, -pull), (b, pull)])
    return TensionWrenches(
        s.tendon * 2, _on(sys, s.first) + _on(sys, s.last), point, force, share * length, s.tendon
    )


def _around(
    sys: System, links: Frames, s: TendonSegments, way: str, sided: bool
) -> TensionWrenches:
    a, b = _ends(sys, links, s)
    share = rows(sys.tendon.share, s.number)
    geom_link = tuple(sys.geom_link[g] for g in s.geom)
    geom = attached(sys, geom_link, rows(sys.geom.transform, s.geom), links)

    def local(point: Vec3) -> Vec3:
        return geom.rot.inv_rotate(point - geom.pos)

    side = local(site_frames(sys, s.side, links).pos) if sided else None
    found = WRAPPINGS[way](local(a), local(b), vec3(rows(sys.geom.size, s.geom)).x, side)
    first, last = (geom.pos + geom.rot.rotate(p) for p in (found.first, found.last))
    # Where a way does not wrap, both ends of its arc are the middle of the straight line.
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
    found: tuple[Vec3, Vec3] = jax.tree.map(lambda *x: jnp.concatenate(x), *parts)
    return found
