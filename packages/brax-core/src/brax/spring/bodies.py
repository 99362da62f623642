"""The state of the spring pipeline inside a step, and its free motion."""

from typing import NamedTuple

import jax

from brax.components import Quat, Vec3, exp_quat, put_rows, rows, unit_again
from brax.impulses import Impulses
from brax.maximal.links import Links, PerDof
from brax.maximal.rotation import rotation_vector
from brax.spring.model import SpringProblem, unheld


class StepVelocities(NamedTuple):
    """Velocities that move the links over a step."""

    vel: Vec3
    """As in `SpringState`, like the fields below."""
    spin: Vec3
    rates: tuple[PerDof, ...]


class SpringState(NamedTuple):
    """All links: their principal frames in the world, their velocities, and their joints."""

    pos: Vec3
    """Centre of mass [m]."""
    rot: Quat
    """Orientation of the principal axes."""
    vel: Vec3
    """Velocity of the centre of mass [m/s]."""
    spin: Vec3
    """Angular velocity, principal axes [rad/s]."""
    q: tuple[PerDof, ...]
    """Coordinates by stack; they follow the frames. None for links that nothing holds."""
    rates: tuple[PerDof, ...]
    """Rates of the degrees of freedom by stack."""
    activation: jax.Array | None
    """Of the actuators that are stateful, (na, batch); None if there are none."""
    acted: Impulses | None = None
    """The impulses so far of the step; None if nobody asks for them."""
    step_velocities: StepVelocities | None = None
    """Where an impact is resolved in time: what moves the links, while the velocities are those
    after the step."""


def links_of(bodies: SpringState) -> Links:
    """The bodies as all pipelines of maximal coordinates have them."""
    axes = bodies.rot.matrix()
    return Links(bodies.pos, bodies.rot, axes, bodies.vel, axes.rotate(bodies.spin))


def drift(problem: SpringProblem, bodies: SpringState, dt: jax.Array) -> SpringState:
    """Free motion: straight lines, and rotation at constant angular momentum.

    The exponential and the conservation of angular momentum are exact to round-off. The rotation
    vector of a link that nothing holds is exact to fourth order; that of a link held by joints is
    constant, which is what the joints count on.

    Source: Euler's equations, Landau and Lifshitz (1976), Mechanics, section 36.
    """
    model = problem.model
    i = model.links.moments
    vel, spin = bodies.step_velocities[:2] if bodies.step_velocities else (bodies.vel, bodies.spin)
    turned = spin * dt
    if free := unheld(problem.plan):
        turned = put_rows(turned, free, rotation_vector(rows(spin, free), model.gyration, dt))
    turn = exp_quat(turned)
    kept = bodies.spin
    momentum = Vec3(kept.x * i.x, kept.y * i.y, kept.z * i.z)
    # What turning back adds to it, so that only the sum is rounded and not the momentum.
    change = turn.turned_back(momentum)
    return bodies._replace(
        pos=bodies.pos + vel * dt,
        rot=unit_again(bodies.rot.mul(turn)),
        spin=kept + Vec3(*(a * b for a, b in zip(change, model.inverse, strict=True))),
        step_velocities=None,
    )
