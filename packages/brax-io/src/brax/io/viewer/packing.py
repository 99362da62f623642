"""Packing of a page's numbers as bytes that compress well."""

from collections.abc import Iterable

import numpy as np


def pack(arrays: Iterable[np.ndarray]) -> bytes:
    """Return arrays (frames, ...) as float32 bytes, one array after another.

    Each array is written column by column, so that values that change little from frame to frame
    are adjacent. Then come the first bytes of all numbers, their second bytes and so on, for the
    same reason: signs and exponents hardly change. The page reverses this (viewer/src/data.js).
    """
    columns = [np.moveaxis(array, 0, -1).astype("<f4").ravel() for array in arrays]
    return np.concatenate(columns).view(np.uint8).reshape(-1, 4).T.tobytes()
