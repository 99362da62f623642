"""Joints: from checked elements to the arrays of a `System`."""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from brax.base import DoF, Joint
from brax.builder.arrays.columns import array, bounds, column
from brax.builder.elements import Element, per_dof


def joint_numbers(joints: Sequence[Element]) -> Joint:
    """Return the numbers that each joint has once."""
    width = max((len(j.user) for j in joints), default=0)
    # One table for all types; shorter rows end with zeros, which their types never read.
    user = [tuple(j.user) + (0.0,) * (width - len(j.user)) for j in joints]
    return Joint(
        column(joints, "pos", 3),
        column(joints, "axis", 3),
        array(user, (len(joints), width)),
        column(joints, "solref_limit", 2),
        column(joints, "solimp_limit", 5),
        column(joints, "margin", 1)[:, 0],
        bounds(joints, "actuator_range"),
    )


def _range(joint: Element, kind: Any) -> tuple[float, float]:
    """Return the limits; an angle that is never negative has no lower one."""
    if joint.range is None:
        return -np.inf, np.inf
    # A range of a ball joint bounds its total rotation angle, a norm, from above.
    return (joint.range[0] if kind.is_plain else -np.inf), joint.range[1]


def dof_numbers(joints: Sequence[Element], types: tuple[Any, ...]) -> DoF:
    """Return the numbers that each degree of freedom has."""
    each = list(zip(joints, types, strict=True))

    def numbers(key: str) -> Any:
        return array(np.concatenate([per_dof(j, key, t) for j, t in each]), (-1,))

    limits = [_range(j, t) for j, t in each]
    lower, upper = (
        array([b[k] for b, t in zip(limits, types, strict=True) for _ in range(t.qd_width)], (-1,))
        for k in range(2)
    )

    def repeated(key: str, width: int) -> Any:
        rows = [j.values[key] for j, t in each for _ in range(t.qd_width)]
        return array(rows, (len(rows), width))

    return DoF(
        armature=numbers("armature"),
        damping=numbers("damping"),
        stiffness=numbers("stiffness"),
        stiffness_poly=repeated("stiffness_poly", 2),
        damping_poly=repeated("damping_poly", 2),
        springref=numbers("springref"),
        limit=(lower, upper),
        frictionloss=numbers("frictionloss"),
        # The inverse weights need a whole system, so `build` fills them in at the end.
        invweight=jnp.zeros_like(numbers("armature")),
        solref=repeated("solref_friction", 2),
        solimp=repeated("solimp_friction", 5),
    )


def reference(joint: Element, kind: Any) -> np.ndarray:
    """Return the joint's reference coordinates; zeros for types whose coordinates are not rates."""
    return per_dof(joint, "ref", kind) if kind.is_plain else np.zeros(kind.q_width)
