"""Signed distances of MuJoCo's `sdf` geoms: the numbers of its plugins, and grids for meshes."""

import functools
from collections.abc import Mapping
from types import MappingProxyType

import mujoco
import numpy as np
from scipy.ndimage import spline_filter
from scipy.spatial import KDTree

from brax.errors import Reason
from brax.io.mjcf.elements.plugin_names import plugin_name, texts
from brax.io.mjcf.names import keyword

GRID_POINTS = 48
"""Points of a grid of distances along each axis."""

_BORDER = 2
"""Cells of the grid beyond the mesh on each side."""

_SAMPLES_PER_CELL = 2
"""Samples of the surface to a cell's width, from which the nearest triangles are found."""

_NEAREST_SAMPLES = 8
"""Number of samples whose triangles are compared exactly."""

PLUGINS: Mapping[str, tuple[float, ...]] = MappingProxyType(
    {
        "bolt": (0.26,),
        "bowl": (0.4, 1.0, 0.02),
        "gear": (0.0, 2.8, 25.0, 0.2, -1.0),
        "nut": (0.26,),
        "torus": (0.35, 0.15),
    }
)
"""MuJoCo's own plugins of shapes, with the defaults of their attributes: the radius of the thread;
height, radius and thickness; angle, pitch diameter, teeth, thickness and inner diameter; the radius
of the thread; both radii.

Source: the documentation of MuJoCo's plugins, `plugin/sdf/README.md`."""

_HEAD = (0.5, 0.5)
"""Half-width and height of the head of MuJoCo's bolt, and of its nut [m]."""


def shape_name(model: mujoco.MjModel, geom: int) -> str:
    """Return the geometry type that a geom has in Brax."""
    kind = keyword(mujoco.mjtGeom, model.geom_type[geom])
    plugin = _plugin(model, geom)
    return f"sdf_{plugin}" if plugin else kind


def _plugin(model: mujoco.MjModel, geom: int) -> str:
    """Return which of MuJoCo's own plugins shapes a geom; empty for none of them."""
    if model.geom_type[geom] != mujoco.mjtGeom.mjGEOM_SDF:
        return ""
    return plugin_name(model, model.geom_plugin[geom]).removeprefix("mujoco.sdf.")


def attributes(model: mujoco.MjModel, geom: int) -> list[float]:
    """Return the attributes of the plugin of MuJoCo's that shapes a geom; empty without one."""
    plugin = _plugin(model, geom)
    if not plugin:
        return []
    given = zip(texts(model, model.geom_plugin[geom]), PLUGINS[plugin], strict=False)
    return [float(text) if text else standard for text, standard in given]


def size(model: mujoco.MjModel, geom: int) -> tuple[float, ...]:
    """Return the size parameters of the geometry type of an `sdf` geom [m]."""
    numbers = attributes(model, geom)
    match _plugin(model, geom):
        case "bowl":
            height, radius, thickness = numbers
            return radius, thickness, height
        case "gear":
            _, diameter, teeth, thickness, _ = numbers
            return diameter, diameter / teeth, thickness
        case "bolt" | "nut":
            return (*numbers, *_HEAD)
        case "torus":
            return tuple(numbers)
    return tuple(_half_sizes(_vertices(model, geom)))


def turned(model: mujoco.MjModel, geom: int) -> float:
    """Return the angle about its z axis by which a gear is turned in its frame; zero for others."""
    return -attributes(model, geom)[0] if _plugin(model, geom) == "gear" else 0.0


def problem(model: mujoco.MjModel, geom: int) -> str:
    """Return why the shape of an `sdf` geom is not supported; empty if it is."""
    if _plugin(model, geom) == "gear" and attributes(model, geom)[-1] >= 0:
        return Reason.of("innerdiameter of a gear is not supported", remedy="leave it out")
    if model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_SDF and model.geom_dataid[geom] < 0:
        return Reason.of("an sdf without a mesh is not supported", remedy="give it a mesh")
    return ""


def grid(model: mujoco.MjModel, geom: int) -> np.ndarray:
    """Return the coefficients of an `sdf` geom's distances (n * n, n); empty for other geoms."""
    if shape_name(model, geom) != "sdf":
        return np.zeros((0, 0))
    mesh = model.geom_dataid[geom]
    begin = model.mesh_faceadr[mesh]
    faces = model.mesh_face[begin : begin + model.mesh_facenum[mesh]]
    return _coefficients(_vertices(model, geom).tobytes(), faces.tobytes())


def _vertices(model: mujoco.MjModel, geom: int) -> np.ndarray:
    """Return the vertices of a geom's mesh (n, 3) [m]."""
    mesh = model.geom_dataid[geom]
    begin = model.mesh_vertadr[mesh]
    return np.asarray(model.mesh_vert[begin : begin + model.mesh_vertnum[mesh]], float)


def _half_sizes(vertices: np.ndarray) -> np.ndarray:
    """Return the half-sizes of the box around the origin that the grid of a mesh spans [m]."""
    # The grid has the border's cells beyond the vertices on each side.
    cells = GRID_POINTS - 1
    return np.abs(vertices).max(axis=0) * cells / (cells - 2 * _BORDER)


# Several geoms may have one mesh, and a grid takes seconds.
@functools.lru_cache(maxsize=8)
def _coefficients(vertices: bytes, faces: bytes) -> np.ndarray:
    """Return the coefficients of a quadratic B-spline through a mesh's signed distances."""
    points = np.frombuffer(vertices, float).reshape(-1, 3)
    triangles = points[np.frombuffer(faces, np.int32).reshape(-1, 3)]
    half = _half_sizes(points)
    lines = [np.linspace(-h, h, GRID_POINTS) for h in half]
    at = np.stack(np.meshgrid(*lines, indexing="ij"), axis=-1).reshape(-1, 3)
    spacing = 2 * half.min() / (GRID_POINTS - 1)
    dist = signed_distances(triangles, at, spacing / _SAMPLES_PER_CELL)
    smooth = spline_filter(dist.reshape((GRID_POINTS,) * 3), order=2, mode="mirror")
    return smooth.reshape(-1, GRID_POINTS)


def signed_distances(triangles: np.ndarray, points: np.ndarray, spacing: float) -> np.ndarray:
    """Return the signed distances of points from a closed mesh (n,), negative inside [m].

    Args:
        triangles: corners of the triangles (m, 3, 3), counter-clockwise as seen from outside.
        points: the points (n, 3).
        spacing: largest distance of samples of the surface, from which the triangles that may be
            nearest are found.
    """
    samples, owner = _sampled(triangles, spacing)
    _, near = KDTree(samples).query(points, k=min(_NEAREST_SAMPLES, len(samples)))
    candidates = owner[near.reshape(len(points), -1)]
    corners = triangles[candidates]
    off = points[:, None] - _nearest_of_triangles(corners, points[:, None])
    dist = np.linalg.norm(off, axis=-1)
    normal = np.cross(
        corners[..., 1, :] - corners[..., 0, :], corners[..., 2, :] - corners[..., 0, :]
    )
    lengths = np.linalg.norm(normal, axis=-1, keepdims=True)
    height = (off * normal / np.where(lengths > 0, lengths, 1.0)).sum(axis=-1)
    # Where the nearest point is on an edge, both triangles are equally near, and the one that the
    # point is farthest above or below says on which side of the surface it is.
    least = dist.min(axis=1)
    tied = dist <= least[:, None] + 1e-6 * spacing
    which = np.where(tied, np.abs(height), -1.0).argmax(axis=1)
    return least * np.where(np.take_along_axis(height, which[:, None], 1)[:, 0] < 0, -1.0, 1.0)


def _sampled(triangles: np.ndarray, spacing: float) -> tuple[np.ndarray, np.ndarray]:
    """Return points of triangles (n, 3) that are at most so far apart, and their triangles (n,)."""
    edges = triangles - np.roll(triangles, 1, axis=1)
    parts = np.ceil(np.linalg.norm(edges, axis=-1).max(axis=1) / spacing).astype(int)
    samples, owner = [], []
    for n in np.unique(parts):
        which = np.flatnonzero(parts == n)
        i, j = (k.ravel() for k in np.indices((n + 1, n + 1)))
        inside = i + j <= n
        weights = np.stack([i, j, n - i - j], axis=1)[inside] / max(n, 1)
        samples.append((weights @ triangles[which]).reshape(-1, 3))
        owner.append(np.repeat(which, len(weights)))
    return np.concatenate(samples), np.concatenate(owner)


def _nearest_of_triangles(corners: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Return the points of triangles (..., 3, 3) nearest to points (..., 3).

    A point above the inside of a triangle projects to it; the others are nearest to an edge.
    """
    a, b, c = (corners[..., k, :] for k in range(3))
    u, v, w = b - a, c - a, points - a
    uu, uv, vv = (u * u).sum(-1), (u * v).sum(-1), (v * v).sum(-1)
    wu, wv = (w * u).sum(-1), (w * v).sum(-1)
    area = uu * vv - uv * uv
    safe = np.where(area > 0, area, 1.0)
    s, t = (vv * wu - uv * wv) / safe, (uu * wv - uv * wu) / safe
    inside = (area > 0) & (s >= 0) & (t >= 0) & (s + t <= 1)
    found = a + s[..., None] * u + t[..., None] * v
    best = np.where(inside, 0.0, np.inf)
    for start, end in ((a, b), (b, c), (c, a)):
        way = end - start
        length = (way * way).sum(-1)
        share = ((points - start) * way).sum(-1) / np.where(length > 0, length, 1.0)
        at = start + np.clip(share, 0, 1)[..., None] * way
        off = ((points - at) ** 2).sum(-1)
        nearer = off < best
        # An edge only counts where no point inside is nearest.
        nearer &= ~inside
        found, best = np.where(nearer[..., None], at, found), np.where(nearer, off, best)
    return found
