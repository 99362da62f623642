"""Output checks of colliders."""

from collections.abc import Iterator

from brax import plugins
from brax.colliders.interface import Collider, Touch
from brax.components import Vec3
from brax.plugins.outputs.geometry import shape_like
from brax.plugins.outputs.traced import Fault, call, describe, numbers, parts


def problems(collider: Collider) -> Iterator[str]:
    """Yield what is wrong with the points that a collider returns.

    A collider for a geometry type that is not installed is not called: no model can have such a
    pair.
    """
    n = getattr(collider, "n_contacts", None)
    if type(n) is not int or n < 1:
        yield f"n_contacts must be a number of points, got {n!r}"
    elif set(collider.types) <= set(plugins.names("geometry_type")):
        shapes = [shape_like(plugins.get("geometry_type", name)) for name in collider.types]
        try:
            yield from _points(n, call("collide", collider.collide, *shapes))
        except Fault as fault:
            yield str(fault)


def _points(count: int, points: object) -> Iterator[str]:
    """Yield what is wrong with a list of contact points."""
    if not isinstance(points, list | tuple) or not all(isinstance(p, Touch) for p in points):
        yield f"collide must return a list of brax.colliders.Touch, but returns {describe(points)}"
        return
    if len(points) != count:
        yield f"n_contacts is {count}, but collide returns {len(points)} points"
    for point in points:
        yield from numbers("collide: dist", point.dist)
        yield from parts("collide: pos", point.pos, Vec3)
        yield from parts("collide: normal", point.normal, Vec3)
        if point.along is not None:
            yield from parts("collide: along", point.along, Vec3)
