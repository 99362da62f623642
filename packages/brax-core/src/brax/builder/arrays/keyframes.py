"""Keyframes: the named states of a model, and the normalization of its first coordinates."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from brax.base import Keyframe
from brax.builder.arrays.columns import array
from brax.builder.elements import Element


def keyframes(
    keys: Sequence[Element], start: np.ndarray, types: Sequence[object], sizes: Mapping[str, int]
) -> Keyframe:
    """Return the keyframes; values that one leaves out are those of the start, at rest."""
    rest = {what: np.zeros(size) for what, size in sizes.items()} | {"q": start}

    def rows(what: str) -> list[np.ndarray]:
        return [rest[what] if k.values[what] is None else k.values[what] for k in keys]

    table = {what: rows(what) for what in sizes}
    table["q"] = [normalized(q, types) for q in table["q"]]
    return Keyframe(**{what: array(table[what], (len(keys), n)) for what, n in sizes.items()})


def normalized(q: np.ndarray, types: Sequence[Any]) -> np.ndarray:
    """Return coordinates (nq,) whose quaternions have unit length."""
    q, ends = q.copy(), np.cumsum([t.q_width for t in types])
    # Coordinates that are not plain end with a quaternion, as those of ball and free joints do.
    for end in ends[[not t.is_plain for t in types]]:
        q[end - 4 : end] /= max(float(np.linalg.norm(q[end - 4 : end])), 1e-12)
    return q
