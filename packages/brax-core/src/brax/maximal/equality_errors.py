"""Which links and coordinates are tied beside the trees' joints, and how far from it they are."""

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from brax.base import System
from brax.components import Quat, Vec3, polynomial, rows, zero_vec
from brax.maximal.actuation import coordinates_in_order
from brax.maximal.coordinates import frames_of_links
from brax.maximal.links import Links, Masses, PerDof
from brax.maximal.tendons import TendonJacobian, tendon_jacobian
from brax.tree import Layout, join

T = TypeVar("T")


class EqualityLinks(NamedTuple):
    """Which links and coordinates a model ties; a number for each tie."""

    points: tuple[int, ...]
    """Equalities that hold two points together."""
    frames: tuple[int, ...]
    """Which of these, by their place among them, hold two frames."""
    first: tuple[int, ...]
    """Positions of the links in the layout; after the last one the world."""
    second: tuple[int, ...]
    joints: tuple[int, ...]
    """Equalities between coordinates."""
    tendons: tuple[int, ...]
    """Equalities between lengths of tendons."""


class EqualityErrors(NamedTuple):
    """Ties as they stand, components (ties, batch), world axes."""

    point: Vec3
    """Where points are held together: midway."""
    apart: jax.Array
    """How far each is from what it asks for, (rows, batch): points along x, y and z, frames about
    them, coordinates, tendons."""
    bend: jax.Array
    """Its second derivative by time while all links move freely, (rows, batch)."""
    slopes: jax.Array
    """Of each coordinate that another one follows, then of tendons, (couplings, batch)."""
    tendons: TendonJacobian | None
    """The tendons; None if none is tied."""


def equality_links(sys: System, plan: Layout) -> EqualityLinks:
    """What a model ties."""
    kinds, place = sys.equality_types, (*plan.position, len(plan.order))
    points = tuple(i for i, kind in enumerate(kinds) if kind in ("connect", "weld"))
    sides = [tuple(place[link] for link in sys.equality_pair[i]) for i in points]
    return EqualityLinks(
        points,
        tuple(k for k, i in enumerate(points) if kinds[i] == "weld"),
        tuple(a for a, _ in sides),
        tuple(b for _, b in sides),
        tuple(i for i, kind in enumerate(kinds) if kind == "joint"),
        tuple(i for i, kind in enumerate(kinds) if kind == "tendon"),
    )


def equality_errors(
    sys: System, plan: Layout, masses: Masses, links: Links, origins: Vec3, q: Sequence[PerDof]
) -> EqualityErrors:
    """The ties of a model at its links, with their trees' common points, and coordinates, by
    stack."""
    tied, tendons = equality_links(sys, plan), None
    point, apart, bend = _points(sys, tied, masses, links)
    slopes = [jnp.zeros_like(links.pos.x[:0])]
    found = []
    if tied.joints:
        found.append(_joint_coupling(sys, tied, coordinates_in_order(sys, plan, q)))
    if tied.tendons:
        tendons = tendon_jacobian(sys, plan, masses, links, origins, q)
        assert tendons is not None
        found.append(_tendon_coupling(sys, tied, tendons.length))
    for missed, slope in found:
        apart.append(missed)
        bend.append(jnp.zeros_like(missed))
        slopes.append(slope)
    return EqualityErrors(point, join(apart), join(bend), join(slopes), tendons)


def _points(
    sys: System, tied: EqualityLinks, masses: Masses, links: Links
) -> tuple[Vec3, list[jax.Array], list[jax.Array]]:
    """Where points are held together; how far they and frames are apart, and how that bends."""
    if not tied.points:
        return zero_vec(links.pos.x[:0]), [], []
    first, second = (rows(_with_world(masses, links), side) for side in (tied.first, tied.second))
    data = rows(sys.equality.data, tied.points)
    near, far = (Vec3(*(data[:, k + i] for i in range(3))) for k in (0, 3))
    # MuJoCo's order: of a weld the second link's point comes first.
    weld = np.isin(np.arange(len(tied.points)), tied.frames)[:, None]
    point1 = first.at(Vec3(*(jnp.where(weld, b, a) for a, b in zip(near, far, strict=True))))
    point2 = second.at(Vec3(*(jnp.where(weld, a, b) for a, b in zip(near, far, strict=True))))
    apart = [*(point2 - point1)]
    bend = [*(second.swing(point2) - first.swing(point1))]
    if tied.frames:
        turn = Quat(*(rows(data[:, 6 + i], tied.frames) for i in range(4)))
        rot1, rot2 = rows((first.rot, second.rot), tied.frames)
        error = rot2.mul_inv(rot1.mul(turn))
        apart += [*(error.vec * jnp.where(error.w < 0, -2.0, 2.0) * holds_orientation(sys, tied))]
        bend += [jnp.zeros_like(error.w)] * 3
    return (point1 + point2) * 0.5, apart, bend


def holds_orientation(sys: System, tied: EqualityLinks) -> jax.Array:
    """Return 1 for each weld that holds orientations, and 0 where `torquescale` is zero."""
    scale = rows(sys.equality.data[:, 10], [tied.points[k] for k in tied.frames])
    return jnp.where(scale == 0, 0.0, 1.0)


class _LinkFrame(NamedTuple):
    """Links that may be the world, components (links, batch)."""

    pos: Vec3
    rot: Quat
    centre: Vec3
    ang: Vec3

    def at(self, point: Vec3) -> Vec3:
        """A point of the link in the world."""
        return self.pos + self.rot.rotate(point)

    def swing(self, point: Vec3) -> Vec3:
        """Its acceleration while the link moves freely."""
        return self.ang.cross(self.ang.cross(point - self.centre))


def _with_world(masses: Masses, links: Links) -> _LinkFrame:
    """All links, and last the world."""
    found = frames_of_links(masses, links)
    table = and_none(_LinkFrame(found.pos, found.rot, links.pos, links.ang))
    one = jnp.concatenate([found.rot.w, jnp.ones_like(found.rot.w[:1])])
    return table._replace(rot=table.rot._replace(w=one))


def _joint_coupling(sys: System, tied: EqualityLinks, q: jax.Array) -> tuple[jax.Array, jax.Array]:
    """How far coordinates are from the polynomials of others that they follow, and the slopes."""
    moved = and_none(q - sys.ref)
    start = (*sys.joint_q_start(), len(q))
    first, second = (rows(moved, [start[j] for j in side]) for side in coupled_joints(sys, tied))
    data = rows(sys.equality.data, tied.joints)
    value, slope = polynomial([data[:, k] for k in range(5)], second)
    return first - value, slope


def _tendon_coupling(
    sys: System, tied: EqualityLinks, length: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """How far tendons are from the polynomials of others that they follow, and the slopes."""
    moved = and_none(length - sys.tendon.length0)
    first, second = (rows(moved, side) for side in tendon_pairs(sys, tied))
    data = rows(sys.equality.data, tied.tendons)
    value, slope = polynomial([data[:, k] for k in range(5)], second)
    return first - value, slope


def tendon_pairs(sys: System, tied: EqualityLinks) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The tendons that follow, and those that they follow; the number of tendons for none."""
    pairs = [sys.equality_pair[i] for i in tied.tendons]
    n = len(sys.tendon_names)
    return tuple(a for a, _ in pairs), tuple(b if b >= 0 else n for _, b in pairs)


def coupled_joints(sys: System, tied: EqualityLinks) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The joints that follow, and those that they follow; the number of joints for none."""
    pairs = [sys.equality_pair[i] for i in tied.joints]
    n = len(sys.joint_names)
    return tuple(a for a, _ in pairs), tuple(b if b >= 0 else n for _, b in pairs)


def and_none(tree: T) -> T:
    """Adds a row of zeros, the world's."""
    return jax.tree.map(lambda x: jnp.concatenate([x, jnp.zeros((1, *x.shape[1:]), x.dtype)]), tree)
