"""`Task`: the base class of the collection's environments."""

from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp

from brax.base import State as PipelineState
from brax.env import PipelineEnv, State, check_array, check_key, check_state, random_numbers
from brax.envs.observation import Layout, observe, without_velocities
from brax.envs.parameters import make_parameters
from brax.errors import ConfigError
from brax.io import mjcf

ASSETS = Path(__file__).parent / "assets"


class Physics(NamedTuple):
    """The time step of a pipeline, and the number of steps."""

    timestep: float
    """Physics step [s]."""
    n_frames: int
    """Physics steps in one step of the environment."""


class Task(PipelineEnv):
    """A model with an initial state, a reward that is a sum of named metrics, and a termination.

    A subclass declares the class variables and defines `rewards`. It defines `extras` and `is_over`
    if it has any, and `start` if that is more than noise around the initial configuration.
    """

    name: ClassVar[str]
    """Registered name."""
    model: ClassVar[str]
    """Model file in `assets`."""
    physics: ClassVar[Mapping[str, Physics]]
    """Time steps by backend; a backend that is not listed runs as the first one."""
    default: ClassVar[str] = "generalized"
    """Default backend."""
    kind: ClassVar[type]
    """Dataclass of the parameters."""
    layout: ClassVar[Layout]
    """Layout of the observation."""
    hidden: ClassVar[Layout] = ()
    """Layout before `layout` if `exclude_current_positions_from_observation` is False."""
    scaled: ClassVar[bool] = False
    """True if actions in [-1, 1] are scaled to the control ranges of the actuators."""

    def __init__(
        self,
        backend: str | None = None,
        n_frames: int | None = None,
        debug: bool = False,
        hide_velocities: bool = False,
        **parameters: Any,
    ) -> None:
        """Load the model and select the pipeline.

        Args:
            backend: name of the pipeline; by default `default`.
            n_frames: physics steps in one step; by default the number in `physics`.
            debug: whether the states of the pipeline contain their `contact`.
            hide_velocities: whether the observation lacks its velocities, so that an agent needs
                memory to know them.
            **parameters: fields of the dataclass `kind`.

        Raises:
            ConfigError: if a parameter is unknown or not supported.
        """
        if not isinstance(hide_velocities, bool):
            raise ConfigError(
                f"environment '{self.name}': hide_velocities={hide_velocities!r} must be True or "
                "False."
            )
        self.parameters: Any = make_parameters(self.kind, parameters, self.name)
        if getattr(self.parameters, "use_contact_forces", False):
            raise ConfigError(
                f"{self.name}: use_contact_forces=True is not supported; leave it out"
            )
        backend = self.default if backend is None else backend
        physics = self.physics.get(backend, next(iter(self.physics.values())))
        n_frames = physics.n_frames if n_frames is None else n_frames
        # The pipeline decides the time step, not the file.
        sys = mjcf.load(ASSETS / self.model)
        timestep = jnp.full_like(sys.opt.timestep, physics.timestep)
        super().__init__(sys.replace(opt_timestep=timestep), backend, n_frames, debug)
        shown = not getattr(self.parameters, "exclude_current_positions_from_observation", True)
        layout = self.hidden + self.layout if shown else self.layout
        self.observation_layout = without_velocities(layout) if hide_velocities else layout

    def start(self, key_q: jax.Array, key_qd: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Draw the coordinates (nq,) and velocities (nv,) of an initial state.

        Both get noise of the size `reset_noise_scale`.
        """
        scale = self.parameters.reset_noise_scale
        q = self.sys.init_q + spread(key_q, self.sys.q_size(), scale)
        return q, self.first_velocities(key_qd, scale)

    def first_velocities(self, key: jax.Array, scale: float) -> jax.Array:
        """Draw the initial velocities, (nv,): uniform, unless a subclass overrides this."""
        return spread(key, self.sys.qd_size(), scale)

    @abstractmethod
    def rewards(
        self, before: PipelineState, after: PipelineState, ctrl: jax.Array
    ) -> dict[str, jax.Array]:
        """Return the terms of a step's reward, by the names of their metrics.

        Args:
            before: physics before the step.
            after: physics after it.
            ctrl: controls, shape (nu,).
        """

    def extras(self, before: PipelineState, after: PipelineState) -> dict[str, jax.Array]:
        """Return metrics that are not part of the reward."""
        return {}

    def is_over(self, after: PipelineState) -> jax.Array:
        """Return whether the episode terminates; True if the deciding quantity is NaN."""
        return jnp.zeros((), bool)

    def reset(self, rng: jax.Array) -> State:
        """Start an episode."""
        physics = self.pipeline_init(*self.start(*jax.random.split(check_key(rng))))
        ctrl = jnp.zeros(self.action_size)
        # `jax.lax.scan` needs the same metrics in every state, so `reset` computes them once for
        # their shapes.
        metrics = self.rewards(physics, physics, ctrl) | self.extras(physics, physics)
        zero = jnp.zeros(())
        obs = observe(self.observation_layout, self.sys, physics, ctrl)
        return State(physics, obs, zero, zero, jax.tree.map(jnp.zeros_like, metrics))

    def step(self, state: State, action: jax.Array) -> State:
        """Advance by `dt` under an action in [-1, 1], shape (action_size,), or () for all."""
        check_state(self, state)
        before = state.pipeline_state
        check_array(self, action, (self.action_size,))
        # A float32 action would give float32 metrics in a float64 run, and `reset` returns float64.
        action = jnp.asarray(self._checked_action(before, action), before.q.dtype)
        ctrl = self._controls(action) if self.scaled else action
        after = self.pipeline_step(before, ctrl)
        terms = self.rewards(before, after, ctrl)
        return state.replace(
            pipeline_state=after,
            obs=observe(self.observation_layout, self.sys, after, ctrl),
            reward=sum(terms.values(), start=jnp.zeros(())),
            done=self.is_over(after).astype(float),
            metrics=terms | self.extras(before, after),
        )

    def _controls(self, action: jax.Array) -> jax.Array:
        low, high = self.sys.actuator.ctrl_range.T
        return low + (action + 1) / 2 * (high - low)


def spread(key: jax.Array, size: int, scale: float) -> jax.Array:
    """Return uniform numbers in [-scale, scale], shape (size,)."""
    return random_numbers.uniform(key, (size,), -scale, scale)


def normal(key: jax.Array, size: int, deviation: float) -> jax.Array:
    """Return normal numbers of mean zero, shape (size,)."""
    return deviation * random_numbers.normal(key, (size,))


def travel(before: jax.Array, after: jax.Array, dt: jax.Array) -> dict[str, jax.Array]:
    """Return metrics of position and velocity in the plane.

    Args:
        before: position before the step, x and y first [m].
        after: position after the step.
        dt: duration of the step [s].
    """
    x, y = after[:2]
    vel_x, vel_y = (after[:2] - before[:2]) / dt
    return {
        "x_position": x,
        "y_position": y,
        "distance_from_origin": jnp.hypot(x, y),
        "x_velocity": vel_x,
        "y_velocity": vel_y,
    }


def between(low: float, value: jax.Array, high: float) -> jax.Array:
    """Return whether a value is in a closed range; False if it is NaN."""
    return (low <= value) & (value <= high)
