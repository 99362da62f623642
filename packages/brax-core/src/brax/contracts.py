"""Shape contracts of public functions, checked while tracing."""

from typing import Any

import chex
import jax.numpy as jnp

from brax.base import State, System
from brax.errors import ShapeError


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
