"""What humanoids observe of their bodies beside coordinates: inertia, velocity and motor forces."""

import jax
import jax.numpy as jnp
import numpy as np

from brax import math
from brax.actuators.actuator_forces import actuators_at_state, joint_forces, within_joint_limits
from brax.actuators.force_law import Command
from brax.base import State, System
from brax.kernels.batch_last import batch_last


def _forces(sys: System, command: Command, q: jax.Array, qd: jax.Array) -> jax.Array:
    driven = actuators_at_state(sys, command, q, qd, links=None)
    return within_joint_limits(sys, joint_forces(sys, driven))


_motor_forces = batch_last(_forces)


def link_centers(sys: System, state: State) -> jax.Array:
    """Centres of mass of the links, world [m], shape (n_links, 3)."""
    return state.x.do(sys.link.inertia.transform).pos


def center_of_mass(sys: System, state: State) -> jax.Array:
    """Centre of mass of the whole model, world [m], shape (3,)."""
    mass = sys.link.inertia.mass
    return mass @ link_centers(sys, state) / jnp.sum(mass)


def com_inertia(sys: System, state: State) -> jax.Array:
    """Inertia of each link about the centre of mass of all, world axes, shape (n_links, 10).

    Six of the tensor (xx, yy, zz, xy, xz, yz) [kg m^2], mass times offset [kg m], mass [kg]:
    MuJoCo's `cinert`.
    """
    inertia = sys.link.inertia
    axes = math.quat_to_3x3(state.x.do(inertia.transform).rot)
    offset = link_centers(sys, state) - center_of_mass(sys, state)
    mass = inertia.mass[:, None]
    own = jnp.einsum("lij,lj,lkj->lik", axes, inertia.i, axes)
    square = jnp.sum(offset**2, axis=1)[:, None, None] * jnp.eye(3)
    far = square - offset[:, :, None] * offset[:, None, :]
    tensor = own + mass[:, :, None] * far
    six = tensor[:, np.array([0, 1, 2, 0, 0, 1]), np.array([0, 1, 2, 1, 2, 2])]
    return jnp.concatenate([six, mass * offset, mass], axis=1)


def com_velocity(sys: System, state: State) -> jax.Array:
    """Velocity of each link's centre of mass times its share of the mass, and angular velocity.

    World axes [m/s, rad/s], shape (n_links, 6).
    """
    share = sys.link.inertia.mass / jnp.sum(sys.link.inertia.mass)
    arm = link_centers(sys, state) - state.x.pos
    velocity = state.xd.vel + jnp.cross(state.xd.ang, arm)
    return jnp.concatenate([share[:, None] * velocity, state.xd.ang], axis=1)


def motor_forces(sys: System, state: State, ctrl: jax.Array) -> jax.Array:
    """Forces of the motors on all degrees of freedom, MuJoCo's `qfrc_actuator`, shape (nv,).

    Of actuators on joints and tendons; a model with some on sites has `brax.sensors` for that.
    """
    return _motor_forces(sys, Command(ctrl, state.activation), state.q, state.qd)
