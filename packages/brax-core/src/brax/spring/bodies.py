"""The state of the spring pipeline inside a step, and its free motion."""

from typing import NamedTuple

import jax

from brax.components import Quat, Vec3, exp_quat, put_rows, rows, unit_again
from brax.impulses import Impulses
from brax.maximal.links import Links
from brax.maximal.rotation import rotation_vector
from brax.spring.model import SpringProblem, unheld
from brax.tree import PerDof


class StepVelocities(NamedTuple):
    """Velocities that move the links over a step, in the form of those of `SpringState`."""

    vel: Vec3
    spin: Vec3
    rates: tuple[PerDof, ...]


class SpringState(NamedTuple):
    """All links in the layout's order: principal frames, velocities and joints."""

    pos: Vec3
    """Centre of mass [m]."""
    rot: Quat
    """Orientation of the principal axes."""
    vel: Vec3
    """Velocity of the centre of mass [m/s]."""
    spin: Vec3
    """Angular velocity, principal axes [rad/s]."""
    q: tuple[PerDof, ...]
    """Coordinates by stack, which follow the frames; none for links without joints."""
    rates: tuple[PerDof, ...]
    """Rates of the degrees of freedom by stack."""
    activation: jax.Array | None
    """Activation of the stateful actuators, (na, batch); None if there are none."""
    acted: Impulses | None = None
    """Impulses of the step so far; None if nobody asks for them."""
    step_velocities: StepVelocities | None = None
    """Velocities that move the links during the step, where impacts are resolved in time. They
    differ from those after the step."""


def links_of(bodies: SpringState) -> Links:
    """Return the links as all pipelines of maximal coordinates take them."""
    axes = bodies.rot.matrix()
    return Links(bodies.pos, bodies.rot, axes, bodies.vel, axes.rotate(bodies.spin))


def drift(problem: SpringProblem, bodies: SpringState, dt: jax.Array) -> SpringState:
    """Move the links freely: along straight lines, and at constant angular momentum.

    The exponential and the conservation of angular momentum are exact to round-off. The rotation
    vector of a link without joints is exact to fourth order. That of a link with joints is
    constant, because the velocity update counts on it.

    Source: Euler's equations, Landau and Lifshitz (1976), Mechanics, section 36.
    """
    model = problem.model
    i = model.links.moments
    vel, spin = bodies.step_velocities[:2] if bodies.step_velocities else (bodies.vel, bodies.spin)
    # A link with joints: constant angular velocity, which is what `joints.measure` expects.
    turned = spin * dt
    if free := unheld(problem.plan):
        turned = put_rows(turned, free, rotation_vector(rows(spin, free), model.gyration, dt))
    turn = exp_quat(turned)  # in principal axes, so it multiplies from the right below
    # The velocities after the step carry the momentum, also where others move the links over it.
    kept = bodies.spin
    momentum = Vec3(kept.x * i.x, kept.y * i.y, kept.z * i.z)
    # The momentum is constant in the world, so it turns back in principal axes. Only its change is
    # computed: then the sum alone is rounded and the momentum does not drift.
    change = turn.turned_back(momentum)
    return bodies._replace(
        pos=bodies.pos + vel * dt,
        # One Newton step towards unit length: the product of unit quaternions needs no root.
        rot=unit_again(bodies.rot.mul(turn)),
        # omega = I^-1 L, in principal axes where I is diagonal.
        spin=kept + Vec3(*(a * b for a, b in zip(change, model.inverse, strict=True))),
        step_velocities=None,
    )
