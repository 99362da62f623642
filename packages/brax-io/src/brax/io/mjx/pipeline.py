"""The pipeline `mjx`: MuJoCo's own engine in JAX, to compare with.

It converts a `System` to MuJoCo's model once, when a program is compiled, and uses MJX's step.
Which pairs are tested, and how parameters of two geoms are combined (friction, softness), follows
Brax.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from brax import contracts, kinematics
from brax.base import Force, State, System
from brax.errors import BraxError, ModelError
from brax.io import _arguments
from brax.io.mjx.model import lacking, mujoco_model

APPROXIMATED = {
    contracts.ELASTICITY: "it has no effect; the softness of contacts takes its place",
    contracts.DAMPING: "it has no effect; joints have their own",
}


_MOVING = ("qpos", "qvel", "qacc_warmstart")
"""The fields of MJX's data that one step passes to the next."""

REFUSED = (contracts.TIME_OF_IMPACT, contracts.ADHESION, contracts.ADHESION_LIMITS)
"""Features that `lacking` reports by element."""


class Mjx:
    """MJX's step as a pipeline."""

    name = "mjx"

    def report(self, sys: System) -> list[tuple[str, str, str]]:
        """Return rows of what is not computed as in the model: feature, status, reason."""
        _arguments.system(sys)
        rows = [
            (feature, "approximated", APPROXIMATED[feature])
            if feature in APPROXIMATED
            else (feature, "supported", "")
            for feature, has in contracts.FEATURES.items()
            if has(sys) and feature not in REFUSED
        ]
        return rows + [("the model", "refused", problem) for problem in lacking(sys)]

    def init(self, sys: System, q: jax.Array, qd: jax.Array) -> State:
        """Return the state of a model at coordinates `q` (nq,) and velocities `qd` (nv,).

        Raises:
            BraxError: if mujoco-mjx is not installed.
            ModelError: listing everything that MJX or the conversion does not support.
            ShapeError: if an array does not fit the model.
        """
        _arguments.system(sys)
        contracts.check_system("mjx.init", sys)
        _model(sys)
        contracts.check_vector("mjx.init", "q", q, sys.q_size(), "coordinates")
        contracts.check_vector("mjx.init", "qd", qd, sys.qd_size(), "degrees of freedom")
        return _state(sys, _unit(sys, jnp.asarray(q)), jnp.asarray(qd), jnp.zeros_like(qd))

    def step(
        self,
        sys: System,
        state: State,
        act: jax.Array | None,
        n_frames: int = 1,
        external: Force | None = None,
    ) -> State:
        """Advance a state by `n_frames` physics steps under one control (nu,).

        Arguments and errors are those of the other pipelines, and those of `init`.
        """
        if act is None and isinstance(sys, System):
            act = jnp.zeros(sys.act_size())
        contracts.check_step("mjx.step", sys, state, act, n_frames, external)
        model = _model(sys)
        # Only `_MOVING` is carried through the loop: the rest of MJX's data is recomputed in each
        # step.
        fixed = _library().make_data(model).replace(ctrl=jnp.asarray(act))
        if external is not None:
            wrench = jnp.concatenate([external.vel, external.ang], axis=1)
            fixed = fixed.replace(xfrc_applied=fixed.xfrc_applied.at[1:].set(wrench))

        def step(_: Any, moving: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
            data = fixed.replace(**dict(zip(_MOVING, moving, strict=True)))
            data = _library().step(model, data)
            return tuple(getattr(data, name) for name in _MOVING)

        start = jnp.zeros_like(state.qd) if state.warmstart is None else state.warmstart
        return _state(sys, *jax.lax.fori_loop(0, n_frames, step, (state.q, state.qd, start)))


MJX = Mjx()


def _library() -> Any:
    try:
        from mujoco import mjx
    except ImportError:
        raise BraxError("the pipeline 'mjx' needs MJX: pip install 'brax-io[mjx]'") from None
    return mjx


def _state(sys: System, q: jax.Array, qd: jax.Array, warmstart: jax.Array) -> State:
    return State(q, qd, *kinematics.forward(sys, q, qd), warmstart=warmstart)


def _unit(sys: System, q: jax.Array) -> jax.Array:
    """Return coordinates whose quaternions have unit length."""
    for kind, start in zip(sys.joint_types, sys.joint_q_start(), strict=True):
        if kind.q_width > kind.qd_width:
            quaternion = slice(start + kind.q_width - 4, start + kind.q_width)
            q = q.at[quaternion].divide(jnp.linalg.norm(q[quaternion]))
    return q


def _model(sys: System) -> Any:
    """Return MJX's model of a system, made once for equal systems."""
    leaves, structure = jax.tree.flatten(sys)
    if any(isinstance(leaf, jax.core.Tracer) for leaf in leaves):
        raise ModelError(
            "mjx: the model's numbers must be known when the program is compiled: close over the "
            "system, do not pass it to a compiled function, and do not randomize it"
        )
    # Bytes are hashable, so equal systems share one entry of the cache.
    arrays = [np.asarray(leaf) for leaf in leaves]
    return _put(structure, tuple((a.dtype.str, a.shape, a.tobytes()) for a in arrays))


@functools.lru_cache(maxsize=16)
def _put(structure: Any, leaves: tuple[tuple[str, tuple[int, ...], bytes], ...]) -> Any:
    arrays = [np.frombuffer(data, kind).reshape(shape) for kind, shape, data in leaves]
    library = _library()
    # Within a traced function the model's arrays would become tracers.
    with jax.ensure_compile_time_eval():
        model = mujoco_model(jax.tree.unflatten(structure, arrays))
        try:
            return library.put_model(model)
        except NotImplementedError as error:
            raise ModelError(f"mjx: MJX does not have it: {error}") from None
