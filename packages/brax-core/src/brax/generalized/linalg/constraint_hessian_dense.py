"""Constraint Hessian of a block with contacts of the nearest pairs: all entries are kept.

Which links a slot's contact joins is known only as the step runs. So the Jacobian has an entry for
every place of the path, and the products are plain matrix products.
"""

import jax
import jax.numpy as jnp

from brax.components import total
from brax.generalized.constraints.constraint_laws import Along, Matrix, mul
from brax.generalized.constraints.constraint_layout import BlockConstraints


def apply_jacobian(_: BlockConstraints, jacobian: jax.Array, path: jax.Array) -> jax.Array:
    """Return J times the rates along the path, (slots, copies, batch)."""
    # Axes: p place of the path, s slot, c copy of the block, b environment of the batch.
    return jnp.einsum("pscb,pcb->scb", jacobian, path)


def apply_transpose(_: BlockConstraints, jacobian: Along, force: Along) -> jax.Array:
    """Return Jᵀ times forces (slots, copies, batch), along the path, (path, copies, batch)."""
    return total(jnp.einsum("pscb,scb->pcb", j, x) for j, x in zip(jacobian, force, strict=True))


def hessian(_: BlockConstraints, jacobian: Along, matrix: Matrix) -> jax.Array:
    """Return JᵀDJ over the path, (path, path, copies, batch).

    The entries of D are shaped (slots, copies, batch). JᵀDJ is one matrix product in each
    environment.
    """
    pushed, wide = jnp.stack(mul(matrix, jacobian)), jnp.stack(jnp.broadcast_arrays(*jacobian))
    # The axis d is the direction of a constraint: normal and tangents. `pushed` is D J.
    return jnp.einsum("dpscb,dqscb->pqcb", pushed, wide)
