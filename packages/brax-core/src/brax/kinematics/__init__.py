"""Kinematics: from joint coordinates to link frames and back.

`frames` is the forward direction, `coordinates` the inverse. Everything but joint types may import
what is exported here. Start reading at `frames`.
"""

from brax.kinematics.coordinates import inverse
from brax.kinematics.frames import Frames, forward, frame, joint_params, link_frames, to_state

__all__ = ["Frames", "forward", "frame", "inverse", "joint_params", "link_frames", "to_state"]
