"""Shape contracts of public functions, checked while tracing."""

from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np

from brax.base import State, System
from brax.errors import ModelError, ShapeError


def check_vector(function: str, name: str, value: Any, size: int, what: str) -> None:
    """Checks that an argument is a vector of floats of the model's size.

    Raises:
        ShapeError: naming function, argument, what was expected and what came.
    """
    value = jnp.asarray(value)
    try:
        chex.assert_shape(value, (size,))
    except AssertionError:
        raise ShapeError(
            f"{function}: argument '{name}' has shape {value.shape}; the model has {size} {what}, "
            f"so expected ({size},). For a batch use jax.vmap."
        ) from None
    try:
        chex.assert_type(value, float)
    except AssertionError:
        raise ShapeError(
            f"{function}: argument '{name}' has dtype {value.dtype}; expected a float."
        ) from None


def check_state(function: str, sys: System, state: State) -> None:
    """Checks that a state belongs to the model.

    Raises:
        ShapeError: naming function, what was expected and what came.
    """
    n = sys.num_links()
    if state.x.pos.shape != (n, 3):
        raise ShapeError(
            f"{function}: the state has x.pos of shape {state.x.pos.shape}; the system has {n} "
            f"links, so expected ({n}, 3). Is it a state of another system, or a batch that is "
            "missing a jax.vmap?"
        )
    check_vector(function, "state.q", state.q, sys.q_size(), "coordinates")
    check_vector(function, "state.qd", state.qd, sys.qd_size(), "degrees of freedom")


def check_system(function: str, sys: System) -> None:
    """Checks a system whose leaves may have been replaced: shapes always, values where known.

    Raises:
        ModelError: naming the leaf, what it is and what is allowed.
    """
    n, nq, nv, nu = sys.num_links(), sys.q_size(), sys.qd_size(), sys.act_size()
    ng = len(sys.geom_names)
    table: list[tuple[str, Any, tuple[int, ...], str]] = [
        ("opt.timestep", sys.opt.timestep, (), "> 0"),
        ("opt.gravity", sys.opt.gravity, (3,), ""),
        ("link.inertia.mass", sys.link.inertia.mass, (n,), "> 0"),
        ("link.inertia.i", sys.link.inertia.i, (n, 3), "> 0"),
        ("init_q", sys.init_q, (nq,), ""),
        ("dof.armature", sys.dof.armature, (nv,), ">= 0"),
        ("dof.damping", sys.dof.damping, (nv,), ">= 0"),
        ("dof.stiffness", sys.dof.stiffness, (nv,), ">= 0"),
        ("geom.size", sys.geom.size, (ng, 3), ">= 0"),
        ("geom.friction", sys.geom.friction, (ng, 3), ">= 0"),
        ("geom.elasticity", sys.geom.elasticity, (ng,), ">= 0"),
        ("actuator.gear", sys.actuator.gear, (nu,), ""),
        ("vel_damping", sys.vel_damping, (), "<= 0"),
        ("ang_damping", sys.ang_damping, (), "<= 0"),
    ]
    problems = [p for row in table if (p := _leaf_problem(*row))]
    if problems:
        raise ModelError.of([f"{function}: {p}" for p in problems])


def _leaf_problem(name: str, value: Any, shape: tuple[int, ...], allowed: str) -> str | None:
    if np.shape(value) != shape:
        return f"system leaf '{name}' has shape {np.shape(value)}, expected {shape}"
    if isinstance(value, jax.core.Tracer):
        return None
    known = np.asarray(value)
    good = {
        "": known == known,
        "> 0": known > 0,
        ">= 0": known >= 0,
        "<= 0": known <= 0,
    }[allowed] & np.isfinite(known)
    if good.all():
        return None
    return f"system leaf '{name}' must be finite{allowed and f' and {allowed}'}, got {known[~good]}"
