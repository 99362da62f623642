"""World frames of the links, from the smooth dynamics at a state."""

from brax.components import rows
from brax.generalized.smooth_dynamics.smooth import SmoothDynamics, common_points
from brax.kinematics import Frames
from brax.tree import Layout


def world_frames(links: Layout, dynamics: SmoothDynamics) -> Frames:
    """Return link frames and the velocities of their origins, world axes, in the model's order."""
    ang, lin = dynamics.velocity
    # The spatial velocity is that of the point of the link at the common point; the frame's origin
    # moves by w x r more.
    vel = lin + ang.cross(dynamics.pos - common_points(links, dynamics.pos))
    return rows(Frames(dynamics.pos, dynamics.rot, ang, vel), links.position)
