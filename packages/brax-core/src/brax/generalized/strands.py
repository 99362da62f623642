"""Which coordinates are tied to one another.

A strand is a joint or a tendon: coordinates with weights, whose sum is its length.
"""

from collections.abc import Sequence
from typing import NamedTuple

from brax.base import System

SCALAR = ("joint", "tendon")
"""Kinds of equality that tie strands, and not links."""


class Strand(NamedTuple):
    """A weighted sum of coordinates."""

    q: tuple[int, ...]
    """The coordinates."""
    dofs: tuple[int, ...]
    """Their degrees of freedom."""
    weights: tuple[int, ...]
    """The number of each weight among the tendons' coefficients; -1 for a weight of one."""


class Strands(NamedTuple):
    """The scalar constraints of a model on several coordinates."""

    equalities: tuple[int, ...]
    """Those of the model's equalities that tie strands."""
    limited: tuple[int, ...]
    """Tendons with limits."""
    dry: tuple[int, ...]
    """Tendons with dry friction."""
    first: tuple[Strand, ...]
    """What each constraint holds: of the equalities, then of the limits, then of the friction."""
    second: tuple[Strand, ...]
    """What it is tied to; a strand without coordinates if to nothing."""

    @property
    def dofs(self) -> list[tuple[int, ...]]:
        """Degrees of freedom of each constraint."""
        return [(*a.dofs, *b.dofs) for a, b in zip(self.first, self.second, strict=True)]


def strands(sys: System) -> Strands:
    """Finds them."""
    equalities = tuple(i for i, t in enumerate(sys.equality_types) if t in SCALAR)
    limited, dry = _where(sys.tendon_limited), _where(sys.tendon_dry)
    ends = [(sys.equality_types[i], *sys.equality_pair[i]) for i in equalities]
    ends += [("tendon", t, -1) for t in (*limited, *dry)]
    return Strands(
        equalities,
        limited,
        dry,
        first=tuple(_strand(sys, kind, a) for kind, a, _ in ends),
        second=tuple(_strand(sys, kind, b) for kind, _, b in ends),
    )


def _where(flags: Sequence[bool]) -> tuple[int, ...]:
    return tuple(i for i, flag in enumerate(flags) if flag)


def _strand(sys: System, kind: str, index: int) -> Strand:
    """A joint or a tendon; nothing for -1."""
    if index < 0:
        return Strand((), (), ())
    joints = (index,) if kind == "joint" else sys.tendon_joints[index]
    q, dofs = sys.joint_q_start(), sys.joint_qd_start()
    first = sum(map(len, sys.tendon_joints[:index]))
    weights = (-1,) if kind == "joint" else tuple(range(first, first + len(joints)))
    return Strand(tuple(q[j] for j in joints), tuple(dofs[j] for j in joints), weights)
