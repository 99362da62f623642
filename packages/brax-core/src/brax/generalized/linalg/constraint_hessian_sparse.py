"""Constraint Hessian of a block with many constraints: each has entries only where it acts.

`unrolled` goes through all places of the path for each constraint. With many constraints this takes
several times as long to compile. Here the products of all constraints are computed in one array and
summed by target. `docs/performance-model.md` has the measurements; with few constraints the two
forms differ little.
"""

import jax
import jax.numpy as jnp
import numpy as np

from brax.components import total
from brax.generalized.constraints.constraint_laws import Along, Matrix, mul
from brax.generalized.constraints.constraint_layout import BlockConstraints
from brax.kernels.fusion_barrier import compiled_apart


def reached(reach: np.ndarray, path: jax.Array) -> jax.Array:
    """Return the values of a path at the places that constraints reach.

    Args:
        reach: the places, (reach, slots, copies).
        path: the values, (path, copies, batch).

    Returns:
        Shape (reach, slots, copies, batch).
    """
    n, copies = path.shape[:2]
    # A path and its copies are flattened to one axis, on which a place of a copy is one static row.
    index = reach * copies + np.arange(copies)
    return _take(path.reshape(n * copies, -1), index)


def apply_jacobian(slots: BlockConstraints, jacobian: jax.Array, path: jax.Array) -> jax.Array:
    """Return J times the rates along the path, (slots, copies, batch)."""
    rates = reached(_reach(slots), path)
    return total(jacobian[i] * rates[i] for i in range(len(rates)))


def apply_transpose(slots: BlockConstraints, jacobian: Along, force: Along) -> jax.Array:
    """Return Jᵀ times forces (slots, copies, batch), along the path, (path, copies, batch)."""
    pushed = total(j * x[None] for j, x in zip(jacobian, force, strict=True))
    # -1 marks the entries of a constraint that acts on fewer places than the widest one.
    target = np.where(slots.real, _reach(slots) * slots.copies + np.arange(slots.copies), -1)
    n = slots.places * slots.copies
    summed = gathered(pushed.reshape(target.size, -1), target.ravel(), n)
    return summed.reshape(slots.places, slots.copies, -1)


def hessian(slots: BlockConstraints, jacobian: Along, matrix: Matrix) -> jax.Array:
    """Return the lower triangle of JᵀDJ over the path, (path, path, copies, batch), zero above it.

    The entries of D are shaped (slots, copies, batch).
    """
    n, copies = slots.places, slots.copies
    reach, real = _reach(slots), slots.real
    target = (reach[:, None] * n + reach) * copies + np.arange(copies)
    # Only pairs of places in the lower triangle at which the constraint acts: a fifth of all
    # products for the humanoid with all collisions.
    lower = real[:, None] & real & (reach[:, None] >= reach)
    first, second, slot, copy = np.nonzero(lower)
    left, right = (np.ravel_multi_index((i, slot, copy), reach.shape) for i in (first, second))
    pushed = zip(mul(matrix, jacobian), jacobian, strict=True)
    entries = total(
        _take(p.reshape(reach.size, -1), left) * _take(j.reshape(reach.size, -1), right)
        for p, j in pushed
    )
    summed = gathered(entries, target[lower], n * n * copies)
    return summed.reshape(n, n, copies, -1)


def gathered(values: jax.Array, target: np.ndarray, n: int) -> jax.Array:
    """Return sums of rows (rows, batch) that have the same of `n` targets; -1 means no target.

    Rows are added in rounds by pairs. XLA's scatter on CPU adds one row after another and pays the
    price of a call for each.
    """
    # A stable sort puts the rows of a target next to one another; rows without one come first and
    # are dropped. All of this is computed once, while tracing.
    index = np.argsort(target, kind="stable")
    index = index[np.searchsorted(target[index], 0) :]
    owner = target[index]
    while True:
        # Of each target's rows, those at even ranks take the row after them, if it is the target's
        # too. The number of rounds is the binary logarithm of the most rows of a target.
        rank = np.arange(len(owner)) - np.searchsorted(owner, owner)
        even = rank % 2 == 0
        paired = even & np.append(owner[1:] == owner[:-1], False)
        partner = np.where(paired, np.append(index[1:], 0), 0)[even]
        values = _take(values, index[even]) + jnp.where(
            paired[even, None], _take(values, partner), 0.0
        )
        owner = owner[even]
        index = np.arange(len(owner))
        if len(owner) == len(np.unique(owner)):
            break
    # Targets without rows read the padding, a row of zeros.
    place = np.full(n, len(owner))
    place[owner] = index
    return _take(jnp.pad(values, ((0, 1), (0, 0))), place)


def _reach(slots: BlockConstraints) -> np.ndarray:
    """Return the places that each constraint reaches, of a block that has them."""
    assert slots.reach is not None
    return slots.reach


def _take(x: jax.Array, index: np.ndarray) -> jax.Array:
    """Return rows at static indices."""
    # The indices are known to be in bounds, which spares XLA the clamps. The call is compiled
    # apart, because XLA's fusion emitter aborts on some gathers that share a loop with another
    # result.
    taken = compiled_apart(lambda x: x.at[index.ravel()].get(mode="promise_in_bounds"), x)
    return taken.reshape(*index.shape, *x.shape[1:])
