"""`init` and `step` of the generalized pipeline.

Source: Todorov (2014), Convex and analytically-invertible dynamics with contacts and constraints,
ICRA; MuJoCo's documentation, chapter Computation.
"""

from collections.abc import Mapping
from typing import ClassVar

import jax
import jax.numpy as jnp

from brax import impulses
from brax.base import Force, State, System
from brax.colliders.broad_phase import contact_widths, lists_contacts, uses_broad_phase
from brax.contracts import (
    ADHESION_LIMITS,
    APPROXIMATE_IN_MUJOCOS,
    TIME_OF_IMPACT,
    UNTESTED_CONTACTS,
)
from brax.forces.external import external_forces
from brax.generalized.constraints.constraint_layout import constraint_layout
from brax.generalized.constraints.evaluation import softness
from brax.generalized.problem import GeneralizedProblem, StepState
from brax.generalized.reaction import contact_forces, loads
from brax.generalized.stepper import Stepper
from brax.impulses import Impulses
from brax.kinematics import link_frames, to_state
from brax.pipeline import Pipeline
from brax.tree import layout


class Generalized(Pipeline[GeneralizedProblem, StepState]):
    """The generalized pipeline as an object that `brax.pipeline` drives."""

    name = "generalized"
    has_flow = True
    lacks = (TIME_OF_IMPACT, ADHESION_LIMITS)
    approximates: ClassVar[Mapping[str, str]] = {
        **APPROXIMATE_IN_MUJOCOS,
        UNTESTED_CONTACTS: "as many as the lists hold act; State.overflow counts those left out",
    }

    def init(self, sys: System, q: jax.Array, qd: jax.Array) -> State:
        """Return the state at given coordinates.

        The solver's warm start is an acceleration of zero.

        Args:
            sys: the model.
            q: joint coordinates [rad or m], shape (nq,).
            qd: joint velocities [rad/s or m/s], shape (nv,).

        Raises:
            ModelError: as in `Pipeline.init`.
            ShapeError: if an array does not fit the model.
        """
        state = super().init(sys, q, qd)
        overflow = jnp.zeros(()) if lists_contacts(sys) else None
        return state.replace(warmstart=jnp.zeros_like(state.qd), overflow=overflow)

    def problem(self, sys: System, act: jax.Array, external: Force | None) -> GeneralizedProblem:
        """Return what is constant during a step: blocks, constraint rows and softness.

        Args:
            sys: the model, its leaves with a trailing batch axis.
            act: controls, shape (nu, batch).
            external: torque and force on each link at its centre of mass, world axes [N m, N], each
                (n_links, 3, batch).
        """
        found = constraint_layout(sys)
        # XLA may fold what follows from the constants of a known model alone. The barrier keeps it
        # from folding values that depend on the batch.
        sys, soft = jax.lax.optimization_barrier((sys, softness(sys, found)))
        links = layout(sys)
        external_wrenches = external_forces(sys, links.order, external)
        return GeneralizedProblem(sys, links, found, soft, act, external_wrenches)

    def enter(self, problem: GeneralizedProblem, state: State) -> StepState:
        """Return the state inside a step.

        A state of another pipeline has no warm start; the solver then starts from zero.
        """
        start = jnp.zeros_like(state.qd) if state.warmstart is None else state.warmstart
        # Shaped (batch,), like any row of the coordinates.
        overflow = jnp.zeros_like(state.q[0]) if lists_contacts(problem.sys) else None
        acted = None if state.forces is None else impulses.zero(state.forces)
        return StepState(state.q, state.qd, start, state.activation, overflow, acted)

    def advance(self, problem: GeneralizedProblem, motion: StepState, dt: jax.Array) -> StepState:
        """Advance by one step of the integrator, and add up impulses if they are asked for.

        Args:
            problem: from `problem`.
            motion: the internal state.
            dt: time step [s], shape (1, batch).
        """
        moved: StepState = problem.sys.integrator.step(Stepper(problem), motion, dt)
        if motion.acted is None:
            return moved
        forces = Stepper(problem).forces(motion)
        # The impulse is the force at the start of the step times `dt`, also for integrators of
        # several stages.
        now = Impulses(contact_forces(problem, motion, forces), loads(problem, motion, forces))
        now = jax.tree.map(lambda force: force * dt, now)
        return moved._replace(acted=impulses.more(motion.acted, now))

    def contacts(self, sys: System) -> int:
        """Return the number of contacts of `State.forces`: all, or the listed of a broad phase."""
        return sum(contact_widths(sys).values()) if uses_broad_phase(sys) else super().contacts(sys)

    def leave(self, problem: GeneralizedProblem, motion: StepState) -> State:
        """Return the state after a step, with the links' frames."""
        x, xd = to_state(link_frames(problem.sys, motion.q, motion.qd))
        return State(
            motion.q, motion.qd, x, xd, warmstart=motion.warmstart, activation=motion.activation,
            overflow=motion.overflow,
        )  # fmt: skip


GENERALIZED = Generalized()
init, step = GENERALIZED.init, GENERALIZED.step
