"""The links' frames in the world, from the unconstrained dynamics at a state."""

from brax.components import rows
from brax.generalized.smooth_dynamics.smooth import SmoothDynamics, common_points
from brax.kinematics import Frames
from brax.tree import Layout


def world_frames(links: Layout, here: SmoothDynamics) -> Frames:
    """Frames of the links in the world, and the velocities of their origins, model's order."""
    ang, lin = here.velocity
    vel = lin + ang.cross(here.pos - common_points(links, here.pos))
    return rows(Frames(here.pos, here.rot, ang, vel), links.position)
