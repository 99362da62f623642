"""`check_collider`: verifies that a collider follows the interface of `brax.colliders`."""

from collections.abc import Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from brax import plugins
from brax.colliders import Collider, GeometryType, Shape, Touch
from brax.components import Quat, Vec3, normalize_quat, stack
from brax.testing.faults import in_turn, interface, outputs, raise_problems

_PAIRS = 64
"""Number of random pairs."""
_COLLIDER_TOLERANCE = 1e-4
"""Tolerance of a normal's length, in single precision."""
_EXAMPLE_POINTS = np.array(
    [[0.4, 0.3, -0.2], [-0.4, 0.2, -0.2], [0, -0.5, -0.2], [0.1, 0, 0.4], [0, 0.2, 0.3]]
)
"""Vertices for a shape that has some, in its frame [m]."""
_SMALL_DEPTH = 0.4
"""Twice the depth that counts as small, for shapes without sizes [m]."""
_POSE_SPREAD = np.array([[0.4], [0.4], [0.4], [1], [1], [1], [1]])
"""Spread of positions and quaternions; many of the pairs overlap."""


def check_collider(
    collider: Collider, sizes: tuple[Sequence[float], Sequence[float]] | None = None
) -> None:
    """Check one collider.

    It must pair two registered shapes and return `n_contacts` points, in the shape and precision of
    its arguments. Normals must have unit length, and points must move with the two shapes. Where
    the shapes overlap a little, the derivative of the depth by the second shape's position must be
    the normal. Distances and their derivatives must be finite, also where the shapes' frames
    coincide.

    Args:
        collider: the collider.
        sizes: size parameters of the two shapes; by default 0.4 for the first parameter and 0.1
            less for each that follows.

    Raises:
        PluginError: naming everything that is wrong.
    """
    problems = in_turn(
        collider,
        interface("collider"),
        _types,
        outputs("collider"),
        lambda collider: _numbers(collider, sizes),
    )
    raise_problems(collider, "colliders", problems)


def _types(collider: Collider) -> Iterator[str]:
    """Yield the geometry types of a collider that are not registered."""
    for name in collider.types:
        if name not in plugins.names("geometry_type"):
            yield f"types: no geometry type '{name}' is registered"


def _shape(kind: GeometryType, place: jax.Array, size: Sequence[float] | None) -> Shape:
    """Return a shape at a pose (7, batch)."""
    numbers = _sizes(kind) if size is None else [*size]
    padded = [*numbers, 0.0, 0.0, 0.0][:3]
    rows = [row[None] for row in place]
    size_rows = (jnp.full_like(rows[0], n) for n in padded)
    shape = Shape(Vec3(*rows[:3]), normalize_quat(Quat(*rows[3:])), Vec3(*size_rows))
    if kind.least_points:
        points = (jnp.asarray(c, place.dtype)[:, None, None] for c in _EXAMPLE_POINTS.T)
        shape = shape._replace(points=Vec3(*points))
    return shape


def _sizes(kind: GeometryType) -> list[float]:
    """Return the default size parameters of a geometry type."""
    return [0.4 - 0.1 * i for i in range(len(kind.size_names))]


def _kinds(collider: Collider) -> list[GeometryType]:
    """Return the two geometry types of a collider."""
    return [plugins.get("geometry_type", name) for name in collider.types]


def _numbers(
    collider: Collider, sizes: tuple[Sequence[float], Sequence[float]] | None
) -> Iterator[str]:
    """Yield the problems of a collider's values, at random poses and where the frames coincide."""
    kinds = _kinds(collider)
    given = sizes or (None, None)

    def collide(first: jax.Array, second: jax.Array) -> list[Touch]:
        places = (first, second)
        return collider.collide(
            *(_shape(k, p, s) for k, p, s in zip(kinds, places, given, strict=True))
        )

    # A fixed seed: the check of an object always has the same result.
    rng = np.random.default_rng(0)
    first, second, turn = (
        jnp.asarray(rng.normal(size=(7, _PAIRS)) * _POSE_SPREAD, jnp.float32) for _ in range(3)
    )
    run = jax.jit(lambda a, b: _table(collide(a, b)))
    dist, pos, normal = (np.asarray(a) for a in run(first, second))
    # All further comparisons would fail with such a number.
    if not all(np.isfinite(a).all() for a in (dist, pos, normal)):
        yield "a distance, place or normal is not finite"
        return
    if np.abs(np.linalg.norm(normal, axis=-1) - 1).max() > _COLLIDER_TOLERANCE:
        yield "a normal does not have unit length"
    yield from _moved_together(run, first, second, turn)
    # Pairs are independent of each other, so the gradient of the sum over the batch has that of
    # each.
    slope = jax.jit(jax.grad(lambda a, b: jnp.sum(jnp.min(run(a, b)[0], axis=0)), argnums=(0, 1)))
    little = _little(kinds, given)
    # The slope of the distance is the direction along which the second shape leaves the first. It
    # moves each pair to a small depth, whatever its depth was.
    away = np.nan_to_num(np.asarray(slope(first, second)[1][:3]))
    closer = second.at[:3].add(-away * (dist.min(axis=0) + 0.5 * little))
    dist, _, normal = (np.asarray(a) for a in run(first, closer))
    # The derivative of the depth shows whether depth and normal belong together.
    off = np.abs(np.asarray(slope(first, closer)[1][:3]).T - _nearest(dist, normal)).max(axis=-1)
    depth = -dist.min(axis=0)
    if _often(off[(depth > 0) & (depth < little)] > 1e-2):
        yield (
            "where they overlap a little, moving the second shape does not change the depth by the "
            "normal"
        )
    # Coinciding centres are where the direction from one to the other has length zero.
    same = jnp.zeros((7, 1), jnp.float32).at[3].set(1.0)
    for where, (a, b) in {"random places": (first, second), "one place": (same, same)}.items():
        if not all(np.isfinite(leaf).all() for leaf in (*run(a, b), *slope(a, b))):
            yield f"a distance or a derivative is not finite at {where}"


def _little(kinds: Sequence[GeometryType], given: Sequence[Sequence[float] | None]) -> float:
    """Return a depth that is small against every size.

    Deeper in a thin shape, another side is nearer, and the normal is that side's.
    """
    sizes = [
        size
        for kind, numbers in zip(kinds, given, strict=True)
        for size in (_sizes(kind) if numbers is None else numbers)[: len(kind.size_names)]
        if not kind.only_static
    ]
    return 0.5 * min([_SMALL_DEPTH, *sizes])


def _nearest(dist: np.ndarray, normal: np.ndarray) -> np.ndarray:
    """Return the normal at the nearest point of each pair, (pairs, 3)."""
    return normal[np.argmin(dist, axis=0), np.arange(dist.shape[1])]


def _often(wrong: np.ndarray) -> bool:
    """Return whether more than one in ten is wrong.

    Where two features are equally near, rounding may choose either.
    """
    return wrong.sum() > 0.1 * wrong.size


def _table(points: list[Touch]) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return distances (points, batch), positions and normals (points, batch, 3)."""
    dist = jnp.stack([p.dist[0] for p in points])

    def rows(vectors: list[Vec3]) -> jax.Array:
        return jnp.stack([jnp.broadcast_to(stack(v)[0].T, (*dist.shape[1:], 3)) for v in vectors])

    return dist, rows([p.pos for p in points]), rows([p.normal for p in points])


def _moved_together(run: Any, a: jax.Array, b: jax.Array, by: jax.Array) -> Iterator[str]:
    """Yield the values that do not follow when both shapes move together."""
    turn = normalize_quat(Quat(*by[3:]))

    def moved(place: jax.Array) -> jax.Array:
        pos = turn.rotate(Vec3(*place[:3])) + Vec3(*by[:3])
        return jnp.stack([*pos, *turn.mul(normalize_quat(Quat(*place[3:])))])

    def turned(rows: jax.Array) -> jax.Array:
        return jnp.stack(turn.rotate(Vec3(*jnp.moveaxis(rows, -1, 0))), axis=-1)

    expected = dict(zip(("distances", "places", "normals"), run(a, b), strict=True))
    expected["places"] = turned(expected["places"]) + by[:3].T
    expected["normals"] = turned(expected["normals"])
    for (what, old), new in zip(expected.items(), run(moved(a), moved(b)), strict=True):
        off = np.abs(np.asarray(new - old)).reshape(*new.shape[:2], -1).max(axis=(0, 2))
        if _often(off > 1e-3):
            yield f"{what} do not follow when both shapes move together"
