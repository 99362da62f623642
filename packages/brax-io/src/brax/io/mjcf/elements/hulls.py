"""Convex hulls of MuJoCo's meshes, simplified to as many vertices as a collider can take."""

import mujoco
import numpy as np
from scipy.spatial import ConvexHull

from brax.colliders.shapes.flatness import is_flat
from brax.io.mjcf.elements import distances

MAX_HULL_CORNERS = 256
"""Maximum number of vertices of a hull; of a larger one, those that matter most are kept."""

_NUM_DIRECTIONS = 1000

_WITH_HULL = ("mesh", "sdf", "sdf_bolt", "sdf_gear", "sdf_nut")
"""The geometry types that have the vertices of a hull."""


def points(model: mujoco.MjModel, geom: int) -> np.ndarray:
    """Return the vertices of a mesh's convex hull (n, 3) [m]; empty for other geoms."""
    if not _has_hull(model, geom):
        return np.zeros((0, 3))
    corners = thin_hull(_corners(model, model.geom_dataid[geom]))[0]
    # A gear is turned in its frame, and its points with it.
    cos, sin = np.cos(angle := distances.turned(model, geom)), np.sin(angle)
    return corners @ np.array([[cos, -sin, 0], [sin, cos, 0], [0, 0, 1]])


def left_out(model: mujoco.MjModel, geom: int) -> str:
    """Return how a mesh's hull was simplified; empty if it was not."""
    if not _has_hull(model, geom):
        return ""
    every = _corners(model, model.geom_dataid[geom])
    kept, inside = thin_hull(every)
    if len(kept) == len(every):
        return ""
    less = f"reaches up to {1000 * inside:.2g} mm less far"
    return f"its hull has {len(kept)} of {len(every)} corners, and {less}"


def _has_hull(model: mujoco.MjModel, geom: int) -> bool:
    """Return whether a geom's type has the vertices of a hull."""
    return distances.shape_name(model, geom) in _WITH_HULL


def thin_hull(corners: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the vertices (n, 3) that matter most, and the largest loss of extent [m].

    Greedy selection: each round takes the vertex that extends farthest in the direction in which
    the hull so far falls short the most. The loss is measured in a thousand directions.
    """
    if len(corners) <= MAX_HULL_CORNERS:
        return corners, 0.0
    reach = corners @ _directions().T
    full_extent = reach.max(axis=0)
    kept = [int(reach[:, 0].argmax())]
    extent = reach[kept[0]]
    while len(kept) < MAX_HULL_CORNERS and (full_extent > extent).any():
        kept.append(int(reach[:, (full_extent - extent).argmax()].argmax()))
        extent = np.maximum(extent, reach[kept[-1]])
    return corners[sorted(kept)], float((full_extent - extent).max())


def _directions() -> np.ndarray:
    """Return unit vectors (n, 3), spread evenly along a golden-angle spiral."""
    place = np.arange(_NUM_DIRECTIONS) + 0.5
    z, azimuth = 1 - 2 * place / _NUM_DIRECTIONS, np.pi * (1 + 5**0.5) * place
    radius = np.sqrt(1 - z * z)
    return np.stack([radius * np.cos(azimuth), radius * np.sin(azimuth), z], axis=1)


def _corners(model: mujoco.MjModel, mesh: int) -> np.ndarray:
    """Return the vertices of a mesh's convex hull."""
    begin = model.mesh_vertadr[mesh]
    vertices = model.mesh_vert[begin : begin + model.mesh_vertnum[mesh]]
    # MuJoCo stores the hull of a mesh that collides as a graph.
    graph = model.mesh_graph[max(model.mesh_graphadr[mesh], 0) :]
    if model.mesh_graphadr[mesh] < 0:
        flat = is_flat(vertices)  # it can only be drawn: MuJoCo rejects a flat mesh that collides
        return vertices if flat else vertices[ConvexHull(vertices).vertices]
    corners = int(graph[0])  # followed by the number of faces, and two entries for each vertex
    return vertices[graph[2 + corners : 2 + 2 * corners]]
