"""The shapes that the built-in colliders test."""

from brax.colliders.interface import GeometryType


class Plane(GeometryType):
    """An infinite plane; its normal is the frame's z axis. Its sizes only matter for drawing."""

    name = "plane"
    size_names = ()
    only_static = True


class Sphere(GeometryType):
    """A sphere."""

    name = "sphere"
    size_names = ("radius",)


class Capsule(GeometryType):
    """A capsule along the frame's z axis."""

    name = "capsule"
    size_names = ("radius", "half-length")


PLANE = Plane()
SPHERE = Sphere()
CAPSULE = Capsule()
