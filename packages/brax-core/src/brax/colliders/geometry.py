"""The shapes that models are made of. Those without a collider are drawn and weighed."""

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


class Box(GeometryType):
    """A box along the frame's axes."""

    name = "box"
    size_names = ("half-size x", "half-size y", "half-size z")


class Cylinder(GeometryType):
    """A cylinder along the frame's z axis."""

    name = "cylinder"
    size_names = ("radius", "half-length")


class Ellipsoid(GeometryType):
    """An ellipsoid along the frame's axes."""

    name = "ellipsoid"
    size_names = ("semi-axis x", "semi-axis y", "semi-axis z")


PLANE = Plane()
SPHERE = Sphere()
CAPSULE = Capsule()
BOX = Box()
CYLINDER = Cylinder()
ELLIPSOID = Ellipsoid()
