"""Layout of couplings: the coordinates of each joint or tendon equality, limit or dry friction.

A joint or a tendon is a weighted sum of coordinates: its length. The weights of a spatial tendon
are its moment arms, which change with the state.
"""

from collections.abc import Sequence
from typing import NamedTuple

from brax.actuators.spatial_tendons import path_links
from brax.base import System
from brax.generalized.smooth_dynamics.structure import link_dofs

COUPLING_KINDS = ("joint", "tendon")
"""Kinds of equality between sums of coordinates, as opposed to links."""


class CoordinateSum(NamedTuple):
    """A weighted sum of coordinates."""

    q: tuple[int, ...]
    """The coordinates."""
    dofs: tuple[int, ...]
    """Their degrees of freedom."""
    weights: tuple[int, ...]
    """The number of each weight: among the tendons' coefficients, then among
    `CouplingLayout.moving`; -1 for a weight of one."""
    path: int = -1
    """The spatial tendon whose length the sum is; -1 for none."""


class CouplingLayout(NamedTuple):
    """The scalar constraints of a model on several coordinates."""

    equalities: tuple[int, ...]
    """The model's equalities between sums of coordinates."""
    limited: tuple[int, ...]
    """Tendons with limits. One whose two limits may both act comes twice."""
    farther: tuple[bool, ...]
    """For each of these, True if it is the farther one of the two limits."""
    dry: tuple[int, ...]
    """Tendons with dry friction."""
    first: tuple[CoordinateSum, ...]
    """The first sum of each constraint: of equalities, then of limits, then of dry friction."""
    second: tuple[CoordinateSum, ...]
    """The sum that the first one is coupled to; empty if there is none."""
    moving: tuple[tuple[int, int], ...]
    """Spatial tendon and degree of freedom of each weight that changes with the state."""

    @property
    def dofs(self) -> list[tuple[int, ...]]:
        """Degrees of freedom of each constraint."""
        return [(*a.dofs, *b.dofs) for a, b in zip(self.first, self.second, strict=True)]


def coupling_layout(sys: System) -> CouplingLayout:
    """Return the couplings of a model."""
    equalities = tuple(i for i, t in enumerate(sys.equality_types) if t in COUPLING_KINDS)
    stopped, dry = _where(sys.tendon_limited), _where(sys.tendon_dry)
    two_sided = tuple(t for t in stopped if sys.tendon_two_sided[t])
    limited, farther = (*stopped, *two_sided), [False] * len(stopped) + [True] * len(two_sided)
    ends = [(sys.equality_types[i], *sys.equality_pair[i]) for i in equalities]
    ends += [("tendon", t, -1) for t in (*limited, *dry)]
    # Only spatial tendons that a constraint reads need their moment arms.
    constrained = sorted({t for kind, *pair in ends if kind == "tendon" for t in pair if t >= 0})
    moving = tuple((t, dof) for t in constrained for dof in _path_dofs(sys, t))
    return CouplingLayout(
        equalities,
        limited,
        tuple(farther),
        dry,
        first=tuple(_coordinate_sum(sys, kind, a, moving) for kind, a, _ in ends),
        second=tuple(_coordinate_sum(sys, kind, b, moving) for kind, _, b in ends),
        moving=moving,
    )


def _path_dofs(sys: System, tendon: int) -> list[int]:
    """Return the degrees of freedom that change a spatial tendon's length."""
    each = [link_dofs(sys, link) for link in path_links(sys, tendon)]
    # What moves all of a tendon's links moves them as one body and does not change its length.
    return sorted(frozenset().union(*each) - frozenset.intersection(*each)) if each else []


def _where(flags: Sequence[bool]) -> tuple[int, ...]:
    """Return the indices of the true flags."""
    return tuple(i for i, flag in enumerate(flags) if flag)


def _coordinate_sum(
    sys: System, kind: str, index: int, moving: Sequence[tuple[int, int]]
) -> CoordinateSum:
    """Return the sum that is a joint or a tendon; an empty one for -1."""
    if index < 0:
        return CoordinateSum((), (), ())
    if kind == "tendon" and sys.tendon_path[index]:
        coefficients = sum(map(len, sys.tendon_joints))
        mine = [(k, dof) for k, (tendon, dof) in enumerate(moving) if tendon == index]
        # Moment arms are numbered after all coefficients of fixed tendons.
        weights = tuple(coefficients + k for k, _ in mine)
        return CoordinateSum((), tuple(dof for _, dof in mine), weights, index)
    joints = (index,) if kind == "joint" else sys.tendon_joints[index]
    q, dofs = sys.joint_q_start(), sys.joint_qd_start()
    first = sum(map(len, sys.tendon_joints[:index]))
    weights = (-1,) if kind == "joint" else tuple(range(first, first + len(joints)))
    return CoordinateSum(tuple(q[j] for j in joints), tuple(dofs[j] for j in joints), weights)
