"""Momentum of a system of links, from their frames and velocities, in float64 and NumPy alone."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike


def momenta(inertia: Any, x: Any, xd: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sum the momenta of all links, of our classes, Google's, or others with these attributes.

    Args:
        inertia: `mass` (n_links,), and, in the link frames, the principal frames `transform` and
            the moments `i` (n_links, 3).
        x: link frames, `pos` (..., n_links, 3) and `rot` (..., n_links, 4).
        xd: velocities of the frames' origins, `vel` and `ang` (..., n_links, 3).

    Returns:
        Linear momentum [kg m/s], angular momentum about the common centre of mass [kg m^2/s],
        both (..., 3), and the sum of the links' angular momenta without their directions, (...).
    """
    mass = np.asarray(inertia.mass, float)[:, None]
    link, own = _matrix(x.rot), _matrix(inertia.transform.rot)
    arm = _apply(link, np.asarray(inertia.transform.pos, float))
    ang = np.asarray(xd.ang, float)
    centre = np.asarray(x.pos, float) + arm
    velocity = np.asarray(xd.vel, float) + np.cross(ang, arm)
    linear = (mass * velocity).sum(-2)
    common = (mass * centre).sum(-2, keepdims=True) / mass.sum()
    axes = link @ own
    spin = _apply(axes, np.asarray(inertia.moments, float) * _apply(np.swapaxes(axes, -1, -2), ang))
    orbit = np.cross(centre - common, mass * velocity)
    angular = spin + orbit
    return linear, angular.sum(-2), np.linalg.norm(angular, axis=-1).sum(-1)


def _apply(matrix: np.ndarray, vector: np.ndarray) -> np.ndarray:
    return np.einsum("...ij,...j->...i", matrix, vector)


def _matrix(quat: ArrayLike) -> np.ndarray:
    """Rotation matrices of quaternions (w, x, y, z)."""
    w, x, y, z = np.moveaxis(np.asarray(quat, float), -1, 0)
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.stack([np.stack(row, -1) for row in rows], -2)
