"""`Task`: what the environments of the collection share."""

from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp

from brax.base import State as PipelineState
from brax.env import PipelineEnv, State, check_key, check_state, random_numbers
from brax.envs.observation import Layout, observe
from brax.envs.parameters import make_parameters
from brax.errors import ConfigError
from brax.io import mjcf

ASSETS = Path(__file__).parent / "assets"


class Physics(NamedTuple):
    """How a pipeline runs a model."""

    timestep: float
    """Physics step [s]."""
    n_frames: int
    """Physics steps in one step of the environment."""


class Task(PipelineEnv):
    """A model with a start, a reward that is the sum of named metrics, and an end.

    A subclass declares the class variables and writes `rewards`, `extras` and `is_over` where it
    has any, and `start` where that is more than noise about the rest.
    """

    name: ClassVar[str]
    """Its registered name."""
    model: ClassVar[str]
    """Model file in `assets`."""
    physics: ClassVar[Mapping[str, Physics]]
    """By backend; one that is not named runs as the first."""
    default: ClassVar[str] = "generalized"
    """Backend where none is chosen."""
    kind: ClassVar[type]
    """Dataclass of its parameters."""
    layout: ClassVar[Layout]
    """What it observes."""
    hidden: ClassVar[Layout] = ()
    """What comes before `layout` if `exclude_current_positions_from_observation` is False."""
    scaled: ClassVar[bool] = False
    """True if actions in [-1, 1] are scaled to the motors' control ranges."""

    def __init__(
        self,
        backend: str | None = None,
        n_frames: int | None = None,
        debug: bool = False,
        **parameters: Any,
    ) -> None:
        """Makes the environment.

        Args:
            backend: name of the pipeline; by default `default`.
            n_frames: physics steps in one step; by default the number of `physics`.
            debug: whether the states of the physics tell their `contact`.
            **parameters: fields of the dataclass `kind`.

        Raises:
            ConfigError: on an unknown parameter, or one that is not supported.
        """
        self.parameters: Any = make_parameters(self.kind, parameters, self.name)
        if getattr(self.parameters, "use_contact_forces", False):
            raise ConfigError(
                f"{self.name}: use_contact_forces=True is not supported; leave it out"
            )
        backend = self.default if backend is None else backend
        physics = self.physics.get(backend, next(iter(self.physics.values())))
        n_frames = physics.n_frames if n_frames is None else n_frames
        sys = mjcf.load(ASSETS / self.model)
        timestep = jnp.full_like(sys.opt.timestep, physics.timestep)
        super().__init__(sys.replace(opt_timestep=timestep), backend, n_frames, debug)
        shown = not getattr(self.parameters, "exclude_current_positions_from_observation", True)
        self.observation_layout = self.hidden + self.layout if shown else self.layout

    def start(self, key_q: jax.Array, key_qd: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Draws the coordinates (nq,) and velocities (nv,) of a start.

        Near the rest, with noise on both, as `reset_noise_scale` says.
        """
        scale = self.parameters.reset_noise_scale
        q = self.sys.init_q + spread(key_q, self.sys.q_size(), scale)
        return q, self.first_velocities(key_qd, scale)

    def first_velocities(self, key: jax.Array, scale: float) -> jax.Array:
        """Draws the velocities of a start, (nv,): evenly, unless a subclass says otherwise."""
        return spread(key, self.sys.qd_size(), scale)

    @abstractmethod
    def rewards(
        self, before: PipelineState, after: PipelineState, ctrl: jax.Array
    ) -> dict[str, jax.Array]:
        """The terms of a step's reward, by the names of their metrics.

        Args:
            before: physics before the step.
            after: physics after it.
            ctrl: controls, shape (nu,).
        """

    def extras(self, before: PipelineState, after: PipelineState) -> dict[str, jax.Array]:
        """Metrics that are not part of the reward."""
        return {}

    def is_over(self, after: PipelineState) -> jax.Array:
        """Return whether the episode ends; true where what decides it is NaN."""
        return jnp.zeros((), bool)

    def reset(self, rng: jax.Array) -> State:
        """Starts an episode."""
        physics = self.pipeline_init(*self.start(*jax.random.split(check_key(rng))))
        ctrl = jnp.zeros(self.action_size)
        metrics = self.rewards(physics, physics, ctrl) | self.extras(physics, physics)
        zero = jnp.zeros(())
        obs = observe(self.observation_layout, self.sys, physics, ctrl)
        return State(physics, obs, zero, zero, jax.tree.map(jnp.zeros_like, metrics))

    def step(self, state: State, action: jax.Array) -> State:
        """Advances by `dt` under an action in [-1, 1], shape (action_size,)."""
        check_state(self, state)
        before = state.pipeline_state
        self._check(before, action)
        # In double precision an action of single precision would make such metrics of its own.
        action = jnp.asarray(action, before.q.dtype)
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
    """Numbers drawn evenly from -scale to scale, shape (size,)."""
    return random_numbers.uniform(key, (size,), -scale, scale)


def normal(key: jax.Array, size: int, deviation: float) -> jax.Array:
    """Normal numbers of mean zero, shape (size,)."""
    return deviation * random_numbers.normal(key, (size,))


def travel(before: jax.Array, after: jax.Array, dt: jax.Array) -> dict[str, jax.Array]:
    """Metrics of where something is in the plane, and how fast it came there.

    Args:
        before: where it was, x and y first [m].
        after: where it is.
        dt: duration of the step [s].
    """
    x, y = after[:2]
    vx, vy = (after[:2] - before[:2]) / dt
    return {
        "x_position": x,
        "y_position": y,
        "distance_from_origin": jnp.hypot(x, y),
        "x_velocity": vx,
        "y_velocity": vy,
    }


def between(low: float, value: jax.Array, high: float) -> jax.Array:
    """Return whether a value is in a closed range; false where it is NaN."""
    return (low <= value) & (value <= high)
