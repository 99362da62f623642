"""Joint types, one a file, behind one interface."""

from brax.joints.interface import JointParams, JointType, Twist

DEFAULT_JOINT = "hinge"
"""The joint type of a model that names none, as in MJCF."""

__all__ = ["DEFAULT_JOINT", "JointParams", "JointType", "Twist"]
