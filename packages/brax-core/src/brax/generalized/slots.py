"""Where contacts act: which degrees of freedom each one moves, and the block that they end in."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from brax.base import System
from brax.colliders.pairs import contact_links
from brax.generalized.structure import Couplings, Structure, dof_parents, link_dofs, structure
from brax.joints import JointType


class Slots(NamedTuple):
    """The contacts of one block: as many for each copy, some of them empty."""

    start: int
    """First of them among all slots: by slot, then by copy."""
    each: int
    """Slots of a copy."""
    sign: np.ndarray
    """How the contact moves with a place of the path: -1 geom 1 alone, 1 geom 2 alone, 0 neither
    or both, (path, slots, copies, 1)."""


class Plan(NamedTuple):
    """The blocks of a model, and its contacts on them."""

    blocks: Structure
    slots: tuple[Slots | None, ...]
    """For each block."""
    order: tuple[int, ...]
    """The contact of each slot; of an empty one, any."""
    limited: tuple[int, ...]
    """Degrees of freedom with limits."""
    dry: tuple[int, ...]
    """Degrees of freedom with dry friction."""

    @property
    def free(self) -> bool:
        """Whether nothing is ever constrained."""
        return not (self.order or self.limited or self.dry)

    @property
    def places(self) -> dict[int, int]:
        """The slot of each contact; those that move nothing have none."""
        out: dict[int, int] = {}
        for slots in self.slots:
            if slots is not None:
                real = slots.sign[..., 0].any(axis=0).reshape(-1)
                out |= {self.order[i]: int(i) for i in slots.start + np.flatnonzero(real)}
        return out

    @property
    def rows(self) -> tuple[int, ...]:
        """Positions in the order of elimination that scalar constraints act on."""
        return tuple(self.blocks.position[d] for d in (*self.limited, *self.dry))


def plan(sys: System) -> Plan:
    """Finds the blocks of a model and puts its contacts on them."""
    signs = _signs(sys)
    parents = dof_parents(sys)
    couplings: Couplings = tuple(tuple(sorted(s)) for s in signs)
    blocks = structure(parents, couplings)
    on_copy: list[list[list[int]]] = [[[] for _ in range(b.copies)] for b in blocks.blocks]
    home = {
        d: (i, k)
        for i, block in enumerate(blocks.blocks)
        for place in block.dofs
        for k, d in enumerate(place)
    }
    for contact, sign in enumerate(signs):
        if sign:
            where, copy = home[max(sign)]
            on_copy[where][copy].append(contact)
    slots: list[Slots | None] = []
    order: list[int] = []
    for block, copies in zip(blocks.blocks, on_copy, strict=True):
        count = max(map(len, copies))
        slots.append(_slots(block.path, copies, count, signs, len(order)) if count else None)
        order += [c[i] if i < len(c) else 0 for i in range(count) for c in copies]
    joints = list(enumerate(sys.dof_joint()))
    return Plan(
        blocks,
        tuple(slots),
        tuple(order),
        limited=tuple(d for d, j in joints if sys.joint_limited[j] and _plain(sys.joint_types[j])),
        dry=tuple(d for d, j in joints if sys.joint_dry[j]),
    )


def _plain(kind: JointType) -> bool:
    return kind.q_width == kind.qd_width


def _signs(sys: System) -> list[dict[int, int]]:
    """For each contact point, the degrees of freedom that move it, and which way."""
    out = []
    for group, (first, second) in zip(sys.collisions, contact_links(sys), strict=True):
        pairs = []
        for a, b in zip(first, second, strict=True):
            left, right = link_dofs(sys, a), link_dofs(sys, b)
            pairs.append({d: (d in right) - (d in left) for d in left ^ right})
        out += pairs * group.collider.n_contacts
    return out


def _slots(
    paths: Sequence[tuple[int, ...]],
    copies: Sequence[Sequence[int]],
    count: int,
    signs: Sequence[dict[int, int]],
    start: int,
) -> Slots:
    sign = np.zeros((len(paths[0]), count, len(copies), 1), np.int8)
    for k, (path, contacts) in enumerate(zip(paths, copies, strict=True)):
        for i, contact in enumerate(contacts):
            sign[:, i, k, 0] = [signs[contact].get(d, 0) for d in path]
    return Slots(start, count, sign)
