"""The basic types: `System`, `State` and the spatial quantities `Transform`, `Motion` and `Force`.

A `System` is one immutable pytree. Everything that shapes the compiled program (names, parents,
joint and geometry types, collision pairs) is static and hashable. Every physical number is a leaf,
so any of them can be batched for domain randomization or differentiated. The conventions are in
`docs/conventions.md`.

`system` and `state` hold the two types, `parts` and `quantities` what they consist of, `pytree` the
base class, `flat` MuJoCo's names of the same numbers, and `gates` the flags of features that a
model has. Every other folder may import this one. Start reading at `system`, then at `state`.
"""

from brax.base.parts import (
    Actuator,
    Box,
    Camera,
    DoF,
    Equality,
    Geom,
    Joint,
    Keyframe,
    Link,
    Option,
    Pair,
    Sensor,
    Site,
    Tendon,
)
from brax.base.pytree import Base, dataclass, static
from brax.base.quantities import Force, Inertia, Motion, SpatialInertia, Transform
from brax.base.state import Contact, Forces, State
from brax.base.system import System

__all__ = [
    "Actuator",
    "Base",
    "Box",
    "Camera",
    "Contact",
    "DoF",
    "Equality",
    "Force",
    "Forces",
    "Geom",
    "Inertia",
    "Joint",
    "Keyframe",
    "Link",
    "Motion",
    "Option",
    "Pair",
    "Sensor",
    "Site",
    "SpatialInertia",
    "State",
    "System",
    "Tendon",
    "Transform",
    "dataclass",
    "static",
]
