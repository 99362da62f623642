"""The static content of the viewer page: links, geoms, joints, their names and sizes."""

from typing import Any

import jax
import numpy as np

from brax import plugins
from brax.base import System, Transform
from brax.colliders import GeometryType
from brax.errors import ModelError, describe_error
from brax.io.viewer.overlays import joint_rows
from brax.plugins.outputs.geometry import mesh_problem

DRAWN_SHAPES = ("box", "capsule", "cylinder", "ellipsoid", "plane", "sphere")
"""Geometry types that the page draws by itself, with MuJoCo's sizes (viewer/src/shapes.js)."""


def describe(sys: System) -> dict[str, Any]:
    """Return the links, joints and geoms as JSON values.

    Raises:
        ModelError: listing every geom that cannot be drawn.
    """
    geoms = [_geom(sys, i) for i in range(len(sys.geom_names))]
    problems = [geom["problem"] for geom in geoms if "problem" in geom]
    if problems:
        raise ModelError("; ".join(problems))
    inertia, placed = sys.link.inertia, len(sys.mocap_fixed)
    return {
        "links": frame_names(sys),
        "parents": [*sys.link_parents, *[-1] * placed],
        "masses": [*np.asarray(inertia.mass, float).tolist(), *[0.0] * placed],
        "centres": [*np.asarray(inertia.transform.pos, float).tolist(), *[[0.0] * 3] * placed],
        "joints": joint_rows(sys),
        "geoms": geoms,
    }


def frame_names(sys: System) -> list[str]:
    """Return the names of everything that moves: the links, then the mocap bodies."""
    return [*sys.link_names, *(sys.fixed_names[i] for i in sys.mocap_fixed)]


def _points(sys: System, index: int) -> list[np.ndarray]:
    """Return the points of a geom, or its heights, if its type has any."""
    begin, count = sum(sys.geom_points[:index]), sys.geom_points[index]
    if count:
        return [np.asarray(sys.points[begin : begin + count], float)]
    *before, (rows, columns) = sys.geom_grid[: index + 1]
    begin = sum(n * m for n, m in before)
    heights = np.asarray(sys.heights[begin : begin + rows * columns], float)
    return [heights.reshape(rows, columns)] if rows else []


def _place(sys: System, index: int) -> tuple[int, Transform]:
    """Return the frame that a geom is on, as an index in `frame_names`, and its pose on that.

    The index is -1 for the world.
    """
    frame = jax.tree.map(lambda a: a[index], sys.geom.transform)
    body = sys.geom_mocap[index]
    if body < 0:
        return sys.geom_link[index], frame
    home = jax.tree.map(lambda a: a[sys.mocap_fixed[body]], sys.fixed)
    return sys.num_links() + body, home.inv_do(frame)


def _geom(sys: System, index: int) -> dict[str, Any]:
    kind = sys.geom_types[index]
    link, frame = _place(sys, index)
    geom: dict[str, Any] = {"name": sys.geom_names[index], "link": link}
    numbers = {
        "pos": frame.pos,
        "rot": frame.rot,
        "size": sys.geom.size[index],
        "rgba": sys.geom.rgba[index],
    }
    for name, values in numbers.items():
        row = np.asarray(values, float)
        if not np.isfinite(row).all():
            return {"problem": f"geom '{geom['name']}': {name} is not finite: {row.tolist()}"}
        geom[name] = row.tolist()
    mesh, problem = None, ""
    if kind.name not in DRAWN_SHAPES:
        mesh, problem = _mesh(kind, np.asarray(geom["size"]), *_points(sys, index))
    if problem:
        owner = plugins.specs("geometry_type").get(kind.name, f"geometry type '{kind.name}'")
        return {"problem": f"geom '{geom['name']}': {owner}: {problem}"}
    if kind.name not in DRAWN_SHAPES and mesh is None:
        return {
            "problem": f"geom '{geom['name']}': the viewer cannot draw geometry type "
            f"'{kind.name}'. It draws {', '.join(DRAWN_SHAPES)}, and any type whose `mesh(size)` "
            "returns vertices and triangles: add one to the plugin"
        }
    if mesh is not None:
        vertices, faces = mesh
        geom["mesh"] = {
            "vertices": np.asarray(vertices, float).tolist(),
            "faces": np.asarray(faces, int).tolist(),
        }
    return geom | {"type": kind.name}


def _mesh(kind: GeometryType, *arguments: np.ndarray) -> tuple[Any, str]:
    """Return the mesh of a geometry type, and what is wrong with it."""
    try:
        mesh = kind.mesh(*arguments)
    except Exception as error:
        return None, f"mesh raised {describe_error(error)}"
    return mesh, mesh_problem(mesh)
