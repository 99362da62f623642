"""The links' frames in the world, from the unconstrained dynamics at a state."""

from brax.components import rows
from brax.generalized.smooth_dynamics.smooth import SmoothDynamics, common_points
from brax.kinematics import Frames
from brax.tree import Layout


def world_frames(links: Layout, dynamics: SmoothDynamics) -> Frames:
    """Frames of the links in the world, and the velocities of their origins, model's order."""
    ang, lin = dynamics.velocity
    vel = lin + ang.cross(dynamics.pos - common_points(links, dynamics.pos))
    return rows(Frames(dynamics.pos, dynamics.rot, ang, vel), links.position)
