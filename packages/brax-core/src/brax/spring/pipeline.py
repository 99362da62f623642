"""The spring pipeline.

The state is in maximal coordinates: each link's frame and velocity. A step computes in this order
1. forces of actuators, springs, damping and gravity;
2. impulses of all joints of all trees at once. Joints are springs as stiff as the step allows,
   solved implicitly, and exact along their degrees of freedom;
3. impulses of limits and contacts, by sweeps over velocities;
4. free motion at the new velocities.

Impulses act in pairs at one point, so linear and angular momentum are conserved to round-off.

Source: Freeman et al. (2021), Brax: A Differentiable Physics Engine for Large Scale Rigid Body
Simulation, section 3. Departures: the joint springs are solved implicitly over the tree, with
armature and damping, rather than one by one and explicitly; contacts see the inertia of the whole
tree; bodies keep their angular momentum.
"""

import jax

from brax import contracts, impulses
from brax.actuators.force_law import Command
from brax.base import Force, State, System
from brax.forces.external import external_forces
from brax.integrators import Moves
from brax.maximal.actuation import next_activation
from brax.maximal.coordinates import frames_of_links, read_joints, read_links, write_state
from brax.maximal.joint_errors import advance
from brax.pipeline import Pipeline
from brax.spring.bodies import SpringState, drift, links_of
from brax.spring.model import SpringProblem, constants
from brax.spring.velocity_update import velocity_update
from brax.tree import layout


class Spring(Pipeline[SpringProblem, SpringState]):
    """`init` and `step` of the spring pipeline."""

    name = "spring"
    lacks = (*contracts.NOT_IN_MAXIMAL, contracts.SITE_LIMITS)
    approximates = contracts.APPROXIMATE_IN_MAXIMAL
    reports_forces = True

    def problem(self, sys: System, act: jax.Array, external: Force | None) -> SpringProblem:
        """Return the constants of the model and the inputs of the step.

        Args:
            sys: the model, its leaves with a trailing batch axis.
            act: controls, shape (nu, batch).
            external: torque and force on each link at its centre of mass, world axes [N m, N], each
                (n_links, 3, batch).
        """
        # The barrier keeps XLA from computing constants of a batch of models at compile time.
        sys, model = jax.lax.optimization_barrier((sys, constants(sys)))
        plan = layout(sys)
        return SpringProblem(sys, plan, model, act, external_forces(sys, plan.order, external))

    def enter(self, problem: SpringProblem, state: State) -> SpringState:
        """Return the links' principal frames and velocities."""
        links = read_links(problem.plan, problem.model.links, state)
        q, rates = read_joints(problem.plan, state)
        spin = links.rot.inv_rotate(links.ang)
        acted = None if state.forces is None else impulses.zero(state.forces)
        return SpringState(links.pos, links.rot, links.vel, spin, q, rates, state.activation, acted)

    def advance(self, problem: SpringProblem, motion: SpringState, dt: jax.Array) -> SpringState:
        """Update velocities and move, in the order that the integrator gives.

        Args:
            problem: from `problem`.
            motion: the internal state.
            dt: time step [s], shape (1, batch).
        """
        sys, told = problem.sys, Command(problem.act, motion.activation)
        moved: SpringState = sys.integrator.step(_SpringMoves(problem), motion, dt)
        masses, links = problem.model.links, links_of(motion)
        # From the state at the start of the step, as MuJoCo integrates activations.
        activation = next_activation(
            sys, problem.plan, masses, told, links, (motion.q, motion.rates), dt
        )
        return moved._replace(step_velocities=None, activation=activation)

    def leave(self, problem: SpringProblem, motion: SpringState) -> State:
        """Return the state in joint coordinates, read off the frames."""
        model = problem.model
        frames = frames_of_links(model.links, links_of(motion))
        return write_state(
            problem.plan, model.stacks, frames, motion.q, motion.rates, motion.activation
        )


SPRING = Spring()
init, step = SPRING.init, SPRING.step


class _SpringMoves(Moves[SpringState]):
    """The moves that an integrator composes."""

    def __init__(self, problem: SpringProblem) -> None:
        self.problem = problem

    def kick(self, state: SpringState, dt: jax.Array) -> SpringState:
        return velocity_update(self.problem, state, dt)

    def drift(self, state: SpringState, dt: jax.Array) -> SpringState:
        moved = drift(self.problem, state, dt)
        # Coordinates advance with the rates; the next step's `measure` corrects them to the frames.
        speeds = state.step_velocities.rates if state.step_velocities else state.rates
        q = tuple(
            advance(stack.types, q, rates, dt) if q else ()
            for stack, q, rates in zip(self.problem.plan.stacks, state.q, speeds, strict=True)
        )
        return moved._replace(q=q)
