"""Tendons in maximal coordinates: their rates, and impulses along them."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from brax.actuators.joint_transmission import tendon_transmission
from brax.actuators.tendons import TendonsAtState, tendons_at_state
from brax.base import System
from brax.components import rows
from brax.maximal.actuation import coordinates_in_order, rates_in_order
from brax.maximal.coordinates import frames_of_links
from brax.maximal.links import TreesAtState, by_link, by_stack
from brax.spatial import Spatial
from brax.tree import PerDof, join, sum_rows
from brax.tree_solve import GroupPivot, solve


@functools.partial(
    jax.tree_util.register_dataclass,
    data_fields=["length", "push"],
    meta_fields=["place", "owner"],
)
@dataclass(frozen=True)
class TendonJacobian:
    """All tendons of a model with their moment arms."""

    length: jax.Array
    """Lengths, (n_tendons, batch)."""
    place: tuple[int, ...]
    """For each end of a spatial tendon's segments, the link's position in the layout."""
    owner: tuple[int, ...]
    """For each end, its tendon."""
    push: Spatial | None
    """For each end, the change of the link's momentum by a unit impulse along the tendon, about the
    tree's common point, (ends, batch); None if all tendons are fixed."""


def tendon_jacobian(at: TreesAtState) -> TendonJacobian | None:
    """Return the tendons at a state; None if the model has none."""
    sys, plan, origins = at.sys, at.plan, at.origins
    if not sys.tendon_names:
        return None
    frames = frames_of_links(at.masses, at.links)
    # Only lengths and moment arms are read, so that rates may be zero.
    still = jnp.zeros((sys.qd_size(), 1), sys.init_q.dtype)
    found: TendonsAtState = tendons_at_state(
        sys, coordinates_in_order(sys, plan, at.q), still, rows(frames, plan.position)
    )
    if found.reach is None:
        return TendonJacobian(found.length, (), (), None)
    place = tuple(plan.position[link] for link in found.reach.link)
    origin = origins if origins.x.shape[0] == 1 else rows(origins, place)
    push = found.reach.push
    arm = rows(frames.pos, place) - origin
    # From the origin of the link frame to the tree's common point.
    push = push._replace(ang=push.ang + arm.cross(push.lin))
    return TendonJacobian(found.length, place, found.reach.owner, push)


def rates(
    at: TreesAtState, found: TendonJacobian, links: Sequence[Spatial], joints: Sequence[PerDof]
) -> jax.Array:
    """Return the rate of every tendon's length in a motion, (n_tendons, batch).

    Args:
        at: the state of the tendons.
        found: the tendons.
        links: velocities about the common points, by group.
        joints: rates, by group.
    """
    transmission = tendon_transmission(at.sys)
    each = rates_in_order(at.sys, at.plan, by_stack(at.plan, joints))
    out = transmission.along(each, transmission.qd)
    if found.push is None:
        return out
    moving = rows(join(list(links)), found.place)
    # The wrench of a unit tension times the velocity is the rate of the length: the principle of
    # virtual work.
    return out + sum_rows(found.push.dot(moving), found.owner, len(at.sys.tendon_names))


class GroupedLoads(NamedTuple):
    """Impulses on the trees, by group of links."""

    links: Sequence[Spatial | None]
    """Momenta about the trees' common points; None where nothing acts."""
    dofs: Sequence[tuple[Any, ...]]
    """Impulses along the degrees of freedom; None where nothing acts."""


def summed(first: GroupedLoads, second: GroupedLoads) -> GroupedLoads:
    """Return the sum of two loads."""
    return GroupedLoads(
        [_sum(a, b) for a, b in zip(first.links, second.links, strict=True)],
        [
            tuple(_sum(x, y) for x, y in zip(a, b, strict=True))
            for a, b in zip(first.dofs, second.dofs, strict=True)
        ],
    )


def _sum(a: object, b: Any) -> Any:
    """Return the sum of two values, of which None is zero."""
    return b if a is None else a if b is None else a + b


def loads(at: TreesAtState, found: TendonJacobian, impulse: jax.Array) -> GroupedLoads:
    """Return the loads of impulses (n_tendons, batch) along tendons; positive ones lengthen."""
    plan, table = at.plan, tendon_transmission(at.sys).pull(impulse, at.sys.qd_size())
    along = [tuple(rows(table, index) for index in group.qd) for group in plan.groups]
    if found.push is None:
        return GroupedLoads([None] * len(plan.groups), along)
    pushed = found.push * rows(impulse, found.owner)
    # Several ends may be on one link: their momenta add up.
    links = jax.tree.map(lambda x: sum_rows(x, found.place, len(plan.order)), pushed)
    return GroupedLoads(by_link(plan, links), along)


def mobility(at: TreesAtState, pivots: Sequence[GroupPivot], found: TendonJacobian) -> jax.Array:
    """Return the rate of each tendon by a unit impulse along it, with all joints in place.

    Its shape is (n_tendons, batch).
    """
    n = len(found.length)
    # A unit impulse along each tendon in turn, all in one vmapped solve.
    units = jnp.eye(n, dtype=found.length.dtype)[:, :, None]

    def respond(unit: jax.Array) -> jax.Array:
        motion = solve(at.plan, pivots, *loads(at, found, unit), driven=False)
        return rates(at, found, *motion)

    # The diagonal of J M⁻¹ Jᵀ; the solves give whole columns.
    return jnp.stack([each[i] for i, each in enumerate(jax.vmap(respond)(units))])


def stopped(sys: System) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the tendons with limits, and those with dry friction."""
    flags = sys.tendon_limited, sys.tendon_dry
    return tuple(  # type: ignore[return-value]
        tuple(i for i, flag in enumerate(each) if flag) for each in flags
    )


def has_tendon_rows(sys: System) -> bool:
    """Return whether any tendon has limits or dry friction."""
    return any(sys.tendon_limited) or any(sys.tendon_dry)
