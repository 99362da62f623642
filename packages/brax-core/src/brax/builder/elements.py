"""Elements of a description, before they become a `System`, and conversions of their values."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from brax.errors import ModelProblem

WORLD = "world"
"""Name of the body that does not move."""

SOLREF = (0.02, 1.0)
"""MuJoCo's default time constant [s] and damping ratio of a soft constraint."""

SOLIMP = (0.9, 0.95, 0.001, 0.5, 2.0)
"""MuJoCo's default impedance of a soft constraint."""

CAMERA_MODES = ("fixed", "track", "trackcom", "targetbody", "targetbodycom")
"""Modes of motion of a camera; see `System.camera_modes`."""

IDENTITY_QUAT = (1.0, 0.0, 0.0, 0.0)

Vector = Sequence[float] | np.ndarray
"""Numbers of an element."""

Table = Sequence[Sequence[float]] | np.ndarray
"""Rows of numbers of an element."""


@dataclasses.dataclass
class Element:
    """A body, joint, geom, tendon or any other element as it was described."""

    kind: str
    name: str
    values: dict[str, Any]
    line: str = ""

    def __getattr__(self, key: str) -> Any:
        if key == "values":
            # Before `__init__` has run, as in `copy`, looking up `values` would recurse for ever.
            raise AttributeError(key)
        return self.values[key]

    def __str__(self) -> str:
        """Return how messages name it."""
        return f"{self.kind} '{self.name}'{self.line}"

    def problem(self, reason: str) -> ModelProblem:
        """Return what is wrong with it."""
        return ModelProblem.of(reason, self.kind, self.name, self.line)


OPTION = Element("option", "", {})
"""The options, as messages name them."""

ElementsByKind = Mapping[str, Sequence[Element]]
"""All elements of a description, by kind; frames of geoms and sites are relative to their links."""


def vectors(
    problems: list[str], what: Element, **given: tuple[Vector, int]
) -> dict[str, np.ndarray]:
    """Return arrays of the vectors, and record those of a wrong length or with infinite numbers."""
    out = {}
    for key, (value, length) in given.items():
        try:
            vector = np.asarray(value, float).reshape(-1)
        except (TypeError, ValueError):
            vector = np.array([])
        if vector.shape != (length,):
            # A stand-in of the right length lets the other checks run, so that `build` reports all
            # problems.
            problems.append(what.problem(f"{key} needs {length} numbers, got {value!r}"))
            vector = np.zeros(length)
        elif not np.isfinite(vector).all():
            problems.append(what.problem(f"{key} is not finite: {vector.tolist()}"))
        # Rotations and directions are stored at unit length.
        elif key in ("quat", "iquat", "axis"):
            size = np.linalg.norm(vector)
            if size < 1e-10:
                problems.append(what.problem(f"{key} is zero"))
            vector = vector / max(size, 1e-300)
        out[key] = vector
    return out


def padded(numbers: Vector, length: int) -> Vector:
    """Return the numbers, followed by zeros up to a length."""
    given = tuple(numbers)
    return given + (0.0,) * (length - len(given))


def rows(problems: list[str], what: Element, points: Table) -> np.ndarray:
    """Return points as an array (n, 3), and record a problem if they are not points."""
    try:
        array = np.asarray(points, float).reshape(len(points), 3)
    except (TypeError, ValueError):
        problems.append(what.problem("points need 3 numbers each"))
        return np.zeros((0, 3))
    if not np.isfinite(array).all():
        problems.append(what.problem("a point is not finite"))
    return array


def grid(problems: list[str], what: Element, heights: Table) -> np.ndarray:
    """Return heights as an array (rows, columns), and record a problem if they are not a grid.

    Without heights the array has the shape (0, 0).
    """
    try:
        array = np.asarray(heights, float).reshape(len(heights), -1 if len(heights) else 0)
    except (TypeError, ValueError):
        problems.append(what.problem("heights need rows of equally many numbers"))
        return np.zeros((0, 0))
    if not np.isfinite(array).all():
        problems.append(what.problem("a height is not finite"))
    return array


def per_dof(joint: Element, key: str, kind: Any) -> np.ndarray:
    """Return a joint's numbers, one per degree of freedom; NaN if it has neither one nor all."""
    value, width = joint.values[key], kind.qd_width
    if np.size(value) not in (1, width):
        # The check for finite numbers then reports the wrong count.
        return np.full(width, np.nan)
    return np.broadcast_to(np.asarray(value, float).reshape(-1), (width,))


def is_polynomial(element: Element) -> bool:
    """Return whether the spring or damping of a joint or tendon is not linear."""
    return bool(np.any(element.stiffness_poly) or np.any(element.damping_poly))
