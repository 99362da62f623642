"""`PipelineEnv`: an environment whose physics is computed by a pipeline."""

from typing import Any, Self

import jax
import jax.numpy as jnp

from brax import base, contact, plugins
from brax.base import System
from brax.colliders.broad_phase import uses_broad_phase
from brax.env.base import Env, check_array, check_count
from brax.errors import ConfigError, ShapeError
from brax.pipeline import Pipeline
from brax.plugins.outputs.pipeline import checked_state
from brax.plugins.outputs.renderer import checked_pictures


class PipelineEnv(Env):
    """Base class of environments made of a `System` and a pipeline.

    Subclasses write `reset` and `step` with `pipeline_init` and `pipeline_step`. They read numbers
    of the model from `self.sys` in those methods, not in their constructor: domain randomization
    replaces `sys`.
    """

    def __init__(
        self, sys: System, backend: str = "spring", n_frames: int = 1, debug: bool = False
    ) -> None:
        """Choose the pipeline.

        Args:
            sys: the model.
            backend: name of a pipeline.
            n_frames: physics steps in one step of the environment, at least 1.
            debug: whether states have their `contact` and `forces`, for inspection; this costs
                time.

        Raises:
            UnknownNameError: if there is no such pipeline.
            ConfigError: if `sys` is not a system, or `n_frames` is not a positive integer.
        """
        self.sys = self._checked(sys)
        self._backend = backend
        self._n_frames = check_count("n_frames", n_frames)
        self._debug = debug
        self._pipeline = plugins.get("pipeline", backend)

    def with_sys(self, sys: System) -> Self:
        """Return a copy of this environment with another system.

        Raises:
            ConfigError: if it is not a system.
        """
        return super().with_sys(self._checked(sys))

    def pipeline_init(self, q: jax.Array, qd: jax.Array, **initial: Any) -> Any:
        """Return the physics' state at given coordinates and velocities.

        Args:
            q: coordinates [rad or m], shape (nq,).
            qd: velocities [rad/s or m/s], shape (nv,).
            **initial: further arguments of the pipeline's `init`; `mjx` takes `ctrl`.
        """
        state = self._pipeline.init(self.sys, q, qd, **initial)
        state = checked_state(self._backend, "init", state)
        # A third-party pipeline need not be able to report forces.
        if self._debug and isinstance(self._pipeline, Pipeline):
            state = self._pipeline.with_forces(self.sys, state)
        return self._seen(state)

    def pipeline_step(self, pipeline_state: Any, action: jax.Array | None) -> Any:
        """Advance the physics by `n_frames` steps under one action.

        Args:
            pipeline_state: the physics' state.
            action: shape (nu,); a number of shape () for all actuators; None for zeros.

        Raises:
            ShapeError: if the action or the state belongs to another environment.
        """
        action = self._checked_action(pipeline_state, action)
        state = self._pipeline.step(self.sys, pipeline_state, action, self._n_frames)
        return self._seen(checked_state(self._backend, "step", state))

    def render(
        self,
        trajectory: Any,
        height: int = 240,
        width: int = 320,
        camera: Any = None,
        *,
        renderer: str = "image",
    ) -> Any:
        """Return pictures of states of the physics.

        Args:
            trajectory: pipeline states in order of time, or a single one.
            height: height of the pictures [pixels].
            width: width of the pictures [pixels].
            camera: a camera as the renderer takes it; `image` takes a camera or a link of the
                model.
            renderer: name of a registered renderer; `image` is that of brax-io.

        Returns:
            Colours, bytes (frames, height, width, 3); for a single state (height, width, 3).

        Raises:
            UnknownNameError: if there is no such renderer.
        """
        # A plugin, because brax-core depends on no graphics library.
        drawn = plugins.get("renderer", renderer)(self.sys, trajectory, height, width, camera)
        return checked_pictures(renderer, drawn, height, width)

    @property
    def dt(self) -> jax.Array:
        """Duration of one step of the environment [s], shape ()."""
        return self.sys.opt.timestep * self._n_frames

    @property
    def action_size(self) -> int:
        """Number of actuators."""
        return self.sys.act_size()

    @property
    def backend(self) -> str:
        """Name of the pipeline."""
        return self._backend

    def _checked(self, sys: Any) -> System:
        """Return the argument if it is a system, else raise."""
        if not isinstance(sys, System):
            raise ConfigError(
                f"{type(self).__name__} needs a System, got {sys!r:.60}: load a file with "
                "brax.io.mjcf.load(path)"
            )
        return sys

    def _seen(self, state: Any) -> Any:
        """Return the state with its contacts and their forces if `debug` is set."""
        if not self._debug:
            return state
        found = contact.get(self.sys, state.x, state.mocap)
        forces = state.forces
        # With a broad phase the listed contacts are the nearest ones, which may be others than
        # those that the forces of the step belong to.
        if found is not None and forces is not None and not uses_broad_phase(self.sys):
            found = found.replace(force=forces.contact)
        return state.replace(contact=found)

    def _checked_action(self, pipeline_state: Any, action: jax.Array | None) -> jax.Array:
        """Return the action, shape (nu,), or raise if it or the state does not fit."""
        name = type(self).__name__
        if not isinstance(pipeline_state, base.State):
            raise ShapeError(
                f"{name} got a state without physics ({type(pipeline_state).__name__}): "
                "pass step what this environment's reset returned"
            )
        links = pipeline_state.x.pos.shape[0]
        if links != self.sys.num_links():
            raise ShapeError(
                f"state has {links} links, {name} has {self.sys.num_links()}: "
                "pass step what this environment's reset returned"
            )
        # A subclass may have fewer actions than actuators, and compute controls from them.
        size = self.sys.act_size()
        if action is None:
            return jnp.zeros(size, pipeline_state.q.dtype)
        check_array(self, action, (size,))
        if action.shape == ():
            return jnp.broadcast_to(action, (size,))
        if action.shape != (size,):
            entries = f"{action.shape[0]} entries" if action.ndim == 1 else f"shape {action.shape}"
            raise ShapeError(f"act has {entries}; '{name}' has {size} actuators")
        return action
