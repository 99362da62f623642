"""Reads the triangles of COLLADA files (`.dae`), which MuJoCo does not read.

The library pycollada reads them, once everything that has no shape is taken out: its errors in
materials and cameras would otherwise be errors of the mesh. Lengths are in the file's unit. The
`up_axis` has no effect, as in RViz and Pinocchio: a robot's meshes are in the axes of their links.

Source: COLLADA 1.4.1 specification (Khronos Group, 2008), chapter 5.
"""

import io
import re
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple
from xml.etree import ElementTree

import numpy as np

from brax.io.mjcf.checks import MAX_FLOAT32

_FORBIDDEN = re.compile(rb"<!(?:DOCTYPE|ENTITY)", re.I)
_MAX_TRIANGLES = 2**20
_MAX_NODES = 2**14
_NAMESPACE = "{http://www.collada.org/2005/11/COLLADASchema}"
_LIBRARIES = ("library_geometries", "library_nodes", "library_visual_scenes", "scene")
"""Children of the root that say where which shapes are."""
_NO_SHAPE = (
    "bind_material",
    "extra",
    "instance_camera",
    "instance_controller",
    "instance_light",
    "lines",
    "linestrips",
)


class Triangles(NamedTuple):
    """Triangles of a mesh."""

    points: np.ndarray
    """Corners [m], shape (n, 3)."""
    faces: np.ndarray
    """The three corners of each triangle, shape (m, 3)."""


def to_obj(data: bytes) -> bytes:
    """Return a COLLADA file as a Wavefront OBJ file, in metres.

    Raises:
        ValueError: saying what is wrong with it.
    """
    points, faces = read_triangles(data)
    lines = [f"v {x!r} {y!r} {z!r}" for x, y, z in points.tolist()]
    lines += [f"f {a} {b} {c}" for a, b, c in (faces + 1).tolist()]
    return "\n".join(lines).encode()


def read_triangles(data: bytes) -> Triangles:
    """Return all triangles of a COLLADA file, placed by its scene.

    Raises:
        ValueError: saying what is wrong with it.
    """
    root = _parsed(data)
    unit = root.find("{*}asset/{*}unit")
    scale = float(unit.get("meter", "1")) if unit is not None else 1.0
    parts = list(_parts(_document(_with_shapes(root))))
    if not parts:
        raise ValueError("it has no triangles")
    starts = np.cumsum([0, *(len(p.points) for p in parts)])
    faces = [p.faces + start for p, start in zip(parts, starts, strict=False)]
    # Vertices that no triangle has would still be part of the convex hull.
    used, corners = np.unique(np.concatenate(faces), return_inverse=True)
    points = scale * np.concatenate([p.points for p in parts])[used]
    if not (np.abs(points) <= MAX_FLOAT32).all():
        raise ValueError("it has coordinates that are not finite")
    return Triangles(points, corners.reshape(-1, 3))


def _parsed(data: bytes) -> ElementTree.Element:
    """Return the root of a file."""
    if _FORBIDDEN.search(data):
        raise ValueError("it has a DOCTYPE, which is not read")
    try:
        root = ElementTree.fromstring(data)
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise ValueError(f"it is not XML: {error}") from None
    name = root.tag.rpartition("}")[2]
    if name != "COLLADA":
        raise ValueError(f"its root is <{name}>, not <COLLADA>")
    return root


def _with_shapes(root: ElementTree.Element) -> bytes:
    """Return a file with nothing but its shapes and their places, in the usual namespace.

    Raises:
        ValueError: if a number is none.
    """
    root[:] = [e for e in root if e.tag.rpartition("}")[2] in _LIBRARIES]
    for element in root.iter():
        element[:] = [e for e in element if e.tag.rpartition("}")[2] not in _NO_SHAPE]
        element.tag = _NAMESPACE + element.tag.rpartition("}")[2]
        # The library would read it as zero.
        if element.tag.endswith("}float_array") and "nan" in (element.text or "").lower():
            raise ValueError("<float_array> has numbers that are not finite")
    return ElementTree.tostring(root)


def _parts(document: object) -> Iterator[Triangles]:
    """Yield the triangles of each placed geometry, in the file's unit.

    Raises:
        ValueError: if there are too many.
    """
    count = 0
    for place, part in _placed(document):
        if part.vertex_index is None or not len(part.vertex_index):
            continue
        count += len(part.vertex_index)
        if count > _MAX_TRIANGLES:
            raise ValueError(f"it has more than {_MAX_TRIANGLES} triangles")
        with np.errstate(all="ignore"):  # what is not finite is an error later
            points = part.vertex @ place[:3, :3].T + place[:3, 3]
            mirrored = np.linalg.det(place[:3, :3]) < 0
        # A mirror image is inside out.
        yield Triangles(points, part.vertex_index[:, :: -1 if mirrored else 1])


def _document(data: bytes) -> Any:
    """Return the library's document of a file, with triangles for all polygons.

    Raises:
        ValueError: saying what is wrong with the file.
    """
    import collada  # only robots with such meshes need it

    try:
        with warnings.catch_warnings():
            # NumPy before 2.3 stops at what is no number, with a warning.
            warnings.filterwarnings("error", "string or file", DeprecationWarning)
            # The library sets shapes of arrays, which NumPy 2.5 deprecates.
            warnings.filterwarnings("ignore", "Setting the shape", DeprecationWarning)
            document = collada.Collada(io.BytesIO(data))
            for shape in document.geometries:
                shape.primitives = [
                    part.triangleset() if hasattr(part, "triangleset") else part
                    for part in shape.primitives
                ]
    # The library meets a damaged file with errors of many kinds.
    except Exception as error:
        reason = getattr(error, "msg", "") or str(error) or type(error).__name__
        raise ValueError(f"it is damaged: {reason}") from error
    return document


def _placed(document: Any) -> Iterator[tuple[np.ndarray, Any]]:
    """Yield each group of polygons of the scene, with its placement (4, 4).

    Without a scene, all of them are yielded.
    """
    if document.scene is None:
        yield from ((np.eye(4), part) for shape in document.geometries for part in shape.primitives)
        return
    stack = [(node, np.eye(4)) for node in document.scene.nodes]
    visited = 0
    while stack:
        node, place = stack.pop()
        # A few nodes that use one another twice each are millions.
        visited += 1
        if visited > _MAX_NODES:
            raise ValueError(f"its scene has more than {_MAX_NODES} nodes")
        if hasattr(node, "geometry"):
            yield from ((place, part) for part in node.geometry.primitives)
        else:
            stack += [(child, place @ node.matrix) for child in node.children]
