"""The forces of the constraints at a state, for those who ask for them."""

import jax
import jax.numpy as jnp

from brax.components import rows, stack
from brax.generalized import fronts
from brax.generalized.constraints import located
from brax.generalized.moves import Here, JointMoves
from brax.generalized.problem import Motion, Problem


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
    plan, sys = problem.plan, problem.sys
    count = sum(len(g.geom1) * g.collider.n_contacts for g in sys.collisions)
    zero = jnp.zeros((1, 3, here.net.shape[-1]), here.net.dtype)
    places = plan.places
    if here.held is None or not places:
        return jnp.repeat(zero, count, axis=0)
    solver, held = here.held
    force = solver.respond(held, solver.violation(held, here.acceleration))[0].contacts
    assert force is not None
    _, _, axes = located(sys, problem.links, plan, here.smooth)
    world = axes[0] * force.x + axes[1] * force.y + axes[2] * force.z
    table = jnp.concatenate([stack(world), zero])
    return rows(table, [places.get(c, len(table) - 1) for c in range(count)])
