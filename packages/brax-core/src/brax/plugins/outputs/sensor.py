"""Output checks of sensor types that need no model.

`brax.sensors.measure` makes those that need one.
"""

from collections.abc import Iterator

from brax.sensors.interface import SensorType

OBJECTS = ("joint", "tendon", "actuator", "body", "inertia", "geom", "site")
"""Kinds of element that a sensor can measure."""


def problems(kind: SensorType) -> Iterator[str]:
    """Yield what is wrong with a sensor type's width and objects."""
    if type(kind.width) is not int or kind.width < 1:
        yield f"width must be a number of at least 1, got {kind.width!r}"
    objects = getattr(kind, "objects", None)
    if not isinstance(objects, tuple) or not objects or not set(objects) <= set(OBJECTS):
        yield f"objects must be a tuple of some of {', '.join(OBJECTS)}, got {objects!r}"
    if not isinstance(kind.coordinates, tuple):
        yield f"coordinates must be a tuple of numbers, got {kind.coordinates!r}"
