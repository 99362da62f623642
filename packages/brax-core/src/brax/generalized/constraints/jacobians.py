"""Jacobians of constraints: how fast the rates along a path move its end."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from brax.components import Vec3, rows
from brax.generalized.constraints.constraint_laws import Along
from brax.generalized.constraints.constraint_layout import (
    BlockConstraints,
    ConstraintFamily,
    ConstraintLayout,
)
from brax.generalized.linalg.constraint_hessian_sparse import reached
from brax.generalized.linalg.frontal import on_paths
from brax.generalized.smooth_dynamics.smooth import SmoothDynamics

PLACES = 31
"""Bits of a whole number of 32 bits that say which places of a path move a link."""


class AttachmentPoints(NamedTuple):
    """Points and directions of constraints on their two links, world axes, (slots, batch)."""

    first: Vec3
    """A point of the first link."""
    second: Vec3 | None
    """A point of the second link; None if it is the same point."""
    linear: tuple[Vec3, ...]
    """Directions in which the second point moves away from the first."""
    angular: tuple[Vec3, ...] = ()
    """Axes about which the second link turns relative to the first."""
    links: tuple[jax.Array, jax.Array] | None = None
    """The two links, -1 for the world, (slots, batch); None where they never change."""


def jacobian(
    plan: ConstraintLayout,
    family: ConstraintFamily,
    dynamics: SmoothDynamics,
    ends: AttachmentPoints,
) -> tuple[Along | None, ...]:
    """Return the Jacobian J of a family on each block, None for a block without constraints.

    It is one array for each direction, (path or reach, slots, copies, batch): the velocity along
    the direction per unit rate of each place.
    """
    subspace = _on_paths(plan, family, dynamics.subspace)
    one_tree = dynamics.origin.x.shape[0] == 1
    # Motion subspaces are about the common point of their tree. With one tree it is one row for
    # all.
    origin = (
        [dynamics.origin] * len(family.slots)
        if one_tree
        else _on_paths(plan, family, dynamics.origin)
    )
    out: list[Along | None] = []
    for i, slots in enumerate(family.slots):
        if slots is None:
            out.append(None)
            continue
        mine: AttachmentPoints = jax.tree.map(lambda x, slots=slots: of_block(slots, x)[None], ends)
        ang, lin = subspace[i]
        sign = _sign(slots, mine)
        linear = _linear(slots, mine, sign, origin[i], ang, lin)
        out.append((*linear, *_angular(mine, sign, ang)))
    return tuple(out)


def of_block(slots: BlockConstraints, x: jax.Array) -> jax.Array:
    """Return a block's rows of what is given for all slots, as (slots, copies, batch)."""
    piece = x[slots.start : slots.start + slots.each * slots.copies]
    return piece.reshape(slots.each, slots.copies, x.shape[-1])


def _linear(
    slots: BlockConstraints,
    ends: AttachmentPoints,
    sign: jax.Array | np.ndarray,
    origin: Vec3,
    ang: Vec3,
    lin: Vec3,
) -> list[jax.Array]:
    """Return the linear directions of J."""

    def moved(point: Vec3) -> list[jax.Array]:
        arm = point - origin
        # The velocity of a point p along t per unit rate: S_lin . t + (S_ang x (p - o)) . t, by the
        # scalar triple product.
        return [lin.dot(t) + ang.dot(arm.cross(t)) for t in ends.linear]

    # At one point of both links, J is the same product for both and only the sign differs.
    if ends.second is None:
        return [_signed(sign, x) for x in moved(ends.first)]
    first, second = slots.sides
    pairs = zip(moved(ends.first), moved(ends.second), strict=True)
    return [second * b - first * a for a, b in pairs]


def _angular(ends: AttachmentPoints, sign: jax.Array | np.ndarray, ang: Vec3) -> list[jax.Array]:
    """Return the angular directions of J."""
    return [_signed(sign, ang.dot(axis)) for axis in ends.angular]


def _signed(sign: jax.Array | np.ndarray, x: jax.Array) -> jax.Array:
    """Return products with signs; signs that are known to be 1 need none."""
    known = isinstance(sign, np.ndarray)
    return x if known and (sign == 1).all() else x * sign


def _sign(slots: BlockConstraints, ends: AttachmentPoints) -> jax.Array | np.ndarray:
    """Return the sign of each place in the relative motion of a point that both links carry.

    Shapes are (path, slots, copies, 1 or batch); `BlockConstraints.sign` says what it means.
    """
    # Listed contacts: the sign follows from the links that are in contact now.
    if slots.link_paths is None or ends.links is None:
        return slots.sign
    first, second = (_moved_by(slots.link_paths, link[0]) for link in ends.links)
    path = len(slots.sides[0])
    signs = [_bit(second, p) - _bit(first, p) for p in range(path)]
    sign = jnp.stack(signs).astype(ends.first.x.dtype)
    return jnp.where(slots.sides[0], sign, 0.0)


def _moved_by(table: np.ndarray, link: jax.Array) -> list[jax.Array]:
    """Return the places that move a link as bits of whole numbers, each (slots, copies, batch).

    One number has the bits of `PLACES` places, so that it is read at once for all of them.
    """
    words = []
    for start in range(0, table.shape[1], PLACES):
        places = table[:, start : start + PLACES]
        weight = 1 << np.arange(places.shape[1])
        word = jnp.asarray(np.einsum("lpc,p->lc", places, weight).astype(np.int32))
        # Row 0 of the table is the world, -1, which nothing moves.
        each = [word[:, k][link[:, k] + 1] for k in range(link.shape[1])]
        words.append(jnp.stack(each, axis=1))
    return words


def _bit(words: list[jax.Array], place: int) -> jax.Array:
    """Return 1 where a place moves a link and 0 elsewhere, (slots, copies, batch)."""
    word, at = divmod(place, PLACES)
    return (words[word] >> at) & 1


def _on_paths(plan: ConstraintLayout, family: ConstraintFamily, tree: object) -> list[Any]:
    """Return, for each block, components along its paths or at the places of a sparse Jacobian.

    Shapes are (path, 1, copies, batch) or (reach, slots, copies, batch).
    """
    leaves, structure = jax.tree.flatten(tree)
    paths = zip(*(on_paths(plan.blocks, x) for x in leaves), strict=True)
    return [
        jax.tree.unflatten(structure, [_reached(slots, x) for x in path])
        for slots, path in zip(family.slots, paths, strict=True)
    ]


def _reached(slots: BlockConstraints | None, path: jax.Array) -> jax.Array:
    """Return a block's values for every slot (one row), or at the places that each slot reaches."""
    if slots is None or slots.reach is None:
        return path[:, None]
    return reached(slots.reach, path)


def at_places(
    plan: ConstraintLayout,
    family: ConstraintFamily,
    values: jax.Array,
    entries: Sequence[tuple[int, int]],
) -> tuple[Along | None, ...]:
    """Return the Jacobian of constraints with one direction whose entries are given.

    Args:
        plan: the blocks.
        family: the constraints.
        values: velocity along the direction per unit rate, (entries, batch).
        entries: the constraint and the degree of freedom of each value.

    Returns:
        As `jacobian` does.
    """
    place = {entry: i for i, entry in enumerate(entries)}
    # A last row of zeros serves the places that do not act.
    table = jnp.concatenate([values, jnp.zeros_like(values[:1])])
    out: list[Along | None] = []
    for block, slots in zip(plan.blocks.blocks, family.slots, strict=True):
        if slots is None:
            out.append(None)
            continue
        index = np.full(slots.real.shape, len(entries))
        for at, i, k in np.argwhere(slots.real):
            number = family.order[slots.start + i * slots.copies + k]
            where = at if slots.reach is None else slots.reach[at, i, k]
            index[at, i, k] = place[number, block.path[k][where]]
        out.append((rows(table, index.ravel().tolist()).reshape(*index.shape, -1),))
    return tuple(out)


class ListedRows(NamedTuple):
    """The Jacobian of one chunk of listed contacts on one block, or in a forest on two trees."""

    rows: jax.Array
    """The rows by direction, then by slot, (path, copies, rows, batch)."""
    trees: jax.Array | None = None
    """In a forest, the trees: the first ones of the slots, then the second ones, (2 * slots,
    batch), -1 for none."""

    @staticmethod
    def of(directions: Along) -> "ListedRows":
        """Return the rows of directions that are given as `jacobian` returns them."""
        return ListedRows(jnp.concatenate([jnp.swapaxes(x, 1, 2) for x in directions], axis=2))


class ListedJacobian(NamedTuple):
    """The Jacobian of listed contacts on one block, in chunks of slots."""

    filled: jax.Array
    """Number of chunks that have an active contact, which come first, int32, (1, batch)."""
    rows: jax.Array
    """The rows of each chunk by direction, then by slot, (chunks, path, copies, rows, batch). In a
    forest the path is that of two trees."""
    trees: jax.Array | None = None
    """In a forest, the trees of each chunk: the first ones of its slots, then the second ones,
    (chunks, 2 * slots, batch), -1 for none."""

    def joined(self) -> jax.Array:
        """Return the trees of a forest."""
        assert self.trees is not None
        return self.trees

    def size(self) -> int:
        """Return the number of slots of a chunk, of a forest."""
        return self.joined().shape[1] // 2

    def directions(self) -> int:
        """Return the number of directions of a contact, of a forest."""
        return self.rows.shape[3] // self.size()


class SpatialTendonTerms(NamedTuple):
    """Terms of a family's constraints along spatial tendons, each of one slot and one tendon."""

    slot: tuple[int, ...]
    """The slot."""
    tendon: tuple[int, ...]
    """The tendon."""
    scale: jax.Array
    """Force along the tendon, positive if it lengthens, per unit of the slot's force, (terms,
    batch)."""


class FamilyConstraints(NamedTuple):
    """The constraints of one family at a state."""

    law: Any
    """Their constraint law, of `brax.generalized.constraints.constraint_laws`."""
    jacobian: tuple[Along | ListedJacobian | None, ...]
    """The Jacobian, as `jacobian` returns it; in chunks for listed contacts."""
    reference_acc: Along
    """The part -k d(r) r of the reference acceleration, for each direction, (slots, batch). Where
    points swing, their acceleration at constant rates is subtracted."""
    reference_damping: jax.Array | Along
    """b of the reference acceleration, which multiplies J qvel; one for each direction if they
    differ."""
    ends: AttachmentPoints | None
    """Points and directions on links; None for constraints on coordinates."""
    tendons: SpatialTendonTerms | None = None
    """Spatial tendons among the coordinates; None if there are none."""
