"""Errors of hard equality constraints: which links and coordinates they couple, and by how much."""

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from brax.base import System
from brax.components import Quat, Vec3, polynomial, rows, zero_vec
from brax.maximal.actuation import coordinates_in_order
from brax.maximal.coordinates import frames_of_links
from brax.maximal.links import Links, Masses, TreesAtState
from brax.maximal.tendons import TendonJacobian, tendon_jacobian
from brax.tree import Layout, join

T = TypeVar("T")


class Coupling(NamedTuple):
    """Equalities between two joint coordinates, or between the lengths of two tendons."""

    kind: str
    """The type of equality, "joint" or "tendon"."""
    equalities: tuple[int, ...]
    """Index of each."""
    values: tuple[tuple[int, ...], tuple[int, ...]]
    """Index of the first and of the second coordinate or length; one past the last for none."""
    rates: tuple[tuple[int, ...], tuple[int, ...]]
    """Index of their rates."""


class EqualityLinks(NamedTuple):
    """The links and coordinates that a model's equalities couple."""

    points: tuple[int, ...]
    """Equalities that hold two points together: `connect` and `weld`."""
    frames: tuple[int, ...]
    """Places in `points` of the equalities that hold two frames: `weld`."""
    first: tuple[int, ...]
    """Position of the first link of each of `points` in the layout; the number of links for the
    world."""
    second: tuple[int, ...]
    """Position of the second link."""
    couplings: tuple[Coupling, ...]
    """The couplings of joints and those of tendons, where there are any."""


class EqualityErrors(NamedTuple):
    """Errors of the equalities at a state, world axes."""

    point: Vec3
    """Midpoint between the two points of each of `EqualityLinks.points`."""
    position: jax.Array
    """Position error of each row, (rows, batch): points along x, y and z, frames about them, joint
    coordinates, tendons."""
    acceleration: jax.Array
    """Second time derivative of the position error while all links move freely, (rows, batch)."""
    slopes: list[jax.Array]
    """Slopes of the polynomials of each of `EqualityLinks.couplings`, (equalities, batch)."""
    tendons: TendonJacobian | None
    """The tendons; None if none is coupled."""


def equality_links(sys: System, plan: Layout) -> EqualityLinks:
    """Return the links and coordinates that a model's equalities couple."""
    kinds, place = sys.equality_types, (*plan.position, len(plan.order))
    joints, tendons = (*sys.joint_q_start(), sys.q_size()), range(len(sys.tendon_names) + 1)
    points = tuple(i for i, kind in enumerate(kinds) if kind in ("connect", "weld"))
    sides = [tuple(place[link] for link in sys.equality_pair[i]) for i in points]

    def coupling(kind: str, values: Sequence[int], rates: Sequence[int]) -> Coupling:
        mine = tuple(i for i, each in enumerate(kinds) if each == kind)
        # No second joint or tendon is -1, which takes the last start.
        ends = [
            tuple(tuple(start[sys.equality_pair[i][side]] for i in mine) for side in (0, 1))
            for start in (values, rates)
        ]
        return Coupling(kind, mine, *ends)  # type: ignore[arg-type]

    couplings = (
        coupling("joint", joints, (*sys.joint_qd_start(), sys.qd_size())),
        coupling("tendon", tendons, tendons),
    )
    return EqualityLinks(
        points,
        tuple(k for k, i in enumerate(points) if kinds[i] == "weld"),
        tuple(a for a, _ in sides),
        tuple(b for _, b in sides),
        tuple(each for each in couplings if each.equalities),
    )


def equality_errors(at: TreesAtState) -> EqualityErrors:
    """Return the errors of a model's equalities at a state."""
    sys, plan, links = at.sys, at.plan, at.links
    equalities, tendons = equality_links(sys, plan), None
    point, position, acceleration = _points(sys, equalities, at.masses, links)
    slopes = []
    for coupling in equalities.couplings:
        # MuJoCo's polynomials are in displacements from the reference pose.
        if coupling.kind == "joint":
            moved = coordinates_in_order(sys, plan, at.q) - sys.ref
        else:
            tendons = tendon_jacobian(at)
            assert tendons is not None
            moved = tendons.length - sys.tendon.length0
        first, second = (rows(and_none(moved), side) for side in coupling.values)
        data = rows(sys.equality.data, coupling.equalities)
        value, slope = polynomial([data[:, k] for k in range(5)], second)
        position.append(first - value)
        # The curvature of a coupling's polynomial is left out. What that misses shows in the
        # position error of the next step.
        acceleration.append(jnp.zeros_like(value))
        slopes.append(slope)
    return EqualityErrors(point, join(position), join(acceleration), slopes, tendons)


def _points(
    sys: System, equalities: EqualityLinks, masses: Masses, links: Links
) -> tuple[Vec3, list[jax.Array], list[jax.Array]]:
    """Return midpoints, errors of points and frames, and the errors' second derivatives."""
    if not equalities.points:
        return zero_vec(links.pos.x[:0]), [], []
    first, second = (
        rows(_with_world(masses, links), side) for side in (equalities.first, equalities.second)
    )
    data = rows(sys.equality.data, equalities.points)
    near, far = (Vec3(*(data[:, k + i] for i in range(3))) for k in (0, 3))
    # MuJoCo stores the anchors of a weld in the other order: the second body's comes first.
    weld = np.isin(np.arange(len(equalities.points)), equalities.frames)[:, None]
    point1 = first.at(Vec3(*(jnp.where(weld, b, a) for a, b in zip(near, far, strict=True))))
    point2 = second.at(Vec3(*(jnp.where(weld, a, b) for a, b in zip(near, far, strict=True))))
    position = [*(point2 - point1)]
    acceleration = [
        *(second.centripetal_acceleration(point2) - first.centripetal_acceleration(point1))
    ]
    if equalities.frames:
        turn = Quat(*(rows(data[:, 6 + i], equalities.frames) for i in range(4)))
        rot1, rot2 = rows((first.rot, second.rot), equalities.frames)
        # The rotation that takes the wanted orientation to the actual one, in world axes.
        error = rot2.mul_inv(rot1.mul(turn))
        # Twice the vector part is the sine of the half angle, doubled: the angle, for small errors.
        # The sign takes the shorter way around.
        position += [
            *(error.vec * jnp.where(error.w < 0, -2.0, 2.0) * holds_orientation(sys, equalities))
        ]
        # The second derivative of a small rotation error is left out.
        acceleration += [jnp.zeros_like(error.w)] * 3
    return (point1 + point2) * 0.5, position, acceleration


def holds_orientation(sys: System, equalities: EqualityLinks) -> jax.Array:
    """Return 1 for each weld that constrains orientations, and 0 where `torquescale` is zero."""
    scale = rows(sys.equality.data[:, 10], [equalities.points[k] for k in equalities.frames])
    return jnp.where(scale == 0, 0.0, 1.0)


class _LinkFrame(NamedTuple):
    """Frames of links or of the world, components (links, batch)."""

    pos: Vec3
    """Origin of the link frame."""
    rot: Quat
    """Orientation of the link frame."""
    centre: Vec3
    """Centre of mass."""
    ang: Vec3
    """Angular velocity, world axes."""

    def at(self, point: Vec3) -> Vec3:
        """Return a point of the link in the world."""
        return self.pos + self.rot.rotate(point)

    def centripetal_acceleration(self, point: Vec3) -> Vec3:
        """Return a point's centripetal acceleration about the centre of mass."""
        # A free link's centre of mass moves uniformly; its points only circle it.
        return self.ang.cross(self.ang.cross(point - self.centre))


def _with_world(masses: Masses, links: Links) -> _LinkFrame:
    """Return the frames of all links, and of the world as the last one."""
    found = frames_of_links(masses, links)
    table = and_none(_LinkFrame(found.pos, found.rot, links.pos, links.ang))
    one = jnp.concatenate([found.rot.w, jnp.ones_like(found.rot.w[:1])])
    return table._replace(rot=table.rot._replace(w=one))


def and_none(tree: T) -> T:
    """Return arrays with a row of zeros appended, which is the world's."""
    return jax.tree.map(lambda x: jnp.concatenate([x, jnp.zeros((1, *x.shape[1:]), x.dtype)]), tree)
