"""The numbers of a page as bytes that compress well."""

from collections.abc import Iterable

import numpy as np


def pack(arrays: Iterable[np.ndarray]) -> bytes:
    """Packs arrays (frames, ...) as float32, all of them one after another.

    Each is written column by column, so that what changes little from frame to frame stands
    together; then the first bytes of all numbers, their second bytes and so on, for the same
    reason. The page undoes it (viewer/src/data.js).
    """
    columns = [np.moveaxis(array, 0, -1).astype("<f4").ravel() for array in arrays]
    return np.concatenate(columns).view(np.uint8).reshape(-1, 4).T.tobytes()
