"""The types everything else is written in: `System`, `State` and the spatial quantities.

A `System` is one immutable pytree. What shapes the compiled program (names, parents, joint and
geometry types, collision pairs) is static and hashable; every physical number is a leaf, so any of
them can be batched for domain randomization or differentiated. Conventions: `docs/conventions.md`.
"""

from brax.base.parts import (
    Actuator,
    Box,
    Camera,
    DoF,
    Equality,
    Geom,
    Inertia,
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
from brax.base.quantities import Force, Motion, Transform
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
    "State",
    "System",
    "Tendon",
    "Transform",
    "dataclass",
    "static",
]
