"""Meshes of solids of revolution, for drawing."""

import numpy as np

_MERIDIANS = 48


def revolved(radius: np.ndarray, height: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the mesh of a closed profile that is revolved about the z axis.

    Args:
        radius: distances of the profile's points from the axis [m], (n,), counter-clockwise in the
            plane of radius and height.
        height: their heights [m], (n,).

    Returns:
        Vertices (m, 3) and triangles (k, 3), counter-clockwise as seen from outside.
    """
    n, angle = len(radius), np.linspace(0, 2 * np.pi, _MERIDIANS, endpoint=False)[:, None]
    along = np.broadcast_to(height, (_MERIDIANS, n))
    vertices = np.stack([radius * np.cos(angle), radius * np.sin(angle), along], axis=-1)
    i, j = np.indices((_MERIDIANS, n)).reshape(2, -1)
    right, up = (i + 1) % _MERIDIANS, (j + 1) % n
    a, b, c, d = i * n + j, right * n + j, right * n + up, i * n + up
    triangles = np.concatenate([np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)])
    return vertices.reshape(-1, 3), triangles
