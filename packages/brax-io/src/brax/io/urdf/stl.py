"""STL files in text form, which MuJoCo does not read, in the binary form that it reads.

Source: the two forms of STL, 3D Systems 1989.
"""

import re

import numpy as np

_VERTEX = re.compile(rb"vertex\s+(\S+)\s+(\S+)\s+(\S+)")
_FACET = np.dtype([("normal", "<3f4"), ("vertices", "<9f4"), ("attributes", "<u2")])


def is_text(data: bytes) -> bool:
    """Return whether a file is an STL in text form; some binary ones begin with 'solid' too."""
    return data[:5] == b"solid" and b"facet" in data[:1000]


def to_binary(data: bytes) -> bytes:
    """Return a text STL in binary form.

    Raises:
        ValueError: if a coordinate is not a number, or the last facet is not complete.
    """
    points = np.array(_VERTEX.findall(data)).astype("<f4")
    if len(points) % 3:
        raise ValueError(f"its facets need three vertices each, got {len(points)} in all")
    facets = np.zeros(len(points) // 3, _FACET)
    facets["vertices"] = points.reshape(-1, 9)  # readers take the normal from the vertices' order
    return bytes(80) + np.uint32(len(facets)).tobytes() + facets.tobytes()
