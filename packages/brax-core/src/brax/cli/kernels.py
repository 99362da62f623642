"""Reports of which kernels are native, for `brax bench` and `brax plugins doctor`."""

import warnings
from collections.abc import Iterable, Iterator
from typing import Any

import jax

from brax import plugins
from brax.errors import BraxError
from brax.kernels.codegen.emitter import Unsupported
from brax.kernels.codegen.explain import Outcome
from brax.kernels.codegen.lowering.arrays import BATCH_MARK
from brax.kernels.codegen.translate import translate
from brax.plugins import Registered
from brax.plugins.kinds import KINDS, resolve
from brax.plugins.outputs.traced import recorded

PHYSICS = ("joint_type", "geometry_type", "collider", "actuator")
"""Kinds of plugin whose functions are parts of a step's kernel."""


def described(outcomes: Iterable[Outcome]) -> Iterator[str]:
    """Yield the number of native kernels, and a line for each of the others."""
    found = list(outcomes)
    if found:
        yield f"native kernels: {sum(o.native for o in found)} of {len(found)}"
    yield from (str(o) for o in found if not o.native)


def of_plugins(found: Iterable[Registered]) -> dict[str, list[Outcome]]:
    """Return the outcomes of translating the physics functions of third-party plugins.

    Returns:
        The outcome of each function, by the distribution that provides it. Brax's own are left out,
        because its tests require them to be native. So are objects that cannot be loaded.
    """
    out: dict[str, list[Outcome]] = {}
    for registered in found:
        if not registered.ours and registered.kind in PHYSICS:
            out.setdefault(registered.distribution, []).extend(of_object(registered))
    return out


def of_object(registered: Registered) -> Iterator[Outcome]:
    """Yield the outcome of translating each function that an object's output checks call."""
    try:
        value = plugins.get(registered.kind, registered.name)
    except BraxError:
        return
    with recorded() as calls:
        # The output checks call every function with suitable stand-ins; their calls are recorded.
        list(resolve(KINDS[registered.kind].outputs)(value))
    for name, function, args in calls:
        yield _of_function(f"{registered.name}.{name}", function, args)


def _of_function(title: str, function: Any, args: object) -> Outcome:
    """Return the outcome of translating one function."""
    batched = jax.tree.map(
        lambda x: jax.ShapeDtypeStruct((*x.shape[:-1], BATCH_MARK), x.dtype), args
    )

    def arrays(*args: Any) -> list[Any]:
        return [x for x in jax.tree.leaves(function(*args)) if isinstance(x, jax.Array)]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the output checks have reported them
        closed = jax.make_jaxpr(arrays)(*batched)
    try:
        translate(closed, [True] * len(closed.jaxpr.invars), lanes=4)
    except Unsupported as reason:
        return Outcome(title, str(reason), reason.where)
    return Outcome(title)
