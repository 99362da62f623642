"""From joint coordinates to link frames and back."""

from brax.kinematics.coordinates import inverse
from brax.kinematics.frames import Frames, forward, frame, joint_params, link_frames, to_state

__all__ = ["Frames", "forward", "frame", "inverse", "joint_params", "link_frames", "to_state"]
