"""A ground that is known by its heights over a grid."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from brax.colliders.interface import GeometryType, Shape
from brax.components import Vec3, normalize


class HeightField(GeometryType):
    """Heights over a rectangle, each cell of the grid two triangles, solid down to the base.

    The diagonal of a cell runs from its least corner to its largest, as MuJoCo's does.
    """

    name = "hfield"
    size_names = ("half-size x", "half-size y", "base")
    only_static = True
    has_heights = True

    def mesh(
        self, size: np.ndarray, points: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """The upper side."""
        heights = np.zeros((2, 2)) if points is None else np.asarray(points, float)
        n, m = heights.shape
        lines = np.linspace(-size[1], size[1], n), np.linspace(-size[0], size[0], m)
        y, x = np.meshgrid(*lines, indexing="ij")
        at = np.arange(n * m).reshape(n, m)
        a, b, c, d = (k.ravel() for k in (at[:-1, :-1], at[:-1, 1:], at[1:, 1:], at[1:, :-1]))
        triangles = np.concatenate([np.stack([a, b, c], 1), np.stack([a, c, d], 1)])
        return np.stack([x.ravel(), y.ravel(), heights.ravel()], axis=1), triangles


class Triangles(NamedTuple):
    """Triangles of a field, in its frame, (triangles, pairs, batch)."""

    corners: tuple[Vec3, Vec3, Vec3]
    """In turn, as seen from above."""
    normal: Vec3
    out: tuple[Vec3, Vec3, Vec3]
    """Unit vectors out of it, in its plane and across the edge that begins at each corner."""
    turn: tuple[jax.Array, jax.Array, jax.Array]
    """How far a normal may lean across that edge: as far as those of the triangles that meet it, or
    one of its ends, if they make a ridge or a peak; not at all in a valley; freely where the field
    ends."""


def triangles(field: Shape, grid: tuple[int, int], window: tuple[int, int], low: Vec3) -> Triangles:
    """The triangles of a window of cells.

    Args:
        field: a height field.
        grid: its rows and columns.
        window: rows and columns of cells.
        low: where the window begins, in the field's frame.

    Returns:
        Two triangles for each cell.
    """
    (n, m), (rows, columns) = grid, window
    dx, dy = 2.0 * field.size.x / (m - 1), 2.0 * field.size.y / (n - 1)
    left = _first_cell((low.x + field.size.x) / dx, m - 1 - columns)
    front = _first_cell((low.y + field.size.y) / dy, n - 1 - rows)
    # One more cell on all sides, for what lies beyond the window's edges.
    j = left + np.arange(-1, columns + 2).reshape(1, -1, 1, 1)
    i = front + np.arange(-1, rows + 2).reshape(-1, 1, 1, 1)
    at = jnp.clip(i, 0, n - 1) * m + jnp.clip(j, 0, m - 1)
    z = _heights(field)
    z = jnp.take_along_axis(z, at.reshape(-1, *at.shape[2:]), axis=0, mode="clip").reshape(at.shape)
    x, y = j * dx - field.size.x, i * dy - field.size.y
    point = Vec3(*jnp.broadcast_arrays(x.astype(z.dtype), y.astype(z.dtype), z))
    return _window(point, (j[:, 1:-2], m - 2), (i[1:-2], n - 2))


def _first_cell(at: jax.Array, last: int) -> jax.Array:
    return jnp.clip(jnp.floor(jax.lax.stop_gradient(at)), 0, last).astype(jnp.int32)


def _heights(field: Shape) -> jax.Array:
    if field.heights is None:
        raise ValueError("a height field has no heights: `Shape.heights` is missing")
    return field.heights


def _window(point: Vec3, column: tuple[jax.Array, int], row: tuple[jax.Array, int]) -> Triangles:
    """The triangles of all cells but the outermost, whose corners are given.

    Args:
        point: corners of cells (rows, columns, pairs, batch).
        column: number of the column that each cell is in, and the last of the field.
        row: the same for rows.
    """
    a, b, c, d = _at_corners(point)
    lower, upper = normalize((b - a).cross(c - a))[0], normalize((c - a).cross(d - a))[0]
    below, above = (_at_corners(v) for v in (lower, upper))
    # The six triangles at a corner: both of two cells, one of the two others.
    each = [below[0], above[0], above[1], below[2], above[2], below[3]]
    around = _at_corners(Vec3(*(jnp.stack(v, axis=2) for v in zip(*each, strict=True))))
    a, b, c, d = _at_corners(_inner(point))
    lower, upper = _inner(lower), _inner(upper)
    left, right = column[0] == 0, column[0] == column[1]
    front, back = row[0] == 0, row[0] == row[1]
    never = jnp.zeros_like(left)
    halves = (
        _half((a, b, c), lower, [around[k] for k in (0, 1, 2)], (front, right, never)),
        _half((a, c, d), upper, [around[k] for k in (0, 2, 3)], (never, back, left)),
    )
    return jax.tree.map(lambda *h: jnp.stack(h).reshape(-1, *h[0].shape[2:]), *halves)


def _at_corners(v: Vec3) -> list[Vec3]:
    """Of each cell, what is at its four corners, in turn."""
    near, far = slice(None, -1), slice(1, None)
    places = ((near, near), (near, far), (far, far), (far, near))
    return [Vec3(*(c[place] for c in v)) for place in places]


def _inner(v: Vec3) -> Vec3:
    return Vec3(*(c[1:-1, 1:-1] for c in v))


def _half(
    corners: tuple[Vec3, Vec3, Vec3],
    normal: Vec3,
    around: Sequence[Vec3],
    ends: tuple[jax.Array, jax.Array, jax.Array],
) -> Triangles:
    """One triangle of each cell.

    Args:
        corners: in turn.
        normal: of the triangle.
        around: normals of the triangles at each corner, (rows, columns, 6, pairs, batch).
        ends: whether the field ends at the edge that begins at each corner.
    """
    out, turn = [], []
    for k, end in enumerate(ends):
        after = (k + 1) % 3
        outward, _ = normalize((corners[after] - corners[k]).cross(normal))
        beside = Vec3(*(c[:, :, None] for c in outward))
        leans = [jnp.max(around[i].dot(beside), axis=2) for i in (k, after)]
        out.append(outward)
        turn.append(jnp.where(end, 1.0, jnp.maximum(jnp.maximum(*leans), 0.0)))
    return Triangles(corners, normal, tuple(out), tuple(turn))  # type: ignore[arg-type]


HEIGHT_FIELD = HeightField()
