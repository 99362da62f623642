"""Checks of whether points span a volume, a plane or a line."""

import numpy as np

_FLAT = 1e-6
"""Ratio of a width to the largest one below which the width is rounding in single precision."""


def is_flat(points: np.ndarray) -> bool:
    """Return whether points (n, 3) lie in one plane, up to the rounding of single precision."""
    widths = _widths(points)
    return bool(widths[2] <= _FLAT * widths[0])


def is_straight(points: np.ndarray) -> bool:
    """Return whether points (n, 3) lie on one line, up to the rounding of single precision."""
    widths = _widths(points)
    return bool(widths[1] <= _FLAT * widths[0])


def _widths(points: np.ndarray) -> np.ndarray:
    """Return the singular values of points about their mean, the largest first, (3,)."""
    if not len(points):
        return np.zeros(3)
    found = np.linalg.svd(points - points.mean(axis=0), compute_uv=False)
    return np.pad(found, (0, 3 - len(found)))
