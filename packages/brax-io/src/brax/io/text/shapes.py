"""Vectors, rotations and colliders of a `Config`, as the model builder takes them."""

import re
from typing import Any

import numpy as np

from brax.components import Quat, Vec3

COLLIDER_SHAPES = ("box", "plane", "sphere", "capsule")
"""The supported colliders."""

UNIT = [Vec3(*row) for row in np.eye(3)]
ORIGIN = (0.0, 0.0, 0.0)
Vector = Any
"""Three numbers."""
Rotation = Any
"""A `Quat` of numbers."""

IDENTITY_ROTATION: Rotation = Quat(*np.array([1.0, 0.0, 0.0, 0.0]))

_COLOR = re.compile("#[0-9a-fA-F]{6}")


def vector(v: Any) -> Vector:
    """Return the components of a Vector3."""
    return (v.x, v.y, v.z)


def euler(degrees: Vector) -> Rotation:
    """Return the rotation about x, then about the new y, then about the new z."""
    half = np.radians(degrees) / 2
    rows = zip(np.cos(half), np.sin(half)[:, None] * np.eye(3), strict=True)
    x, y, z = (Quat(cos, *sin) for cos, sin in rows)
    return x.mul(y).mul(z)


def axis_in(rotation: Rotation, k: int) -> Vector:
    """Return a world axis in the frame of a rotated body."""
    return rotation.conj.rotate(UNIT[k])


def shape_problems(collider: Any) -> list[str]:
    """Return what is not supported in a collider, one sentence each."""
    kind = collider.WhichOneof("type")
    if kind not in COLLIDER_SHAPES:
        problem = f"'{kind}' is not supported" if kind else "it has no shape"
        return [f"{problem}; allowed: {', '.join(COLLIDER_SHAPES)}"]
    problems = []
    if kind == "capsule" and collider.capsule.end:
        problems.append("a capsule with one end is not supported; use a sphere")
    if collider.color and not _COLOR.fullmatch(collider.color):
        problems.append(f"color must be #rrggbb, got '{collider.color}'")
    return problems


def geom(collider: Any, config: Any) -> dict[str, Any]:
    """Return a collider as the arguments of `ModelBuilder.add_geom`."""
    kind = collider.WhichOneof("type")
    material = collider.material if collider.HasField("material") else config
    color = collider.color or "#808080"
    rgb = [int(color[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    return dict(
        type=kind,
        pos=vector(collider.position),
        quat=euler(vector(collider.rotation)),
        size=_size(getattr(collider, kind), kind),
        friction=(material.friction, 0.0, 0.0),
        elasticity=material.elasticity,
        rgba=(*rgb, 0.0 if collider.hidden else 1.0),
        contype=int(not collider.no_contact),
        conaffinity=int(not collider.no_contact),
    )


def _size(shape: Any, kind: str) -> Any:
    """Return MuJoCo's size parameters of a shape."""
    if kind == "box":
        return vector(shape.halfsize)
    if kind == "capsule":
        # The format's length includes the caps; MuJoCo's half length is that of the cylinder
        # between them.
        return (shape.radius, shape.length / 2 - shape.radius)
    return (shape.radius,) if kind == "sphere" else ()
