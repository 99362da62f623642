"""Functions that the code generator recognizes by their names, and has rules of its own for."""

from collections.abc import Callable
from typing import ParamSpec, TypeVar

import jax

P = ParamSpec("P")
R = TypeVar("R")

PREFIX = "brax."
"""The beginning of their names. A function that is defined in Python has no dot in its name, so
none of a user is taken for one of these."""


def recognized(name: str, fun: Callable[P, R]) -> Callable[P, R]:
    """Return a function that is one equation of a jaxpr, with a name that begins with `PREFIX`.

    Args:
        name: the name.
        fun: the function; it gets the name.
    """
    assert name.startswith(PREFIX), name
    fun.__name__ = name
    return jax.jit(fun)
