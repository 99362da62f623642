"""Constraint layout: the rows of all constraints, and the block of degrees of freedom of each.

A constraint belongs to the block in which its path ends: the block with the last degree of freedom
that it couples. Constraints of one kind with equally many directions are a family, whose rows are
one array. In a block each copy has equally many slots, some of them empty.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from brax.base import System
from brax.colliders.broad_phase import contact_widths, lists_contacts
from brax.colliders.narrow_phase import contact_links
from brax.generalized.constraints.coupling_layout import coupling_layout
from brax.generalized.smooth_dynamics.forest import Forest, forest
from brax.generalized.smooth_dynamics.structure import (
    Block,
    Structure,
    dof_parents,
    link_dofs,
    structure,
)
from brax.joints import JointType

CONTACT, LISTED_CONTACT, CONNECT, WELD = "contact", "near", "connect", "weld"
"""Kinds of constraints between links: contacts of all pairs, listed contacts, and the equalities
`connect` and `weld`."""

COUPLING, JOINT_LIMIT = "coupled", "range"
"""Kinds of scalar constraints on several coordinates: couplings and limits of tendons, and limits
of joints that state their own bounds."""


MAX_DENSE_JACOBIAN_ENTRIES = 1000
"""Places of the path times slots of a copy from which on the Jacobian is sparse: it is stored only
at the places that each constraint reaches."""


class BlockConstraints(NamedTuple):
    """Constraints of one family on one block: equally many slots for each copy."""

    start: int
    """The first of them among all slots of their family. Slots run by slot, then by copy."""
    each: int
    """Number of slots of a copy."""
    places: int
    """Length of the block's path."""
    sides: np.ndarray
    """True where a place moves the first link and the second, (2, path, slots, copies, 1); with
    `reach`, (2, reach, slots, copies, 1)."""
    link_paths: np.ndarray | None = None
    """For listed contacts, whose links change: True where a place of the path moves a
    link, with the world first, (n_links + 1, path, copies)."""
    reach: np.ndarray | None = None
    """With a sparse Jacobian: the places that act on each constraint, in rising order, (reach,
    slots, copies). A constraint with fewer places has arbitrary ones, which `sides` masks."""

    @property
    def copies(self) -> int:
        """Number of copies of the block."""
        return int(self.sides.shape[3])

    @property
    def real(self) -> np.ndarray:
        """True where a place acts on a constraint at all, (path or reach, slots, copies)."""
        return np.asarray(self.sides[..., 0].any(axis=0))

    @property
    def sign(self) -> np.ndarray:
        """Sign of a place in the relative motion of a point that both links carry.

        It is 1 where only the second link moves, -1 where only the first does, and 0 where neither
        or both do, (path, slots, copies, 1).
        """
        return self.sides[1].astype(np.int8) - self.sides[0]


class ConstraintFamily(NamedTuple):
    """Constraints of one kind with equally many directions."""

    kind: str
    """One of the kinds above, such as `CONTACT`."""
    width: int
    """Number of directions of each constraint."""
    slots: tuple[BlockConstraints | None, ...]
    """The slots on each block; None for a block without any."""
    order: tuple[int, ...]
    """For each slot, the number of its constraint among all of its kind; arbitrary for an empty
    slot."""

    @property
    def places(self) -> dict[int, int]:
        """The slot of each constraint, by number; constraints that move nothing have none."""
        # Listed contacts of a forest belong to no block.
        if not any(self.slots):
            return {number: i for i, number in enumerate(self.order)}
        out: dict[int, int] = {}
        for slots in self.slots:
            if slots is not None:
                real = slots.real.any(axis=0).reshape(-1)
                out |= {self.order[i]: int(i) for i in slots.start + np.flatnonzero(real)}
        return out


class ConstraintLayout(NamedTuple):
    """The blocks of a model and the constraints on them."""

    blocks: Structure
    """The blocks of degrees of freedom, and their order of elimination."""
    families: tuple[ConstraintFamily, ...]
    """All constraints but limits and dry friction of joints."""
    limited: tuple[int, ...]
    """Degrees of freedom with a limit of their coordinate. One whose two limits may both act comes
    twice."""
    farther: tuple[bool, ...]
    """For each of these, True if it is the farther one of the two limits."""
    dry: tuple[int, ...]
    """Degrees of freedom with dry friction."""
    forest: Forest | None
    """The trees, if only listed contacts join them and they are many; else None."""

    @property
    def free(self) -> bool:
        """True if the model has no constraints."""
        return not (self.families or self.limited or self.dry)

    @property
    def rows(self) -> tuple[int, ...]:
        """Positions, in the order of elimination, of limits and dry friction of joints."""
        return tuple(self.blocks.position[d] for d in (*self.limited, *self.dry))


class FamilyMember(NamedTuple):
    """One constraint of a family."""

    number: int
    """Its number among all of its kind."""
    first: frozenset[int]
    """Degrees of freedom that move its first link."""
    second: frozenset[int]
    """Degrees of freedom that move its second link."""
    moved: frozenset[int]
    """Degrees of freedom that act on it, and which it couples."""


def constraint_layout(sys: System) -> ConstraintLayout:
    """Return the blocks of a model with its constraints on them."""
    members = _members(sys)
    listed = {key: mine for key, mine in members.items() if key[0] == LISTED_CONTACT}
    links = [link_dofs(sys, i) for i in range(-1, sys.num_links())]
    lasting = _blocks(sys, [m for key, mine in members.items() if key not in listed for m in mine])
    trees = forest(lasting, links) if listed else None
    blocks = lasting if trees else _blocks(sys, [m for mine in members.values() for m in mine])
    families = [
        _of_forest(blocks, *key, mine)
        if trees and key in listed
        else _family(blocks, *key, mine, links if key in listed else ())
        for key, mine in members.items()
    ]
    # Joint types that state their own bounds have families of their own; all other limits bound one
    # coordinate.
    elsewhere = {j for group in limited_joints(sys) for j in group.joints}
    joints = list(enumerate(sys.dof_joint()))
    limited = [d for d, j in joints if sys.joint_limited[j] and j not in elsewhere]
    two_sided = [d for d in limited if sys.joint_two_sided[sys.dof_joint()[d]]]
    return ConstraintLayout(
        blocks,
        tuple(f for f in families if f.order),
        limited=(*limited, *two_sided),
        farther=(False,) * len(limited) + (True,) * len(two_sided),
        dry=tuple(d for d, j in joints if sys.joint_dry[j]),
        forest=trees,
    )


def _blocks(sys: System, members: Sequence["FamilyMember"]) -> Structure:
    """Return the blocks of a model with some constraints."""
    # Every constraint couples all degrees of freedom that act on it: JᵀDJ is full there. So the
    # pattern of the Hessian is known before the first step.
    return structure(dof_parents(sys), tuple(tuple(sorted(m.moved)) for m in members))


def _of_forest(
    blocks: Structure, kind: str, width: int, members: Sequence["FamilyMember"]
) -> ConstraintFamily:
    """Return a family of listed contacts of a forest, which are on no block."""
    none = (None,) * len(blocks.blocks)
    return ConstraintFamily(kind, width, none, tuple(m.number for m in members))


class LimitedJoints(NamedTuple):
    """Joints of one type that states itself what its limits bound."""

    kind: JointType
    """The joint type."""
    joints: tuple[int, ...]
    """The joints."""
    each: int
    """Number of limits of a joint. The first limits of all joints come first."""
    farther: bool
    """True for the farther one of two limits, False for the nearer one."""


def limited_joints(sys: System) -> list[LimitedJoints]:
    """Return the joints whose types state their own bounds, such as ball joints."""
    out = []
    for kind in dict.fromkeys(sys.joint_types):
        # The default `bounds` are the coordinates themselves: those are rows of the layout.
        if type(kind).bounds is not JointType.bounds:
            like = [jax.ShapeDtypeStruct((1, 1), jnp.result_type(float))] * kind.q_width
            # The number of bounds is found by tracing shapes, without numbers.
            each = len(jax.eval_shape(kind.bounds, tuple(like)))
            mine = [j for j, k in enumerate(sys.joint_types) if k is kind and sys.joint_limited[j]]
            both = [j for j in mine if sys.joint_two_sided[j]]
            out.append(LimitedJoints(kind, tuple(mine), each, farther=False))
            out.append(LimitedJoints(kind, tuple(both), each, farther=True))
    return [group for group in out if group.joints and group.each]


def _members(sys: System) -> dict[tuple[str, int], list[FamilyMember]]:
    """Return all constraints by kind and number of directions."""
    out: dict[tuple[str, int], list[FamilyMember]] = {}
    count = 0
    if lists_contacts(sys):
        out |= _near(sys)
    else:
        for group, sides in zip(sys.collisions, contact_links(sys), strict=True):
            # `condim` 1 and 3 share a family: a frictionless contact has zero coefficients.
            mine = out.setdefault((CONTACT, max(group.condim, 3)), [])
            for a, b in [*zip(*sides, strict=True)] * group.collider.n_contacts:
                first, second = link_dofs(sys, a), link_dofs(sys, b)
                # Degrees of freedom that move both links move the contact point of both alike and
                # do not act.
                mine.append(FamilyMember(count, first, second, first ^ second))
                count += 1
    for kind, width in ((CONNECT, 3), (WELD, 6)):
        pairs = [p for t, p in zip(sys.equality_types, sys.equality_pair, strict=True) if t == kind]
        for number, (a, b) in enumerate(pairs):
            first, second = link_dofs(sys, a), link_dofs(sys, b)
            out.setdefault((kind, width), []).append(
                # The points of an equality may be apart; common ancestors then move them
                # differently. So all degrees of freedom act.
                FamilyMember(number, first, second, first | second)
            )
    for number, dofs in enumerate(coupling_layout(sys).dofs):
        moved = frozenset(dofs)
        mine = out.setdefault((COUPLING, 1), [])
        mine.append(FamilyMember(number, frozenset(), moved, moved))
    starts = sys.joint_qd_start()
    limits = [(g.kind, j) for g in limited_joints(sys) for _ in range(g.each) for j in g.joints]
    for number, (joint, j) in enumerate(limits):
        moved = frozenset(range(starts[j], starts[j] + joint.qd_width))
        mine = out.setdefault((JOINT_LIMIT, 1), [])
        mine.append(FamilyMember(number, frozenset(), moved, moved))
    return out


def _near(sys: System) -> dict[tuple[str, int], list[FamilyMember]]:
    """Return the listed contacts: each may join any pair."""
    moved: frozenset[int] = frozenset()
    for sides in contact_links(sys):
        for a, b in set(zip(*sides, strict=True)):
            # Every slot must hold any pair, so that all of them couple the union.
            moved |= link_dofs(sys, a) ^ link_dofs(sys, b)
    out: dict[tuple[str, int], list[FamilyMember]] = {}
    count = 0
    for width, n in contact_widths(sys).items():
        out[LISTED_CONTACT, width] = [
            FamilyMember(count + i, moved, moved, moved) for i in range(n)
        ]
        count += n
    return out


def _family(
    blocks: Structure,
    kind: str,
    width: int,
    members: Sequence[FamilyMember],
    links: Sequence[frozenset[int]],
) -> ConstraintFamily:
    """Return the family, each constraint on the block that its path ends in.

    Args:
        blocks: the blocks.
        kind: the kind of constraint.
        width: number of directions.
        members: the constraints.
        links: for constraints of changing links, the degrees of freedom that move each link; else
            empty.
    """
    on_copy: list[list[list[FamilyMember]]] = [[[] for _ in range(b.copies)] for b in blocks.blocks]
    home = {
        d: (i, k)
        for i, block in enumerate(blocks.blocks)
        for place in block.dofs
        for k, d in enumerate(place)
    }
    for member in members:
        if member.moved:
            # The last degree of freedom is the one farthest from the root: the elimination tree has
            # all others on its path.
            where, copy = home[max(member.moved)]
            on_copy[where][copy].append(member)
    slots: list[BlockConstraints | None] = []
    order: list[int] = []
    for block, copies in zip(blocks.blocks, on_copy, strict=True):
        # All copies get as many slots as the fullest one needs.
        count = max(map(len, copies))
        slots.append(_block_constraints(block, copies, count, len(order), links) if count else None)
        order += [c[i].number if i < len(c) else 0 for i in range(count) for c in copies]
    return ConstraintFamily(kind, width, tuple(slots), tuple(order))


def _block_constraints(
    block: Block,
    copies: Sequence[Sequence[FamilyMember]],
    count: int,
    start: int,
    links: Sequence[frozenset[int]],
) -> BlockConstraints:
    """Return the constraints of one family on one block."""
    sides = np.zeros((2, len(block.path[0]), count, len(copies)), bool)
    acting = np.zeros(sides.shape[1:], bool)
    for k, (path, members) in enumerate(zip(block.path, copies, strict=True)):
        for i, member in enumerate(members):
            moved = [(d in member.first, d in member.second) for d in path]
            sides[:, :, i, k] = np.transpose(moved)
            acting[:, i, k] = [d in member.moved for d in path]
    if links:
        moves = [[[d in dofs for d in path] for path in block.path] for dofs in links]
        return BlockConstraints(
            start, count, len(sides[0]), sides[..., None], np.swapaxes(moves, 1, 2)
        )
    # A dense Jacobian of few entries is unrolled; beyond the threshold or on a blocked front it is
    # stored where it is not zero.
    if not block.large and count * len(block.path[0]) < MAX_DENSE_JACOBIAN_ENTRIES:
        return BlockConstraints(start, count, len(sides[0]), sides[..., None])
    width = acting.sum(axis=0).max()
    # A stable sort brings the acting places to the front; sorting the first `width` of them again
    # restores their order.
    reach = np.sort(np.argsort(~acting, axis=0, kind="stable")[:width], axis=0)
    near = np.take_along_axis(sides & acting, reach[None], axis=1)
    return BlockConstraints(start, count, len(sides[0]), near[..., None], reach=reach)
