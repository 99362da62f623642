"""Where constraints act: which degrees of freedom each moves, and the block that they end in."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from brax.base import System
from brax.colliders.broad_phase import contact_widths, uses_broad_phase
from brax.colliders.narrow_phase import contact_links
from brax.generalized.constraints.coupling_layout import coupling_layout
from brax.generalized.smooth_dynamics.structure import (
    Block,
    Structure,
    dof_parents,
    link_dofs,
    structure,
)
from brax.joints import JointType

CONTACT, NEAREST_CONTACT, CONNECT, WELD = "contact", "near", "connect", "weld"
"""Kinds of constraints that join links: contacts, of all pairs or of the nearest, and ties."""

COUPLING, JOINT_LIMIT = "coupled", "range"
"""Kinds of scalar constraints of several coordinates; the latter of one joint's."""


MAX_DENSE_JACOBIAN_ENTRIES = 1000
"""Places times slots of a copy from which on constraints are kept at the places they reach."""


class BlockConstraints(NamedTuple):
    """The constraints of one block: as many for each copy, some of them empty."""

    start: int
    """First of them among all slots of their family: by slot, then by copy."""
    each: int
    """Slots of a copy."""
    places: int
    """Length of the block's path."""
    sides: np.ndarray
    """Whether a place moves the first link, and the second, (2, path, slots, copies, 1); or of
    `reach`, (2, reach, slots, copies, 1)."""
    link_paths: np.ndarray | None = None
    """Of contacts of the nearest pairs, each of any two links as it comes: whether a place of the
    path moves a link, the world first, (n_links + 1, path, copies)."""
    reach: np.ndarray | None = None
    """Where the path is long or the slots are many: the places that act on each constraint, in
    rising order, (reach, slots, copies); where there are fewer, any, and `sides` says so."""

    @property
    def copies(self) -> int:
        """Copies of the block."""
        return int(self.sides.shape[3])

    @property
    def real(self) -> np.ndarray:
        """Whether a place acts on a constraint at all, (path or reach, slots, copies)."""
        return np.asarray(self.sides[..., 0].any(axis=0))

    @property
    def sign(self) -> np.ndarray:
        """How a point common to both moves apart with a place of the path: 1 the second link
        alone, -1 the first alone, 0 neither or both, (path, slots, copies, 1)."""
        return self.sides[1].astype(np.int8) - self.sides[0]


class ConstraintFamily(NamedTuple):
    """Constraints of one kind, with equally many directions."""

    kind: str
    width: int
    """How many directions each has."""
    slots: tuple[BlockConstraints | None, ...]
    """For each block."""
    order: tuple[int, ...]
    """The constraint of each slot, among all of its kind; of an empty one, any."""

    @property
    def places(self) -> dict[int, int]:
        """The slot of each constraint; those that move nothing have none."""
        out: dict[int, int] = {}
        for slots in self.slots:
            if slots is not None:
                real = slots.real.any(axis=0).reshape(-1)
                out |= {self.order[i]: int(i) for i in slots.start + np.flatnonzero(real)}
        return out


class ConstraintLayout(NamedTuple):
    """The blocks of a model, and its constraints on them."""

    blocks: Structure
    families: tuple[ConstraintFamily, ...]
    limited: tuple[int, ...]
    """Degrees of freedom with limits of their coordinate; where both may act, a second time."""
    farther: tuple[bool, ...]
    """Whether each of these is the farther one of two limits."""
    dry: tuple[int, ...]
    """Degrees of freedom with dry friction."""

    @property
    def free(self) -> bool:
        """True if nothing is ever constrained."""
        return not (self.families or self.limited or self.dry)

    @property
    def rows(self) -> tuple[int, ...]:
        """Positions in the order of elimination of what has limits or dry friction."""
        return tuple(self.blocks.position[d] for d in (*self.limited, *self.dry))


class FamilyMember(NamedTuple):
    """One constraint of a family."""

    number: int
    """Among all of its kind."""
    first: frozenset[int]
    """Degrees of freedom that move its first link."""
    second: frozenset[int]
    moved: frozenset[int]
    """Those that act on it, and are coupled by it."""


def constraint_layout(sys: System) -> ConstraintLayout:
    """Finds the blocks of a model and puts its constraints on them."""
    members = _members(sys)
    everyone = [m for kind in members.values() for m in kind]
    blocks = structure(dof_parents(sys), tuple(tuple(sorted(m.moved)) for m in everyone))
    links = [link_dofs(sys, i) for i in range(-1, sys.num_links())]
    families = [
        _family(blocks, *key, mine, links if key[0] == NEAREST_CONTACT else ())
        for key, mine in members.items()
    ]
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
    )


class LimitedJoints(NamedTuple):
    """Joints with limits, of one type that says itself what they bound."""

    kind: JointType
    joints: tuple[int, ...]
    each: int
    """Limits of a joint; all joints' first ones come first."""
    farther: bool
    """True if the farther one of two limits is meant, else the nearer one."""


def limited_joints(sys: System) -> list[LimitedJoints]:
    """Finds them; limits of coordinates are none."""
    out = []
    for kind in dict.fromkeys(sys.joint_types):
        if type(kind).bounds is not JointType.bounds:
            like = [jax.ShapeDtypeStruct((1, 1), jnp.result_type(float))] * kind.q_width
            each = len(jax.eval_shape(kind.bounds, tuple(like)))
            mine = [j for j, k in enumerate(sys.joint_types) if k is kind and sys.joint_limited[j]]
            both = [j for j in mine if sys.joint_two_sided[j]]
            out.append(LimitedJoints(kind, tuple(mine), each, farther=False))
            out.append(LimitedJoints(kind, tuple(both), each, farther=True))
    return [group for group in out if group.joints and group.each]


def _members(sys: System) -> dict[tuple[str, int], list[FamilyMember]]:
    """All constraints by kind and number of directions."""
    out: dict[tuple[str, int], list[FamilyMember]] = {}
    count = 0
    if uses_broad_phase(sys):
        out |= _near(sys)
    else:
        for group, sides in zip(sys.collisions, contact_links(sys), strict=True):
            mine = out.setdefault((CONTACT, max(group.condim, 3)), [])
            for a, b in [*zip(*sides, strict=True)] * group.collider.n_contacts:
                first, second = link_dofs(sys, a), link_dofs(sys, b)
                mine.append(FamilyMember(count, first, second, first ^ second))
                count += 1
    for kind, width in ((CONNECT, 3), (WELD, 6)):
        pairs = [p for t, p in zip(sys.equality_types, sys.equality_pair, strict=True) if t == kind]
        for number, (a, b) in enumerate(pairs):
            first, second = link_dofs(sys, a), link_dofs(sys, b)
            out.setdefault((kind, width), []).append(
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
    """Contacts of the nearest pairs: each may be of any pair."""
    moved: frozenset[int] = frozenset()
    for sides in contact_links(sys):
        for a, b in set(zip(*sides, strict=True)):
            moved |= link_dofs(sys, a) ^ link_dofs(sys, b)
    out: dict[tuple[str, int], list[FamilyMember]] = {}
    count = 0
    for width, n in contact_widths(sys).items():
        out[NEAREST_CONTACT, width] = [
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
    """Puts each constraint on the block that its path ends in.

    `links` are, for constraints of any two links, the degrees of freedom that move each.
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
            where, copy = home[max(member.moved)]
            on_copy[where][copy].append(member)
    slots: list[BlockConstraints | None] = []
    order: list[int] = []
    for block, copies in zip(blocks.blocks, on_copy, strict=True):
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
    if not block.large and count * len(block.path[0]) < MAX_DENSE_JACOBIAN_ENTRIES:
        return BlockConstraints(start, count, len(sides[0]), sides[..., None])
    width = acting.sum(axis=0).max()
    reach = np.sort(np.argsort(~acting, axis=0, kind="stable")[:width], axis=0)
    near = np.take_along_axis(sides & acting, reach[None], axis=1)
    return BlockConstraints(start, count, len(sides[0]), near[..., None], reach=reach)
