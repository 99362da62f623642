"""Joint types, one a file, behind one interface."""

from brax.joints.interface import Bound, JointParams, JointType, Twist

DEFAULT_JOINT = "hinge"
"""The joint type of a model that names none, as in MJCF."""

__all__ = ["DEFAULT_JOINT", "Bound", "JointParams", "JointType", "Twist"]
