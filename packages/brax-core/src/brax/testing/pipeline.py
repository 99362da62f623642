"""`check_pipeline`: verifies that a pipeline follows its interface."""

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from brax.base import State, System
from brax.builder import ModelBuilder
from brax.errors import describe_error
from brax.plugins.outputs.traced import describe
from brax.testing.faults import in_turn, raise_problems


def check_pipeline(pipeline: object, system: System | None = None) -> None:
    """Check one pipeline.

    `init` and `step` must return a `brax.base.State` of one structure with finite numbers, and
    `init` must keep the coordinates that it was given. Two steps must equal one call with
    `n_frames=2`. `jax.vmap` must map both functions.

    Args:
        pipeline: the pipeline.
        system: the model to check it on; by default a pendulum with a motor.

    Raises:
        PluginError: naming everything that is wrong.
    """
    model = system or _pendulum()
    problems = in_turn(pipeline, _interface, lambda pipeline: _states(pipeline, model))
    raise_problems(pipeline, "pipelines", problems)


def _interface(pipeline: object) -> Iterator[str]:
    """Yield the functions that a pipeline lacks."""
    for name in ("init", "step"):
        if not callable(getattr(pipeline, name, None)):
            yield f"it must have a function {name}"


def _pendulum() -> System:
    """Return a pendulum with a motor."""
    model = ModelBuilder()
    model.add_body("bob", mass=1.0, inertia=(0.1, 0.1, 0.1), ipos=(0, 0, -1))
    model.add_actuator(model.add_joint("bob", axis=(0, 1, 0), damping=0.1))
    return model.build()


def _states(pipeline: Any, sys: System) -> Iterator[str]:
    """Yield the problems of the states of a few steps."""
    act = jnp.zeros(sys.act_size())
    name = "init"
    try:
        start = pipeline.init(sys, sys.init_q, jnp.zeros(sys.qd_size()))
        if isinstance(start, State):
            name = "step"
            # The number of substeps is static in every pipeline.
            step = jax.jit(pipeline.step, static_argnums=3)
            once = step(sys, start, act, 1)
            if isinstance(once, State):
                yield from _compare(start, once, step(sys, once, act, 1), step(sys, start, act, 2))
                batch = jax.tree.map(lambda x: jnp.stack([x, x]), start)
                jax.eval_shape(jax.vmap(lambda s: pipeline.step(sys, s, act, 1)), batch)
                if not np.allclose(start.q, sys.init_q, atol=1e-5):
                    yield f"init must be at the coordinates that it was given, but is at {start.q}"
                return
            start = once
    except Exception as error:
        yield f"{name} raised {describe_error(error)}"
        return
    yield f"{name} must return a brax.base.State, but returns {describe(start)}"


def _compare(start: State, once: State, twice: State, both: State) -> Iterator[str]:
    """Yield the differences between two steps and one call with two frames."""
    given: Any = jax.tree.structure(once)
    if given != jax.tree.structure(twice):
        yield "step must return the structure that it was given, so that jax.lax.scan can carry it"
        return
    for field in ("q", "qd"):
        a, b = np.asarray(getattr(twice, field)), np.asarray(getattr(both, field))
        if not np.isfinite(a).all():
            yield f"step returns {field} that is not finite"
        elif not np.allclose(a, b, atol=1e-4):
            yield f"{field} differs between two steps and one call with n_frames=2"
