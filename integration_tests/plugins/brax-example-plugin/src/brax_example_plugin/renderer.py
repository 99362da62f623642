"""A chart of where the links are, seen from above: needs NumPy alone."""

from typing import Any

import numpy as np

from brax.base import State, System


def chart(
    sys: System, trajectory: Any, height: int = 240, width: int = 320, camera: Any = None
) -> np.ndarray:
    """Draws each link as a white point on black, x to the right and y up, one pixel a centimetre.

    Args:
        sys: the system.
        trajectory: states in order of time, or a single one.
        height: of the pictures [pixels].
        width: of the pictures [pixels].
        camera: the name of the link in the middle; by default the first.

    Returns:
        Bytes (frames, height, width, 3); of a single state (height, width, 3).
    """
    if isinstance(trajectory, State):
        return chart(sys, [trajectory], height, width, camera)[0]
    pictures = np.zeros((len(trajectory), height, width, 3), np.uint8)
    middle = 0 if camera is None else sys.link_names.index(camera)
    for picture, state in zip(pictures, trajectory, strict=True):
        pos = np.asarray(state.x.pos)
        apart = np.round(100 * (pos - pos[middle])[:, :2]).astype(int)
        row, column = height // 2 - apart[:, 1], width // 2 + apart[:, 0]
        seen = (row >= 0) & (row < height) & (column >= 0) & (column < width)
        picture[row[seen], column[seen]] = 255
    return pictures
