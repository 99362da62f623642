"""Fixed and spatial tendons at a state: lengths, velocities and forces."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from brax.actuators.joint_transmission import tendon_transmission
from brax.actuators.site_transmission import LinkTransmission
from brax.actuators.spatial_tendons import has_paths, tendon_reach
from brax.base import System
from brax.forces.polynomials import coefficient
from brax.kinematics import Frames
from brax.spatial import Spatial


class TendonsAtState(NamedTuple):
    """All tendons at a state; a positive force lengthens a tendon."""

    length: jax.Array
    """Length of a spatial tendon [m], or weighted sum of coordinates of a fixed one, shape
    (n_tendons, batch)."""
    velocity: jax.Array
    """Time derivative of the length, shape (n_tendons, batch)."""
    reach: LinkTransmission | None
    """Transmission of the spatial tendons; None if there are none."""

    def joint_forces(self, sys: System, force: jax.Array) -> jax.Array:
        """Return forces of fixed tendons along the degrees of freedom, (nv, batch)."""
        return tendon_transmission(sys).pull(force, sys.qd_size())

    def link_forces(self, sys: System, force: jax.Array) -> Spatial | None:
        """Return torque and force of spatial tendons on each link about its frame, world axes."""
        return self.reach and self.reach.on_links(force, sys.num_links())


def tendons_at_state(
    sys: System, q: jax.Array, qd: jax.Array, links: Frames | None
) -> TendonsAtState:
    """Return the tendons of a model that has some.

    Args:
        sys: the model, its leaves with a trailing batch axis.
        q: coordinates (nq, batch).
        qd: velocities (nv, batch).
        links: frames of the links, in the model's order, and their velocities; read if there is a
            spatial tendon.
    """
    joints = tendon_transmission(sys)
    length, velocity = joints.along(q, joints.q), joints.along(qd, joints.qd)
    if not has_paths(sys):
        return TendonsAtState(length, velocity, None)
    assert links is not None
    reach = tendon_reach(sys, links)
    return TendonsAtState(length + reach.length, velocity + reach.velocity, reach)


def passive_force(sys: System, tendons: TendonsAtState) -> jax.Array:
    """Return the force of each tendon's spring and damper."""
    tendon, length = sys.tendon, tendons.length
    # MuJoCo's `springlength` may be a range, within which the spring exerts no force.
    rest = jnp.clip(length, tendon.lengthspring[:, 0], tendon.lengthspring[:, 1])
    stiffness, damping, rate = tendon.stiffness, tendon.damping, tendons.velocity
    if any(sys.tendon_polynomial):
        stiffness = coefficient(stiffness, tendon.stiffness_poly, length - rest)
        damping = coefficient(damping, tendon.damping_poly, jnp.abs(rate))
    return stiffness * (rest - length) - damping * rate
