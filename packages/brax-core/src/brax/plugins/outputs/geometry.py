"""Output checks of geometry types."""

from collections.abc import Iterator

import numpy as np

from brax.colliders.interface import GeometryType, Shape
from brax.components import Vec3
from brax.plugins.outputs.traced import (
    Fault,
    call,
    describe,
    like,
    listed,
    numbers,
    parts,
    quat,
    vec,
)

CORNERS = (0, 1, 2, 4)
"""Allowed numbers of corners of a face; 0 for shapes that are not convex."""
WRAPPED = ("", "point", "axis")
"""Allowed values of `wrapped`; empty for shapes that tendons do not wrap around."""


def shape_like(kind: GeometryType) -> Shape:
    """Return a stand-in for shapes of a type."""
    shape = Shape(vec(), quat(), vec())
    if kind.least_points:
        shape = shape._replace(points=vec(5))
    count = 4 if kind.has_heights else 27 if kind.has_grid else 0
    return shape._replace(heights=like(count)) if count else shape


def problems(kind: GeometryType) -> Iterator[str]:
    """Yield what is wrong with a geometry type's attributes, and with what its functions return."""
    names = getattr(kind, "size_names", None)
    if not isinstance(names, tuple) or len(names) > 3 or not all(type(n) is str for n in names):
        yield f"size_names must be a tuple of at most 3 texts, got {names!r}"
    for key, allowed in (("corners", CORNERS), ("wrapped", WRAPPED)):
        value = getattr(kind, key)
        if value not in allowed:
            yield f"{key} must be one of {', '.join(map(repr, allowed))}, got {value!r}"
            return
    for check in (_distance, _nearest, _convex, _ray, _axes):
        try:
            yield from check(kind)
        except Fault as fault:
            yield str(fault)


def _distance(kind: GeometryType) -> Iterator[str]:
    """Yield what is wrong with the signed distance."""
    if kind.has_distance:
        out = call("signed_distance", kind.signed_distance, shape_like(kind), vec(5))
        yield from numbers("signed_distance", out, 5)


def _nearest(kind: GeometryType) -> Iterator[str]:
    """Yield what is wrong with the nearest point."""
    if kind.has_nearest:
        yield from parts(
            "nearest", call("nearest", kind.nearest, shape_like(kind), vec(5)), Vec3, 5
        )


def _convex(kind: GeometryType) -> Iterator[str]:
    """Yield what is wrong with the support function and the face."""
    if kind.corners:
        out = call("support", kind.support, shape_like(kind), vec(5))
        if wrong := list(parts("support", out, Vec3, 5)):
            yield from wrong
            return  # `face` calls it
        out = call("face", kind.face, shape_like(kind), vec(5))
        listed("face", out, kind.corners, "corners")
        for corner in out:
            yield from parts("face", corner, Vec3, 5)


def _ray(kind: GeometryType) -> Iterator[str]:
    """Yield what is wrong with the ray test."""
    if kind.stops_rays:
        yield from numbers("ray", call("ray", kind.ray, vec(), vec(), vec()))


def _axes(kind: GeometryType) -> Iterator[str]:
    """Yield what is wrong with the semi-axes of the fluid's ellipsoid model."""
    if kind.streamed:
        yield from parts("semi_axes", call("semi_axes", kind.semi_axes, vec()), Vec3)


def mesh_problem(out: object) -> str:
    """Return what is wrong with the mesh that `mesh` returned; empty if nothing is."""
    if out is None:
        return ""
    wanted = "mesh must return vertices (n, 3) and triangles (m, 3) of whole numbers, or None"
    if not isinstance(out, tuple | list) or len(out) != 2:
        return f"{wanted}, but returns {describe(out)}"
    vertices, triangles = map(np.asarray, out)
    for name, array in (("vertices", vertices), ("triangles", triangles)):
        if array.ndim != 2 or array.shape[1] != 3:
            return f"{wanted}, but returns {name} {describe(array)}"
    if not np.issubdtype(triangles.dtype, np.integer):
        return f"{wanted}, but returns triangles {describe(triangles)}"
    if not 0 <= triangles.min(initial=0) <= triangles.max(initial=0) < max(len(vertices), 1):
        return f"mesh returns {len(vertices)} vertices, but a triangle of {triangles.max()}"
    return ""
