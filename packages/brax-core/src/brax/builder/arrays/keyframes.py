"""Where a model can start: its first coordinates, and the states that it names."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from brax.base import Keyframe
from brax.builder.arrays.columns import array
from brax.builder.elements import Element, is_plain


def keyframes(
    keys: Sequence[Element], start: np.ndarray, types: Sequence[Any], sizes: Mapping[str, int]
) -> Keyframe:
    """The states that a model names; what one leaves out is as at the start, and at rest."""
    rest = {what: np.zeros(size) for what, size in sizes.items()} | {"q": start}

    def rows(what: str) -> list[np.ndarray]:
        return [rest[what] if k.values[what] is None else k.values[what] for k in keys]

    table = {what: rows(what) for what in sizes}
    table["q"] = [normalized(q, types) for q in table["q"]]
    return Keyframe(**{what: array(table[what], (len(keys), n)) for what, n in sizes.items()})


def normalized(q: np.ndarray, types: Sequence[Any]) -> np.ndarray:
    """Coordinates (nq,) whose quaternions have unit length."""
    q, ends = q.copy(), np.cumsum([t.q_width for t in types])
    for end in ends[[not is_plain(t) for t in types]]:
        q[end - 4 : end] /= max(float(np.linalg.norm(q[end - 4 : end])), 1e-12)
    return q
