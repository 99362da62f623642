"""The basic types: `System`, `State` and the spatial quantities `Transform`, `Motion` and `Force`.

A `System` is one immutable pytree. Everything that shapes the compiled program (names, parents,
joint and geometry types, collision pairs) is static and hashable. Every physical number is a leaf,
so any of them can be batched for domain randomization or differentiated. The conventions are in
`docs/conventions.md`.

`system` and `state` hold the two types, `parts` and `quantities` what they consist of, `pytree` the
base class, `flat` MuJoCo's names of the same numbers, and `gates` the flags of features that a
model has. Every other folder may import this one. Start reading at `system`, then at `state`.
"""

from brax import _shared_name

# Google's `brax/__init__.py` imports `brax.base`, and finds this package before its own module. So
# this line runs at `import brax` if Google's distribution was installed over ours.
_shared_name.check()

from brax.base.parts import (  # noqa: E402
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
from brax.base.pytree import Base, dataclass, static  # noqa: E402
from brax.base.quantities import Force, Inertia, Motion, SpatialInertia, Transform  # noqa: E402
from brax.base.state import Contact, Forces, State  # noqa: E402
from brax.base.system import System  # noqa: E402

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
