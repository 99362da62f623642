"""Tendons at a state, fixed and spatial ones alike: how long they are, and what they pull."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from brax.actuators.joint_transmission import tendon_transmission
from brax.actuators.site_transmission import LinkTransmission
from brax.actuators.spatial_tendons import has_paths, tendon_reach
from brax.base import System
from brax.kinematics import Frames
from brax.spatial import Spatial


class TendonsAtState(NamedTuple):
    """All tendons; a force lengthens one if it is positive."""

    length: jax.Array
    """Shape (n_tendons, batch), as is the next."""
    velocity: jax.Array
    reach: LinkTransmission | None
    """What the spatial ones do; None if there are none."""

    def joint_forces(self, sys: System, force: jax.Array) -> jax.Array:
        """What forces along the fixed ones are along the degrees of freedom, (nv, batch)."""
        return tendon_transmission(sys).pull(force, sys.qd_size())

    def link_forces(self, sys: System, force: jax.Array) -> Spatial | None:
        """Torque and force on each link about its frame, world axes, of the spatial ones."""
        return self.reach and self.reach.on_links(force, sys.num_links())


def tendons_at_state(
    sys: System, q: jax.Array, qd: jax.Array, links: Frames | None
) -> TendonsAtState:
    """The tendons of a model that has some.

    Args:
        sys: the model, its leaves with a trailing batch axis.
        q: coordinates (nq, batch).
        qd: rates (nv, batch).
        links: frames of the links, in the model's order, and their velocities; read if there is
            a spatial tendon.
    """
    strands = tendon_transmission(sys)
    length, velocity = strands.along(q, strands.q), strands.along(qd, strands.qd)
    if not has_paths(sys):
        return TendonsAtState(length, velocity, None)
    assert links is not None
    reach = tendon_reach(sys, links)
    return TendonsAtState(length + reach.length, velocity + reach.velocity, reach)


def passive_force(sys: System, here: TendonsAtState) -> jax.Array:
    """Force of each tendon's spring and damper; the spring is at rest between two lengths."""
    tendon, length = sys.tendon, here.length
    rest = jnp.clip(length, tendon.lengthspring[:, 0], tendon.lengthspring[:, 1])
    return tendon.stiffness * (rest - length) - tendon.damping * here.velocity
