"""Constraint Hessian of a block with listed contacts: all entries are kept, chunk by chunk.

Which links a slot's contact joins is known only as the step runs. So the Jacobian has an entry for
every place of the path. Chunks of slots without an active contact are passed over.
"""

import jax
import jax.numpy as jnp

from brax.generalized.constraints.constraint_laws import Along
from brax.generalized.constraints.constraint_layout import BlockConstraints
from brax.generalized.constraints.jacobians import ListedJacobian
from brax.kernels.skip import fold_needed, in_chunks, map_needed, unread
from brax.kernels.symmetric import outer_sums

# Axes of the products: p and q places of the path, t rows of a chunk (by direction, then by slot),
# c copies of the block, b environments of the batch.


def apply_jacobian(slots: BlockConstraints, jacobian: ListedJacobian, path: jax.Array) -> Along:
    """Return J times the rates along the path: for each direction, (slots, copies, batch).

    Nobody may read the rows of chunks that are not needed.
    """

    def of_chunk(rows: jax.Array) -> jax.Array:
        return jnp.einsum("pctb,pcb->tcb", rows, path)

    still = unread(jnp.zeros_like(jnp.swapaxes(jacobian.rows[0, 0], 0, 1)))
    found = map_needed(jacobian.filled, of_chunk, jacobian.rows, still)
    # (chunks, directions * slots of a chunk, ...) become the slots of each direction.
    chunks = found.reshape(len(found), -1, slots.each // len(found), *found.shape[2:])
    by_direction = jnp.moveaxis(chunks, 1, 0)
    return tuple(x.reshape(slots.each, *x.shape[2:]) for x in by_direction)


def apply_transpose(slots: BlockConstraints, jacobian: ListedJacobian, force: Along) -> jax.Array:
    """Return Jᵀ times forces (slots, copies, batch), along the path, (path, copies, batch)."""

    def more(sum_: jax.Array, chunk: tuple[jax.Array, tuple[jax.Array, ...]]) -> jax.Array:
        rows, mine = chunk
        return sum_ + jnp.einsum("pctb,tcb->pcb", rows, jnp.concatenate(mine))

    start = jnp.zeros_like(jacobian.rows[0, :, :, 0])
    chunks = jacobian.rows, in_chunks(force, len(jacobian.rows))
    return fold_needed(jacobian.filled, more, start, chunks)


def hessian(
    jacobian: ListedJacobian,
    weights: jax.Array,
    front: jax.Array | None = None,
) -> jax.Array:
    """Return a front plus JᵀDJ over the path; of the sum only the lower triangle counts.

    D is as `outer_sums` takes it, the front (path, path, copies, batch); None is zero.
    """
    if front is None:
        first = jacobian.rows[0, :, :, 0]
        front = jnp.zeros((len(first), *first.shape), first.dtype)
    return outer_sums(jacobian.filled, front, jacobian.rows, weights)
