"""Layout of the couplings: which coordinates each equality, limit or friction of tendons is on.

A joint or a tendon is a sum of coordinates with weights, which is its length. Weights of a
spatial tendon are how its length changes with each degree of freedom, and change with them.
"""

from collections.abc import Sequence
from typing import NamedTuple

from brax.actuators.spatial_tendons import path_links
from brax.base import System
from brax.generalized.smooth_dynamics.structure import link_dofs

COUPLING_KINDS = ("joint", "tendon")
"""Kinds of equality that couple sums of coordinates, and not links."""


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
    """The spatial tendon whose length it is; -1 for none."""


class CouplingLayout(NamedTuple):
    """The scalar constraints of a model on several coordinates."""

    equalities: tuple[int, ...]
    """Those of the model's equalities that couple sums of coordinates."""
    limited: tuple[int, ...]
    """Tendons with limits; where both may act, a second time."""
    farther: tuple[bool, ...]
    """Whether each of these is the farther one of two limits."""
    dry: tuple[int, ...]
    """Tendons with dry friction."""
    first: tuple[CoordinateSum, ...]
    """What each constraint holds: of the equalities, then of the limits, then of the friction."""
    second: tuple[CoordinateSum, ...]
    """What it is coupled to; a sum without coordinates if to nothing."""
    moving: tuple[tuple[int, int], ...]
    """Spatial tendon and degree of freedom of each weight that changes."""

    @property
    def dofs(self) -> list[tuple[int, ...]]:
        """Degrees of freedom of each constraint."""
        return [(*a.dofs, *b.dofs) for a, b in zip(self.first, self.second, strict=True)]


def coupling_layout(sys: System) -> CouplingLayout:
    """Finds them."""
    equalities = tuple(i for i, t in enumerate(sys.equality_types) if t in COUPLING_KINDS)
    stopped, dry = _where(sys.tendon_limited), _where(sys.tendon_dry)
    two_sided = tuple(t for t in stopped if sys.tendon_two_sided[t])
    limited, farther = (*stopped, *two_sided), [False] * len(stopped) + [True] * len(two_sided)
    ends = [(sys.equality_types[i], *sys.equality_pair[i]) for i in equalities]
    ends += [("tendon", t, -1) for t in (*limited, *dry)]
    held = sorted({t for kind, *pair in ends if kind == "tendon" for t in pair if t >= 0})
    moving = tuple((t, dof) for t in held for dof in _path_dofs(sys, t))
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
    """Degrees of freedom that change a spatial tendon's length: that move some of its links."""
    each = [link_dofs(sys, link) for link in path_links(sys, tendon)]
    return sorted(frozenset().union(*each) - frozenset.intersection(*each)) if each else []


def _where(flags: Sequence[bool]) -> tuple[int, ...]:
    return tuple(i for i, flag in enumerate(flags) if flag)


def _coordinate_sum(
    sys: System, kind: str, index: int, moving: Sequence[tuple[int, int]]
) -> CoordinateSum:
    """A joint or a tendon; nothing for -1."""
    if index < 0:
        return CoordinateSum((), (), ())
    if kind == "tendon" and sys.tendon_path[index]:
        coefficients = sum(map(len, sys.tendon_joints))
        mine = [(k, dof) for k, (tendon, dof) in enumerate(moving) if tendon == index]
        weights = tuple(coefficients + k for k, _ in mine)
        return CoordinateSum((), tuple(dof for _, dof in mine), weights, index)
    joints = (index,) if kind == "joint" else sys.tendon_joints[index]
    q, dofs = sys.joint_q_start(), sys.joint_qd_start()
    first = sum(map(len, sys.tendon_joints[:index]))
    weights = (-1,) if kind == "joint" else tuple(range(first, first + len(joints)))
    return CoordinateSum(tuple(q[j] for j in joints), tuple(dofs[j] for j in joints), weights)
