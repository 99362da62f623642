"""Observations of humanoids beyond coordinates: inertia, velocities and actuator forces."""

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
    # Gravity compensation, if actuators bear it, is none of the motors' forces.
    return within_joint_limits(sys, joint_forces(sys, driven), None)


_motor_forces = batch_last(_forces)


def link_centers(sys: System, state: State) -> jax.Array:
    """Return the centres of mass of the links, world axes [m], shape (n_links, 3)."""
    return state.x.do(sys.link.inertia.transform).pos


def center_of_mass(sys: System, state: State) -> jax.Array:
    """Return the centre of mass of the whole model, world axes [m], shape (3,)."""
    mass = sys.link.inertia.mass
    return jnp.matmul(mass, link_centers(sys, state), precision="highest") / jnp.sum(mass)


def com_inertia(sys: System, state: State) -> jax.Array:
    """Return each link's inertia about the model's centre of mass, world axes, (n_links, 10).

    The entries are six of the tensor (xx, yy, zz, xy, xz, yz) [kg m^2], mass times offset [kg m],
    and mass [kg]. This is MuJoCo's `cinert`.
    """
    inertia = sys.link.inertia
    axes = math.quat_to_3x3(state.x.do(inertia.transform).rot)
    offset = link_centers(sys, state) - center_of_mass(sys, state)
    mass = inertia.mass[:, None]
    # A GPU would round the factors to TF32.
    own = jnp.einsum("lij,lj,lkj->lik", axes, inertia.moments, axes, precision="highest")
    # Parallel axis theorem: I + m (|d|^2 1 - d d^T).
    squared_distance = jnp.sum(offset**2, axis=1)[:, None, None] * jnp.eye(3)
    parallel = squared_distance - offset[:, :, None] * offset[:, None, :]
    tensor = own + mass[:, :, None] * parallel
    six = tensor[:, np.array([0, 1, 2, 0, 0, 1]), np.array([0, 1, 2, 1, 2, 2])]
    return jnp.concatenate([six, mass * offset, mass], axis=1)


def com_velocity(sys: System, state: State) -> jax.Array:
    """Return velocities of the links' centres of mass, weighted by mass, and angular velocities.

    World axes [m/s, rad/s], shape (n_links, 6). A weight is the link's share of the total mass.
    """
    share = sys.link.inertia.mass / jnp.sum(sys.link.inertia.mass)
    arm = link_centers(sys, state) - state.x.pos
    # The velocity of a point of a rigid body: v + w x r.
    velocity = state.xd.vel + jnp.cross(state.xd.ang, arm)
    return jnp.concatenate([share[:, None] * velocity, state.xd.ang], axis=1)


def motor_forces(sys: System, state: State, ctrl: jax.Array) -> jax.Array:
    """Return the actuator forces on all degrees of freedom, MuJoCo's `qfrc_actuator`, (nv,).

    Actuators on joints and tendons are included. Those on sites are not; use `brax.sensors`.
    """
    return _motor_forces(sys, Command(ctrl, state.activation), state.q, state.qd)
