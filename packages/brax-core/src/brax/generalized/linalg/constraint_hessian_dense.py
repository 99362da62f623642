"""What constraints do on a block where each may act on any place: contacts kept by distance."""

import jax
import jax.numpy as jnp

from brax.components import total
from brax.generalized.constraints.constraint_laws import Along, Matrix, mul
from brax.generalized.constraints.constraint_layout import BlockConstraints


def apply_jacobian(_: BlockConstraints, jacobian: jax.Array, path: jax.Array) -> jax.Array:
    """What rates along the path move, (slots, copies, batch)."""
    return jnp.einsum("pscb,pcb->scb", jacobian, path)


def apply_transpose(_: BlockConstraints, jacobian: Along, force: Along) -> jax.Array:
    """Forces (slots, copies, batch) along the path, (path, copies, batch)."""
    return total(jnp.einsum("pscb,scb->pcb", j, x) for j, x in zip(jacobian, force, strict=True))


def hessian(_: BlockConstraints, jacobian: Along, matrix: Matrix) -> jax.Array:
    """The stiffness of constraints, its entries (slots, copies, batch), on the path, (path, path,
    copies, batch): one matrix product in each environment."""
    pushed, wide = jnp.stack(mul(matrix, jacobian)), jnp.stack(jnp.broadcast_arrays(*jacobian))
    return jnp.einsum("dpscb,dqscb->pqcb", pushed, wide)
