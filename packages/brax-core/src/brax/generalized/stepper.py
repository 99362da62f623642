"""Stages of a step of the generalized pipeline, which its integrators put in order.

`Stepper.forces` evaluates the forces and solves the constraints at a state. The stages (`kick`,
`drift` and the others of `brax.integrators`) turn accelerations into velocities and coordinates.

Source: MuJoCo's documentation, chapter Computation, section Numerical integration.
"""

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from brax.actuators.actuator_forces import activation_rates, next_activations
from brax.base import System
from brax.generalized import newton
from brax.generalized.constraints.adhesion import adhering, adhesion
from brax.generalized.constraints.contact import ModelContacts
from brax.generalized.constraints.evaluation import constraints, contacts_at
from brax.generalized.linalg import elimination, frontal
from brax.generalized.newton import Constraints, Solver
from brax.generalized.problem import GeneralizedProblem, StepState
from brax.generalized.smooth_dynamics import articulated
from brax.generalized.smooth_dynamics.forces import (
    actuators_at,
    applied_force,
    command,
    couples_joints,
    drive_slope,
    driven_frames,
    external_force,
    joint_damping,
    resistance,
)
from brax.generalized.smooth_dynamics.smooth import SmoothDynamics, smooth
from brax.generalized.smooth_dynamics.variational_step import variational_step
from brax.integrators import Flow
from brax.pipeline import chart_rates, integrate


class Rates(NamedTuple):
    """The rate of change of a state; the first two are (nv, batch), in the model's order."""

    velocity: jax.Array
    """Rates of the coordinates in a chart about the start of the step."""
    acceleration: jax.Array
    """Accelerations, MuJoCo's `qacc`."""
    activation: jax.Array | None
    """Rates of the activations, MuJoCo's `act_dot`, (na, batch); None if there are none."""
    overflow: jax.Array | None
    """Number of contacts that the lists left out, (batch,); None without lists."""


class StateForces(NamedTuple):
    """The forces at a state, in the order of elimination."""

    smooth: SmoothDynamics
    """The unconstrained dynamics: mass matrix M and bias force."""
    acceleration: jax.Array
    """Accelerations with the constraints, MuJoCo's `qacc`, (nv, batch)."""
    net: jax.Array
    """The force M qacc, (nv, batch)."""
    reaction: jax.Array
    """The force of the constraints, MuJoCo's `qfrc_constraint`, (nv, batch)."""
    solver_and_constraints: tuple[Solver, Constraints] | None
    """The solver and the constraints at the state; None if the model has no constraint."""
    contacts: ModelContacts | None = None
    """The contacts at the state; None if the model has no constraint."""
    adhesion: jax.Array | None = None
    """The part of the unconstrained force that is adhesion, (nv, batch); None if there is none."""
    resisted: Callable[[jax.Array], jax.Array] | None = None
    """The accelerations with a resistance added to the armature, all (nv, batch) in the model's
    order. None if they come from a factorization of M."""

    @property
    def overflow(self) -> jax.Array | None:
        """Number of contacts that the lists left out, (batch,); None without lists."""
        return None if self.contacts is None else self.contacts.overflow


class Stepper(Flow[StepState]):
    """The integrators' stages in joint coordinates."""

    def __init__(self, problem: GeneralizedProblem) -> None:
        """Keep what is constant during a step."""
        self.problem = problem
        self.blocks = problem.plan.blocks

    def kick(self, state: StepState, dt: jax.Array) -> StepState:
        """Update the velocities at fixed coordinates, by default with implicit joint damping."""
        sys, forces = self.problem.sys, self.forces(state)
        # MuJoCo's flag `eulerdamp`: Euler is implicit in joint damping unless it is disabled.
        if sys.opt.eulerdamp:
            return self._damped_kick(state, dt, forces, joint_damping(sys, state.qd))
        return self._accelerate(
            state, dt, forces, frontal.to_model(self.blocks, forces.acceleration)
        )

    def push(self, state: StepState, dt: jax.Array) -> StepState:
        """Update the velocities as `kick` does, without Coriolis and centrifugal forces."""
        forces = self.forces(state, inertia=False)
        return self._damped_kick(state, dt, forces, joint_damping(self.problem.sys, state.qd))

    def drift(self, state: StepState, dt: jax.Array) -> StepState:
        """Update the coordinates at fixed rates."""
        return state._replace(q=integrate(self.problem.sys, state.q, state.qd, dt))

    def glide(self, state: StepState, dt: jax.Array) -> StepState:
        """Move freely at constant momentum."""
        return variational_step(self.problem, state, dt)

    def rates(self, state: StepState, start: StepState) -> Rates:
        """Return velocities, in a chart about the start, and accelerations."""
        forces = self.forces(state)
        qacc = frontal.to_model(self.blocks, forces.acceleration)
        # Rates of quaternions at different states cannot be added. In one chart they can
        # (Munthe-Kaas 1998).
        moving = chart_rates(self.problem.sys, state.q, state.qd, start.q)
        return Rates(moving, qacc, self._activation_rates(state, forces.smooth), forces.overflow)

    def advance(self, start: StepState, rates: Rates, dt: jax.Array) -> StepState:
        """Update coordinates, velocities and activations at given rates."""
        moved = self.look_ahead(start, rates, dt)
        activation = self._next_activation(start, rates.activation, dt)
        return moved._replace(
            activation=activation, overflow=_max_overflow(start.overflow, rates.overflow)
        )

    def look_ahead(self, start: StepState, rates: Rates, dt: jax.Array) -> StepState:
        """Return the state of a Runge-Kutta stage.

        It is as `advance`, but activations follow a straight line, as in MuJoCo, even out of their
        ranges.
        """
        q = integrate(self.problem.sys, start.q, rates.velocity, dt)
        qd = start.qd + dt * rates.acceleration
        activation = jax.tree.map(lambda a, r: a + dt * r, start.activation, rates.activation)
        # The next stage's solver starts from this stage's accelerations.
        return start._replace(q=q, qd=qd, warmstart=rates.acceleration, activation=activation)

    def implicit_kick(self, state: StepState, dt: jax.Array, inertia: bool) -> StepState:
        """Update the velocities, implicit in the actuators and, if asked, in the forces of inertia.

        It solves (M - dt dF/dqd) a = F, MuJoCo's integrators `implicit` and `implicitfast`. As in
        MuJoCo, a free body that carries no joints is always implicit in the forces of inertia.
        """
        forces = self.forces(state)
        damping = resistance(self.problem, state, forces.smooth)
        sys = self.problem.sys
        net = frontal.to_model(self.blocks, forces.net)
        # Only these cases fill the matrix: it is solved densely, without the sparsity of the mass
        # matrix.
        if inertia or couples_joints(sys) or self.problem.external.medium is not None:
            units = np.eye(len(state.qd))
            slope = self._velocity_derivative(state, forces.smooth, inertia, units)
            matrix = frontal.dense(self.blocks, forces.smooth.mass) + dt * slope
            qacc = _solve_dense(matrix, dt * damping, net)
        else:
            # Otherwise the derivative is diagonal, and the factorization keeps the sparsity of M.
            qacc = self._damped_acceleration(dt, forces, damping)
        lone = lone_free_dofs(sys)
        if inertia or not lone.size:
            return self._accelerate(state, dt, forces, qacc)
        # Each lone free body is a system of six equations of its own, with the gyroscopic terms.
        # Its rows replace those found above.
        matrix = self._lone_inertia(lone, forces.smooth) + dt * self._lone_velocity_derivative(
            lone, state, forces.smooth
        )
        mine = _solve_dense(matrix, dt * damping[lone], net[lone])
        return self._accelerate(state, dt, forces, qacc.at[lone].set(mine))

    def _damped_kick(
        self, state: StepState, dt: jax.Array, forces: StateForces, damping: jax.Array
    ) -> StepState:
        """Update the velocities with `damping` along each degree of freedom treated implicitly."""
        return self._accelerate(state, dt, forces, self._damped_acceleration(dt, forces, damping))

    def _damped_acceleration(
        self, dt: jax.Array, forces: StateForces, damping: jax.Array
    ) -> jax.Array:
        """Return (M + dt diag(damping))⁻¹ F, (nv, batch) in the model's order."""
        if forces.resisted is not None:
            return forces.resisted(damping * dt)
        diagonal = frontal.to_blocks(self.blocks, damping) * dt
        damped = frontal.add_diagonal(self.blocks, forces.smooth.mass, diagonal)
        qacc = frontal.solve(self.blocks, frontal.factor(self.blocks, damped), forces.net)
        return frontal.to_model(self.blocks, qacc)

    def _lone_inertia(self, lone: np.ndarray, dynamics: SmoothDynamics) -> jax.Array:
        """Return the inertia of free bodies that carry no joints, (bodies, 6, 6, batch)."""
        blocks, batch = self.blocks, dynamics.bias.shape[1:]

        def column(unit: jax.Array) -> jax.Array:
            rates = frontal.to_blocks(blocks, jnp.broadcast_to(unit[:, None], (len(unit), *batch)))
            return frontal.to_model(blocks, frontal.multiply(blocks, dynamics.mass, rates))

        # Column k of all bodies at once, since M has no entry between two trees.
        units = np.eye(len(blocks.order))[lone].sum(axis=0)  # no body feels another's
        return jax.vmap(column, out_axes=1)(jnp.asarray(units, dynamics.bias.dtype))[lone]

    def _lone_velocity_derivative(
        self, lone: np.ndarray, state: StepState, at: SmoothDynamics
    ) -> jax.Array:
        """Return the derivative for lone free bodies, each by its own rates.

        The shape is (bodies, 6, 6, batch).
        """
        units = np.eye(len(state.qd))[lone]
        if not couples_joints(self.problem.sys):  # no body feels another's
            return self._velocity_derivative(state, at, True, units.sum(axis=0))[lone]
        # Tendons and sites between bodies need one direction for each rate of each body; only the
        # body's own rows are kept.
        slope = self._velocity_derivative(state, at, True, units.reshape(-1, len(state.qd)))
        slope = slope.reshape(len(slope), *lone.shape, -1)
        return slope[lone, np.arange(len(lone))[:, None]]

    def _accelerate(
        self, state: StepState, dt: jax.Array, forces: StateForces, qacc: jax.Array
    ) -> StepState:
        """Return the state after the acceleration `qacc` for `dt`, with its activations.

        The solver's accelerations become the warm start.
        """
        activation = self._next_activation(state, self._activation_rates(state, forces.smooth), dt)
        moved = state._replace(qd=state.qd + dt * qacc, activation=activation)
        # Without constraints there is nothing to warm-start.
        if self.problem.plan.free:
            return moved
        warmstart = frontal.to_model(self.blocks, forces.acceleration)
        return moved._replace(
            warmstart=warmstart, overflow=_max_overflow(state.overflow, forces.overflow)
        )

    def _activation_rates(self, state: StepState, dynamics: SmoothDynamics) -> jax.Array | None:
        """Return the rates of the activations."""
        links = driven_frames(self.problem, dynamics)
        return activation_rates(
            self.problem.sys, command(self.problem, state), state.q, state.qd, links
        )

    def _next_activation(
        self, state: StepState, rates: jax.Array | None, dt: jax.Array
    ) -> jax.Array | None:
        """Return the activations after `dt`."""
        return next_activations(self.problem.sys, command(self.problem, state), rates, dt)

    def forces(self, state: StepState, inertia: bool = True) -> StateForces:
        """Return all forces at a state and the accelerations that they cause.

        Args:
            state: the state.
            inertia: True to include Coriolis and centrifugal forces.
        """
        problem, blocks = self.problem, self.blocks
        sys, plan = problem.sys, problem.plan
        dynamics = smooth(sys, problem.links, blocks, state.q, state.qd, inertia)
        # Here F = qfrc_applied + qfrc_passive + qfrc_actuator - qfrc_bias: MuJoCo's `qfrc_smooth`.
        applied = frontal.to_blocks(blocks, applied_force(problem, state, dynamics))
        outer = external_force(problem, dynamics)
        if plan.free and articulated.suits(sys, blocks):
            return self._long_tree(
                state, dynamics, applied if outer is None else applied + outer, inertia
            )
        force = applied - dynamics.bias
        force = force if outer is None else force + outer
        # A model without constraints needs one factorization: qacc = M⁻¹ F.
        if plan.free:
            qacc = frontal.solve(blocks, frontal.factor(blocks, dynamics.mass), force)
            return StateForces(dynamics, qacc, force, jnp.zeros_like(force), None)
        contacts = contacts_at(sys, problem.links, plan, problem.soft, dynamics)
        rows = constraints(
            sys, problem.links, plan, problem.soft, dynamics, contacts, state.q, state.qd
        )
        solver = Solver(plan, sys.opt.iterations, sys.opt.ls_iterations)
        adhesion_force = None
        # Adhesion depends on which contacts are active, so that it is found after them. It counts
        # as part of the unconstrained force.
        if adhering(sys):
            driven = actuators_at(problem, state, dynamics)
            adhesion_force = adhesion(problem, solver, rows, contacts, driven, force)
            force = force + adhesion_force
        start = frontal.to_blocks(blocks, state.warmstart)
        qacc = solver.solve(newton.ConstraintProblem(dynamics.mass, force, rows), start)
        # The implicit stages change M by damping. They need the force M qacc, not qacc.
        net = frontal.multiply(blocks, dynamics.mass, qacc)
        return StateForces(
            dynamics, qacc, net, net - force, (solver, rows), contacts, adhesion_force
        )

    def _long_tree(
        self, state: StepState, dynamics: SmoothDynamics, driving: jax.Array, inertia: bool
    ) -> StateForces:
        """Return the forces of a model without constraints that has a long tree.

        Args:
            state: the state.
            dynamics: the smooth dynamics at it.
            driving: all forces but the bias force, (nv, batch), in the order of elimination.
            inertia: True to include Coriolis and centrifugal forces.
        """
        blocks, nothing = self.blocks, jnp.zeros_like(driving)
        resisted = functools.partial(
            articulated.accelerations,
            self.problem.sys,
            self.problem.links,
            state.q,
            state.qd,
            frontal.to_model(blocks, driving),
            inertia,
        )
        qacc = frontal.to_blocks(blocks, resisted(nothing))
        net = driving - dynamics.bias
        return StateForces(dynamics, qacc, net, nothing, None, resisted=resisted)

    def _velocity_derivative(
        self, state: StepState, at: SmoothDynamics, inertia: bool, units: np.ndarray
    ) -> jax.Array:
        """Return minus the derivative of the forces by the rates, (nv, n, batch).

        Rows are in the model's order, columns are the directions `units`, (n, nv). The forces are
        the fluid's, those of tendons and actuators where joints are coupled, and the bias force if
        asked. What `resistance` has is not included.
        """
        problem = self.problem
        above = problem.plan.blocks.ancestors
        # Entry (i, j) is 1 if one of i and j carries the other: the sparsity of M, and of MuJoCo's
        # `qDeriv`.
        along = jnp.array(
            [
                [float(i in a or j in above[i]) for i in range(len(above))]
                for j, a in enumerate(above)
            ]
        )

        # As in MuJoCo, the bias force of tendons with armature is left out.
        sys = problem.sys.replace(tendon_rotor=(False,) * len(problem.sys.tendon_rotor))

        def resisting(qd: jax.Array) -> jax.Array:
            dynamics = smooth(sys, problem.links, self.blocks, state.q, qd, inertia)
            outer = external_force(problem, dynamics)
            force = dynamics.bias if outer is None else dynamics.bias - outer
            return frontal.to_model(self.blocks, force)

        def column(unit: jax.Array) -> jax.Array:
            return jax.jvp(resisting, (state.qd,), (along_all(unit),))[1]

        def driven(unit: jax.Array) -> jax.Array:
            # As in MuJoCo, what a tendon or site couples between two branches is left out.
            return (along @ unit)[:, None] * drive_slope(problem, state, at, along_all(unit))

        def along_all(unit: jax.Array) -> jax.Array:
            return jnp.broadcast_to(unit[:, None], state.qd.shape)

        directions = jnp.asarray(units, state.qd.dtype)
        # One directional derivative for each column: the bias force has no cheaper closed form
        # here.
        slope = jax.vmap(column, out_axes=1)(directions)
        if not inertia:
            # The derivative of a fluid's force is not symmetric. MuJoCo's `implicitfast` makes it
            # symmetric, as its factorization needs.
            slope = 0.5 * (slope + jnp.swapaxes(slope, 0, 1))
        if couples_joints(problem.sys):
            # The actuators' derivative has the sign of a force; `resisting` has the opposite one.
            slope = slope - jax.vmap(driven, out_axes=1)(directions)
        return slope


def lone_free_dofs(sys: System) -> np.ndarray:
    """Return the degrees of freedom of each free body that carries no joints, (bodies, 6)."""
    carry = set(sys.link_parents)
    lone = [i for i, kind in enumerate(sys.link_types) if kind == "f" and i not in carry]
    links = np.asarray(sys.dof_link())
    found = [np.flatnonzero(links == i) for i in lone if sys.link_parents[i] == -1]
    return np.reshape(found, (-1, 6)).astype(int)


def _solve_dense(matrix: jax.Array, diagonal: jax.Array, right: jax.Array) -> jax.Array:
    """Solve systems with the batch last, (..., n, n, batch), with a diagonal added."""
    whole = matrix + jnp.eye(right.shape[-2], dtype=right.dtype)[..., None] * diagonal[..., None, :]
    return elimination.solve(whole, right)


def _max_overflow(before: jax.Array | None, now: jax.Array | None) -> jax.Array | None:
    """Return the larger number of contacts that were left out."""
    return before if before is None or now is None else jnp.maximum(before, now)
