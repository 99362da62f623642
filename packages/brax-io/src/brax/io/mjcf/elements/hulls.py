"""Convex hulls of MuJoCo's meshes, with no more corners than a collider can take."""

import mujoco
import numpy as np
from scipy.spatial import ConvexHull

from brax.colliders.shapes.flatness import is_flat

MAX_HULL_CORNERS = 256
"""Corners that a hull may have; of one that has more those that matter are kept."""

_NUM_DIRECTIONS = 1000


def points(model: mujoco.MjModel, geom: int) -> np.ndarray:
    """The corners of a mesh's convex hull (n, 3) [m]; of other geoms none."""
    if model.geom_type[geom] != mujoco.mjtGeom.mjGEOM_MESH:
        return np.zeros((0, 3))
    return thin_hull(_corners(model, model.geom_dataid[geom]))[0]


def left_out(model: mujoco.MjModel, geom: int) -> str:
    """What is told of a mesh of whose hull corners are left out; nothing of others."""
    if model.geom_type[geom] != mujoco.mjtGeom.mjGEOM_MESH:
        return ""
    every = _corners(model, model.geom_dataid[geom])
    kept, inside = thin_hull(every)
    if len(kept) == len(every):
        return ""
    less = f"reaches up to {1000 * inside:.2g} mm less far"
    return f"its hull has {len(kept)} of {len(every)} corners, and {less}"


def thin_hull(corners: np.ndarray) -> tuple[np.ndarray, float]:
    """The corners (n, 3) that matter most, and how far inside the others their hull is [m].

    Taken are those that lie farthest along a direction in which the hull of those taken so far
    reaches least; how far is measured in a thousand directions.
    """
    if len(corners) <= MAX_HULL_CORNERS:
        return corners, 0.0
    reach = corners @ _directions().T
    whole = reach.max(axis=0)
    kept = [int(reach[:, 0].argmax())]
    there = reach[kept[0]]
    while len(kept) < MAX_HULL_CORNERS and (whole > there).any():
        kept.append(int(reach[:, (whole - there).argmax()].argmax()))
        there = np.maximum(there, reach[kept[-1]])
    return corners[sorted(kept)], float((whole - there).max())


def _directions() -> np.ndarray:
    """Unit vectors (n, 3), evenly spread: a spiral of the golden angle."""
    place = np.arange(_NUM_DIRECTIONS) + 0.5
    z, turn = 1 - 2 * place / _NUM_DIRECTIONS, np.pi * (1 + 5**0.5) * place
    flat = np.sqrt(1 - z * z)
    return np.stack([flat * np.cos(turn), flat * np.sin(turn), z], axis=1)


def _corners(model: mujoco.MjModel, mesh: int) -> np.ndarray:
    """MuJoCo's own hull if it made one."""
    begin = model.mesh_vertadr[mesh]
    vertices = model.mesh_vert[begin : begin + model.mesh_vertnum[mesh]]
    graph = model.mesh_graph[max(model.mesh_graphadr[mesh], 0) :]
    if model.mesh_graphadr[mesh] < 0:
        flat = is_flat(vertices)  # only shown, then: MuJoCo refuses one that can touch
        return vertices if flat else vertices[ConvexHull(vertices).vertices]
    corners = int(graph[0])  # then come the number of faces, and a row and an index of each corner
    return vertices[graph[2 + corners : 2 + 2 * corners]]
