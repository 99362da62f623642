"""Kinematics: from joint coordinates to link frames and back.

`frames` holds forward kinematics, `coordinates` inverse kinematics. Every folder but `joints` may
import what is exported here. Start reading at `frames`.
"""

from brax.kinematics.coordinates import inverse
from brax.kinematics.frames import Frames, forward, frame, joint_params, link_frames, to_state

__all__ = ["Frames", "forward", "frame", "inverse", "joint_params", "link_frames", "to_state"]
