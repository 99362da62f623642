"""What many constraints do on a block: each at the places of the path that it reaches, summed up.

`unrolled` goes through all places for each constraint, which is quicker to run where constraints
are few, and more than a compiler takes in where they are many.
"""

import jax
import jax.numpy as jnp
import numpy as np

from brax.components import total
from brax.generalized.constraints.constraint_laws import Along, Matrix, mul
from brax.generalized.constraints.constraint_layout import BlockConstraints
from brax.generalized.linalg.blocked import mirrored
from brax.kernels.fusion_barrier import compiled_apart


def reached(reach: np.ndarray, path: jax.Array) -> jax.Array:
    """Takes from values along the path (path, copies, batch) what is at the places `reach`, (reach,
    slots, copies, batch)."""
    n, copies = path.shape[:2]
    index = reach * copies + np.arange(copies)
    return _take(path.reshape(n * copies, -1), index)


def apply_jacobian(slots: BlockConstraints, jacobian: jax.Array, path: jax.Array) -> jax.Array:
    """What rates along the path move, (slots, copies, batch)."""
    rates = reached(_reach(slots), path)
    return total(jacobian[i] * rates[i] for i in range(len(rates)))


def apply_transpose(slots: BlockConstraints, jacobian: Along, force: Along) -> jax.Array:
    """Forces (slots, copies, batch) along the path, (path, copies, batch)."""
    pushed = total(j * x[None] for j, x in zip(jacobian, force, strict=True))
    target = np.where(slots.real, _reach(slots) * slots.copies + np.arange(slots.copies), -1)
    n = slots.places * slots.copies
    summed = gathered(pushed.reshape(target.size, -1), target.ravel(), n)
    return summed.reshape(slots.places, slots.copies, -1)


def hessian(slots: BlockConstraints, jacobian: Along, matrix: Matrix) -> jax.Array:
    """The stiffness of constraints, its entries (slots, copies, batch), on the path, (path, path,
    copies, batch)."""
    n, copies = slots.places, slots.copies
    reach, real = _reach(slots), slots.real
    target = (reach[:, None] * n + reach) * copies + np.arange(copies)
    lower = real[:, None] & real & (reach[:, None] >= reach)
    first, second, slot, copy = np.nonzero(lower)
    left, right = (np.ravel_multi_index((i, slot, copy), reach.shape) for i in (first, second))
    pushed = zip(mul(matrix, jacobian), jacobian, strict=True)
    entries = total(
        _take(p.reshape(reach.size, -1), left) * _take(j.reshape(reach.size, -1), right)
        for p, j in pushed
    )
    summed = gathered(entries, target[lower], n * n * copies)
    return mirrored(summed.reshape(n, n, copies, -1))


def gathered(values: jax.Array, target: np.ndarray, n: int) -> jax.Array:
    """Sums rows (rows, batch) that have the same of `n` targets, -1 none, in rounds by pairs.

    XLA's scatter on CPU adds one row after another, each for the price of a call.
    """
    index = np.argsort(target, kind="stable")
    index = index[np.searchsorted(target[index], 0) :]
    owner = target[index]
    while True:
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
    place = np.full(n, len(owner))
    place[owner] = index
    return _take(jnp.pad(values, ((0, 1), (0, 0))), place)


def _reach(slots: BlockConstraints) -> np.ndarray:
    assert slots.reach is not None
    return slots.reach


def _take(x: jax.Array, index: np.ndarray) -> jax.Array:
    """Rows at static indices."""
    taken = compiled_apart(lambda x: x.at[index.ravel()].get(mode="promise_in_bounds"), x)
    return taken.reshape(*index.shape, *x.shape[1:])
