"""The geometry type `hfield`: a height field, and the triangles of a part of it.

Arrays of vertices and cells are (rows, columns, pairs, batch); rows run along y, columns along x.
"""

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from brax.colliders.interface import GeometryType, Shape
from brax.components import Vec3, normalize

MAX_CHAIN = 16
"""Most rows whose extreme is found one after another."""


class HeightField(GeometryType):
    """Heights over a rectangular grid, solid down to the base. Each cell is two triangles.

    The bottom is flat, and the base is its depth below the lowest height, as in MuJoCo.
    The diagonal of a cell runs from its lower left to its upper right vertex, as in MuJoCo.
    """

    name = "hfield"
    size_names = ("half-size x", "half-size y", "base")
    only_static = True
    has_heights = True

    def mesh(
        self, size: np.ndarray, points: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the triangles of the upper surface."""
        heights = np.zeros((2, 2)) if points is None else np.asarray(points, float)
        n, m = heights.shape
        lines = np.linspace(-size[1], size[1], n), np.linspace(-size[0], size[0], m)
        y, x = np.meshgrid(*lines, indexing="ij")
        at = np.arange(n * m).reshape(n, m)
        a, b, c, d = (k.ravel() for k in (at[:-1, :-1], at[:-1, 1:], at[1:, 1:], at[1:, :-1]))
        # The same two triangles to a cell as `triangles` has for contacts, counter-clockwise.
        triangles = np.concatenate([np.stack([a, b, c], 1), np.stack([a, c, d], 1)])
        return np.stack([x.ravel(), y.ravel(), heights.ravel()], axis=1), triangles


class Triangles(NamedTuple):
    """Triangles of a field, in its frame, (triangles, pairs, batch)."""

    corners: tuple[Vec3, Vec3, Vec3]
    """The vertices, counter-clockwise as seen from above [m]."""
    normal: Vec3
    """The upward unit normal."""
    out: tuple[Vec3, Vec3, Vec3]
    """Unit vectors in the triangle's plane, outward across the edge that begins at each vertex."""
    turn: tuple[jax.Array, jax.Array, jax.Array]
    """Largest sine by which a contact normal may lean outward across that edge. At a ridge or peak
    it is that of the normals of the triangles at the edge or at one of its ends. In a valley it is
    zero, and at the border of the field one."""


def triangles(field: Shape, grid: tuple[int, int], window: tuple[int, int], low: Vec3) -> Triangles:
    """Return the triangles of a window of cells, two for each cell.

    Args:
        field: the height field.
        grid: rows and columns of its heights.
        window: rows and columns of cells of the window.
        low: lower vertex of the window in the field's frame [m]. The window is moved to lie within
            the field.
    """
    (n, m), (rows, columns) = grid, window
    dx, dy = 2.0 * field.size.x / (m - 1), 2.0 * field.size.y / (n - 1)
    left = _first_cell((low.x + field.size.x) / dx, m - 1 - columns)
    front = _first_cell((low.y + field.size.y) / dy, n - 1 - rows)
    # One more cell on all sides, because the bounds of normals depend on the adjacent triangles.
    j = left + np.arange(-1, columns + 2).reshape(1, -1, 1, 1)
    i = front + np.arange(-1, rows + 2).reshape(-1, 1, 1, 1)
    at = jnp.clip(i, 0, n - 1) * m + jnp.clip(j, 0, m - 1)
    # The window's place differs between environments, so its heights are gathered. Its size does
    # not.
    z = _heights(field)
    z = jnp.take_along_axis(z, at.reshape(-1, *at.shape[2:]), axis=0, mode="clip").reshape(at.shape)
    x, y = j * dx - field.size.x, i * dy - field.size.y
    point = Vec3(*jnp.broadcast_arrays(x.astype(z.dtype), y.astype(z.dtype), z))
    return _window(point, (j[:, :-1], m - 2), (i[:-1], n - 2))


def bottom(field: Shape) -> jax.Array:
    """Return the height of a field's flat bottom in its frame [m], (1 or pairs, 1 or batch)."""
    return extreme(jnp.minimum, _heights(field)) - field.size.z


def extreme(larger: Callable[[jax.Array, jax.Array], jax.Array], x: jax.Array) -> jax.Array:
    """Return the largest or smallest of the rows of an array.

    Halves are compared, because in a chain of comparisons each waits for the one before. For the
    40,401 heights of dm_control's quadruped the chain took almost half of a step.
    """
    while len(x) > MAX_CHAIN:
        half = (len(x) + 1) // 2
        # With an odd number of rows the one in the middle is in both halves.
        x = larger(x[:half], x[len(x) - half :])
    return functools.reduce(larger, x)


def _first_cell(at: jax.Array, last: int) -> jax.Array:
    """Return the index of the first cell of a window, from 0 to `last`."""
    # An index has no derivative, and `floor` of a traced number must not pretend to have one.
    return jnp.clip(jnp.floor(jax.lax.stop_gradient(at)), 0, last).astype(jnp.int32)


def _heights(field: Shape) -> jax.Array:
    """Return the heights of a field, which a shape of this type must have."""
    if field.heights is None:
        raise ValueError("a height field has no heights: `Shape.heights` is missing")
    return field.heights


def _window(point: Vec3, column: tuple[jax.Array, int], row: tuple[jax.Array, int]) -> Triangles:
    """Return the triangles of all cells but the outermost ones.

    Args:
        point: vertices of the cells, (rows, columns, pairs, batch).
        column: index of each cell's column in the field, and the index of the field's last one.
        row: the same for rows.
    """
    (j, m), (i, n) = column, row
    # The vertices of a cell, counter-clockwise: a lower left, b lower right, c upper right, d upper
    # left. The diagonal a-c divides it into the triangles a-b-c (lower) and a-c-d (upper).
    a, b, c, d = _at_corners(point)
    lower, upper = normalize((b - a).cross(c - a))[0], normalize((c - a).cross(d - a))[0]
    # Beyond its border the field has no triangles towards which a normal could lean.
    within = ((j >= 0) & (j <= m) & (i >= 0) & (i <= n)).astype(lower.x.dtype)
    lower, upper = lower * within, upper * within
    below, above = (_at_corners(v) for v in (lower, upper))
    # Six triangles meet at a vertex: both of the two cells on the diagonal, one of the other two.
    each = [below[0], above[0], above[1], below[2], above[2], below[3]]
    around = _at_corners(Vec3(*(jnp.stack(v, axis=2) for v in zip(*each, strict=True))))
    a, b, c, d = _at_corners(_inner(point))
    lower, upper = _inner(lower), _inner(upper)
    left, right = j[:, 1:-1] == 0, j[:, 1:-1] == m
    front, back = i[1:-1] == 0, i[1:-1] == n
    never = jnp.zeros_like(left)
    halves = (
        _half((a, b, c), lower, [around[k] for k in (0, 1, 2)], (front, right, never)),
        _half((a, c, d), upper, [around[k] for k in (0, 2, 3)], (never, back, left)),
    )
    return jax.tree.map(lambda *h: jnp.stack(h).reshape(-1, *h[0].shape[2:]), *halves)


def _at_corners(v: Vec3) -> list[Vec3]:
    """Return the values at the four vertices of each cell, counter-clockwise."""
    near, far = slice(None, -1), slice(1, None)
    places = ((near, near), (near, far), (far, far), (far, near))
    return [Vec3(*(c[place] for c in v)) for place in places]


def _inner(v: Vec3) -> Vec3:
    """Drop the outermost rows and columns."""
    return Vec3(*(c[1:-1, 1:-1] for c in v))


def _half(
    corners: tuple[Vec3, Vec3, Vec3],
    normal: Vec3,
    around: Sequence[Vec3],
    ends: tuple[jax.Array, jax.Array, jax.Array],
) -> Triangles:
    """Return one triangle of each cell.

    Args:
        corners: its vertices, counter-clockwise.
        normal: its unit normal.
        around: normals of the triangles at each vertex, (rows, columns, 6, pairs, batch).
        ends: True if the field ends at the edge that begins at each vertex.
    """
    out, turn = [], []
    for k, end in enumerate(ends):
        after = (k + 1) % 3
        outward, _ = normalize((corners[after] - corners[k]).cross(normal))
        beside = Vec3(*(c[:, :, None] for c in outward))
        # The triangles at both ends of the edge include the two that meet at the edge itself.
        leans = [jnp.max(around[i].dot(beside), axis=2) for i in (k, after)]
        out.append(outward)
        # A negative maximum is a valley: the adjacent triangles rise, and no normal may lean there.
        turn.append(jnp.where(end, 1.0, jnp.maximum(jnp.maximum(*leans), 0.0)))
    return Triangles(corners, normal, tuple(out), tuple(turn))  # type: ignore[arg-type]


HEIGHT_FIELD = HeightField()
