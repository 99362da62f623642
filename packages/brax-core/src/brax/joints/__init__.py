"""Joint types, one a file, behind one interface.

A joint type states its displacement, motion subspace and coordinates; no module outside this folder
names one. All of the engine imports what is exported here. Start reading at `interface`, then
`hinge`.
"""

from brax.joints.interface import Bound, JointParams, JointType, Twist

DEFAULT_JOINT = "hinge"
"""The joint type of a model that names none, as in MJCF."""

__all__ = ["DEFAULT_JOINT", "Bound", "JointParams", "JointType", "Twist"]
