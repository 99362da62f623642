"""Registry of operations: all that this package knows about each of JAX's primitives, once.

A module with lowering rules registers them with `lowering_rule`, and says there what else is known
of the operation. All who go through a jaxpr ask `operation`. Kernels, and the loops and calls of
`control_flow`, are registered too.
"""

import enum
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from brax.kernels.codegen.emitter import Unsupported, is_runtime_value

R = TypeVar("R", bound=Callable[..., Any] | None)


class Takes(enum.Enum):
    """The arguments of a lowering rule; each begins with the emitter."""

    NUMBERS = enum.auto()
    """The type code of the first operand, and an element of each operand."""
    ELEMENTS = enum.auto()
    """The equation, and an element of each operand."""
    ARRAYS = enum.auto()
    """The equation and its operands; the rule returns one result, or a list."""
    FUNCTIONS = enum.auto()
    """The equation, a list of its operands, and a `LastRead`; the rule returns a list."""


@dataclass(frozen=True)
class Operation:
    """A primitive of JAX."""

    name: str
    """The primitive's name."""
    rule: Callable[..., Any] | None = None
    """The lowering rule; None if there is none, or only one for arrays in memory."""
    takes: Takes = Takes.ARRAYS
    """The arguments of the rule."""
    in_memory: Callable[..., Any] | None = None
    """The rule for arrays in memory, of the emitter, its loops, the equation and the operands. It
    returns None for a case that it leaves to `rule`."""
    parameters: str | None = "accuracy?"
    """The equation's parameters that are known, see `jax_internals.check`; None for any."""
    by_rows: bool = False
    """True if the rule decides on a loop itself, over rows or matrices in memory."""
    moves: bool = False
    """True if it only moves elements: it makes no instructions, for arrays in memory neither."""
    free: bool = False
    """True if it is counted as if it made no instructions, as what only moves elements is."""
    kernel: Callable[[Any], Any] | None = None
    """Takes the equation, and returns the kernel that it calls; None if it calls none."""
    parts: Callable[[Any], Any] | None = None
    """Takes the equation, and returns the functions that it calls, of the types in
    `jax_internals`; None if it is no loop, branch or call."""
    cost: int = 1
    """The cost of an element in XLA's program, in additions. The numbers are rough: what counts is
    that functions cost much more than additions."""
    stored: bool = False
    """True if XLA stores the results in any case, since it does not fuse the operation."""
    reduces: bool = False
    """True if an element of the result needs many elements of the operand."""


_OPERATIONS: dict[str, Operation] = {}


def lowering_rule(
    *names: str, folded: Callable[..., Any] | None = None, moves: bool = False, **facts: Any
) -> Callable[[R], R]:
    """Return a decorator that registers a lowering rule.

    Args:
        *names: the names of the primitives that have the rule.
        folded: for a rule of numbers, NumPy's function for known ones; without it, those become
            instructions too.
        moves: whether the operations only move elements.
        **facts: further fields of `Operation`.
    """
    if moves:
        facts = dict(free=True, cost=0) | facts

    def register(rule: R) -> R:
        for name in names:
            assert name not in _OPERATIONS, name
            found: Callable[..., Any] | None = rule
            if found and folded:
                found = _folding(found, folded)
            _OPERATIONS[name] = Operation(name, found, moves=moves, **facts)
        return rule

    return register


def _folding(rule: Callable[..., Any], folded: Callable[..., Any]) -> Callable[..., Any]:
    """Return a rule of numbers with constant folding."""

    def one(emitter: Any, code: str, *x: Any) -> Any:
        # A plain loop: this runs for each element of each array.
        for v in x:
            if is_runtime_value(v):
                return rule(emitter, code, *x)
        # Infinities and NaN of constants are no reason to warn: instructions do not either.
        with np.errstate(all="ignore"):
            return folded(*x)

    return one


def named(name: str) -> Operation:
    """Return the operation of a name, without a rule if it is not registered."""
    return _OPERATIONS.get(name) or Operation(name)


def operation(eqn: Any) -> Operation:
    """Return the operation of an equation."""
    return named(eqn.primitive.name)


def elements(eqn: Any, but: int | None = None) -> int:
    """Return the number of elements that an equation computes.

    Args:
        eqn: the equation.
        but: a size whose axes do not count, such as the batch's.
    """
    # A reduction costs its operand's elements, a broadcasting operation its result's.
    shapes = (v.aval.shape for v in itertools.chain(eqn.invars, eqn.outvars))
    return max((math.prod(n for n in shape if n != but) for shape in shapes), default=0)


def without_rule(eqn: Any) -> Unsupported:
    """Return the error for an operation that has no lowering rule."""
    return Unsupported(f"the operation '{eqn.primitive.name}', which has no lowering rule")
