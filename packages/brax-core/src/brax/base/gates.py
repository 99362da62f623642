"""Flags of a `System` that say which of its optional numbers a step reads.

A feature that a model lacks costs nothing: it has no constraint rows and no forces. So the presence
of dry friction or limits is part of a system's static structure. The builder sets the flags. When
the numbers are replaced later, as domain randomization does, the flags change too.
"""

import dataclasses
from typing import Any, TypeVar

import jax

S = TypeVar("S", bound=Any)

_EACH = {
    "dof.frictionloss": "joint_dry",
    "dof.stiffness_poly": "joint_polynomial",
    "dof.damping_poly": "joint_polynomial",
    "dof.limit": "joint_limited",
    "joint.margin": "joint_two_sided",
    "joint.actuator_range": "joint_actuator_limited",
    "geom.adhesion": "geom_adhesive",
    "geom.surface_velocity": "geom_moving",
    "tendon.stiffness_poly": "tendon_polynomial",
    "tendon.damping_poly": "tendon_polynomial",
    "tendon.armature": "tendon_rotor",
    "tendon.actuator_range": "tendon_actuator_limited",
    "tendon.frictionloss": "tendon_dry",
    "tendon.limit": "tendon_limited",
    "tendon.margin": "tendon_two_sided",
    "pair.adhesion": "pair_adhesive",
    "pair.friction": "pair_uneven",
    "pair.solref_friction": "pair_damped",
}
"""Paths of numbers, and the flags that say for which elements a step reads them."""

_ALL = {
    "opt.density": "enable_fluid",
    "opt.viscosity": "enable_fluid",
    "link.gravcomp": "enable_gravcomp",
}
"""Paths of numbers, and the option that says whether a step reads them."""


def built_in(old: S, new: S) -> S:
    """Set the flags of all numbers that have been replaced.

    Args:
        old: the system before.
        new: the system with other numbers.
    """
    # The values do not matter. Within `jax.jit` and `jax.vmap` they are unknown, and a tree of axes
    # for a batch must get the same structure as the system.
    flags = {flag: _on(new, flag) for path, flag in _EACH.items() if _differ(old, new, path)}
    changes: dict[str, Any] = {k: v for k, v in flags.items() if v != getattr(new, k)}
    on = {flag for path, flag in _ALL.items() if _differ(old, new, path)}
    if not all(getattr(new.opt, flag) for flag in on):
        changes["opt"] = new.opt.replace(**dict.fromkeys(on, True))
    return new.replace(**changes) if changes else new


def _on(sys: Any, flag: str) -> tuple[bool, ...]:
    """Return a flag that is set for every element; a free joint has no limits."""
    if flag == "joint_limited":
        return tuple(kind.qd_width != 6 for kind in sys.joint_types)
    return (True,) * len(getattr(sys, flag))


def with_flags(sys: S, like: S) -> S:
    """Return a system with the numbers of one system and the flags of another."""
    flags = {flag: getattr(like, flag) for flag in _EACH.values()}
    options = {flag: getattr(like.opt, flag) for flag in _ALL.values()}
    return dataclasses.replace(sys, opt=dataclasses.replace(sys.opt, **options), **flags)


def _differ(old: object, new: object, path: str) -> bool:
    """Return whether the numbers at a path are different objects in two systems."""
    # Identity of objects, since values may be traced.
    parts = [jax.tree.leaves(_at(x, path), is_leaf=lambda x: x is None) for x in (old, new)]
    return len(parts[0]) != len(parts[1]) or any(a is not b for a, b in zip(*parts, strict=True))


def _at(tree: object, path: str) -> Any:
    """Return the attribute at a dotted path."""
    for part in path.split("."):
        tree = getattr(tree, part)
    return tree
