"""The forces of the constraints at a state, for those who ask for them."""

import jax
import jax.numpy as jnp

from brax.components import rows, stack
from brax.generalized import fronts
from brax.generalized.constraints import placed
from brax.generalized.moves import Here, JointMoves
from brax.generalized.problem import Motion, Problem
from brax.generalized.slots import CONTACT
from brax.generalized.touching import located


def reaction(problem: Problem, motion: Motion) -> tuple[jax.Array, jax.Array]:
    """Solves the constraints at a state.

    Returns:
        Their forces along the degrees of freedom (nv, batch) in the model's order, and that of
        each contact on its second geom, world axes, (contacts, 3, batch).
    """
    here = JointMoves(problem).forces(motion)
    along = fronts.to_model(problem.plan.blocks, here.reaction)
    return along, contact_forces(problem, here)


def contact_forces(problem: Problem, here: Here) -> jax.Array:
    """The force of each contact on its second geom, world axes, (contacts, 3, batch)."""
    sys = problem.sys
    count = sum(len(g.geom1) * g.collider.n_contacts for g in sys.collisions)
    zero = jnp.zeros((1, 3, here.net.shape[-1]), here.net.dtype)
    if here.held is None:
        return jnp.repeat(zero, count, axis=0)
    solver, held = here.held
    force = solver.respond(held, solver.violation(held, here.acceleration))[0]
    tables = [zero]
    places: dict[int, int] = {}
    for family, mine in zip(problem.plan.families, force.families, strict=True):
        if family.kind == CONTACT:
            _, _, axes = located(sys, family, placed(problem.links, here.smooth))
            start = sum(map(len, tables))
            places |= {contact: start + slot for contact, slot in family.places.items()}
            tables.append(stack(axes[0] * mine[0] + axes[1] * mine[1] + axes[2] * mine[2]))
    return rows(jnp.concatenate(tables), [places.get(c, 0) for c in range(count)])
