"""Joint types, one a file, behind one interface."""

from brax.joints.interface import JointParams, JointType, Twist

__all__ = ["JointParams", "JointType", "Twist"]
