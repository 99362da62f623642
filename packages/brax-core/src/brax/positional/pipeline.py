"""The positional pipeline: `init` and `step`.

Source: Mueller, Macklin, Chentanez, Jeschke, Kim (2020), Detailed Rigid Body Simulation with
Extended Position Based Dynamics. Departures: `docs/positional.md`.
"""

from collections.abc import Mapping
from typing import ClassVar

import jax

from brax import contracts, impulses
from brax.base import Force, State, System
from brax.components import rows
from brax.forces.external import external_forces
from brax.maximal.coordinates import frames_of_links, read_joints, read_links, write_state
from brax.maximal.joint_errors import advance, directions, project, separation, stack_pose
from brax.maximal.links import Links, Stack, parents
from brax.pipeline import Pipeline
from brax.positional.model import PositionalProblem, constants
from brax.positional.step import PositionalState, physics_step
from brax.tree import Group, PerDof, layout


class Positional(Pipeline[PositionalProblem, PositionalState]):
    """`init` and `step` of the positional pipeline."""

    name = "positional"
    lacks = (*contracts.NOT_IN_MAXIMAL, contracts.SITE_LIMITS)
    approximates: ClassVar[Mapping[str, str]] = contracts.APPROXIMATE_IN_MAXIMAL | {
        contracts.BAUMGARTE: "it has no effect; a step corrects the whole of a penetration",
    }
    reports_forces = True

    def problem(self, sys: System, act: jax.Array, external: Force | None) -> PositionalProblem:
        """Prepare what does not change during a step.

        Args:
            sys: the model, its leaves with a trailing batch axis.
            act: controls, shape (nu, batch).
            external: torque and force on each link at its centre of mass, world axes [N m, N], each
                (n_links, 3, batch).
        """
        plan = layout(sys)
        # The barrier keeps XLA from folding constants of a known model into what depends on a
        # batch.
        sys, model = jax.lax.optimization_barrier((sys, constants(sys, plan)))
        return PositionalProblem(sys, plan, model, act, external_forces(sys, plan.order, external))

    def enter(self, problem: PositionalProblem, state: State) -> PositionalState:
        """Convert a state into the frames of the links' principal axes."""
        links = read_links(problem.plan, problem.model.links, state)
        acted = None if state.forces is None else impulses.zero(state.forces)
        return PositionalState(links, *read_joints(problem.plan, state), state.activation, acted)

    def advance(
        self, problem: PositionalProblem, motion: PositionalState, dt: jax.Array
    ) -> PositionalState:
        """Predict the motion, and correct positions and then velocities.

        Args:
            problem: from `problem`.
            motion: the internal state.
            dt: time step [s], shape (1, batch).
        """
        return physics_step(problem, motion, dt)

    def leave(self, problem: PositionalProblem, motion: PositionalState) -> State:
        """Read the joint coordinates from the frames."""
        plan, model, bodies = problem.plan, problem.model, motion.bodies
        q = [
            () if group.unconstrained else _corrected(stack, group, bodies, mine)
            for stack, group, mine in zip(model.stacks, plan.stacks, motion.q, strict=True)
        ]
        # Links are kept in the frames of their principal axes; users see the model's link frames.
        frames = frames_of_links(model.links, bodies)
        return write_state(plan, model.stacks, frames, q, motion.rates, motion.activation)


POSITIONAL = Positional()
init, step = POSITIONAL.init, POSITIONAL.step


def _corrected(stack: Stack, group: Group, bodies: Links, q: PerDof) -> PerDof:
    """Return joint coordinates after one Gauss-Newton step towards the frames."""
    # Frames do not determine the whole turns of a hinge. A step from the coordinates that the joint
    # velocities predict does, and is accurate since these are near.
    at, parent, body = (
        stack_pose(stack, group.types, q),
        parents(bodies, group),
        rows(bodies, group.links),
    )
    joints = directions(stack, at, parent, body)
    apart = separation(stack, at, parent, body)
    return advance(group.types, q, project(joints, *apart)[0], 1.0)
