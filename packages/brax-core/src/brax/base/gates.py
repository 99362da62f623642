"""Numbers that a step only reads where the structure of a `System` says so.

What a model does not have costs nothing: no rows of a solver, no forces. Whether it has dry
friction or limits is therefore part of a system's structure, set when the model is built. Numbers
that are replaced later, as domain randomization does, change the structure too.
"""

import dataclasses
from typing import Any, TypeVar

import jax

S = TypeVar("S", bound=Any)

_EACH = {
    "dof.frictionloss": "joint_dry",
    "dof.limit": "joint_limited",
    "joint.margin": "joint_two_sided",
    "joint.actuator_range": "joint_actuator_limited",
    "tendon.frictionloss": "tendon_dry",
    "tendon.limit": "tendon_limited",
    "tendon.margin": "tendon_two_sided",
    "pair.friction": "pair_uneven",
}
"""Numbers, and the flags that say of each joint, tendon or pair whether they count."""

_ALL = {
    "opt.density": "enable_fluid",
    "opt.viscosity": "enable_fluid",
    "link.gravcomp": "enable_gravcomp",
}
"""Numbers, and the option that says whether they count."""


def built_in(old: S, new: S) -> S:
    """Builds in what is said by numbers that are not those of the old system.

    What they are does not matter, since within `jax.jit` and `jax.vmap` it is unknown, and since
    the tree of axes for a batch must have the same structure.
    """
    flags = {flag: _on(new, flag) for path, flag in _EACH.items() if _differ(old, new, path)}
    changes: dict[str, Any] = {k: v for k, v in flags.items() if v != getattr(new, k)}
    on = {flag for path, flag in _ALL.items() if _differ(old, new, path)}
    if not all(getattr(new.opt, flag) for flag in on):
        changes["opt"] = new.opt.replace(**dict.fromkeys(on, True))
    return new.replace(**changes) if changes else new


def _on(sys: Any, flag: str) -> tuple[bool, ...]:
    """The flag of every joint, tendon or pair; a free joint has no limits."""
    if flag == "joint_limited":
        return tuple(kind.qd_width != 6 for kind in sys.joint_types)
    return (True,) * len(getattr(sys, flag))


def with_flags(sys: S, like: S) -> S:
    """Returns a system that has the numbers of one and is built with what another has."""
    flags = {flag: getattr(like, flag) for flag in _EACH.values()}
    options = {flag: getattr(like.opt, flag) for flag in _ALL.values()}
    return dataclasses.replace(sys, opt=dataclasses.replace(sys.opt, **options), **flags)


def _differ(old: Any, new: Any, path: str) -> bool:
    """Return whether numbers are other objects."""
    parts = [jax.tree.leaves(_at(x, path), is_leaf=lambda x: x is None) for x in (old, new)]
    return len(parts[0]) != len(parts[1]) or any(a is not b for a, b in zip(*parts, strict=True))


def _at(tree: Any, path: str) -> Any:
    for part in path.split("."):
        tree = getattr(tree, part)
    return tree
